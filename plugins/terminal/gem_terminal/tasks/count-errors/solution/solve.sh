#!/bin/bash
set -e
cd /app
echo service,errors > errors.csv
awk '$3 == "ERROR" { gsub(/[][]/, "", $4); n[$4]++ } END { for (s in n) print s "," n[s] }' service.txt \
  | sort -t, -k2,2nr -k1,1 >> errors.csv
