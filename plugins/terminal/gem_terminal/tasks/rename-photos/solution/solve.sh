#!/bin/bash
set -e
cd /app/photos
for old in *; do
  [ "$old" = notes.txt ] && continue
  new=$(printf '%s' "$old" | tr 'A-Z ' 'a-z_' | sed 's/\.jpeg$/.jpg/')
  [ "$old" = "$new" ] || mv -- "$old" "$new"
done
