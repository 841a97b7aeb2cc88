#!/bin/bash
set -e
cd /app
awk '$4 == 200 { sub(/"/, "", $3); t[$3] += $5; n[$3]++ } END { for (p in t) print p, int(t[p] / n[p]) }' access.txt \
  | sort -k2,2nr > slow.txt
