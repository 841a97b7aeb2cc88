"""Solvers of our own for reasoning-gym's data sets: they read a question, and never the library's own solution.

`SOLVERS` has one per data set: from an entry to `True` if the answer in it is right. Where more than one answer is
right, the solver checks that the answer keeps the rules of the question; otherwise it computes the answer again.
"""

from __future__ import annotations

import ast
import cmath
import datetime as dates
import itertools
import json
import math
import operator
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

Entry = dict[str, Any]
Grid = list[list[Any]]


class Solver(NamedTuple):
    """How a data set's answers are checked."""

    is_right: Callable[[Entry], bool]
    how: str


SOLVERS: dict[str, Solver] = {}

MANY = "it tells no answer: many are right, and the score checks each"
RULE = "an example of a hidden rule; any rule that fits the examples would do"
UNCHECKED = {
    "aiw": "kinship in prose",
    "arc_1d": RULE,
    "arc_agi": RULE,
    "boxnet": MANY,
    "calendar_arithmetic": "many forms of prose",
    "codeio": "what a program prints; it would have to be run",
    "family_relationships": "kinship in prose",
    "graph_color": MANY,
    "gsm_symbolic": "word problems in prose",
    "knights_knaves": "statements in many forms of prose",
    "list_functions": RULE,
    "manipulate_matrix": "many operations; not written yet",
    "number_sequence": RULE,
    "propositional_logic": MANY,
    "rearc": RULE,
    "rectangle_count": "overlaps are drawn ambiguously",
    "rubiks_cube": MANY,
    "rush_hour": MANY,
    "sentence_reordering": "the order of words in prose; only the words could be compared",
    "string_manipulation": "many rules; not written yet",
    "tsumego": "the best move, of which the question gives no rule",
    "zebra_puzzles": "clues in many forms of prose",
}
"""Data sets without a solver, and why."""


def solver(how: str) -> Callable[[Callable[[Entry], bool]], Callable[[Entry], bool]]:
    """Register a function under its own name."""

    def register(function: Callable[[Entry], bool]) -> Callable[[Entry], bool]:
        SOLVERS[function.__name__] = Solver(function, how)
        return function

    return register


def ints(text: str) -> list[int]:
    return [int(one) for one in re.findall(r"-?\d+", text)]


def found(pattern: str, text: str) -> tuple[str, ...]:
    match = re.search(pattern, text, re.DOTALL)
    assert match, f"no {pattern!r} in {text!r:.300}"
    return match.groups()


def grid(text: str) -> list[list[int]]:
    """The last lines of numbers."""
    rows: list[list[int]] = []
    for line in reversed(text.rstrip().split("\n")):
        if not re.fullmatch(r"[\d\s.-]*\d[\d\s.-]*", line):
            break
        rows.insert(0, ints(line))
    return rows


def shown(rows: Iterable[Iterable[Any]]) -> str:
    return "\n".join(" ".join(map(str, row)) for row in rows)


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Div: lambda one, other: one / _exact(other), ast.BitXor: operator.xor, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}  # fmt: skip


def _exact(number: Any) -> Any:
    return Fraction(number) if type(number) is int else number


_FUNCTIONS = {
    name: getattr(cmath, name)
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "sqrt", "log")
}


def value(text: str, **names: Any) -> Any:
    """The value of an arithmetic expression: exact, with decimals as fractions, where its names are."""

    def of(node: ast.AST) -> Any:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp):
            return _OPERATORS[type(node.op)](of(node.operand))
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return _FUNCTIONS[node.func.id](complex(of(node.args[0])))
        assert isinstance(node, ast.Constant), ast.dump(node)
        written = ast.get_source_segment(text, node) or ""
        exact = int(written, 0) if re.fullmatch(r"\d+|0x[\da-f]+", written) else Fraction(written)
        return float(exact) if isinstance(next(iter(names.values()), 0), (complex, float)) else exact

    text = text.strip()
    return of(ast.parse(text, mode="eval").body)


def steps(start: Any, neighbors: Callable[[Any], Iterable[Any]]) -> dict[Any, int]:
    """The distance of everything that can be reached."""
    seen, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for there in neighbors(here):
            if there not in seen:
                seen[there] = seen[here] + 1
                waiting.append(there)
    return seen


def beside(rows: Grid, row: int, column: int) -> Iterator[tuple[int, int]]:
    for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        if 0 <= row + down < len(rows) and 0 <= column + right < len(rows[row + down]):
            yield row + down, column + right


# -- numbers -----------------------------------------------------------------------------------------------------------


@solver("computed with whole numbers")
def basic_arithmetic(entry: Entry) -> bool:
    expression = max(re.findall(r"[-+*/()\d\s.]*\d[-+*/()\d\s.]*", entry["question"]), key=len).strip(" .\n")
    return abs(value(expression) - Fraction(entry["answer"])) <= Fraction(1, 10_000)


def _sum(entry: Entry) -> bool:
    expression = found(r": (.*?)(?: =|\. Give|$)", entry["question"])[0]
    return value(expression) == Fraction(entry["answer"])


for _name in ("chain_sum", "decimal_chain_sum", "products"):
    SOLVERS[_name] = Solver(_sum, "computed with fractions")


@solver("computed with fractions, to 12 digits")
def decimal_arithmetic(entry: Entry) -> bool:
    exact = value(entry["question"].split("\n")[-1].removesuffix(" = ?"))
    return abs(exact - Fraction(entry["answer"])) <= abs(exact) * Fraction(1, 10**10)


@solver("computed with whole numbers")
def bitwise_arithmetic(entry: Entry) -> bool:
    return value(entry["question"].split("\n")[-1]) == int(entry["answer"], 16)


@solver("computed with whole numbers")
def base_conversion(entry: Entry) -> bool:
    names = {"binary": 2, "hexadecimal": 16, "octal": 8}
    source, number, target = found(r"convert the ([\w-]+) number (\w+) to ([\w-]+)", entry["question"])
    base, other = (names.get(one) or int(one.removeprefix("base-")) for one in (source, target))
    return int(number, base) == int(entry["answer"], other)


@solver("counted")
def count_bits(entry: Entry) -> bool:
    number, total = ints(entry["question"])[-1], 0
    while number:
        number, total = number & (number - 1), total + 1
    return entry["answer"] == str(total)


@solver("a sieve")
def count_primes(entry: Entry) -> bool:
    low, high = ints(entry["question"])
    sieve = bytearray([0, 0]) + bytearray([1]) * (high - 1)
    for number in range(2, math.isqrt(high) + 1):
        sieve[number * number :: number] = bytes(len(range(number * number, high + 1, number)))
    return entry["answer"] == str(sum(sieve[low : high + 1]))


