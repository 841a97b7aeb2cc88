"""A right program for every problem of the bundled sample, by the problem's name."""

SOLUTIONS = {
    "sum": "print(sum(map(int, input().split())))",
    "reverse": "print(input()[::-1])",
    "vowels": "print(sum(letter in 'aeiou' for letter in input()))",
    "fizzbuzz": (
        "for i in range(1, int(input()) + 1):\n"
        "    print('FizzBuzz' if i % 15 == 0 else 'Fizz' if i % 3 == 0 else 'Buzz' if i % 5 == 0 else i)"
    ),
    "primes": (
        "n = int(input())\nsieve = [True] * (n + 1)\ncount = 0\nfor i in range(2, n + 1):\n    if sieve[i]:\n"
        "        count += 1\n        for j in range(i * i, n + 1, i):\n            sieve[j] = False\nprint(count)"
    ),
    "gcd": "import math\na, b = map(int, input().split())\nprint(math.gcd(a, b))",
    "brackets": (
        "pairs = {')': '(', ']': '['}\nstack = []\ngood = True\nfor c in input():\n    if c in '([':\n"
        "        stack.append(c)\n    elif not stack or stack.pop() != pairs[c]:\n        good = False\n        break\n"
        "print('yes' if good and not stack else 'no')"
    ),
    "fibonacci": "a, b = 0, 1\nfor _ in range(int(input())):\n    a, b = b, a + b\nprint(a)",
    "words": (
        "from collections import Counter\nwords = input().split()\ncounts = Counter(words)\n"
        "print(min(counts, key=lambda word: (-counts[word], word)))"
    ),
    "stairs": "ways = [1, 1]\nfor _ in range(int(input())):\n    ways.append(ways[-1] + ways[-2])\nprint(ways[-2])",
    "subarray": (
        "input()\nbest = here = None\nfor x in map(int, input().split()):\n"
        "    here = x if here is None else max(x, here + x)\n"
        "    best = here if best is None else max(best, here)\nprint(best)"
    ),
    "anagrams": "print('yes' if sorted(input()) == sorted(input()) else 'no')",
    "binary": "print(format(int(input()), 'b'))",
    "matrix": (
        "n, m = map(int, input().split())\nrows = [input().split() for _ in range(n)]\n"
        "for column in zip(*rows):\n    print(*column)"
    ),
    "second": (
        "input()\nvalues = sorted(set(map(int, input().split())))\nprint(values[-2] if len(values) > 1 else 'none')"
    ),
    "caesar": (
        "k = int(input())\nprint(''.join(chr((ord(c) - 97 + k) % 26 + 97) if c.islower() else c for c in input()))"
    ),
    "islands": (
        "import sys\nn, m = map(int, input().split())\ngrid = [list(input()) for _ in range(n)]\ncount = 0\n"
        "for i in range(n):\n    for j in range(m):\n        if grid[i][j] == '#':\n            count += 1\n"
        "            stack = [(i, j)]\n            while stack:\n                a, b = stack.pop()\n"
        "                if 0 <= a < n and 0 <= b < m and grid[a][b] == '#':\n                    grid[a][b] = '.'\n"
        "                    stack += [(a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)]\nprint(count)"
    ),
    "merge": (
        "n = int(input())\nspans = sorted(tuple(map(int, input().split())) for _ in range(n))\nmerged = []\n"
        "for low, high in spans:\n    if merged and low <= merged[-1][1]:\n"
        "        merged[-1][1] = max(merged[-1][1], high)\n    else:\n        merged.append([low, high])\n"
        "for low, high in merged:\n    print(low, high)"
    ),
    "coins": (
        "amount = int(input())\ncoins = list(map(int, input().split()))\nways = [1] + [0] * amount\n"
        "for coin in coins:\n"
        "    for value in range(coin, amount + 1):\n        ways[value] += ways[value - coin]\nprint(ways[amount])"
    ),
    "path": (
        "import heapq\nn, m = map(int, input().split())\ngraph = {i: [] for i in range(1, n + 1)}\nfor _ in range(m):\n"
        "    a, b, w = map(int, input().split())\n    graph[a].append((b, w))\n    graph[b].append((a, w))\n"
        "done = {}\nheap = [(0, 1)]\nwhile heap:\n    d, v = heapq.heappop(heap)\n    if v in done:\n        continue\n"
        "    done[v] = d\n    for u, w in graph[v]:\n        heapq.heappush(heap, (d + w, u))\nprint(done.get(n, -1))"
    ),
}
