#!/bin/bash
set -e
grep -rlw price /app/lib --exclude=CHANGES.md | xargs sed -i 's/\bprice\b/gross/g'
