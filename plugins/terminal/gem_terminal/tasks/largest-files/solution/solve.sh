#!/bin/bash
set -e
find /app/store -type f -printf '%s %p\n' | sort -rn | head -3 | cut -d' ' -f2- > /app/largest.txt
