#!/bin/bash
set -e
cat > /app/roman.py <<'END'
import sys

SIGNS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
         (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]

def roman(number):
    text = ""
    for value, sign in SIGNS:
        text += sign * (number // value)
        number %= value
    return text

ROMAN = {roman(number): number for number in range(1, 4000)}
word = sys.argv[1] if len(sys.argv) == 2 else ""
if word.isascii() and word.isdecimal() and 1 <= int(word) <= 3999:
    print(roman(int(word)))
elif word in ROMAN:
    print(ROMAN[word])
else:
    sys.exit(2)
END
