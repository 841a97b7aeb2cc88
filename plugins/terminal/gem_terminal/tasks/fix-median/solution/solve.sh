#!/bin/bash
set -e
cat > /app/median.py <<'END'
import sys

values = sorted(int(line) for line in sys.stdin if line.strip())
middle = len(values) // 2
if not values:
    print("none")
elif len(values) % 2:
    print(values[middle])
else:
    print(f"{(values[middle - 1] + values[middle]) / 2:.1f}")
END
