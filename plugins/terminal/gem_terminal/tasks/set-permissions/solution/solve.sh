#!/bin/bash
set -e
find /app/share -type f -name '*.sh' -exec chmod 700 {} +
find /app/share -type f -name '*.txt' -exec chmod 640 {} +
find /app/share -depth -type d -exec chmod 750 {} +
