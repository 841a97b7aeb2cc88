#!/bin/bash
set -e
cd /app
tr 'A-Z' 'a-z' < story.txt | tr -cs 'a-z' '\n' | grep . | sort | uniq -c | sort -k1,1nr -k2,2 | head -5 \
  | awk '{ print $2, $1 }' > words.txt