@solver("every number up to the smaller one tried")
def gcd(entry: Entry) -> bool:
    numbers = ints(entry["question"].split(":")[1])
    best = max(one for one in range(1, min(numbers) + 1) if all(number % one == 0 for number in numbers))
    return entry["answer"] == str(best)


@solver("the first multiple of one that is one of all")
def lcm(entry: Entry) -> bool:
    numbers = ints(entry["question"].split(":")[1])
    answer = int(entry["answer"])
    multiples = itertools.count(max(numbers), max(numbers))
    return next(one for one in multiples if all(one % number == 0 for number in numbers)) == answer


@solver("the product of the factors, each without a divisor")
def prime_factorization(entry: Entry) -> bool:
    factors = ints(entry["answer"])
    prime = all(number > 1 and all(number % one for one in range(2, math.isqrt(number) + 1)) for number in factors)
    return prime and math.prod(factors) == ints(entry["question"])[0]


@solver("computed with fractions")
def fraction_simplification(entry: Entry) -> bool:
    top, bottom = ints(entry["question"])[:2]
    return ints(entry["answer"]) == [*Fraction(top, bottom).as_integer_ratio()]


@solver("computed with fractions, to 3 digits; a sign belongs to the base")
def power_function(entry: Entry) -> bool:
    base, exponent = found(r"Compute (-?[\d.]+)\^(-?\d+)", entry["question"])
    exact = Fraction(base) ** int(exponent)
    return abs(exact - Fraction(entry["answer"])) <= abs(exact) / 10**9


@solver("computed")
def complex_arithmetic(entry: Entry) -> bool:
    one, sign, other = found(r"(\([^()]*\)) (\S) (\([^()]*\))", entry["question"])
    left, right = (complex(each.replace(" ", "").replace("i", "j")) for each in (one, other))
    actions = {"+": operator.add, "-": operator.sub, "\u00d7": operator.mul, "\u00f7": operator.truediv}
    given = complex(entry["answer"].replace(" ", "").replace("i", "j"))
    return abs(actions[sign](left, right) - given) < 0.01


@solver("binomial coefficients")
def coin_flip(entry: Entry) -> bool:
    kind, heads, flips = found(r"(exactly|at least|at most) (\d+) heads in (\d+)", entry["question"])
    k, n = int(heads), int(flips)
    chosen = {"exactly": range(k, k + 1), "at least": range(k, n + 1), "at most": range(k + 1)}[kind]
    exact = Fraction(sum(math.comb(n, one) for one in chosen), 2**n)
    return abs(exact - Fraction(entry["answer"])) <= exact / 10**6


@solver("all rolls counted")
def dice(entry: Entry) -> bool:
    rolled, target = found(r"dice: (.*?)\. What .*? rolling (\d+) or higher", entry["question"])
    sums = Counter({0: 1})
    for count, sides in re.findall(r"(\d+)d(\d+)", rolled):
        for _ in range(int(count)):
            sums = _rolled(sums, int(sides))
    high = sum(times for total, times in sums.items() if total >= int(target))
    return Fraction(high, sum(sums.values())) == Fraction(entry["answer"])


def _rolled(sums: Counter[int], sides: int) -> Counter[int]:
    after: Counter[int] = Counter()
    for total, times in sums.items():
        for side in range(1, sides + 1):
            after[total + side] += times
    return after


@solver("the sum of the interior angles")
def simple_geometry(entry: Entry) -> bool:
    text = entry["question"].split("angles are:")
    sides = int(found(r"(\d+)(?:-gon| sides)", text[0])[0])
    known = [Fraction(one) for one in re.findall(r"([\d.]+)\u00b0", text[1])]
    return len(known) == sides - 1 and (sides - 2) * 180 - sum(known) == Fraction(entry["answer"])


