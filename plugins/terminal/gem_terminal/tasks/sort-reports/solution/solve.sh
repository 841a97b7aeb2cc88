#!/bin/bash
set -e
cd /app/reports
for file in report-[0-9][0-9][0-9][0-9]-[0-9][0-9].txt; do
  year=${file:7:4} month=${file:12:2}
  mkdir -p "$year"
  mv "$file" "$year/$month.txt"
done
