import sys

values = sorted(line.strip() for line in sys.stdin if line.strip())
middle = len(values) // 2
if len(values) % 2:
    print(values[middle])
else:
    print(values[middle] + values[middle + 1] / 2)