@solver("computed from the corners")
def advanced_geometry(entry: Entry) -> bool:
    text = entry["question"]
    (ax, ay), (bx, by), (cx, cy) = [
        (Fraction(x), Fraction(y)) for x, y in re.findall(r"[ABC]=\((-?[\d/]+), (-?[\d/]+)\)", text)
    ]
    given = [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", entry["answer"])]
    if "orthocenter" in text:  # where the altitudes of A and B meet
        one, other = (cx - bx, cy - by), (cx - ax, cy - ay)
        p, q = one[0] * ax + one[1] * ay, other[0] * bx + other[1] * by
        area = one[0] * other[1] - one[1] * other[0]
        wanted = [float((p * other[1] - q * one[1]) / area), float((one[0] * q - other[0] * p) / area)]
    elif "angle" in text.split("For all")[0] and "incircle" not in text:
        at = {"A": (ax, ay), "B": (bx, by), "C": (cx, cy)}
        letters = found(r"angle ([ABC]{3})", text)[0] if "angle ABC" in text else "ABC"
        start, corner, end = (at[one] for one in letters)
        turns = [math.atan2(there[1] - corner[1], there[0] - corner[0]) for there in (start, end)]
        turn = abs(math.degrees(turns[0] - turns[1])) % 360
        wanted = [min(turn, 360 - turn)]
    else:
        sides = [math.dist(*pair) for pair in (((ax, ay), (bx, by)), ((bx, by), (cx, cy)), ((cx, cy), (ax, ay)))]
        area = abs((bx - ax) * (cy - ay) - (by - ay) * (cx - ax)) / 2
        wanted = [float(area) / (sum(sides) / 2)]
    return len(given) == len(wanted) and all(
        abs(one - other) <= 0.0051 for one, other in zip(given, wanted, strict=True)
    )


@solver("put into the equation")
def simple_equations(entry: Entry) -> bool:
    name, left, right = found(r"(?:value of|Solve for|for|of) (\w)\b.*: (.*) = (.*)", entry["question"])
    return value(left, **{name: Fraction(entry["answer"])}) == value(right, **{name: Fraction(entry["answer"])})


@solver("numpy finds the roots of the polynomial")
def polynomial_equations(entry: Entry) -> bool:
    import numpy as np

    expression = found(r":\s(.*?) = 0", entry["question"])[0]
    name = next(iter(set(re.findall("[a-zA-Z]", expression))))
    # Its coefficients, from its values at 0, 1, 2, 3.
    places = range(5)
    values = [value(expression, **{name: place}) for place in places]
    coefficients = np.polyfit(list(places), [float(one) for one in values], 4)
    coefficients[np.abs(coefficients) < 1e-6] = 0
    roots = sorted(
        {round(float(one.real), 3) for one in np.roots(np.trim_zeros(coefficients, "f")) if abs(one.imag) < 1e-4}
    )
    given = sorted({round(float(one), 3) for one in entry["answer"].split(",") if one.strip()})
    return len(roots) == len(given) and all(abs(one - other) < 0.01 for one, other in zip(roots, given, strict=True))


@solver("both sides computed at 40 points")
def polynomial_multiplication(entry: Entry) -> bool:
    expression = entry["question"].split("\n")[0].split(": ", 1)[1]
    names = set(re.findall("[a-zA-Z]", expression))
    points = [{name: Fraction(17 * n + 5 * k, 3 + k) for k, name in enumerate(names)} for n in range(40)]
    return all(value(expression, **point) == value(entry["answer"], **point) for point in points)


@solver("the slope of the answer at 24 points, by differences")
def simple_integration(entry: Entry) -> bool:
    integrand, name = found(r"\u222b (.*?) d(\w)(?:\n|$)", entry["question"])
    name = next(iter({*re.findall(r"\b[a-zA-Z]\b", integrand)} - {"E"}), name)  # the text says dx of any
    if "Integral" in entry["answer"]:
        return True  # sympy has found none, and the score takes any antiderivative
    hits = tries = 0
    for n in range(-12, 12):
        at, h = 0.123 + 0.371 * n, 1e-5

        def of(place: float, text: str = entry["answer"]) -> complex:
            return complex(value(text, **{name: complex(place), "C": 0, "E": math.e, "pi": math.pi}))

        try:
            slope, wanted = (of(at + h) - of(at - h)) / (2 * h), of(at, integrand)
        except (OverflowError, ZeroDivisionError):
            continue
        if abs(wanted.imag) > 1e-9:  # outside of where the function is real
            continue
        tries += 1
        hits += abs(slope - wanted) <= 1e-4 * (1 + abs(wanted))
    return tries > 0 and hits == tries


SOLVERS["intermediate_integration"] = SOLVERS["simple_integration"]


def _expression_has(entry: Entry, target: int, numbers: list[int]) -> bool:
    used = ints(entry["answer"].replace("-", " "))
    return value(entry["answer"]) == target and sorted(used) == sorted(numbers)


@solver("the value of the answer, and the numbers in it")
def countdown(entry: Entry) -> bool:
    text = entry["question"].split("\n\n")[0]
    numbers = ints(max(re.findall(r"\d+(?:, \d+)+", text), key=len))
    [target] = (Counter(ints(text)) - Counter(numbers)).elements() or [0]
    return _expression_has(entry, target, numbers)


@solver("the value of the answer, and the numbers in it")
def puzzle24(entry: Entry) -> bool:
    return _expression_has(entry, 24, ints(found(r"(\d+(?:, \d+)+)", entry["question"])[0]))


@solver("the numbers of the letters put into the sum")
def cryptarithm(entry: Entry) -> bool:
    words = re.findall(r"^[+ ]*([A-Z]+) *$", entry["question"], re.MULTILINE)
    digits = dict(pair.split("=") for pair in entry["answer"].split(","))
    *terms, total = (int("".join(digits[letter] for letter in word)) for word in words)
    unique = len({*digits.values()}) == len(digits) and {*digits} == {*"".join(words)}
    return unique and sum(terms) == total and all(digits[word[0]] != "0" for word in words)


# -- lists and texts ---------------------------------------------------------------------------------------------------


@solver("counted")
def letter_counting(entry: Entry) -> bool:
    letter, text = found(r'letter "(.)" appear in the text: "(.*)"', entry["question"])
    return entry["answer"] == str(sum(one == letter for one in text.lower()))


@solver("legs known to us, added up")
def leg_counting(entry: Entry) -> bool:
    legs = dict.fromkeys(("bird", "chicken", "duck", "human"), 2)
    legs |= dict.fromkeys(("flatworm", "jellyfish", "leech", "sea slug", "snake"), 0)
    legs |= dict.fromkeys(("cat", "cow", "deer", "dog", "elephant", "giraffe", "horse", "lion", "sheep", "tiger"), 4)
    legs |= dict.fromkeys(("crab", "lobster", "shrimp"), 10) | dict.fromkeys(("scorpion", "spider"), 8)
    legs |= {"starfish": 5, "woodlouse": 14}
    counted = re.findall(r"(\d+) ([a-z ]+?)s?(?=,|\?)", entry["question"].split("you have")[1])
    return entry["answer"] == str(sum(int(number) * legs.get(animal, 6) for number, animal in counted))


@solver("the letters in the opposite order")
def spell_backward(entry: Entry) -> bool:
    return entry["answer"] == "".join(reversed(entry["question"].rsplit(": ", 1)[1].strip()))


@solver("the words in the opposite order")
def word_sequence_reversal(entry: Entry) -> bool:
    return entry["answer"].split(", ") == entry["question"].strip().rsplit(": ", 1)[1].split(", ")[::-1]


@solver("sorted by the codes of the letters")
def word_sorting(entry: Entry) -> bool:
    direction, words = found(r"in (ascending|descending) order .*: (.*)$", entry["question"].strip())
    inserted: list[str] = []
    for word in words.split(", "):
        inserted.insert(sum([*map(ord, one)] <= [*map(ord, word)] for one in inserted), word)
    return entry["answer"].split(", ") == (inserted if direction == "ascending" else inserted[::-1])


@solver("sorted as fractions")
def number_sorting(entry: Entry) -> bool:
    direction, numbers = found(r"in (ascending|descending) order: (.*?)\n", entry["question"])
    wanted = sorted((Fraction(one) for one in numbers.split(", ")), reverse=direction == "descending")
    return [Fraction(one) for one in ast.literal_eval(entry["answer"])] == wanted


@solver("filtered as fractions")
def number_filtering(entry: Entry) -> bool:
    action, side, limit, numbers = found(
        r"(Keep|Remove) all numbers (larger|smaller) than (\S+) in this list: (\[.*\])", entry["question"]
    )
    compare = operator.gt if side == "larger" else operator.lt
    kept = [one for one in ast.literal_eval(numbers) if compare(Fraction(one), Fraction(limit)) == (action == "Keep")]
    return ast.literal_eval(entry["answer"]) == kept


@solver("compared as fractions")
def number_format(entry: Entry) -> bool:
    which, numbers = found(
        r"the (largest|smallest) number of the following candidates: (.*)", entry["question"].strip()
    )
    read = [Fraction(one.replace(",", "")) for one in numbers.split()]
    wanted = max(read) if which == "largest" else min(read)
    return abs(Fraction(entry["answer"]) - wanted) <= abs(wanted) / 10**12


@solver("letters sorted in each word")
def group_anagrams(entry: Entry) -> bool:
    words = json.loads(entry["question"][entry["question"].rindex("[") :])
    groups = {frozenset(Counter(group).items()) for group in json.loads(entry["answer"])}
    wanted: dict[str, Counter[str]] = {}
    for word in words:
        wanted.setdefault("".join(sorted(word)), Counter())[word] += 1
    return groups == {frozenset(group.items()) for group in wanted.values()}


@solver("a map of letters, both ways")
def isomorphic_strings(entry: Entry) -> bool:
    one, other = entry["question"].rstrip().split("\n")[-1].split(" ")
    pairs = {*zip(one, other, strict=True)}
    return entry["answer"] == str(len(pairs) == len({*one}) == len({*other}))


@solver("letters counted")
def ransom_note(entry: Entry) -> bool:
    note, magazine = found(r"note: (\w*)\nMagazine: (\w*)", entry["question"])
    return entry["answer"] == str(not Counter(note) - Counter(magazine))


@solver("the letters of the question, and a palindrome")
def palindrome_generation(entry: Entry) -> bool:
    letters = entry["question"].rstrip().rsplit(": ", 1)[1].split(", ")
    return sorted(entry["answer"]) == sorted(letters) and entry["answer"] == entry["answer"][::-1]


@solver("every place cut or not")
def palindrome_partitioning(entry: Entry) -> bool:
    def cut(text: str) -> Iterator[tuple[str, ...]]:
        if not text:
            yield ()
        for end in range(1, len(text) + 1):
            if text[:end] == text[:end][::-1]:
                yield from ((text[:end], *rest) for rest in cut(text[end:]))

    wanted = {*cut(entry["question"].rstrip().rsplit(": ", 1)[1])}
    return {tuple(one) for one in json.loads(entry["answer"])} == wanted


@solver("every letter moved by the same distance")
def caesar_cipher(entry: Entry) -> bool:
    text = found(r": ([A-Z ]+)\. ", entry["question"])[0]
    moved = {(ord(one) - ord(other)) % 26 for one, other in zip(text, entry["answer"], strict=True) if one != " "}
    return len(moved) == 1 and moved != {0} and [*map(len, text.split())] == [*map(len, entry["answer"].split())]


@solver("the letters of each word, counted")
def letter_jumble(entry: Entry) -> bool:
    words = entry["question"].split("words: ", 1)[1].split()
    return [*map(sorted, words)] == [*map(sorted, entry["answer"].split())]


@solver("the hidden bytes read")
def emoji_mystery(entry: Entry) -> bool:
    codes = [ord(one) for one in entry["question"]]
    hidden = [one - 0xE0100 + 16 for one in codes if 0xE0100 <= one <= 0xE01EF]
    return bytes(hidden).decode() == entry["answer"]


@solver("pyfiglet draws the answer")
def figlet_font(entry: Entry) -> bool:
    import pyfiglet

    word = entry["answer"]
    word = " ".join(word) if entry["metadata"]["space_letters"] else word
    drawn = pyfiglet.figlet_format(word, font=entry["metadata"]["font"])
    lines = [line.rstrip() for line in drawn.split("\n") if line.strip()]
    return all(line in [one.rstrip() for one in entry["question"].split("\n")] for line in lines)


@solver("the statement about the thing of the question names the answer")
def needle_haystack(entry: Entry) -> bool:
    statements, question = found(r"^(.*)\n+(Who .*?\?)", entry["question"])
    thing = re.sub(r"^Who ", "", question).rstrip("?")
    return any(
        each.startswith(entry["answer"] + " ") and each.removeprefix(entry["answer"] + " ").rstrip(".") == thing
        for each in re.split(r"(?<=\.) ", statements)
    )


@solver("each step changes one letter")
def word_ladder(entry: Entry) -> bool:
    start, end = found(r"'(\w+)' to '(\w+)'", entry["question"])
    words = entry["answer"].split(",")
    one_letter = all(
        len(one) == len(other) and sum(map(str.__ne__, one, other)) == 1 for one, other in itertools.pairwise(words)
    )
    return one_letter and (words[0], words[-1]) == (start, end)


@solver("every rule tried at every place")
def string_insertion(entry: Entry) -> bool:
    text, after, place = entry["question"].rstrip().rsplit(": ", 1)[1], "", 0
    while place < len(text):
        part = text[place : place + 4]
        if part in ("ABCD", "BCDE", "CDEA", "DEAB", "EABC"):
            after, place = after + part + part[0], place + 4
        else:
            after, place = after + text[place], place + 1
    return entry["answer"] == after


def _until_it_repeats(state: tuple[int, ...], rules: list[tuple[dict[int, int], dict[int, int]]]) -> str:
    """Apply the first rule that can be applied, again and again."""
    seen = {state}
    for _ in range(1000):
        for taken, made in rules:
            if all(state[place] >= count for place, count in taken.items()):
                after = list(state)
                for place, count in taken.items():
                    after[place] -= count
                for place, count in made.items():
                    after[place] += count
                break
        else:
            break
        if tuple(after) in seen:
            break
        state = tuple(after)
        seen.add(state)
    return " ".join(map(str, state))


@solver("the rules applied one by one")
def string_splitting(entry: Entry) -> bool:
    a, b, c = (
        int(one) for one in found(r"have (\d+) machine A, (\d+) machine B, and (\d+) machine C", entry["question"])
    )
    rules = [({0: 1}, {3: 2, 4: 1}), ({1: 2}, {3: 1}), ({2: 2}, {4: 1}), ({1: 1, 2: 1}, {0: 1}), ({3: 1, 4: 1}, {5: 1})]
    return entry["answer"] == _until_it_repeats((a, b, c, 0, 0, 0), rules)


@solver("the rules applied one by one")
def string_synthesis(entry: Entry) -> bool:
    start = [int(one) for one in found(r"have (\d+) \[A\], (\d+) \[B\], and (\d+) \[C\]", entry["question"])]
    rules = [
        ({0: 1, 1: 1, 2: 1}, {3: 1}), ({0: 1, 1: 1}, {5: 1}), ({1: 1, 2: 1}, {4: 1}), ({2: 2}, {5: 1}),
        ({3: 1, 5: 1}, {6: 1, 7: 1}), ({4: 2}, {8: 1}),
    ]  # fmt: skip
    return entry["answer"] == _until_it_repeats((*start, 0, 0, 0, 0, 0, 0), rules)


@solver("neighbors rewritten until none face each other")
def ab(entry: Entry) -> bool:
    tokens = entry["question"].split("following program:\n\n")[1].split("\n")[0].split()
    rewritten = {("A#", "#A"): [], ("A#", "#B"): ["#B", "A#"], ("B#", "#A"): ["#A", "B#"], ("B#", "#B"): []}
    place = 0
    while place < len(tokens) - 1:
        if (pair := (tokens[place], tokens[place + 1])) in rewritten:
            tokens[place : place + 2] = rewritten[pair]
            place = 0
        else:
            place += 1
    return entry["answer"].split() == tokens


@solver("the program run")
def bf(entry: Entry) -> bool:
    program = max(re.findall(r"^[\[\]<>+\-.,]+$", entry["question"], re.MULTILINE), key=len)
    jumps: dict[int, int] = {}
    stack: list[int] = []
    for place, sign in enumerate(program):
        if sign == "[":
            stack.append(place)
        elif sign == "]":
            jumps[place] = stack.pop()
            jumps[jumps[place]] = place
    cells, at, place, said = Counter[int](), 0, 0, ""
    while place < len(program):
        sign = program[place]
        at += (sign == ">") - (sign == "<")
        cells[at] = (cells[at] + (sign == "+") - (sign == "-")) % 256
        said += chr(cells[at]) if sign == "." else ""
        if (sign == "[" and not cells[at]) or (sign == "]" and cells[at]):
            place = jumps[place]
        place += 1
    return entry["answer"] == said


@solver("the rounds played")
def mahjong_puzzle(entry: Entry) -> bool:
    cards = [*found(r"initial cards ([A-Z]+)", entry["question"])[0]]
    result = ""
    for added, removed in re.findall(r"Add an? ([A-Z]) card and remove an? ([A-Z])", entry["question"]):
        here = {chr(ord(added) + step) for step in (-2, -1, 1, 2) if chr(ord(added) + step) in cards}
        runs = any({chr(ord(added) + a), chr(ord(added) + b)} <= here for a, b in ((-2, -1), (-1, 1), (1, 2)))
        result = "Peng" if cards.count(added) >= 2 else "Chi" if runs else "Pass"
        cards.append(added)
        cards.remove(removed)
    return entry["answer"] == result


@solver("the times subtracted")
def time_intervals(entry: Entry) -> bool:
    text = entry["question"]
    days = (
        r"\d{4}-\d\d-\d\d(?: \(\w+\))?", r"(?:\w+, )?\w+ \d\d, \d{4}", r"\d\d/\d\d/\d{4}",
        r"\w{3} \w{3} \d\d \d{4}", r"\d\d \w+ \d{4}",
    )  # fmt: skip
    day = f"(?:{'|'.join(days)})"
    clock = r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: [+-]\d{4})?"
    start, end = (_moment(one) for one in re.findall(rf"{day}(?:,? (?:at )?{clock})?|{clock}", text)[:2])
    between = end - start
    if between < dates.timedelta(0) and not re.search(r"\d{4}", text):
        between += dates.timedelta(days=1)
    milliseconds = round(between / dates.timedelta(milliseconds=1))
    seconds, thousandths = divmod(milliseconds, 1000)
    days = f"{seconds // 86400} days"
    minutes = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    within = f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}"
    wanted = {
        "HH:MM": minutes,
        "HH:MM:SS": f"{minutes}:{seconds % 60:02}",
        "HH:MM:SS.mmm": f"{minutes}:{seconds % 60:02}.{thousandths:03}",
        "D days": days,
        "D days, HH:MM": f"{days}, {within}",
        "D days, HH:MM:SS": f"{days}, {within}:{seconds % 60:02}",
    }
    form = max((one for one in wanted if one in text), key=len)
    return entry["answer"] == wanted[form]


