#!/bin/bash
set -e
cd /app
for file in lists/*; do cat "$file"; echo; done | tr -d '\r' | tr 'A-Z' 'a-z' | sed 's/^ *//; s/ *$//' | grep . \
  | LC_ALL=C sort -u > all.txt
