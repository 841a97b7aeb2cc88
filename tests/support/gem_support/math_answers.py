"""Answers to questions of mathematics, made by rule: right spellings of a value, and wrong ones of another value.

A kind draws a value and has ways to spell it. Each spelling of the value is right. A mutant is a spelling of a value that
is certified to be another one: as a rational number, a set or a list in Python, as an expression by sympy at random
points with 50 digits. Nothing here uses `gem_math`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import sympy
from sympy import Rational, latex

Value: TypeAlias = Any
"""Numbers, texts and sympy's expressions, in tuples (ordered) and frozensets (not ordered)."""
Dice: TypeAlias = random.Random

x, y, z, n, t = sympy.symbols("x y z n t")


class Case(NamedTuple):
    """An answer with its reference."""

    kind: str
    question: str
    reference: str
    answer: str
    right: bool


@dataclass(frozen=True)
class Item:
    """A question with its value: how it may be spelled, and which other values are near."""

    question: str
    value: Value
    spell: Callable[[Value], Sequence[str]]
    near: Sequence[Value]
    wrong: Sequence[str] = field(default=())
    """Texts that say something else of the same value: that another quantity has it, or less than all of it."""
    reference: str = ""
    """If it is not the first spelling."""


KINDS: dict[str, Callable[[Dice], Item]] = {}


def kind(make: Callable[[Dice], Item]) -> Callable[[Dice], Item]:
    """Registers a kind by its name."""
    KINDS[make.__name__.strip("_")] = make
    return make


# -- certificates ------------------------------------------------------------------------------------------------------


def differ(one: Value, other: Value) -> bool:
    """Are two values certainly different?"""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) != len(other) or any(map(differ, one, other))
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return len(one) != len(other) or any(all(differ(a, b) for b in other) for a in one)
    if isinstance(one, sympy.Basic) or isinstance(other, sympy.Basic):
        return _differ_at_points(sympy.sympify(one), sympy.sympify(other))
    return one != other


def _differ_at_points(one: sympy.Expr, other: sympy.Expr) -> bool:
    names = sorted(one.free_symbols | other.free_symbols, key=str)
    dice = random.Random(str(names))
    for _ in range(3):
        point = {name: Rational(dice.randrange(101, 997), 101) for name in names}
        if abs(sympy.N((one - other).subs(point), 50)) > sympy.Float("1e-30"):
            return True
    return False


# -- printing ----------------------------------------------------------------------------------------------------------


def frac(value: Fraction, command: str = "\\frac") -> str:
    """A fraction in LaTeX, an integer as it is."""
    sign = "-" if value < 0 else ""
    top, bottom = abs(value.numerator), value.denominator
    return f"{sign}{top}" if bottom == 1 else f"{sign}{command}{{{top}}}{{{bottom}}}"


def dfrac(value: Fraction) -> str:
    """The same, large."""
    return frac(value, "\\dfrac")