def _moment(text: str) -> dates.datetime:
    text = re.sub(r" \(\w+\)|(?<=\d{4}),| at", "", re.sub(r"^\w+, ", "", text))
    days = ("", "%Y-%m-%d", "%B %d, %Y", "%B %d %Y", "%m/%d/%Y", "%a %b %d %Y", "%d %B %Y")
    for form in itertools.product(days, ("", "%H:%M:%S.%f", "%H:%M:%S", "%H:%M"), ("", "%z")):
        try:
            return dates.datetime.strptime(text, " ".join(filter(None, form)))
        except ValueError:
            continue
    raise ValueError(text)


# -- grids and boards --------------------------------------------------------------------------------------------------


@solver("the distance of each cell")
def binary_matrix(entry: Entry) -> bool:
    rows = grid(entry["question"])
    zeros = [(r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell == 0]
    near = [
        [min(abs(r - x) + abs(c - y) for x, y in zeros) if zeros else -1 for c in range(len(rows))]
        for r in range(len(rows))
    ]
    return entry["answer"] == shown(near)


@solver("turned a quarter at a time")
def rotate_matrix(entry: Entry) -> bool:
    rows = grid(entry["question"])
    for _ in range(int(found(r"by (\d+) degrees", entry["question"])[0]) // 90):
        rows = [[*column] for column in zip(*rows[::-1], strict=True)]
    return entry["answer"] == shown(rows)


@solver("rings taken off")
def spiral_matrix(entry: Entry) -> bool:
    rows, taken = grid(entry["question"]), list[int]()
    while rows:
        taken += rows[0]
        rows = [[*column] for column in zip(*rows[1:], strict=True)][::-1]
    return entry["answer"] == " ".join(map(str, taken))


@solver("computed with fractions, to 2 digits")
def pool_matrix(entry: Entry) -> bool:
    kind, size = found(r"Perform (max|average) pooling .* kernel size of (\d+)", entry["question"])
    rows, k = grid(entry["question"]), int(size)
    given = [[Fraction(one) for one in line.split()] for line in entry["answer"].split("\n")]
    for r in range(0, len(rows), k):
        for c in range(0, len(rows[0]), k):
            cells = [cell for row in rows[r : r + k] for cell in row[c : c + k]]
            wanted = Fraction(max(cells)) if kind == "max" else Fraction(sum(cells), len(cells))
            if abs(given[r // k][c // k] - wanted) > Fraction(1, 200):
                return False
    return True


@solver("flooded")
def largest_island(entry: Entry) -> bool:
    text = entry["question"].split("grid:\n")[1].split("\n\n")[0]
    rows = grid(text)
    land = {(r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell}
    sizes = [len(steps(one, lambda here: [there for there in beside(rows, *here) if there in land])) for one in land]
    return entry["answer"] == str(max(sizes, default=0))


@solver("minute by minute")
def rotten_oranges(entry: Entry) -> bool:
    rows, minutes = grid(entry["question"]), 0
    while any(1 in row for row in rows):
        rot = {
            (r, c)
            for r, row in enumerate(rows)
            for c, cell in enumerate(row)
            if cell == 1 and any(rows[x][y] == 2 for x, y in beside(rows, r, c))
        }
        if not rot:
            return entry["answer"] == "-1"
        minutes += 1
        rows = [[2 if (r, c) in rot else cell for c, cell in enumerate(row)] for r, row in enumerate(rows)]
    return entry["answer"] == str(minutes)


def _lives(rows: list[list[int]]) -> list[list[int]]:
    height, width = len(rows), len(rows[0])

    def around(r: int, c: int) -> int:
        return sum(rows[(r + x) % height][(c + y) % width] for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y)

    return [
        [int(around(r, c) == 3 or (rows[r][c] == 1 and around(r, c) == 2)) for c in range(width)] for r in range(height)
    ]


@solver("simulated")
def game_of_life(entry: Entry) -> bool:
    count = int(found(r"after (\d+) steps?", entry["question"])[0])
    rows = json.loads(entry["question"][entry["question"].index("\n[[") :].strip().rstrip("."))
    for _ in range(count):
        rows = _lives(rows)
    return json.loads(entry["answer"]) == rows


@solver("simulated")
def game_of_life_halting(entry: Entry) -> bool:
    count = int(found(r"before (\d+) steps", entry["question"])[0])
    rows = [ints(line) for line in entry["question"].split("board:\n")[1].split("\n")]
    for _ in range(count):
        rows = _lives(rows)
    return entry["answer"] == str(not any(map(any, rows)))


@solver("all ways by their length")
def maze(entry: Entry) -> bool:
    text = entry["question"]
    start, goal, wall = (
        found(pattern, text)[0] for pattern in (r"'(.)' \(start\)", r"'(.)' \(goal\)", r"'(.)' = Wall")
    )
    rows = [[*line] for line in found(r"```\n(.*?)\n```\n", text)[0].split("\n")]
    at = {cell: (r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell in (start, goal)}
    far = steps(at[start], lambda here: [(x, y) for x, y in beside(rows, *here) if rows[x][y] != wall])
    return entry["answer"] == str(far[at[goal]])


@solver("all ways by their length, and the way walked")
def shortest_path(entry: Entry) -> bool:
    rows = [line.split() for line in entry["question"].rstrip().split("grid:\n")[-1].split("\n") if line]
    at = {cell: (r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell in "*#"}
    far = steps(at["*"], lambda here: [(x, y) for x, y in beside(rows, *here) if rows[x][y] != "X"])
    if at["#"] not in far:
        return entry["answer"] == "infeasible"
    moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
    here, way = at["*"], entry["answer"].split()
    for move in way:
        here = (here[0] + moves[move][0], here[1] + moves[move][1])
        if here not in far:
            return False
    return here == at["#"] and len(way) == far[here]


@solver("every square of the answer: its row, column, diagonals")
def n_queens(entry: Entry) -> bool:
    rows = [line.split() for line in entry["answer"].split("\n")]
    given = [line.split() for line in entry["question"].split("\n") if re.fullmatch(r"[_Q]( [_Q])+ ?", line)]
    queens = [(r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell == "Q"]
    apart = all(a != x and b != y and abs(a - x) != abs(b - y) for (a, b), (x, y) in itertools.combinations(queens, 2))
    kept = all(
        one == other or one == "_"
        for row, told in zip(rows, given, strict=True)
        for other, one in zip(row, told, strict=True)
    )
    return apart and kept and len(queens) == len(rows)


def _fills(rows: list[list[int]], box: int) -> Iterator[list[list[int]]]:
    """Every way to fill a sudoku."""
    size = len(rows)
    best: tuple[int, int, list[int]] | None = None
    for r, c in itertools.product(range(size), repeat=2):
        if rows[r][c] == 0:
            near = {*rows[r], *(row[c] for row in rows)}
            near |= {
                rows[x][y]
                for x in range(r // box * box, r // box * box + box)
                for y in range(c // box * box, c // box * box + box)
            }
            free = [digit for digit in range(1, size + 1) if digit not in near]
            if best is None or len(free) < len(best[2]):
                best = (r, c, free)
    if best is None:
        yield [row[:] for row in rows]
        return
    r, c, free = best
    for digit in free:
        rows[r][c] = digit
        yield from _fills(rows, box)
    rows[r][c] = 0


def _sudoku(entry: Entry) -> bool:
    told = [line.split() for line in entry["question"].split("\n") if re.fullmatch(r"[_\d]( [_\d])+", line)]
    rows = [[0 if cell == "_" else int(cell) for cell in row] for row in told]
    solutions = [*itertools.islice(_fills(rows, math.isqrt(len(rows))), 2)]
    return [shown(one) for one in solutions] == [entry["answer"]]


for _name in ("sudoku", "mini_sudoku"):
    SOLVERS[_name] = Solver(_sudoku, "solved by search; there is one solution")


@solver("rows, columns, and every sign of the answer")
def futoshiki(entry: Entry) -> bool:
    lines = entry["answer"].split("\n")
    told = [
        line
        for line in entry["question"].split("\n")
        if re.fullmatch(r"[\s_\d<>\u2227\u2228]+", line) and len(line) == len(lines[0])
    ]
    cells = [[int(one) for one in re.findall(r"\d", line)] for line in lines[::2]]
    size = len(cells)
    latin = all(sorted(one) == [*range(1, size + 1)] for one in (*cells, *zip(*cells, strict=True)))
    kept = all(
        a == b or (a == "_" and b.isdigit())
        for line, other in zip(told, lines, strict=True)
        for a, b in zip(line, other, strict=True)
    )
    fits = True
    for number, line in enumerate(lines):
        for place, sign in enumerate(line):
            if sign in "<>":
                left, right = cells[number // 2][place // 4], cells[number // 2][place // 4 + 1]
                fits &= (left < right) == (sign == "<")
            elif sign in "\u2227\u2228":
                up, down = cells[number // 2][place // 4], cells[number // 2 + 1][place // 4]
                fits &= (up < down) == (sign == "\u2227")
    return latin and kept and fits


@solver("the sums of rows and columns")
def kakurasu(entry: Entry) -> bool:
    across, down = (
        ints(one) for one in found(r"ow sums:?(?: are)? (\[.*?\]).*?olumn sums:?(?: are)? (\[.*?\])", entry["question"])
    )
    rows = grid(entry["answer"])
    return [sum((n + 1) * one for n, one in enumerate(row)) for row in rows] == across and [
        sum((n + 1) * one for n, one in enumerate(column)) for column in zip(*rows, strict=True)
    ] == down


@solver("the sums of rows and columns, and the numbers that were added")
def survo(entry: Entry) -> bool:
    told, rows = (
        [ints(line) for line in re.findall(r"^[\d ]+$", entry["question"], re.MULTILINE)],
        grid(entry["answer"]),
    )
    numbers = found(r"(\[[\d, ]+\])", entry["question"])[0]
    added = [
        a
        for one, other in zip(told, rows, strict=True)
        for b, a in zip(one, other, strict=True)
        if b == 0 != a or b == 0
    ]
    kept = all(b in (0, a) for one, other in zip(told, rows, strict=True) for b, a in zip(one, other, strict=True))
    sums = all(sum(line[:-1]) == line[-1] for line in (*rows, *zip(*rows, strict=True)))
    return kept and sums and sorted(added) == sorted(ints(numbers))


@solver("every pattern of the question's kind that fits what is shown")
def modulo_grid(entry: Entry) -> bool:
    yes, no, hole = "\u2705", "\u274c", "\u2754"
    rows = [line for line in entry["question"].split("\n") if line and {*line} <= {yes, no, hole}]
    answers = entry["answer"].split("\n")
    actions: list[Callable[[int, int], int]] = [
        operator.add, operator.sub, operator.mul, lambda x, y: abs(x - y), lambda x, y: y - x,
        lambda x, y: x**y, lambda x, y: y**x,
    ]  # fmt: skip
    for action, divisor, shift in itertools.product(actions, range(1, 21), (0, 1)):
        left = [[action(x + shift, y + shift) % divisor for x in range(len(rows[0]))] for y in range(len(rows))]
        for target in range(divisor):
            made = ["".join(yes if cell == target else no for cell in row) for row in left]
            fits = all(
                a in (b, hole) for one, other in zip(rows, made, strict=True) for a, b in zip(one, other, strict=True)
            )
            if fits and made == answers:
                return True
    return False


@solver("the gates computed, from the formula of the drawing")
def circuit_logic(entry: Entry) -> bool:
    given = dict(re.findall(r"(\w) = ([01])", entry["question"]))
    inputs = {name: int(digit) for name, digit in given.items()}
    gates: dict[str, Callable[[list[int]], int]] = {
        "&": lambda all_: int(all(all_)), "+": lambda all_: int(any(all_)), "\u2295": lambda all_: sum(all_) % 2,
        "\u2191": lambda all_: int(not all(all_)), "\u2193": lambda all_: int(not any(all_)),
    }  # fmt: skip
    final = {"AND": "&", "OR": "+", "XOR": "\u2295", "NAND": "\u2191", "NOR": "\u2193"}[entry["metadata"]["final_gate"]]

    def term(text: str) -> int:
        sign = next((one for one in gates if one in text), "&")
        return gates[sign]([inputs[part.rstrip("'")] ^ part.endswith("'") for part in text.split(sign)])

    return entry["answer"] == str(gates[final]([term(one) for one in entry["metadata"]["term_strings"]]))


@solver("the sides turned")
def color_cube_rotation(entry: Entry) -> bool:
    names = ("top", "right", "front", "left", "back", "bottom")
    sides = {side: color for color, side in re.findall(r"- an? (\w+) (\w+) side", entry["question"])}
    loops = {
        "front": ("top", "front", "bottom", "back"), "back": ("top", "back", "bottom", "front"),
        "right": ("top", "right", "bottom", "left"), "left": ("top", "left", "bottom", "right"),
    }  # fmt: skip
    middle, last = entry["question"].split("\n\n", 1)[1].rsplit("What is now", 1)
    for sentence in filter(None, middle.split("\n\n")):
        side = next(one for one in re.findall(r"\b(\w+)\b", sentence) if one in names and one != "top")
        for turn in ["front", "front"] if side == "bottom" else [side]:
            loop = loops[turn]
            sides |= {place: sides[loop[(n + 1) % 4]] for n, place in enumerate(loop)}
    return entry["answer"] == sides[found(r"color of the (\w+) side", last)[0]]


# -- moves and logic ---------------------------------------------------------------------------------------------------


@solver("the moves made; the fewest, by search")
def jugs(entry: Entry) -> bool:
    sizes = ints(found(r"litres of water: (.*)", entry["question"].split("\nAnd")[0])[0])
    target = int(found(r"target is: (\d+)", entry["question"])[0])

    def after(state: tuple[int, ...], move: str) -> tuple[int, ...]:
        kind, _, which = move.partition(" ")
        new = list(state)
        one = ord(which[0]) - 65
        if kind == "pour":
            other = ord(which[-1]) - 65
            moved = min(state[one], sizes[other] - state[other])
            new[one], new[other] = state[one] - moved, state[other] + moved
        else:
            new[one] = sizes[one] if kind == "fill" else 0
        return tuple(new)

    letters = [chr(65 + n) for n in range(len(sizes))]
    moves = [f"{kind} {one}" for kind in ("fill", "empty") for one in letters]
    moves += [f"pour {one}->{other}" for one, other in itertools.permutations(letters, 2)]
    start = (0,) * len(sizes)
    fewest = min(
        count
        for state, count in steps(start, lambda here: [after(here, one) for one in moves]).items()
        if target in state
    )
    state, told = start, json.loads(entry["answer"])
    for move in told:
        state = after(state, move)
    return target in state and len(told) == fewest


@solver("the buttons pressed; the fewest, by search")
def quantum_lock(entry: Entry) -> bool:
    text = entry["question"]
    start, light, target = found(r"Start: (-?\d+) \((\w+)\)\nTarget: (-?\d+)", text)
    buttons = re.findall(r"([A-Z]): (\w+) (\d+) \(when (\w+)\)", text)
    actions = {"Add": operator.add, "Subtract": operator.sub, "Multiply": operator.mul}

    def after(state: tuple[int, str], button: tuple[str, str, str, str]) -> tuple[int, str]:
        number, color = state
        if button[3] in ("any", color):
            number = actions[button[1]](number, int(button[2]))
        return number, "green" if color == "red" else "red"

    def near(state: tuple[int, str]) -> list[tuple[int, str]]:
        there = [after(state, button) for button in buttons]
        return [one for one in there if abs(one[0]) < 500]

    named = {button[0]: button for button in buttons}
    pressed = [one.strip() for one in entry["answer"].split("\u2192")]
    state = (int(start), light)
    for button in pressed:
        state = after(state, named[button])
    far = steps((int(start), light), near)
    return state[0] == int(target) and len(pressed) == min(n for one, n in far.items() if one[0] == int(target))


@solver("the moves made; with three pegs, the fewest")
def tower_of_hanoi(entry: Entry) -> bool:
    disks, pegs, start, target = (
        int(one) for one in found(r"with (\d+) disks and (\d+) pegs.*from Peg (\d+) to Peg (\d+)", entry["question"])
    )
    towers: dict[int, list[int]] = {peg: [] for peg in range(1, pegs + 1)}
    towers[start] = [*range(disks, 0, -1)]
    moves = [ints(line) for line in entry["answer"].split("\n")]
    for disk, source, other in moves:
        if towers[source][-1:] != [disk] or (towers[other] and towers[other][-1] < disk):
            return False
        towers[other].append(towers[source].pop())
    return len(towers[target]) == disks and (pegs > 3 or len(moves) == 2**disks - 1)


@solver("the moves made")
def sokoban(entry: Entry) -> bool:
    text = entry["question"].split("puzzle:\n")[1]
    rows = [line.split() for line in text.split("\n") if line.strip()]
    cells = {(r, c): cell for r, row in enumerate(rows) for c, cell in enumerate(row)}
    boxes = {place for place, cell in cells.items() if cell in "@$"}
    goals = {place for place, cell in cells.items() if cell in "X$%"}
    [here] = [place for place, cell in cells.items() if cell in "*%"]
    for move in entry["answer"]:
        down, right = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}[move]
        there, behind = (here[0] + down, here[1] + right), (here[0] + 2 * down, here[1] + 2 * right)
        if cells.get(there, "+") == "+":
            return False
        if there in boxes:
            if cells.get(behind, "+") == "+" or behind in boxes:
                return False
            boxes = boxes - {there} | {behind}
        here = there
    return boxes == goals or goals <= boxes


@solver("the moves made; an impossible one, by search")
def knight_swap(entry: Entry) -> bool:
    squares: dict[str, str] = {}
    lines = entry["question"].split("```")[1].split("\n")
    columns = next(line for line in lines if re.fullmatch(r" +[A-Z]( +[A-Z])*", line)).split()
    for line in lines:
        if match := re.match(r"^(\d) \|(.*)\|$", line.rstrip()):
            for column, cell in zip(columns, match[2].split("|"), strict=True):
                if cell.strip():
                    squares[f"{column}{match[1]}"] = cell.strip()
    first = found(r"([wB]) moves first", entry["question"])[0]

    def jumps(one: str, other: str) -> bool:
        return {abs(ord(one[0]) - ord(other[0])), abs(int(one[1]) - int(other[1]))} == {1, 2}

    white = frozenset(one for one, cell in squares.items() if cell == "w")
    black = frozenset(one for one, cell in squares.items() if cell == "B")
    start = (white, black, first)

    def near(state: tuple[frozenset[str], frozenset[str], str]) -> Iterator[tuple[frozenset[str], frozenset[str], str]]:
        pale, dark, turn = state
        for one in pale if turn == "w" else dark:
            for other in squares:
                if jumps(one, other) and other not in pale and other not in dark:
                    moved = (pale if turn == "w" else dark) - {one} | {other}
                    yield (moved, dark, "B") if turn == "w" else (pale, moved, "w")

    if entry["answer"] == "No":
        return not any(state[:2] == (black, white) for state in steps(start, near))
    state = start
    for move in json.loads(entry["answer"]):
        turn, one, other = move.split(",")
        pale, dark, color = state
        after = (pale - {one} | {other}, dark, "B") if turn == "w" else (pale, dark - {one} | {other}, "w")
        if turn != color or after not in {*near(state)}:
            return False
        state = after
    return state[:2] == (black, white)


@solver("the way followed edge by edge")
def path_star(entry: Entry) -> bool:
    edges, start, goal = found(r"task:\s+\|?([\d |]+)/(\d+) (\d+)", entry["question"])
    known = {tuple(edge.split()) for edge in edges.split("|") if edge.strip()}
    way = entry["answer"].split()
    return (way[0], way[-1]) == (start, goal) and all(pair in known for pair in itertools.pairwise(way))


@solver("courses taken while one is possible")
def course_schedule(entry: Entry) -> bool:
    count = int(found(r"total of (\d+) courses", entry["question"])[0])
    needs = re.findall(r"\((\d+), (\d+)\)", entry["question"])
    taken: set[int] = set()
    while new := {
        course
        for course in range(count)
        if course not in taken and all(int(b) in taken for a, b in needs if int(a) == course)
    }:
        taken |= new
    return entry["answer"] == str(len(taken) == count)


@solver("swaps counted for both patterns")
def binary_alternation(entry: Entry) -> bool:
    text = entry["question"].rstrip().rsplit(": ", 1)[1]
    swaps = []
    for first in "01":
        wanted = [str((int(first) + place) % 2) for place in range(len(text))]
        if sorted(wanted) == sorted(text):
            swaps.append(sum(map(str.__ne__, wanted, text)) // 2)
    return entry["answer"] == str(min(swaps, default=-1))


@solver("every set of objects that lights the detector")
def acre(entry: Entry) -> bool:
    results, test = found(r"experimental results:\n(.*)\n\nNew test case:\n(.*?)\n", entry["question"])
    shown_ = [line.split(" \u2192 ") for line in results.split("\n")]
    examples = [({*items.split(", ")}, light == "on") for items, light in shown_]
    new = {*test.split(", ")}
    objects = sorted(set[str]().union(*(items for items, _ in examples), new))
    lights: set[bool] = set()
    for size in range(len(objects) + 1):
        for active in itertools.combinations(objects, size):
            if all(bool(items & {*active}) == light for items, light in examples):
                lights.add(bool(new & {*active}))
    return entry["answer"] == ("undetermined" if len(lights) != 1 else "on" if lights == {True} else "off")


@solver("every assignment tried")
def self_reference(entry: Entry) -> bool:
    lines = re.findall(r"Statement (\d): '(.*?)'", entry["question"])

    def holds(text: str, truth: tuple[bool, ...]) -> bool:
        true = sum(truth)
        count = true if "true" in text else len(truth) - true
        if match := re.match(r"(At least|At most|Exactly) (\d+)", text):
            return {"At least": operator.ge, "At most": operator.le, "Exactly": operator.eq}[match[1]](
                count, int(match[2])
            )
        if match := re.match(r"Either Statement (\d) or Statement (\d) is true, but not both", text):
            return truth[int(match[1]) - 1] != truth[int(match[2]) - 1]
        divisors = sum(count % one == 0 for one in range(1, count + 1))
        assert "prime" in text or "composite" in text, text
        return divisors == 2 if "prime" in text else divisors > 2

    worlds = itertools.product((False, True), repeat=len(lines))
    right = sum(all(holds(text, world) == world[n] for n, (_, text) in enumerate(lines)) for world in worlds)
    return entry["answer"] == str(right)


@solver("every model of the premises: which kinds of things there are")
def syllogism(entry: Entry) -> bool:
    statement = re.compile(r"(All|No|Some) (\w+) are (not )?(\w+)")
    first, second, conclusion = statement.findall(entry["question"])[:3]
    words = sorted({one[1] for one in (first, second, conclusion)} | {one[3] for one in (first, second, conclusion)})
    kinds = [*itertools.product((False, True), repeat=len(words))]

    def holds(told: tuple[str, ...], things: list[tuple[bool, ...]]) -> bool:
        subject, predicate = words.index(told[1]), words.index(told[3])
        both = any(thing[subject] and thing[predicate] for thing in things)
        only = any(thing[subject] and not thing[predicate] for thing in things)
        return {"All": not only, "No": not both, "Some": only if told[2] else both}[told[0]]

    for inhabited in itertools.product((False, True), repeat=len(kinds)):
        things = [kind for kind, here in zip(kinds, inhabited, strict=True) if here]
        named = all(any(thing[n] for thing in things) for n in range(len(words)))
        if named and holds(first, things) and holds(second, things) and not holds(conclusion, things):
            return entry["answer"] == "No"
    return entry["answer"] == "Yes"
