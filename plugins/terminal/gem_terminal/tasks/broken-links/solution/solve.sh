#!/bin/bash
set -e
find /app/site -xtype l > /tmp/broken
wc -l < /tmp/broken > /app/removed.txt
xargs -r rm -- < /tmp/broken