def decimal(value: Fraction, places: int) -> str:
    """Rounded half up, exactly."""
    scaled = abs(value) * 10**places
    digits = str((2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else sign + digits


def rounded(value: sympy.Expr, places: int) -> str:
    """A real number, rounded."""
    return decimal(Fraction(str(sympy.N(value, 40))), places)


def signed(value: int) -> str:
    """With a sign in front."""
    return f"+{value}" if value >= 0 else str(value)


def ends(value: Fraction) -> bool:
    """Does it end as a decimal?"""
    bottom = value.denominator
    for prime in (2, 5):
        while bottom % prime == 0:
            bottom //= prime
    return bottom == 1


def near_numbers(value: int) -> list[int]:
    """Off by one, by a digit, by the sign, by a factor of ten, with digits exchanged."""
    digits = str(abs(value))
    found = {value + 1, value - 1, -value, value * 10, value + 10, value + 100, 2 * value}
    if len(digits) > 1:
        found |= {int(digits[::-1]), int(digits[:-1]), int(digits[1:] or 0), int(digits + digits[-1])}
        found |= {int(digits[:place] + str((int(digits[place]) + 1) % 10) + digits[place + 1 :]) for place in range(len(digits))}
    return sorted(found - {value})


def near_fractions(value: Fraction) -> list[Fraction]:
    """Another numerator or denominator, another sign, the inverse."""
    top, bottom = value.numerator, value.denominator
    found = {Fraction(each, bottom) for each in (top + 1, top - 1, -top, top + bottom)}
    found |= {Fraction(top, each) for each in (bottom + 1, bottom + 2, 2 * bottom) if each}
    if top:
        found.add(Fraction(bottom, top))
    return sorted(found - {value})


def polynomial(value: Sequence[int], name: str = "x") -> str:
    """From the highest power down."""
    text = ""
    for power, factor in zip(range(len(value) - 1, -1, -1), value, strict=True):
        if factor:
            body = "" if not power else name if power == 1 else f"{name}^{power}"
            number = "" if abs(factor) == 1 and power else str(abs(factor))
            text += f"{'-' if factor < 0 else '+' if text else ''}{number}{body}"
    return text or "0"


def reordered(value: Sequence[int], name: str = "x") -> str:
    """From the lowest power up, with a plus before each minus."""
    terms = [
        f"{factor}{'' if not power else name if power == 1 else f'{name}^{{{power}}}'}"
        for power, factor in enumerate(reversed(value))
        if factor
    ]
    return " + ".join(terms)


def near_tuples(value: tuple[int, ...]) -> list[tuple[int, ...]]:
    """One of the numbers is another, or two are exchanged."""
    found = {(*value[:place], near, *value[place + 1 :]) for place in range(len(value)) for near in near_numbers(value[place])[:6]}
    found |= {(*value[:place], value[place + 1], value[place], *value[place + 2 :]) for place in range(len(value) - 1)}
    return sorted(found - {value})


def _whole(dice: Dice, low: int, high: int) -> int:
    return dice.choice([each for each in range(low, high) if each])


def _proper(dice: Dice) -> Fraction:
    while True:
        bottom = dice.randrange(3, 16)
        found = Fraction(dice.randrange(1, bottom), bottom)
        if found.denominator > 2:
            return found


# -- chains ------------------------------------------------------------------------------------------------------------


@kind
def product_carried_out(dice: Dice) -> Item:
    a, b, c = (dice.randrange(3, 13) for _ in range(3))

    def spell(value: int) -> list[str]:
        if value != a * b * c:
            return [str(value), f"N={value}", f"{value}={value}"]
        return [
            *(f"{value}", f"{a}\\times {b}\\times {c}={value}", f"{a}\\cdot {b}\\cdot {c} = {a * b}\\cdot {c}={value}"),
            *(f"N={a}\\cdot{b * c}={value}", f"\\text{{Number}} = {a * b} \\times {c} = {value}"),
            f"${a}*{b}*{c} = {value}$",
        ]

    wrong = [f"{a}\\times {b}={a * b * c}", f"{a * b * c}={a * b * c + 1}", f"{a}\\times {b}\\times {c}", f"{a * b * c}={a}+{b}"]
    return Item("How many colourings are there?", a * b * c, spell, near_numbers(a * b * c), wrong)


@kind
def power_carried_out(dice: Dice) -> Item:
    a, b = dice.randrange(2, 8), dice.randrange(3, 6)

    def spell(value: int) -> list[str]:
        return [f"{value}", f"{a}^{b}={value}", f"{a}^{{{b}}} = {a}^{{{b - 1}}}\\cdot {a} = {value}"] if value == a**b else [f"{value}"]

    wrong = [f"{a}^{b}={a**b + 1}", f"{a ** b}={a}^{b + 1}", f"{a}^{{{b}}}={a * b}"]
    return Item("How many words are there?", a**b, spell, near_numbers(a**b), wrong)


@kind
def factorial_carried_out(dice: Dice) -> Item:
    a, b = dice.randrange(4, 7), dice.randrange(2, 6)
    total = sympy.factorial(a) * b

    def spell(value: int) -> list[str]:
        return [f"{value}", f"{a}!\\times {b}={value}", f"{b}\\cdot {a}! = {value}", f"{a}!*{b} = {total // b}*{b} = {value}"] if value == total else [f"{value}"]

    wrong = [f"{a}!\\cdot {b + 1}={total}", f"{a - 1}!\\times {b}={total}"]
    return Item("In how many ways can they sit?", int(total), spell, near_numbers(int(total)), wrong)


@kind
def fraction_reduced(dice: Dice) -> Item:
    value, factor = _proper(dice), dice.randrange(2, 6)
    top, bottom = factor * value.numerator, factor * value.denominator

    def spell(value: Fraction) -> list[str]:
        one = frac(value)
        if (top * value.denominator, bottom) != (value.numerator * bottom, bottom):
            return [one, f"P={one}", f"{one}={dfrac(value)}"]
        return [
            *(one, f"\\frac{{{top}}}{{{bottom}}}={one}", f"P = \\frac{{{top}}}{{{bottom}}} = {one}"),
            *(f"P(A)=\\dfrac{{{top}}}{{{bottom}}}={one}", f"{top}/{bottom}={value.numerator}/{value.denominator}"),
        ]

    wrong = [f"\\frac{{{top + 1}}}{{{bottom}}}={frac(value)}", f"{frac(value)}={frac(value + 1)}"]
    return Item("What is the probability of a sum below the mean?", value, spell, near_fractions(value), wrong)


@kind
def fraction_and_decimal(dice: Dice) -> Item:
    value = Fraction(dice.choice([each for each in range(1, 40) if each % 5]), dice.choice((4, 8, 20, 25, 40)))

    def spell(value: Fraction) -> list[str]:
        places = next(each for each in range(1, 30) if (value * 10**each).denominator == 1) if ends(value) else 0
        plain = decimal(value, places) if places else frac(value)
        return [frac(value), plain, f"{frac(value)}={plain}", f"{plain}={frac(value)}", f"{dfrac(value)} = {plain}"]

    return Item("What part of the water is left?", value, spell, near_fractions(value), [f"{frac(value)}=0.11"])


@kind
def fraction_marks(dice: Dice) -> Item:
    value = _proper(dice)

    def spell(value: Fraction) -> list[str]:
        sign, top, bottom = "-" if value < 0 else "", abs(value.numerator), value.denominator
        marks = {Fraction(1, 4): "¼", Fraction(3, 4): "¾", Fraction(1, 3): "⅓", Fraction(2, 3): "⅔", Fraction(3, 8): "⅜"}
        return [
            *(frac(value), f"{sign}{{{top} \\over {bottom}}}", f"\\displaystyle {frac(value)}", f"${frac(value)}$."),
            *(f"\\displaystyle{dfrac(value)}", f"{sign}{top}/{bottom}", f"**{sign}{top}/{bottom}**"),
            *([marks[value]] if value in marks else []),
        ]

    return Item("Which part is it?", value, spell, near_fractions(value))


# -- exact and rounded -------------------------------------------------------------------------------------------------


def _with_rounded(value: sympy.Expr, unit: str = "") -> list[str]:
    exact = latex(value)
    return [
        *(exact, f"{exact} \\approx {rounded(value, 2)}", f"{exact}\\approx{rounded(value, 3)}{unit}"),
        *(f"A={exact}\\approx {rounded(value, 1)}", f"{exact} ≈ {rounded(value, 4)}", f"x = {exact} \\approx {rounded(value, 2)}"),
    ]


@kind
def circle(dice: Dice) -> Item:
    a = dice.randrange(3, 60)

    def near(other: int) -> list[str]:
        return [*_with_rounded(other * sympy.pi), f"\\approx {rounded(other * sympy.pi, 2)}"]

    wrong = [f"{a + 1}\\pi\\approx {rounded(a * sympy.pi, 2)}", f"\\approx {rounded(a * sympy.pi, 1)}", rounded(a * sympy.pi, 2)]
    return Item(
        f"Find the area of the ring.",
        a,
        lambda value: _with_rounded(value * sympy.pi) if value == a else near(value),
        [*range(max(1, a - 3), a), a + 1, a + 2, 10 * a, 2 * a],
        wrong,
    )


@kind
def diagonal(dice: Dice) -> Item:
    a, b = dice.randrange(2, 12), dice.choice((2, 3, 5, 6, 7, 10))
    value = a * sympy.sqrt(b)
    near = [(a + 1) * sympy.sqrt(b), a * sympy.sqrt(b + 1), sympy.sqrt(a * b), -value, 2 * value, a + sympy.sqrt(b)]

    def spell(value: sympy.Expr) -> list[str]:
        squared = sympy.nsimplify(value**2)
        found = _with_rounded(value)
        return [*found, f"\\sqrt{{{squared}}}={found[0]}"] if squared.is_integer and value > 0 else found

    return Item("Find the length of the diagonal.", value, spell, [each for each in near if differ(each, value)])


@kind
def share(dice: Dice) -> Item:
    value = Fraction(dice.randrange(1, 7), 7) + dice.randrange(0, 3)

    def spell(value: Fraction) -> list[str]:
        return [frac(value), *(f"{frac(value)}\\approx {decimal(value, places)}" for places in (2, 3, 4)), f"s={frac(value)} ≈ {decimal(value, 3)}"]

    wrong = [f"\\approx {decimal(value, 2)}", f"{frac(value)}\\approx {decimal(value + 1, 2)}", decimal(value, 3)]
    return Item("What is the share of each?", value, spell, [each for each in near_fractions(value) if each.denominator > 1], wrong)


@kind
def to_two_decimals(dice: Dice) -> Item:
    value = Fraction(dice.randrange(1001, 9999), 100)

    def spell(value: Fraction) -> list[str]:
        plain = decimal(value, 2)
        return [plain, f"\\approx {plain}", f"≈{plain}", f"x\\approx {plain}", f"\\approx${plain}$", f"\\text{{about }} {plain}"]

    near = [value + Fraction(1, 100), value - Fraction(1, 10), value + 1, -value, value * 10, value / 10 + Fraction(1, 1000) * 0]
    return Item("Find the length, to two decimals.", value, spell, [each for each in near if (each * 100).denominator == 1])


@kind
def estimate(dice: Dice) -> Item:
    value = dice.randrange(12, 400)

    def spell(value: int) -> list[str]:
        return [str(value), f"x\\approx {value}", f"\\approx {value}", f"{value}.3\\approx {value}", f"approximately {value}"]

    return Item("Estimate $x$ to the nearest whole number.", value, spell, near_numbers(value), [f"{value + 2}.1\\approx {value}"])


# -- the asked quantity ------------------------------------------------------------------------------------------------


def _named(question: str, names: Sequence[str], value: Value, spell: Callable[[Value], str], near: Sequence[Value], wrong: Sequence[str]) -> Item:
    """With the name of what is asked, in several spellings, and with names that are others."""

    def all_spellings(value: Value) -> list[str]:
        text = spell(value)
        return [text, *(f"{name}={text}" for name in names), *(f"{name} = {text}" for name in names)]

    return Item(question, value, all_spellings, near, [f"{name}={spell(value)}" for name in wrong])


@kind
def function_value(dice: Dice) -> Item:
    letter, a, b, c = dice.choice("fghpq"), dice.randrange(2, 9), dice.randrange(2, 9), dice.randrange(1, 9)
    question = f"If ${letter}(x)={a}x^2-{b}$, find ${letter}({c})$."
    value = a * c * c - b
    return _named(question, [f"{letter}({c})", f"{letter}\\left({c}\\right)"], value, str, near_numbers(value), [f"{letter}(-{c})", f"{letter}({c + 1})"])


@kind
def function_value_in_reference(dice: Dice) -> Item:
    item = function_value(dice)
    return Item(item.question, item.value, item.spell, item.near, item.wrong, reference=item.spell(item.value)[1])


@kind
def sum_of_names(dice: Dice) -> Item:
    a, b = dice.sample("abkmnpqrs", 2)
    top, bottom = (value := _proper(dice)).numerator, value.denominator
    question = f"Let ${a}$ and ${b}$ be coprime with $\\frac{{{a}}}{{{b}}}=\\frac{{{top}}}{{{bottom}}}$. Find ${a}+{b}$."
    total = top + bottom
    return _named(question, [f"{a}+{b}", f"{b}+{a}"], total, str, near_numbers(total), [f"{a}-{b}", f"{a}", f"{a}{b}"])


@kind
def ratio_of_segments(dice: Dice) -> Item:
    p, q, r = dice.sample("ABCDEFKLMPQRSTXYZ", 3)
    value = _proper(dice)
    question = f"${p}$, ${q}$ and ${r}$ lie on a line. Find $\\frac{{{p}{q}}}{{{q}{r}}}$."
    names = [f"\\frac{{{p}{q}}}{{{q}{r}}}", f"{p}{q}/{q}{r}", f"\\dfrac{{{p}{q}}}{{{q}{r}}}"]
    return _named(question, names, value, frac, near_fractions(value), [f"\\frac{{{q}{r}}}{{{p}{q}}}", f"\\frac{{{p}{r}}}{{{q}{r}}}"])


@kind
def sine(dice: Dice) -> Item:
    name, (a, b, c) = dice.choice(("\\theta", "\\alpha", "A", "x")), dice.choice(((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25)))
    one, other = dice.sample(("\\sin", "\\cos"), 2)
    value, given = Fraction(a, c), Fraction(b, c)
    question = f"Let ${name}$ be acute with ${other} {name}={frac(given)}$. Find ${one} {name}$."
    near = [given, -value, Fraction(a, c + 1), Fraction(b, a), Fraction(c, a)]
    return _named(question, [f"{one} {name}", f"{one}({name})"], value, frac, near, [f"{other} {name}", f"\\tan {name}"])


@kind
def modulus(dice: Dice) -> Item:
    name, (a, b, c) = dice.choice("zwuv"), dice.choice(((3, 4, 5), (5, 12, 13), (8, 15, 17), (6, 8, 10)))
    question = f"Let ${name}={a}-{b}i$. Find $|{name}|$."
    return _named(question, [f"|{name}|", f"\\left|{name}\\right|", f"\\lvert {name}\\rvert"], c, str, near_numbers(c), [f"{name}", f"|{name}|^2"])


@kind
def ratio(dice: Dice) -> Item:
    a, b = dice.choice([(p, q) for p in range(2, 12) for q in range(2, 12) if sympy.gcd(p, q) == 1 and p != q])
    one, other = dice.sample(("AB", "BC", "KL", "LM", "PQ"), 2)
    question = f"Given ${one}:{other}={a}:{b}$, find ${other}:{one}$."

    def spell(value: tuple[int, int]) -> list[str]:
        p, q = value
        return [f"{p}:{q}", f"{other}:{one}={p}:{q}", f"{3 * p}:{3 * q}", f"{other} : {one} = {p} : {q}", f"{p}\\!:\\!{q}"]

    return Item(question, (b, a), spell, [(a, b), (b + 1, a), (b, a + 1), (a + b, a)], [f"{one}:{other}={b}:{a}"])


@kind
def power_asked(dice: Dice) -> Item:
    base, value = dice.choice((2, 3, 5, 7)), dice.randrange(3, 15)
    question = f"Suppose ${base}^t={value}$. Find ${base**2}^t$."
    names = [f"{base**2}^t", f"{base**2}^{{t}}"]
    return _named(question, names, value**2, str, near_numbers(value**2), [f"{base}^t", "t"])


@kind
def length(dice: Dice) -> Item:
    name, value = dice.choice(("AB", "KL", "PQ", "XY")), dice.randrange(4, 90)
    question = f"How long is the segment ${name}$?"
    return _named(question, [name, f"|{name}|", f"\\overline{{{name}}}", f"\\lvert {name} \\rvert"], value, str, near_numbers(value), [])


@kind
def chain_with_name(dice: Dice) -> Item:
    a, b, p, q = *dice.sample("abmnpq", 2), dice.randrange(2, 40), dice.randrange(2, 40)
    question = f"Let ${a}={p}$ and ${b}={q}$. Compute ${a}+{b}$."

    def spell(value: int) -> list[str]:
        return [str(value), f"{a}+{b}={value}", f"{a}+{b}={p}+{q}={value}"] if value == p + q else [str(value), f"{a}+{b}={value}"]

    return Item(question, p + q, spell, near_numbers(p + q), [f"{a}={p + q}", f"{a}+{b}={p}+{q}={p + q + 1}", f"{a}+{b}={p}+{q}"])


# -- expressions -------------------------------------------------------------------------------------------------------


@kind
def expanded(dice: Dice) -> Item:
    a, b, c, d = (_whole(dice, -7, 8) for _ in range(4))
    value = (a * c, a * d + b * c, b * d)
    question = f"Expand $({polynomial((a, b))})({polynomial((c, d))})$."

    def spell(value: tuple[int, ...]) -> list[str]:
        p, q, r = value
        found = [polynomial(value), reordered(value), f"{p}x^2 + {q}x + {r}", f"{p}x^{{2}}{signed(q)}x{signed(r)}"]
        return [*found, f"{p}x^2 - {-q}x - {-r}"]

    return Item(question, value, spell, [each for each in near_tuples(value) if each[0] and each[1]])


@kind
def complex_number(dice: Dice) -> Item:
    value = (_whole(dice, -20, 20), _whole(dice, -20, 20))

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        return [latex(a + b * sympy.I, order="none").replace(" ", "").replace("+-", "-"), f"{a} + {b}i", f"{b}i + {a}", f"{a}{signed(b)}i", f"z={a}{signed(b)}\\mathrm{{i}}"]

    a, b = value
    return Item("Write the product as a complex number.", value, spell, [(a, -b), (-a, b), (b, a), (a + 1, b), (a, b + 1), (10 * a, b)][: 6 if a != b else 2])


@kind
def line(dice: Dice) -> Item:
    value = (_whole(dice, -9, 10), _whole(dice, -9, 10))

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        return [f"y={polynomial(value)}", f"y = {a}x + {b}", f"y={reordered(value)}", f"{polynomial((a,  b))}=y"]

    return Item("Give the line.", value, spell, near_tuples(value)[:9], [])


@kind
def antiderivative(dice: Dice) -> Item:
    value = tuple(dice.randrange(1, 9) for _ in range(2))
    a, b = value

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        body = f"{a}x^3+{b}x^2"
        return [f"{body}+C", f"{body} + c", f"{body}+K", f"C + {b}x^2 + {a}x^3", f"x^2({a}x+{b})+C", f"F(x)={body}+C", f"\\displaystyle {body} + c"]

    question = f"Find $\\int ({3 * a}x^2+{2 * b}x)\\,dx$."
    return Item(question, value, spell, near_tuples(value)[:8], [f"{a}x^3+{b}x^2", f"{a}x^3+{b}x^2+x", f"{a}x^3+{b}x^2+1"])


@kind
def antiderivative_of_sines(dice: Dice) -> Item:
    value = tuple(dice.randrange(2, 9) for _ in range(2))

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        return [f"{a}\\sin x-{b}\\cos x+C", f"{a}\\sin(x) - {b}\\cos(x) + c", f"c-{b}\\cos x+{a}\\sin x", f"-{b}\\cos{{x}} + {a}\\sin{{x}} + k"]

    a, b = value
    question = f"Find the antiderivative of ${a}\\cos x+{b}\\sin x$."
    return Item(question, value, spell, near_tuples(value)[:8], [f"{a}\\sin x-{b}\\cos x", f"{a}\\sin x+{b}\\cos x+C"])


@kind
def general_solution(dice: Dice) -> Item:
    value = tuple(dice.sample(range(1, 9), 2))

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        return [f"y=C_1e^{{{a}x}}+C_2e^{{-{b}x}}", f"y=Ae^{{{a}x}}+Be^{{-{b}x}}", f"y = c_1 e^{{-{b}x}} + c_2 e^{{{a}x}}", f"Ae^{{-{b}x}}+Be^{{{a}x}}"]

    a, b = value
    question = "Find the general solution of the differential equation."
    return Item(question, value, spell, near_tuples(value)[:8], [f"y=Ae^{{{a}x}}+Ae^{{-{b}x}}", f"y=Ae^{{{a}x}}", f"y=e^{{{a}x}}+e^{{-{b}x}}"])


@kind
def rational_power(dice: Dice) -> Item:
    value = dice.choice([Fraction(p, q) for p in range(2, 6) for q in (2, 3, 4, 5) if sympy.gcd(p, q) == 1])

    def spell(value: Fraction) -> list[str]:
        p, q = value.numerator, value.denominator
        root = "\\sqrt" if q == 2 else f"\\sqrt[{q}]"
        return [f"x^{{{p}/{q}}}", f"x^{{\\frac{{{p}}}{{{q}}}}}", f"{root}{{x^{p}}}", f"{root}{{x}}^{p}", f"({root}{{x}})^{{{p}}}"]

    near = [each for each in near_fractions(value) if each > 0 and each.numerator > 1 and each.denominator in (2, 3, 4, 5)]
    return Item("Let $x>0$. Write the factor.", value, spell, near)


@kind
def value_of_unknown(dice: Dice) -> Item:
    letter, name = dice.choice("fghuvs"), dice.choice("tsx")
    value = (_whole(dice, 2, 9), _whole(dice, 2, 9))

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        call = f"{letter}({name})"
        return [f"{a} - {b}{call}", f"{a}-{b}{call}", f"-{b}{call}+{a}", f"{a} - {b}\\,{letter}\\left({name}\\right)", f"{a}-{b}\\cdot {call}"]

    a, b = value
    question = f"Express the height in terms of ${letter}({name})$."
    return Item(question, value, spell, [(b, a), (a, b + 1), (a + 1, b), (-a, b)][: 4 if a != b else 1] or [], [f"{a}-{b}{letter}(w)", f"{a}-{b}{letter}", f"{a}-{b}{name}"])


@kind
def value_at_a_point(dice: Dice) -> Item:
    letter, point = dice.choice("QsvNIxa"), dice.randrange(0, 4)

    def spell(value: tuple[str, int]) -> list[str]:
        return [f"{value[0]}({value[1]})", f"{value[0]}\\left({value[1]}\\right)", f"${value[0]}( {value[1]} )$"]

    question = f"The charge is ${letter}(t)={letter}({point})e^{{{point}-t}}$. What is it at first?"
    return Item(question, (letter, point), spell, [(letter, point + 1), (letter, point + 2)], [str(point), letter, f"{point}{letter}", f"{letter}{point}"])


@kind
def product_of_sums(dice: Dice) -> Item:
    value = (dice.randrange(2, 9), dice.randrange(2, 9))

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        return [f"{a}x^2+{a * b}x", f"{a}x(x+{b})", f"x({a}x+{a * b})", f"(x+{b})\\cdot {a}x", f"{a}x\\left(x+{b}\\right)"]

    a, b = value
    near = [(a + 1, b), (a, b + 1), (a, b + 2), (b, a)]
    return Item("What is the area of the garden?", value, spell, [each for each in near if each != value], [f"{a}x+{a * b}"])


@kind
def choose(dice: Dice) -> Item:
    value = (dice.randrange(2, 4), dice.randrange(0, 6))

    def spell(value: tuple[int, int]) -> list[str]:
        k, add = value
        tail = f"+{add}" if add > 0 else str(add) if add else ""
        top = "".join(f"(n-{each})" for each in range(1, k))
        return [f"\\binom{{n}}{{{k}}}{tail}", f"\\frac{{n{top}}}{{{sympy.factorial(k)}}}{tail}", f"{{n \\choose {k}}}{tail}", f"\\frac{{n!}}{{{k}!(n-{k})!}}{tail}"]

    k, add = value
    return Item("Into how many parts do they cut the plane?", value, spell, [(k + 1, add), (k, add + 1), (k, add - 1), (k, add + 2)], [f"\\frac{{n(n+1)}}{{2}}+{add + 1}", f"\\binom{{n+1}}{{{k}}}+{add + 1}"])


@kind
def letter_factorial(dice: Dice) -> Item:
    value = dice.randrange(1, 7)

    def spell(value: int) -> list[str]:
        return [f"(n+{value})!", f"(n+{value})(n+{value - 1})!" if value > 1 else "(n+1)n!", f"(n+{value + 1})!/(n+{value + 1})", f"\\left(n+{value}\\right)!"]

    return Item("Simplify.", value, spell, [value + 1, value + 2], [f"n!+{value}", f"n!(n+{value})" if value > 1 else "n!", f"(2n+{value})!"])


@kind
def central_binomial(dice: Dice) -> Item:
    value = dice.randrange(2, 4)

    def spell(value: int) -> list[str]:
        return [f"\\binom{{{value}n}}{{n}}", f"\\frac{{({value}n)!}}{{n!({value - 1}n)!}}", f"\\dbinom{{{value}n}}{{{value - 1}n}}"]

    return Item("Count the paths.", value, spell, [value + 1, value + 2], [f"\\frac{{({value}n)!}}{{n!}}", f"\\binom{{{value}n}}{{n}}+1", f"{value}\\binom{{n}}{{1}}"])


@kind
def transcendental(dice: Dice) -> Item:
    a, b, c = dice.randrange(2, 7), dice.randrange(2, 7), dice.randrange(2, 9)
    value = a * sympy.exp(b * x) * sympy.sin(c * x) + sympy.log(c)

    def spell(value: sympy.Expr) -> list[str]:
        plain = latex(value)
        return [plain, latex(value, ln_notation=True), latex(value, order="rev-lex", ln_notation=True), f"f(x)={plain.replace('log', 'ln')}"]

    near = [value + 1, -value, value.subs(x, 2 * x), value + sympy.log(2), value.subs(sympy.sin(c * x), sympy.cos(c * x))]
    return Item("Find the function.", value, lambda each: [text.replace("\\log", "\\ln") for text in spell(each)], near)


@kind
def rational_function(dice: Dice) -> Item:
    a, b, c = (_whole(dice, 1, 9) for _ in range(3))
    value = sympy.together((a * x + b) / (x**2 + c))

    def spell(value: sympy.Expr) -> list[str]:
        return [latex(value), latex(sympy.expand(value)), latex(sympy.apart(value, x)), latex(value, fold_short_frac=True)]

    near = [value + 1, 1 / value, -value, value.subs(x, -x), value + x]
    return Item("Find the rest of the function.", value, spell, near)


# -- several values ----------------------------------------------------------------------------------------------------


def _pair(question: str, names: Sequence[str], value: tuple[int, ...], wrong: Sequence[str] = ()) -> Item:
    """A solution of a system: in the order of the names, as a point."""

    def spell(value: tuple[int, ...]) -> list[str]:
        named = [f"{name}={each}" for name, each in zip(names, value, strict=True)]
        point = f"({', '.join(map(str, value))})"
        rows = "\\\\".join(named)
        return [
            *(point, ", ".join(named), ", ".join(reversed(named)), " \\text{ and } ".join(named), point.replace(" ", "")),
            *(f"({','.join(names)})={point}", f"\\begin{{cases}}{rows}\\end{{cases}}", f"\\left\\{{\\begin{{array}}{{l}}{rows}\\end{{array}}\\right."),
        ]

    return Item(question, value, spell, near_tuples(value), [f"{names[0]}={value[0]}", str(value[0]), *wrong])


@kind
def system(dice: Dice) -> Item:
    names = dice.choice((("x", "y"), ("a", "b"), ("p", "q"), ("m", "n")))
    value = (dice.randrange(1, 30), dice.randrange(-20, 0))
    question = f"Solve ${names[0]}+{names[1]}={sum(value)}$ and ${names[0]}-{names[1]}={value[0] - value[1]}$. Find $({names[0]},{names[1]})$."
    return _pair(question, names, value)


@kind
def system_in_another_order(dice: Dice) -> Item:
    names = dice.choice((("y", "x"), ("q", "p"), ("t", "s")))
    value = (dice.randrange(1, 30), dice.randrange(31, 60))
    question = f"Find the pair $({names[0]},{names[1]})$ with ${names[1]}-{names[0]}={value[1] - value[0]}$."
    return _pair(question, names, value)


@kind
def system_of_three(dice: Dice) -> Item:
    value = tuple(dice.sample(range(-20, 20), 3))
    return _pair("Solve the system for $(x,y,z)$.", ("x", "y", "z"), value)


@kind
def system_named_in_reference(dice: Dice) -> Item:
    item = _pair("Solve the system $x+y=a$, $x-y=b$.", ("x", "y"), tuple(dice.sample(range(-30, 30), 2)))
    return Item(item.question, item.value, item.spell, item.near, item.wrong, reference=item.spell(item.value)[1])


@kind
def several_pairs(dice: Dice) -> Item:
    a, b, c, d = dice.sample(range(1, 40), 4)
    value = frozenset({(a, b), (c, d)})

    def spell(value: frozenset[tuple[int, int]]) -> list[str]:
        pairs = sorted(value)
        return [
            *(",".join(f"({p},{q})" for p, q in pairs), ", ".join(f"({p}, {q})" for p, q in reversed(pairs))),
            *(";".join(f"p={p},q={q}" for p, q in pairs), " or ".join(f"p={p}, q={q}" for p, q in reversed(pairs))),
            *(" \\text{ and } ".join(f"({p},{q})" for p, q in pairs), ",".join(f"({p},{q})" for p, q in [*pairs, pairs[0]])),
        ]

    near = [frozenset({(b, a), (c, d)}), frozenset({(a, d), (c, b)}), frozenset({(a, b)}), frozenset({(a, b), (c, d + 1)})]
    near += [frozenset({(a, b), (c, d), (d, c)}), frozenset({(a + 1, b), (c, d)}), frozenset({(b, a), (d, c)})]
    return Item("Find all pairs $(p,q)$ of primes.", value, spell, near)


@kind
def two_roots(dice: Dice) -> Item:
    value = frozenset(dice.sample([each for each in range(-30, 30) if each], 2))
    question = f"Solve $x^2{signed(-sum(value))}x{signed(int(sympy.prod(value)))}=0$."

    def spell(value: frozenset[int]) -> list[str]:
        roots = sorted(value)
        one, other = roots[0], roots[-1]
        return [
            *(f"{one}, {other}", f"{other}, {one}", f"x={one} \\text{{ or }} x={other}", f"x_1={one}, x_2={other}"),
            *(f"x_1={other},\\ x_2={one}", f"\\{{{one},{other}\\}}", f"x_{{1}} = {one}, \\quad x_{{2}} = {other}", f"x \\in \\{{{other}, {one}\\}}"),
        ]

    one, other = sorted(value)
    near = [frozenset({-one, -other}), frozenset({one, other + 1}), frozenset({one - 1, other}), frozenset({one, -other})]
    near = [each for each in near if len(each) == 2]
    return Item(question, value, spell, near, [f"{one}", f"x={other}", f"{one},{other},{other + 1}", f"x_1={one}, x_2={one}"])


@kind
def numbered_roots(dice: Dice) -> Item:
    item = two_roots(dice)
    return Item(item.question, item.value, item.spell, item.near, item.wrong, reference=item.spell(item.value)[3])


@kind
def plus_minus(dice: Dice) -> Item:
    value = (dice.randrange(1, 12), dice.choice((2, 3, 5, 7, 11)))

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        root = f"\\sqrt{{{b}}}"
        return [f"{a}\\pm{root}", f"{a}+{root}, {a}-{root}", f"x={a}\\pm {root}", f"{a} - {root} \\text{{ and }} {a} + {root}", f"x_{{1,2}} = {a} \\pm {root}"]

    a, b = value
    return Item("Solve for $x$.", value, spell, [(a + 1, b), (-a, b), (a, b + 6), (a + 2, b)], [f"{a}+\\sqrt{{{b}}}", f"{a}-\\sqrt{{{b}}}"])


@kind
def boxes_in_reference(dice: Dice) -> Item:
    value = frozenset(dice.sample([each for each in range(-30, 30) if each], 2))
    one, other = sorted(value)

    def spell(value: frozenset[int]) -> list[str]:
        roots = sorted(value)
        return [f"{roots[0]}, {roots[-1]}", f"{roots[-1]},{roots[0]}", f"{roots[0]} \\text{{ and }} {roots[-1]}"]

    near = [frozenset({-one, -other}), frozenset({one, other + 1}), frozenset({one - 1, other})]
    reference = dice.choice((f"\\boxed{{{one}}} \\text{{ and }} \\boxed{{{other}}}", f"The roots are $\\boxed{{{other}}}$ and $\\boxed{{{one}}}$."))
    return Item("Find the roots.", value, spell, [each for each in near if len(each) == 2], [str(one), str(other)], reference=reference)


@kind
def said_twice_in_reference(dice: Dice) -> Item:
    value = Fraction(dice.choice((1, 3, 7, 9, 11, 13)), dice.choice((4, 8, 20)))

    def spell(value: Fraction) -> list[str]:
        return [frac(value), decimal(value, 3) if (value * 1000).denominator == 1 else frac(value), f"{value.numerator}/{value.denominator}"]

    reference = f"{frac(value)} {dice.choice((chr(92) + 'text{ or }', 'or', 'OR'))} {decimal(value, 3)}"
    return Item("What part is left?", value, spell, near_fractions(value), [], reference=reference)


@kind
def set_of_numbers(dice: Dice) -> Item:
    value = frozenset(dice.sample(range(-20, 40), 3))

    def spell(value: frozenset[int]) -> list[str]:
        parts = [str(each) for each in sorted(value)]
        return [f"\\{{{', '.join(parts)}\\}}", f"\\left\\{{{','.join(reversed(parts))}\\right\\}}", f"\\lbrace {','.join(parts)} \\rbrace", f"S=\\{{{','.join(parts)}\\}}"]

    a, b, c = sorted(value)
    near = [frozenset({a, b}), frozenset({a, b, c + 1}), frozenset({-a, b, c}), frozenset({a, b, c, c + 3})]
    return Item("Give the set.", value, spell, [each for each in near if each != value])


# -- sets of real numbers ----------------------------------------------------------------------------------------------


@kind
def line_without_points(dice: Dice) -> Item:
    value = frozenset(dice.sample(range(-15, 15), dice.randrange(1, 3)))

    def spell(value: frozenset[int]) -> list[str]:
        points = sorted(value)
        ends = ["-\\infty", *map(str, points), "\\infty"]
        union = "\\cup".join(f"({low},{high})" for low, high in itertools.pairwise(ends))
        listed = ", ".join(map(str, points))
        conditions = ", ".join(f"x\\neq {each}" for each in points)
        return [
            *(union, f"\\mathbb{{R}}\\setminus\\{{{listed}\\}}", f"\\mathbb R \\setminus \\left\\{{{listed}\\right\\}}"),
            *(f"\\{{x\\in\\mathbb{{R}}\\mid {conditions}\\}}", f"\\mathbb{{R}}-\\{{{listed}\\}}", f"\\{{x : {conditions}\\}}"),
            *(f"ℝ ∖ \\{{{listed}\\}}", f"x \\neq {listed}", " \\cup ".join(union.split("\\cup")[::-1])),
        ]

    first = min(value)
    near = [frozenset({-each for each in value}), frozenset({first + 1, *value} - {first}), value | {20}]
    wrong = ["\\mathbb{R}", f"\\mathbb{{Z}}\\setminus\\{{{first}\\}}", f"(-\\infty,{first})", f"\\mathbb{{R}}\\setminus({first},{first + 20})"]
    return Item("What is the domain of $f$?", value, spell, [each for each in near if each != value], wrong)


@kind
def half_line(dice: Dice) -> Item:
    value = (dice.randrange(-20, 20), dice.choice("<>"), dice.random() < 0.5)

    def spell(value: tuple[int, str, bool]) -> list[str]:
        bound, side, holds = value
        interval = f"{'[' if holds else '('}{bound},\\infty)" if side == ">" else f"(-\\infty,{bound}{']' if holds else ')'}"
        sign = {"<": "\\le", ">": "\\ge"}[side] if holds else side
        mirrored = {"<": "\\geq", ">": "\\leq"}[side] if holds else {"<": ">", ">": "<"}[side]
        return [
            *(interval, f"x{sign} {bound}", f"\\{{x\\in\\mathbb{{R}} : x{sign} {bound}\\}}", f"{bound} {mirrored} x"),
            *(f"\\{{x \\mid x {sign} {bound}\\}}", f"x \\in {interval}", f"\\left{interval.replace(',', ', ')[:-1]}\\right{interval[-1]}"),
        ]

    bound, side, holds = value
    near = [(bound + 1, side, holds), (bound, "<" if side == ">" else ">", holds), (bound, side, not holds), (bound - 1, side, holds)]
    return Item("For which $x$ is it defined?", value, spell, near, [f"\\{{x\\in\\mathbb{{Z}} : x{side} {bound}\\}}"])


@kind
def interval(dice: Dice) -> Item:
    low = dice.randrange(-20, 10)
    value = (low, low + dice.randrange(2, 20), dice.random() < 0.5, dice.random() < 0.5)

    def spell(value: tuple[int, int, bool, bool]) -> list[str]:
        low, high, first, last = value
        signs = "\\le" if first else "<", "\\le" if last else "<"
        plain = f"{'[' if first else '('}{low},{high}{']' if last else ')'}"
        lower, upper = f"x {signs[0].replace('le', 'ge').replace('<', '>')} {low}", f"x {signs[1]} {high}"
        return [
            *(f"{low} {signs[0]} x {signs[1]} {high}", plain, f"x\\in {plain}", f"\\{{x\\in\\mathbb{{R}}\\mid {low}{signs[0]} x{signs[1]} {high}\\}}"),
            f"{lower} \\text{{ and }} {upper}",
        ]

    low, high, first, last = value
    near = [(low, high, not first, last), (low, high, first, not last), (low, high + 1, first, last), (low - 1, high, first, last), (-high, -low, first, last)]
    return Item("For which $x$ does it hold?", value, spell, [each for each in near if each != value], [f"x>{low}", f"\\{{{low},{high}\\}}"])


@kind
def outside(dice: Dice) -> Item:
    low = dice.randrange(-20, 10)
    value = (low, low + dice.randrange(2, 20))

    def spell(value: tuple[int, int]) -> list[str]:
        low, high = value
        return [
            *(f"(-\\infty,{low})\\cup({high},\\infty)", f"x<{low} \\text{{ or }} x>{high}", f"x > {high} or x < {low}"),
            *(f"\\mathbb{{R}}\\setminus[{low},{high}]", f"({high}, \\infty) \\cup (-\\infty, {low})", f"x\\in(-\\infty,{low})\\cup({high},\\infty)"),
        ]

    low, high = value
    near = [(low - 1, high), (low, high + 1), (-high, -low), (low + 1, high)]
    return Item("Solve the inequality.", value, spell, [each for each in near if each != value and each[0] < each[1]], [f"({low},{high})", f"x<{low}", f"\\mathbb{{R}}\\setminus({low},{high})", f"\\mathbb{{R}}\\setminus\\{{{low},{high}\\}}"])


# -- units, words, scripts ---------------------------------------------------------------------------------------------


@kind
def angle(dice: Dice) -> Item:
    value = dice.randrange(11, 170)
    a, b, c = dice.sample("ABCDKLMPQRXYZ", 3)
    question = dice.choice(
        (
            f"In triangle ${a}{b}{c}$, find $\\angle {a}{b}{c}$.",
            f"In the figure $\\angle {a}{b}{c}=2\\angle {b}{c}{a}$. What is the measure of $\\angle {b}{a}{c}$?",
            "By what angle does it turn?",
        )
    )

    def spell(value: int) -> list[str]:
        return [f"{value}", f"{value}^\\circ", f"{value}^{{\\circ}}", f"{value}°", f"{value} \\text{{ degrees}}", f"\\theta={value}^\\circ"]

    return Item(question, value, spell, near_numbers(value), [f"{value}\\text{{ cm}}"])


@kind
def no_angle(dice: Dice) -> Item:
    value = dice.randrange(5, 30)
    question = dice.choice(
        (
            f"How many sides has a regular polygon whose angles are ${dice.randrange(100, 170)}^\\circ$?",
            "In triangle $ABC$ with $\\angle A=60^\\circ$, find the length of $AB$.",
            "Give $\\angle KLM$ in radians, to the nearest whole number.",
        )
    )
    return Item(question, value, lambda value: [f"{value}", f"${value}$"], near_numbers(value), [f"{value}^\\circ", f"{value}\\text{{ degrees}}"])


@kind
def age(dice: Dice) -> Item:
    value = dice.randrange(5, 90)
    question = f"How old is the {dice.choice(('tree', 'house', 'teacher'))}?"
    return Item(question, value, lambda value: [f"{value}", f"{value} \\text{{ years}}", f"{value} years", f"{value}\\text{{ years old}}"], near_numbers(value), [f"{value}\\text{{ months}}", f"{value}\\text{{ days}}"])


@kind
def counted(dice: Dice) -> Item:
    value, noun = dice.randrange(10, 900), dice.choice(("ways", "paths", "colourings", "numbers", "marbles"))

    def spell(value: int) -> list[str]:
        return [f"{value}", f"{value} \\text{{ {noun}}}", f"{value} \\text{{ different {noun}}}", f"{value} {noun}", f"{value}\\text{{ possible {noun}}}"]

    return Item(f"How many {noun} are there?", value, spell, near_numbers(value), [f"{value} \\text{{ pears}}", f"{value}\\%"])


@kind
def emphasis_and_scripts(dice: Dice) -> Item:
    value = dice.randrange(12, 9000)
    wide = str.maketrans("0123456789-", "０１２３４５６７８９－")

    def spell(value: int) -> list[str]:
        return [f"{value}", f"**{value}**", f"{value}。", str(value).translate(wide), f"{value}．", f"__{value}__", f"\\mathbf{{{value}}}", f"{value}।", f"`{value}`"]

    return Item("How many?", value, spell, near_numbers(value), [" ".join(str(value))])


@kind
def choice(dice: Dice) -> Item:
    options = dice.sample(range(10, 99), 5)
    place = dice.randrange(5)
    question = "Which? " + " ".join(f"({letter}) {each}" for letter, each in zip("ABCDE", options, strict=True))

    def spell(value: int) -> list[str]:
        letter = "ABCDE"[value]
        return [letter, f"({letter})", f"\\text{{{letter}}}", f"\\textbf{{({letter})}}\\ {options[value]}", f"\\text{{{letter}. {options[value]}}}", f"{letter}) {options[value]}", f"**{letter}**"]

    return Item(question, place, spell, [each for each in range(5) if each != place], [f"({'ABCDE'[place]}) {options[place - 1]}", "A, B, C, D, E"])


@kind
def nothing(dice: Dice) -> Item:
    del dice
    spellings = ["\\text{no solution}", "\\text{No solutions}", "no solution", "\\varnothing", "\\emptyset", "\\text{No real solutions}", "∅", "\\{\\}", "There is no solution."]
    return Item("Solve the equation.", "none", lambda value: spellings if value == "none" else [str(value)], ["0", "\\{0\\}", "1", "x=0", "\\infty", "\\text{all real numbers}"])


@kind
def function_by_another_name(dice: Dice) -> Item:
    value = (_whole(dice, 2, 9), _whole(dice, -9, 9))

    def spell(value: tuple[int, int]) -> list[str]:
        a, b = value
        return [f"f({name})={a}{name}^2{signed(b)}{name}" for name in ("x", "t", "n", "u")]

    a, b = value
    return Item("Find all functions $f$ on the reals.", value, spell, near_tuples(value)[:9], [f"f(t)={a}x^2{signed(b)}x", f"g(x)={a}x^2{signed(b)}x"])


@kind
def money(dice: Dice) -> Item:
    value = Fraction(dice.randrange(200, 9000), 100)

    def spell(value: Fraction) -> list[str]:
        return [f"\\${decimal(value, 2)}", decimal(value, 2), f"{decimal(value, 2)} \\text{{ dollars}}", f"\\${decimal(value, 2)}."]

    near = [value + Fraction(1, 100), value + 1, value * 10, value - Fraction(1, 10)]
    return Item("How many dollars does it cost?", value, spell, near, [f"{decimal(value, 2)}\\text{{ euros}}", f"{decimal(value, 2)}\\text{{ cents}}"])


@kind
def percentage(dice: Dice) -> Item:
    value = dice.randrange(3, 98)
    spell = lambda value: [f"{value}\\%", f"{value}", f"{value}%", f"{value}\\text{{ percent}}", f"{value} pct"]  # noqa: E731
    return Item("What percentage of the seats is taken?", value, spell, near_numbers(value), [f"0.{value:02}\\%"])


# -- numbers -----------------------------------------------------------------------------------------------------------


@kind
def thousands(dice: Dice) -> Item:
    value = dice.randrange(10**6, 10**11)

    def spell(value: int) -> list[str]:
        grouped = f"{value:,}"
        return [grouped.replace(",", ",\\! "), f"{value}", grouped, grouped.replace(",", "{,}"), grouped.replace(",", "\\,"), grouped.replace(",", ",\\!")]

    return Item("Evaluate the product.", value, spell, [each for each in near_numbers(value) if each > 10**6])


@kind
def huge_power(dice: Dice) -> Item:
    a, b, c = dice.choice((2, 3, 5, 7)), dice.choice((1100, 1500, 2400, 5000, 20000)), dice.randrange(-3, 4)
    value = (a, 2 * b, c)

    def spell(value: tuple[int, int, int]) -> list[str]:
        a, b, c = value
        tail = signed(c) if c else ""
        found = [f"{a}^{{{b}}}{tail}", f"{a * a}^{{{b // 2}}}{tail}" if b % 2 == 0 else f"{a}\\cdot {a}^{{{b - 1}}}{tail}", f"({a}^{{{b}}}){tail}"]
        return [*found, f"{c}+{a}^{{{b}}}" if c else f"{a}^{b - 1}\\cdot {a}".replace(f"^{b - 1}", f"^{{{b - 1}}}")]

    a, b, c = value
    near = [(a, b + 1, c), (a, b, c + 1), (a, b, c - 1), (a + 1, b, c), (a, b - 2, c), (a, b, -c) if c else (a, b + 2, c)]
    return Item("How many subsets are there?", value, spell, near)


@kind
def huge_surd(dice: Dice) -> Item:
    a, b = dice.choice((2, 3)), dice.choice((3, 5, 7, 11))
    value = (a, dice.choice((1100, 1300, 1400)), b if b != a else b + 2)

    def spell(value: tuple[int, int, int]) -> list[str]:
        a, b, c = value
        return [f"{a}^{{{b}}}\\sqrt{{{c}}}", f"\\sqrt{{{c}\\cdot {a}^{{{2 * b}}}}}", f"\\sqrt{{{c}}}\\cdot {a}^{{{b}}}", f"{a}^{{{b - 1}}}\\sqrt{{{c * a * a}}}"]

    a, b, c = value
    return Item("Find the difference of the roots.", value, spell, [(a, b + 1, c), (a, b - 1, c), (a, b, c + 10), (a + 1, b, c)], [f"{a}^{{{b}}}\\sqrt{{{c}}}+1"])


@kind
def power_difference(dice: Dice) -> Item:
    value = (dice.choice((3, 5, 7)), dice.choice((900, 3000, 4000)), dice.choice((-1, 1)))

    def spell(value: tuple[int, int, int]) -> list[str]:
        a, b, c = value
        return [f"\\frac{{{a}^{{{b}}}{signed(c)}}}{{2}}", f"\\frac12\\left({a}^{{{b}}}{signed(c)}\\right)", f"({a}^{{{b}}}{signed(c)})/2", f"\\frac{{{a}\\cdot {a}^{{{b - 1}}}{signed(c)}}}{{2}}"]

    a, b, c = value
    return Item("Find the sum.", value, spell, [(a, b, -c), (a, b + 1, c), (a + 2, b, c), (a, b, c + 2)])


@kind
def in_binary(dice: Dice) -> Item:
    value = (f"{dice.randrange(1, 64):b}", f"{2 * dice.randrange(1, 16) + 1:05b}")

    def spell(value: tuple[str, str]) -> list[str]:
        whole, part = value
        return [f"{whole}.{part}_{{2}}", f"{whole}.{part}_2", f"\\displaystyle {whole}.{part}_{{2}}", f"{whole}.{part}_{{\\text{{two}}}}", f"({whole}.{part})_2"]

    whole, part = value
    near = [(whole + "1", part), (whole, "0" + part), (whole, part + "1"), (whole, part[:-1] + "01")]
    return Item("Write it with binary digits.", value, spell, near, [f"{whole}.{part}_3"])


@kind
def prime_factors(dice: Dice) -> Item:
    value = tuple(dice.randrange(1, 5) for _ in range(3))

    def spell(value: tuple[int, ...]) -> list[str]:
        return [" \\cdot ".join(f"{prime}^{each}" for prime, each in zip((2, 3, 5), value, strict=True)), "\\times".join(f"{prime}^{{{each}}}" for prime, each in zip((2, 3, 5), value, strict=True)), "*".join(f"{prime}^{each}" for prime, each in zip((5, 3, 2), reversed(value), strict=True))]

    near = [(*value[:place], value[place] + step, *value[place + 1 :]) for place in range(3) for step in (1, 2)]
    return Item("Factor the number.", value, spell, near)


@kind
def scientific(dice: Dice) -> Item:
    value = (Fraction(dice.randrange(11, 99), 10), dice.choice([*range(-19, -3), *range(4, 20)]))

    def spell(value: tuple[Fraction, int]) -> list[str]:
        a, b = value
        return [f"{decimal(a, 1)}\\times 10^{{{b}}}", f"{decimal(a, 1)} \\cdot 10^{{{b}}}", f"{decimal(a, 1)}e{b}", f"{decimal(a, 1)}×10^{{{b}}}"]

    a, b = value
    return Item("How heavy is it?", value, spell, [(a, b + 1), (a, -b), (a + Fraction(1, 10), b), (-a, b), (a + 1, b)], ["0", "0.0"])


@kind
def mixed_number(dice: Dice) -> Item:
    whole, part = dice.randrange(1, 12), _proper(dice)

    def spell(value: Fraction) -> list[str]:
        whole = int(value)
        part = value - whole
        found = [frac(value), frac(value, "\\dfrac")]
        return [*found, f"{whole}{frac(part)}", f"{whole} {part.numerator}/{part.denominator}"] if whole > 0 and part > 0 else found

    return Item("How many hours does it take?", whole + part, spell, near_fractions(whole + part))


@kind
def finished_by_chance(dice: Dice) -> Item:
    value = dice.choice((Fraction(1, 4), Fraction(1, 5), Fraction(3, 5), Fraction(3, 8), Fraction(7, 20)))
    plain = decimal(value, next(each for each in range(1, 9) if (value * 10**each).denominator == 1))
    question = dice.choice(
        (
            f"A plank of {plain} m leans on {frac(value)} of a wall. Two fair coins are thrown. What is the probability?",
            f"[asy] draw((0,0)--({plain},{value.numerator}/{value.denominator})); [/asy] Find $\\sin A$.",
            f"Given $p={frac(value)}$ and $q={plain}$ for heads, what is the probability of tails?",
        )
    )

    def spell(value: Fraction) -> list[str]:
        return [frac(value), f"{value.numerator}/{value.denominator}", decimal(value, 3) if (value * 1000).denominator == 1 else frac(value)]

    item_reference = dice.choice((frac(value), plain))
    return Item(question, value, spell, near_fractions(value), reference=item_reference)


# -- what is only set otherwise ----------------------------------------------------------------------------------------


@kind
def series(dice: Dice) -> Item:
    value = (dice.randrange(2, 9), dice.randrange(0, 3))

    def spell(value: tuple[int, int]) -> list[str]:
        a, low = value
        return [f"\\sum_{{n={low}}}^{{\\infty}} {a}^n x^n", f"\\sum_{{n={low}}}^{{\\infty}}{a}^nx^n", f"\\displaystyle\\sum_{{n={low}}}^\\infty {a}^n x^n", f"\\sum\\limits_{{n={low}}}^{{\\infty}} {a}^{{n}}x^{{n}}"]

    a, low = value
    return Item("Write the series.", value, spell, [(a + 1, low), (a, low + 1), (a + 2, low)], [f"\\sum_{{n={low}}}^{{\\infty}} {a}^n x^{{2n}}", f"\\sum_{{k={low}}}^{{\\infty}} {a}^n x^n"])


@kind
def unread_integral(dice: Dice) -> Item:
    value = (dice.randrange(0, 3), dice.randrange(3, 9))

    def spell(value: tuple[int, int]) -> list[str]:
        low, high = value
        return [f"\\int_{low}^{high} e^{{-x^2}}\\,dx", f"\\int_{{{low}}}^{{{high}}}e^{{-x^2}}dx", f"\\displaystyle \\int_{low}^{high} e^{{-x^2}} \\, dx"]

    low, high = value
    return Item("Write the area as an integral.", value, spell, [(low + 1, high), (low, high + 1)], [f"\\int_{low}^{high} e^{{x^2}}\\,dx", f"\\int_{high}^{low} e^{{-x^2}}\\,dx"])


@kind
def column(dice: Dice) -> Item:
    value = tuple(dice.sample(range(-9, 20), 3))

    def spell(value: tuple[int, ...]) -> list[str]:
        rows = "\\\\".join(map(str, value))
        return [f"\\begin{{pmatrix}}{rows}\\end{{pmatrix}}", f"\\begin{{bmatrix}} {rows} \\end{{bmatrix}}", f"({','.join(map(str, value))})", f"\\left({', '.join(map(str, value))}\\right)", f"\\langle {','.join(map(str, value))}\\rangle"]

    return Item("Find the vector.", value, spell, near_tuples(value))


@kind
def matrix(dice: Dice) -> Item:
    value = tuple(dice.randrange(-9, 10) for _ in range(4))

    def spell(value: tuple[int, ...]) -> list[str]:
        a, b, c, d = value
        return [f"\\begin{{pmatrix}}{a}&{b}\\\\{c}&{d}\\end{{pmatrix}}", f"\\begin{{bmatrix}} {a} & {b} \\\\ {c} & {d} \\end{{bmatrix}}", f"A=\\left(\\begin{{array}}{{cc}}{a}&{b}\\\\{c}&{d}\\end{{array}}\\right)"]

    return Item("Find the matrix.", value, spell, near_tuples(value)[:12])


@kind
def words(dice: Dice) -> Item:
    names = ("Monday", "Tuesday", "Thursday", "even", "odd", "ellipse", "parabola", "Anna", "blue")
    value = dice.choice(names)
    spell = lambda value: [f"\\text{{{value}}}", value, f"\\textbf{{{value}}}", value.upper(), f"{value}.", f"**{value}**", f"\\text{{ {value} }}"]  # noqa: E731
    return Item("Which one?", value, spell, [each for each in names if each != value], [f"\\text{{not {value}}}"])


# -- cases -------------------------------------------------------------------------------------------------------------


def right(each: int, seed: int = 0) -> Iterator[Case]:
    """Right spellings: of each kind as many questions, each answered in all its ways."""
    for name, item in _items(each, seed):
        reference = item.reference or item.spell(item.value)[0]
        for answer in dict.fromkeys(item.spell(item.value)):
            if answer != reference:
                yield Case(name, item.question, reference, answer, True)


def wrong(each: int, seed: int = 0) -> Iterator[Case]:
    """Wrong answers: of each kind as many questions, each with all values that are near, each in one of its spellings."""
    dice = random.Random(seed)
    for name, item in _items(each, seed):
        reference = item.reference or item.spell(item.value)[0]
        for value in item.near:
            if not differ(value, item.value):
                continue
            yield Case(name, item.question, reference, dice.choice(item.spell(value)), False)
        for answer in item.wrong:
            yield Case(name, item.question, reference, answer, False)


def _items(each: int, seed: int) -> Iterator[tuple[str, Item]]:
    for name, make in KINDS.items():
        dice = random.Random(f"{seed} {name}")
        for _ in range(each):
            yield name, make(dice)
