"""Kinds of answers: what is asked, how it may be spelled, what is near; and the right and wrong cases of all kinds."""
# ruff: noqa: RUF001

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy import latex

from gem_support.math_answers import (
    KINDS,
    Case,
    Dice,
    Item,
    Value,
    ascending,
    decimal,
    differ,
    exact_decimal,
    fill,
    frac,
    kind,
    near_fractions,
    near_numbers,
    near_tuples,
    polynomial,
    proper,
    rounded,
    signed,
    whole,
)

x: Any = sympy.Symbol("x")
Pair = tuple[int, int]


def _dfrac(value: Fraction) -> str:
    return frac(value, "\\dfrac")


# -- chains ------------------------------------------------------------------------------------------------------------


@kind
def product_carried_out(dice: Dice) -> Item:
    a, b, c = (dice.randrange(3, 13) for _ in range(3))

    def spell(value: int) -> list[str]:
        chains = r"""<v> ;; <a>\times <b>\times <c>=<v> ;; <a>\cdot <b>\cdot <c> = <ab>\cdot <c>=<v>
            ;; N=<a>\cdot<bc>=<v>
            ;; \text{Number} = <ab> \times <c> = <v> ;; $<a>*<b>*<c> = <v>$"""
        return fill(
            chains if value == a * b * c else "<v> ;; N=<v> ;; <v>=<v>", v=value, a=a, b=b, c=c, ab=a * b, bc=b * c
        )

    wrong = fill(
        r"<a>\times <b>=<v> ;; <v>=<w> ;; <a>\times <b>\times <c> ;; <v>=<a>+<b>",
        a=a,
        b=b,
        c=c,
        v=a * b * c,
        w=a * b * c + 1,
    )
    return Item("How many colourings are there?", a * b * c, spell, near_numbers(a * b * c), wrong)


@kind
def power_carried_out(dice: Dice) -> Item:
    a, b = dice.randrange(2, 8), dice.randrange(3, 6)

    def spell(value: int) -> list[str]:
        return fill(
            "<v> ;; <a>^<b>=<v> ;; <a>^{<b>} = <a>^{<c>}\\cdot <a> = <v>" if value == a**b else "<v>",
            v=value,
            a=a,
            b=b,
            c=b - 1,
        )

    wrong = fill("<a>^<b>=<w> ;; <v>=<a>^<c> ;; <a>^{<b>}=<u>", a=a, b=b, c=b + 1, v=a**b, w=a**b + 1, u=a * b)
    return Item("How many words are there?", a**b, spell, near_numbers(a**b), wrong)


@kind
def factorial_carried_out(dice: Dice) -> Item:
    a, b = dice.randrange(4, 7), dice.randrange(2, 6)
    total = int(sympy.factorial(a)) * b

    def spell(value: int) -> list[str]:
        chains = "<v> ;; <a>!\\times <b>=<v> ;; <b>\\cdot <a>! = <v> ;; <a>!*<b> = <f>*<b> = <v>"
        return fill(chains if value == total else "<v>", v=value, a=a, b=b, f=total // b)

    wrong = fill("<a>!\\cdot <c>=<v> ;; <d>!\\times <b>=<v>", a=a, b=b, c=b + 1, d=a - 1, v=total)
    return Item("In how many ways can they sit?", total, spell, near_numbers(total), wrong)


@kind
def fraction_reduced(dice: Dice) -> Item:
    reduced, factor = proper(dice), dice.randrange(2, 6)
    top, bottom = factor * reduced.numerator, factor * reduced.denominator

    def spell(value: Fraction) -> list[str]:
        chains = r"""<v> ;; \frac{<t>}{<b>}=<v> ;; P = \frac{<t>}{<b>} = <v> ;; P(A)=\dfrac{<t>}{<b>}=<v>
            ;; <t>/<b>=<p>/<q>"""
        plain = "<v> ;; P=<v> ;; <v>=<d>"
        names = {
            "v": frac(value),
            "d": _dfrac(value),
            "t": top,
            "b": bottom,
            "p": value.numerator,
            "q": value.denominator,
        }
        return fill(chains if value == reduced else plain, **names)

    wrong = [f"\\frac{{{top + 1}}}{{{bottom}}}={frac(reduced)}", f"{frac(reduced)}={frac(reduced + 1)}"]
    return Item("What is the probability of a sum below the mean?", reduced, spell, near_fractions(reduced), wrong)


@kind
def fraction_and_decimal(dice: Dice) -> Item:
    value = Fraction(dice.choice([each for each in range(1, 40) if each % 5]), dice.choice((4, 8, 20, 25, 40)))

    def spell(value: Fraction) -> list[str]:
        return fill(
            "<v> ;; <d> ;; <v>=<d> ;; <d>=<v> ;; <big> = <d>", v=frac(value), d=exact_decimal(value), big=_dfrac(value)
        )

    return Item("What part of the water is left?", value, spell, near_fractions(value), [f"{frac(value)}=0.11"])


@kind
def fraction_marks(dice: Dice) -> Item:
    value = proper(dice)
    marks = {Fraction(1, 4): "¼", Fraction(3, 4): "¾", Fraction(1, 3): "⅓", Fraction(2, 3): "⅔", Fraction(3, 8): "⅜"}

    def spell(value: Fraction) -> list[str]:
        sign, top, bottom = "-" if value < 0 else "", abs(value.numerator), value.denominator
        spellings = r"""<v> ;; <s>{<t> \over <b>} ;; \displaystyle <v> ;; $<v>$. ;; \displaystyle<d> ;; <s><t>/<b>
            ;; **<s><t>/<b>**"""
        found = fill(spellings, v=frac(value), d=_dfrac(value), s=sign, t=top, b=bottom)
        return [*found, *([marks[value]] if value in marks else [])]

    return Item("Which part is it?", value, spell, near_fractions(value))


# -- exact and rounded -------------------------------------------------------------------------------------------------


def _with_rounded(value: Any) -> list[str]:
    spellings = r"""<v> ;; <v> \approx <2> ;; <v>\approx<3> ;; A=<v>\approx <1> ;; <v> ≈ <4> ;; x = <v> \approx <2>
        ;; <2> \approx <v>"""
    return fill(spellings, v=latex(value), **{str(places): rounded(value, places) for places in range(1, 5)})


@kind
def circle(dice: Dice) -> Item:
    a = dice.randrange(3, 60)

    def spell(value: int) -> list[str]:
        rounded_only = [] if value == a else [f"\\approx {rounded(value * sympy.pi, 2)}"]
        return [*_with_rounded(value * sympy.pi), *rounded_only]

    one, two = (rounded(a * sympy.pi, places) for places in (1, 2))
    wrong = fill(r"<b>\pi\approx <two> ;; \approx <one> ;; <two>", b=a + 1, one=one, two=two)
    return Item(
        "Find the area of the ring.", a, spell, [max(1, a - 1), max(1, a - 3), a + 1, a + 2, 10 * a, 2 * a], wrong
    )


@kind
def diagonal(dice: Dice) -> Item:
    a, b = dice.randrange(2, 12), dice.choice((2, 3, 5, 6, 7, 10))
    value: Any = a * sympy.sqrt(b)
    near = [(a + 1) * sympy.sqrt(b), a * sympy.sqrt(b + 1), sympy.sqrt(a * b), -value, 2 * value, a + sympy.sqrt(b)]

    def spell(each: Any) -> list[str]:
        return [*_with_rounded(each), *([f"\\sqrt{{{a * a * b}}}={latex(value)}"] if each == value else [])]

    return Item("Find the length of the diagonal.", value, spell, near)


@kind
def share(dice: Dice) -> Item:
    value = Fraction(dice.randrange(1, 7), 7) + dice.randrange(0, 3)

    def spell(value: Fraction) -> list[str]:
        places = {str(each): decimal(value, each) for each in (2, 3, 4)}
        return fill(
            r"<v> ;; <v>\approx <2> ;; <v> \approx <3> ;; <v>\approx <4> ;; s=<v> ≈ <3>", v=frac(value), **places
        )

    wrong = [f"\\approx {decimal(value, 2)}", f"{frac(value)}\\approx {decimal(value + 1, 2)}", decimal(value, 3)]
    return Item("What is the share of each?", value, spell, near_fractions(value), wrong)


@kind
def to_two_decimals(dice: Dice) -> Item:
    value = Fraction(dice.randrange(1001, 9999), 100)

    def spell(value: Fraction) -> list[str]:
        return fill(
            r"<v> ;; \approx <v> ;; ≈<v> ;; x\approx <v> ;; \approx$<v>$ ;; \text{about } <v>", v=decimal(value, 2)
        )

    near = [value + Fraction(1, 100), value - Fraction(1, 10), value + 1, -value, value * 10]
    return Item("Find the length, to two decimals.", value, spell, near)


@kind
def estimate(dice: Dice) -> Item:
    value = dice.randrange(12, 400)

    def spell(value: int) -> list[str]:
        return fill(r"<v> ;; x\approx <v> ;; \approx <v> ;; <v>.3\approx <v> ;; approximately <v>", v=value)

    wrong = [f"{value + 2}.1\\approx {value}"]
    return Item("Estimate $x$ to the nearest whole number.", value, spell, near_numbers(value), wrong)


# -- the asked quantity ------------------------------------------------------------------------------------------------


def _named(
    question: str,
    names: Sequence[str],
    value: Value,
    spell: Callable[[Any], str],
    near: Sequence[Value],
    wrong: Sequence[str],
) -> Item:
    """With the name of what is asked, in several spellings, and with names of something else."""

    def all_spellings(value: Value) -> list[str]:
        text = spell(value)
        return [text, *(f"{name}={text}" for name in names), *(f"{name} = {text}" for name in names)]

    return Item(question, value, all_spellings, near, [f"{name}={spell(value)}" for name in wrong])


@kind
def function_value(dice: Dice) -> Item:
    letter, a, b, c = dice.choice("fghpq"), dice.randrange(2, 9), dice.randrange(2, 9), dice.randrange(1, 9)
    question = f"If ${letter}(x)={a}x^2-{b}$, find ${letter}({c})$."
    names, wrong = [f"{letter}({c})", f"{letter}\\left({c}\\right)"], [f"{letter}(-{c})", f"{letter}({c + 1})"]
    value = a * c * c - b
    return _named(question, names, value, str, near_numbers(value), wrong)


@kind
def function_value_in_reference(dice: Dice) -> Item:
    item = function_value(dice)
    return Item(item.question, item.value, item.spell, item.near, item.wrong, reference=item.spell(item.value)[1])


@kind
def sum_of_names(dice: Dice) -> Item:
    a, b = dice.sample("abkmnpqrs", 2)
    given = proper(dice)
    question = f"Let ${a}$ and ${b}$ be coprime with $\\frac{{{a}}}{{{b}}}={frac(given)}$. Find ${a}+{b}$."
    total = given.numerator + given.denominator
    return _named(question, [f"{a}+{b}", f"{b}+{a}"], total, str, near_numbers(total), [f"{a}-{b}", a, f"{a}{b}"])


@kind
def ratio_of_segments(dice: Dice) -> Item:
    p, q, r = dice.sample("ABCDEFKLMPQRSTXYZ", 3)
    value = proper(dice)
    question = f"${p}$, ${q}$ and ${r}$ lie on a line. Find $\\frac{{{p}{q}}}{{{q}{r}}}$."
    names = fill(r"\frac{<p><q>}{<q><r>} ;; <p><q>/<q><r> ;; \dfrac{<p><q>}{<q><r>}", p=p, q=q, r=r)
    wrong = fill(r"\frac{<q><r>}{<p><q>} ;; \frac{<p><r>}{<q><r>}", p=p, q=q, r=r)
    return _named(question, names, value, frac, near_fractions(value), wrong)


@kind
def sine(dice: Dice) -> Item:
    name = dice.choice(("\\theta", "\\alpha", "A", "x"))
    a, b, c = dice.choice(((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25)))
    one, other = dice.sample(("\\sin", "\\cos"), 2)
    value, given = Fraction(a, c), Fraction(b, c)
    question = f"Let ${name}$ be acute with ${other} {name}={frac(given)}$. Find ${one} {name}$."
    near = [given, -value, Fraction(a, c + 1), Fraction(b, a), Fraction(c, a)]
    return _named(
        question, [f"{one} {name}", f"{one}({name})"], value, frac, near, [f"{other} {name}", f"\\tan {name}"]
    )


@kind
def modulus(dice: Dice) -> Item:
    name, (a, b, c) = dice.choice("zwuv"), dice.choice(((3, 4, 5), (5, 12, 13), (8, 15, 17), (6, 8, 10)))
    question = f"Let ${name}={a}-{b}i$. Find $|{name}|$."
    names = fill(r"|<n>| ;; \left|<n>\right| ;; \lvert <n>\rvert", n=name)
    return _named(question, names, c, str, near_numbers(c), [name, f"|{name}|^2"])


@kind
def ratio(dice: Dice) -> Item:
    a, b = dice.choice([(p, q) for p in range(2, 12) for q in range(2, 12) if sympy.gcd(p, q) == 1 and p != q])
    one, other = dice.sample(("AB", "BC", "KL", "LM", "PQ"), 2)

    def spell(value: Pair) -> list[str]:
        p, q = value
        spellings = r"""<p>:<q> ;; <o>:<n>=<p>:<q> ;; <pp>:<qq> ;; <o> : <n> = <p> : <q> ;; <p>\!:\!<q>
            ;; \frac{<o>}{<n>}=\frac{<p>}{<q>}"""
        return fill(spellings, p=p, q=q, pp=3 * p, qq=3 * q, n=one, o=other)

    question = f"Given ${one}:{other}={a}:{b}$, find ${other}:{one}$."
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
    names = fill(r"<n> ;; |<n>| ;; \overline{<n>} ;; \lvert <n> \rvert", n=name)
    return _named(f"How long is the segment ${name}$?", names, value, str, near_numbers(value), [])


@kind
def chain_with_name(dice: Dice) -> Item:
    a, b = dice.sample("abmnpq", 2)
    p, q = dice.randrange(2, 40), dice.randrange(2, 40)

    def spell(value: int) -> list[str]:
        return fill("<v> ;; <a>+<b>=<v>" + " ;; <a>+<b>=<p>+<q>=<v>" * (value == p + q), v=value, a=a, b=b, p=p, q=q)

    wrong = fill("<a>=<v> ;; <a>+<b>=<p>+<q>=<w> ;; <a>+<b>=<p>+<q>", a=a, b=b, p=p, q=q, v=p + q, w=p + q + 1)
    return Item(f"Let ${a}={p}$ and ${b}={q}$. Compute ${a}+{b}$.", p + q, spell, near_numbers(p + q), wrong)


@kind
def formula_then_value(dice: Dice) -> Item:
    r, h = dice.randrange(2, 9), dice.randrange(2, 9)

    def spell(value: int) -> list[str]:
        chains = r"""<v>\pi ;; V=\pi r^2h=<v>\pi ;; V=\pi r^2 h = \pi\cdot <r>^2\cdot <h> = <v>\pi
            ;; \pi \cdot <s>\cdot <h>=<v>\pi"""
        return fill(chains if value == r * r * h else r"<v>\pi ;; V=\pi r^2h=<v>\pi", v=value, r=r, h=h, s=r * r)

    wrong = [f"V=\\pi r^2h={r * r * h}\\pi={r * r * h + 1}\\pi", f"V=\\pi\\cdot {r}\\cdot {h}={r * r * h}\\pi"]
    return Item("Find the volume of the cylinder.", r * r * h, spell, near_numbers(r * r * h), wrong)


# -- expressions -------------------------------------------------------------------------------------------------------


@kind
def expanded(dice: Dice) -> Item:
    a, b, c, d = (whole(dice, -7, 8) for _ in range(4))
    value = (a * c, a * d + b * c, b * d)

    def spell(value: tuple[int, ...]) -> list[str]:
        p, q, r = value
        spellings = "<up> ;; <down> ;; <p>x^2 + <q>x + <r> ;; <p>x^{2}<sq>x<sr> ;; <p>x^2 - <nq>x - <nr>"
        return fill(
            spellings,
            up=polynomial(value),
            down=ascending(value),
            p=p,
            q=q,
            r=r,
            sq=signed(q),
            sr=signed(r),
            nq=-q,
            nr=-r,
        )

    near = [each for each in near_tuples(value) if each[0] and each[1]]
    return Item(f"Expand $({polynomial((a, b))})({polynomial((c, d))})$.", value, spell, near)


@kind
def complex_number(dice: Dice) -> Item:
    a, b = whole(dice, -20, 20), whole(dice, -20, 20)

    def spell(value: Pair) -> list[str]:
        a, b = value
        spellings = r"<a><sb>i ;; <a> + <b>i ;; <b>i + <a> ;; z=<a><sb>\mathrm{i} ;; <short>"
        return fill(
            spellings, a=a, b=b, sb=signed(b), short=f"{a}{'-' if b < 0 else '+'}{'' if abs(b) == 1 else abs(b)}i"
        )

    near = [(a, -b), (-a, b), (b, a), (a + 1, b), (a, b + 1), (10 * a, b)]
    return Item("Write the product as a complex number.", (a, b), spell, near)


@kind
def line(dice: Dice) -> Item:
    value = (whole(dice, -9, 10), whole(dice, -9, 10))

    def spell(value: Pair) -> list[str]:
        a, b = value
        return fill(
            "y=<up> ;; y = <a>x + <b> ;; y=<down> ;; <up>=y", up=polynomial(value), down=ascending(value), a=a, b=b
        )

    return Item("Give the line.", value, spell, near_tuples(value)[:9])


@kind
def antiderivative(dice: Dice) -> Item:
    value = (dice.randrange(1, 9), dice.randrange(1, 9))

    def spell(value: Pair) -> list[str]:
        spellings = r"""<a>x^3+<b>x^2+C ;; <a>x^3+<b>x^2 + c ;; <a>x^3+<b>x^2+K ;; C + <b>x^2 + <a>x^3
            ;; x^2(<a>x+<b>)+C
            ;; F(x)=<a>x^3+<b>x^2+C ;; \displaystyle <a>x^3 + <b>x^2 + c"""
        return fill(spellings, a=value[0], b=value[1])

    a, b = value
    wrong = fill("<a>x^3+<b>x^2 ;; <a>x^3+<b>x^2+x ;; <a>x^3+<b>x^2+1", a=a, b=b)
    return Item(f"Find $\\int ({3 * a}x^2+{2 * b}x)\\,dx$.", value, spell, near_tuples(value)[:8], wrong)


@kind
def antiderivative_of_sines(dice: Dice) -> Item:
    value = (dice.randrange(2, 9), dice.randrange(2, 9))

    def spell(value: Pair) -> list[str]:
        spellings = r"""<a>\sin x-<b>\cos x+C ;; <a>\sin(x) - <b>\cos(x) + c ;; c-<b>\cos x+<a>\sin x
            ;; -<b>\cos{x} + <a>\sin{x} + k"""
        return fill(spellings, a=value[0], b=value[1])

    a, b = value
    wrong = fill(r"<a>\sin x-<b>\cos x ;; <a>\sin x+<b>\cos x+C", a=a, b=b)
    return Item(f"Find the antiderivative of ${a}\\cos x+{b}\\sin x$.", value, spell, near_tuples(value)[:8], wrong)


@kind
def general_solution(dice: Dice) -> Item:
    a, b = dice.sample(range(1, 9), 2)

    def spell(value: Pair) -> list[str]:
        spellings = """y=C_1e^{<a>x}+C_2e^{-<b>x} ;; y=Ae^{<a>x}+Be^{-<b>x} ;; y = c_1 e^{-<b>x} + c_2 e^{<a>x}
            ;; Ae^{-<b>x}+Be^{<a>x}"""
        return fill(spellings, a=value[0], b=value[1])

    wrong = fill("y=Ae^{<a>x}+Ae^{-<b>x} ;; y=Ae^{<a>x} ;; y=e^{<a>x}+e^{-<b>x}", a=a, b=b)
    question = "Find the general solution of the differential equation."
    return Item(question, (a, b), spell, near_tuples((a, b))[:8], wrong)


@kind
def rational_power(dice: Dice) -> Item:
    powers = [Fraction(p, q) for p in range(2, 8) for q in (2, 3, 4, 5) if sympy.gcd(p, q) == 1]
    value = dice.choice(powers)

    def spell(value: Fraction) -> list[str]:
        p, q = value.numerator, value.denominator
        spellings = r"x^{<p>/<q>} ;; x^{\frac{<p>}{<q>}} ;; <r>{x^<p>} ;; <r>{x}^<p> ;; (<r>{x})^{<p>}"
        return fill(spellings, p=p, q=q, r="\\sqrt" if q == 2 else f"\\sqrt[{q}]")

    return Item("Let $x>0$. Write the factor.", value, spell, [each for each in powers if each != value][:9])


@kind
def function_not_known(dice: Dice) -> Item:
    letter, name = dice.choice("fghuvs"), dice.choice("tx")
    a, b = dice.sample(range(2, 9), 2)

    def spell(value: Pair) -> list[str]:
        spellings = r"""<a> - <b><f>(<n>) ;; <a>-<b><f>(<n>) ;; -<b><f>(<n>)+<a>
            ;; <a> - <b>\,<f>\left(<n>\right) ;; <a>-<b>\cdot <f>(<n>)"""
        return fill(spellings, a=value[0], b=value[1], f=letter, n=name)

    wrong = fill("<a>-<b><f>(w) ;; <a>-<b><f> ;; <a>-<b><n> ;; <a>-<b><f><n>", a=a, b=b, f=letter, n=name)
    question = f"Express the height in terms of ${letter}({name})$."
    return Item(question, (a, b), spell, [(b, a), (a, b + 1), (a + 1, b), (-a, b)], wrong)


@kind
def value_at_a_point(dice: Dice) -> Item:
    letter, point = dice.choice("QsvNIxa"), dice.randrange(0, 4)

    def spell(value: tuple[str, int]) -> list[str]:
        return fill(r"<f>(<p>) ;; <f>\left(<p>\right) ;; $<f>( <p> )$", f=value[0], p=value[1])

    question = f"The charge is ${letter}(t)={letter}({point})e^{{{point}-t}}$. What is it at first?"
    wrong = fill("<p> ;; <f> ;; <p><f> ;; <f><p>", f=letter, p=point)
    return Item(question, (letter, point), spell, [(letter, point + 1), (letter, point + 2)], wrong)


@kind
def product_of_sums(dice: Dice) -> Item:
    a, b = dice.randrange(2, 9), dice.randrange(2, 9)

    def spell(value: Pair) -> list[str]:
        spellings = r"<a>x^2+<ab>x ;; <a>x(x+<b>) ;; x(<a>x+<ab>) ;; (x+<b>)\cdot <a>x ;; <a>x\left(x+<b>\right)"
        return fill(spellings, a=value[0], b=value[1], ab=value[0] * value[1])

    near = [(a + 1, b), (a, b + 1), (a, b + 2), (b, a)]
    return Item("What is the area of the garden?", (a, b), spell, near, [f"{a}x+{a * b}"])


@kind
def choose(dice: Dice) -> Item:
    k, add = dice.randrange(2, 4), dice.randrange(0, 6)

    def spell(value: Pair) -> list[str]:
        k, add = value
        top = "".join(f"(n-{each})" for each in range(1, k))
        spellings = r"\binom{n}{<k>}<t> ;; \frac{n<top>}{<f>}<t> ;; {n \choose <k>}<t> ;; \frac{n!}{<k>!(n-<k>)!}<t>"
        return fill(spellings, k=k, top=top, f=sympy.factorial(k), t=signed(add) if add else "")

    wrong = fill(r"\frac{n(n+1)}{2}+<a> ;; \binom{n+1}{<k>}+<a>", k=k, a=add + 1)
    near = [(k + 1, add), (k, add + 1), (k, add - 1), (k, add + 2)]
    return Item("Into how many parts do they cut the plane?", (k, add), spell, near, wrong)


@kind
def letter_factorial(dice: Dice) -> Item:
    value = dice.randrange(2, 8)

    def spell(value: int) -> list[str]:
        spellings = r"(n+<v>)! ;; (n+<v>)(n+<u>)! ;; (n+<w>)!/(n+<w>) ;; \left(n+<v>\right)!"
        return fill(spellings, v=value, u=value - 1, w=value + 1)

    wrong = fill("n!+<v> ;; n!(n+<v>) ;; (2n+<v>)!", v=value)
    return Item("Simplify.", value, spell, [value + 1, value + 2], wrong)


@kind
def central_binomial(dice: Dice) -> Item:
    value = dice.randrange(2, 4)

    def spell(value: int) -> list[str]:
        spellings = (
            r"\binom{<v>n}{n} ;; \frac{(<v>n)!}{n!(<u>n)!} ;; \dbinom{<v>n}{<u>n} ;; \frac{(<v>n)!}{n!\,(<u>n)!}"
        )
        return fill(spellings, v=value, u=value - 1)

    wrong = fill(r"\frac{(<v>n)!}{n!} ;; \binom{<v>n}{n}+1 ;; <v>\binom{n}{1}", v=value)
    return Item("Count the paths.", value, spell, [value + 1, value + 2], wrong)


@kind
def transcendental(dice: Dice) -> Item:
    a, b, c = dice.randrange(2, 7), dice.randrange(2, 7), dice.randrange(2, 9)
    value: Any = a * sympy.exp(b * x) * sympy.sin(c * x) + sympy.log(c)

    def spell(value: Any) -> list[str]:
        return [latex(value, ln_notation=True), latex(value, order="rev-lex", ln_notation=True)]

    near = [
        value + 1,
        -value,
        value.subs(x, 2 * x),
        value + sympy.log(2),
        value.subs(sympy.sin(c * x), sympy.cos(c * x)),
    ]
    return Item("Find the function.", value, spell, near)


@kind
def rational_function(dice: Dice) -> Item:
    a, b, c = (whole(dice, 1, 9) for _ in range(3))
    value: Any = sympy.together((a * x + b) / (x**2 + c))

    def spell(value: Any) -> list[str]:
        return [
            latex(value),
            latex(sympy.expand(value)),
            latex(sympy.apart(value, x)),
            latex(value, fold_short_frac=True),
        ]

    return Item("Find the function.", value, spell, [value + 1, 1 / value, -value, value.subs(x, -x), value + x])


# -- several values ----------------------------------------------------------------------------------------------------


def _point(question: str, names: Sequence[str], value: tuple[int, ...]) -> Item:
    """A solution of a system: in the order of the names, as a point."""

    def spell(value: tuple[int, ...]) -> list[str]:
        named = [f"{name}={each}" for name, each in zip(names, value, strict=True)]
        spellings = r"""(<p>) ;; <list> ;; <reversed> ;; <and> ;; (<tight>) ;; (<names>)=(<p>)
            ;; \begin{cases}<rows>\end{cases} ;; \left\{\begin{array}{l}<rows>\end{array}\right."""
        return fill(
            spellings,
            p=", ".join(map(str, value)),
            tight=",".join(map(str, value)),
            names=",".join(names),
            rows="\\\\".join(named),
            list=", ".join(named),
            reversed=", ".join(reversed(named)),
            **{"and": " \\text{ and } ".join(named)},
        )

    return Item(question, value, spell, near_tuples(value), [f"{names[0]}={value[0]}", str(value[0])])


@kind
def system(dice: Dice) -> Item:
    a, b = dice.choice((("x", "y"), ("a", "b"), ("p", "q"), ("m", "n")))
    p, q = dice.randrange(1, 30), dice.randrange(-20, 0)
    return _point(f"Solve ${a}+{b}={p + q}$ and ${a}-{b}={p - q}$. Find $({a},{b})$.", (a, b), (p, q))


@kind
def system_in_another_order(dice: Dice) -> Item:
    a, b = dice.choice((("y", "x"), ("q", "p"), ("t", "s")))
    p, q = dice.randrange(1, 30), dice.randrange(31, 60)
    return _point(f"Find the pair $({a},{b})$ with ${b}-{a}={q - p}$.", (a, b), (p, q))


@kind
def system_of_three(dice: Dice) -> Item:
    return _point("Solve the system for $(x,y,z)$.", ("x", "y", "z"), tuple(dice.sample(range(-20, 20), 3)))


@kind
def system_named_in_reference(dice: Dice) -> Item:
    item = _point("Solve the system $x+y=a$, $x-y=b$.", ("x", "y"), tuple(dice.sample(range(-30, 30), 2)))
    return Item(item.question, item.value, item.spell, item.near, item.wrong, reference=item.spell(item.value)[1])


@kind
def several_pairs(dice: Dice) -> Item:
    a, b, c, d = dice.sample(range(1, 40), 4)
    value = frozenset({(a, b), (c, d)})

    def spell(value: frozenset[Pair]) -> list[str]:
        pairs = sorted(value)
        points, named = ([text.format(*each) for each in pairs] for text in ("({},{})", "p={},q={}"))
        joined = [",".join(points), ", ".join(reversed(points)), ";".join(named), " or ".join(reversed(named))]
        return [*joined, " \\text{ and } ".join(points), ",".join([*points, points[0]])]

    near = [
        {(b, a), (c, d)},
        {(a, d), (c, b)},
        {(a, b)},
        {(a, b), (c, d + 1)},
        {(a, b), (c, d), (d, c)},
        {(b, a), (d, c)},
    ]
    return Item("Find all pairs $(p,q)$ of primes.", value, spell, [frozenset(each) for each in near])


def _near_roots(one: int, other: int) -> list[frozenset[int]]:
    near = ({-one, -other}, {one, other + 1}, {one - 1, other}, {one, -other}, {2 * one, 2 * other})
    return [frozenset(each) for each in near if len(each) > 1]


@kind
def two_roots(dice: Dice) -> Item:
    one, other = sorted(dice.sample([each for each in range(-30, 30) if each], 2))

    def spell(value: frozenset[int]) -> list[str]:
        spellings = r"""<a>, <b> ;; <b>, <a> ;; x=<a> \text{ or } x=<b> ;; x_1=<a>, x_2=<b> ;; x_1=<b>,\ x_2=<a>
            ;; \{<a>,<b>\} ;; x_{1} = <a>, \quad x_{2} = <b> ;; x \in \{<b>, <a>\}"""
        return fill(spellings, a=min(value), b=max(value))

    wrong = fill("<a> ;; x=<b> ;; <a>,<b>,<c> ;; x_1=<a>, x_2=<a>", a=one, b=other, c=other + 1)
    question = f"Solve $x^2{signed(-one - other)}x{signed(one * other)}=0$."
    return Item(question, frozenset({one, other}), spell, _near_roots(one, other), wrong)


@kind
def numbered_roots(dice: Dice) -> Item:
    item = two_roots(dice)
    return Item(item.question, item.value, item.spell, item.near, item.wrong, reference=item.spell(item.value)[3])


@kind
def plus_minus(dice: Dice) -> Item:
    a, b = dice.randrange(1, 12), dice.choice((2, 3, 5, 7, 11))

    def spell(value: Pair) -> list[str]:
        spellings = r"""<a>\pm\sqrt{<b>} ;; <a>+\sqrt{<b>}, <a>-\sqrt{<b>} ;; x=<a>\pm \sqrt{<b>}
            ;; <a> - \sqrt{<b>} \text{ and } <a> + \sqrt{<b>} ;; x_{1,2} = <a> \pm \sqrt{<b>}"""
        return fill(spellings, a=value[0], b=value[1])

    wrong = fill(r"<a>+\sqrt{<b>} ;; <a>-\sqrt{<b>}", a=a, b=b)
    return Item("Solve for $x$.", (a, b), spell, [(a + 1, b), (-a, b), (a, b + 6), (a + 2, b)], wrong)


@kind
def boxes_in_reference(dice: Dice) -> Item:
    one, other = sorted(dice.sample([each for each in range(-30, 30) if each], 2))

    def spell(value: frozenset[int]) -> list[str]:
        return fill(r"<a>, <b> ;; <b>,<a> ;; <a> \text{ and } <b>", a=min(value), b=max(value))

    references = fill(
        r"""\boxed{<a>} \text{ and } \boxed{<b>} ;; The roots are $\boxed{<b>}$ and $\boxed{<a>}$.
            ;; First, $2x=4$. So $x=\boxed{<a>}$ or $x = \boxed{<b>}$.""",
        a=one,
        b=other,
    )
    wrong = [str(one), str(other)]
    value = frozenset({one, other})
    return Item("Find the roots.", value, spell, _near_roots(one, other), wrong, reference=dice.choice(references))


@kind
def said_twice_in_reference(dice: Dice) -> Item:
    value = Fraction(dice.choice((1, 3, 7, 9, 11, 13)), dice.choice((4, 8, 20)))

    def spell(value: Fraction) -> list[str]:
        return fill(
            "<v> ;; <d> ;; <p>/<q>", v=frac(value), d=exact_decimal(value), p=value.numerator, q=value.denominator
        )

    reference = f"{frac(value)} {dice.choice((chr(92) + 'text{ or }', 'or', 'OR'))} {exact_decimal(value)}"
    return Item("What part is left?", value, spell, near_fractions(value), reference=reference)


@kind
def set_of_numbers(dice: Dice) -> Item:
    a, b, c = sorted(dice.sample(range(-20, 40), 3))

    def spell(value: frozenset[int]) -> list[str]:
        up, down = (",".join(str(each) for each in sorted(value, reverse=back)) for back in (False, True))
        return fill(r"\{<u>\} ;; \left\{<d>\right\} ;; \lbrace <u> \rbrace ;; S=\{<u>\}", u=up, d=down)

    near = [frozenset(each) for each in ({a, b}, {a, b, c + 1}, {-a, b, c}, {a, b, c, c + 3})]
    return Item("Give the set.", frozenset({a, b, c}), spell, near)


# -- sets of real numbers ----------------------------------------------------------------------------------------------


@kind
def line_without_points(dice: Dice) -> Item:
    value = frozenset(dice.sample(range(-15, 15), dice.randrange(1, 3)))

    def spell(value: frozenset[int]) -> list[str]:
        points = [str(each) for each in sorted(value)]
        pieces = [f"({low},{high})" for low, high in itertools.pairwise(["-\\infty", *points, "\\infty"])]
        spellings = r"""<union> ;; \mathbb{R}\setminus\{<p>\} ;; \mathbb R \setminus \left\{<p>\right\} ;; <back>
            ;; \{x\in\mathbb{R}\mid <c>\} ;; \mathbb{R}-\{<p>\} ;; \{x : <c>\} ;; ℝ ∖ \{<p>\} ;; x \neq <p>
            ;; \{x \mid x\in\mathbb{R}, <c>\} ;; \text{all real numbers except } <p>"""
        conditions = ", ".join(f"x\\neq {each}" for each in points)
        return fill(
            spellings, union="\\cup".join(pieces), back=" \\cup ".join(pieces[::-1]), p=", ".join(points), c=conditions
        )

    first = min(value)
    near = [frozenset(-each for each in value), value - {first} | {first + 1}, value | {20}]
    wrong = fill(
        r"\mathbb{R} ;; \mathbb{Z}\setminus\{<a>\} ;; (-\infty,<a>) ;; \mathbb{R}\setminus(<a>,<b>)",
        a=first,
        b=first + 20,
    )
    return Item("What is the domain of $f$?", value, spell, near, wrong)


@kind
def half_line(dice: Dice) -> Item:
    bound, side, holds = value = (dice.randrange(-20, 20), dice.choice("<>"), dice.random() < 0.5)

    def spell(value: tuple[int, str, bool]) -> list[str]:
        bound, side, holds = value
        interval = (
            f"{'[' if holds else '('}{bound},\\infty)" if side == ">" else f"(-\\infty,{bound}{']' if holds else ')'}"
        )
        sign, mirrored = {"<": ("\\le", "\\geq"), ">": ("\\ge", "\\leq")}[side] if holds else (side, "<>"[side == "<"])
        spellings = r"""<i> ;; x<s> <b> ;; \{x\in\mathbb{R} : x<s> <b>\} ;; <b> <m> x
            ;; \{t \mid t <s> <b>\} ;; x \in <i>
            ;; \left<first>, \right<last>"""
        names = {"first": interval.split(",")[0] + "," + interval.split(",")[1][:-1], "last": interval[-1]}
        return [
            each.replace(", \\right", "\\right")
            for each in fill(spellings, i=interval, s=sign, m=mirrored, b=bound, **names)
        ]

    other = "<" if side == ">" else ">"
    near = [(bound + 1, side, holds), (bound, other, holds), (bound, side, not holds), (bound - 1, side, holds)]
    wrong = [f"\\{{x\\in\\mathbb{{Z}} : x{side} {bound}\\}}"]
    return Item("For which $x$ is it defined?", value, spell, near, wrong)


@kind
def interval(dice: Dice) -> Item:
    low = dice.randrange(-20, 10)
    high, first, last = low + dice.randrange(2, 20), dice.random() < 0.5, dice.random() < 0.5

    def spell(value: tuple[int, int, bool, bool]) -> list[str]:
        low, high, first, last = value
        one, other = "\\le" if first else "<", "\\le" if last else "<"
        plain = f"{'[' if first else '('}{low},{high}{']' if last else ')'}"
        spellings = r"""<l> <s> x <t> <h> ;; <i> ;; x\in <i> ;; \{x\in\mathbb{R}\mid <l><s> x<t> <h>\}
            ;; x <u> <l> \text{ and } x <t> <h>"""
        return fill(spellings, l=low, h=high, s=one, t=other, i=plain, u="\\ge" if first else "\\gt")

    near = [(low, high, not first, last), (low, high, first, not last), (low, high + 1, first, last)]
    near += [(low - 1, high, first, last), (-high, -low, first, last)]
    wrong = [f"x>{low}", f"\\{{{low},{high}\\}}"]
    return Item("For which $x$ does it hold?", (low, high, first, last), spell, near, wrong)


@kind
def outside(dice: Dice) -> Item:
    low = dice.randrange(-20, 10)
    high = low + dice.randrange(2, 20)

    def spell(value: Pair) -> list[str]:
        spellings = r"""(-\infty,<l>)\cup(<h>,\infty) ;; x< <l> \text{ or } x><h> ;; x > <h> or x < <l>
            ;; \mathbb{R}\setminus[<l>,<h>] ;; (<h>, \infty) \cup (-\infty, <l>)
            ;; x\in(-\infty,<l>)\cup(<h>,+\infty)"""
        return fill(spellings, l=value[0], h=value[1])

    wrong = fill(
        r"(<l>,<h>) ;; x < <l> ;; \mathbb{R}\setminus(<l>,<h>) ;; \mathbb{R}\setminus\{<l>,<h>\}", l=low, h=high
    )
    near = [each for each in ((low - 1, high), (low, high + 1), (-high, -low), (low + 1, high)) if each[0] < each[1]]
    return Item("Solve the inequality.", (low, high), spell, near, wrong)


# -- units, words, scripts ---------------------------------------------------------------------------------------------


@kind
def angle(dice: Dice) -> Item:
    value, (a, b, c) = dice.randrange(11, 170), dice.sample("ABCDKLMPQRXYZ", 3)
    questions = r"""In triangle $<a><b><c>$, find $\angle <a><b><c>$. ;; By what angle does it turn?
        ;; In the figure $\angle <a><b><c>=2\angle <b><c><a>$. What is the measure of $\angle <b><a><c>$?"""

    def spell(value: int) -> list[str]:
        return fill(r"<v> ;; <v>^\circ ;; <v>^{\circ} ;; <v>° ;; <v> \text{ degrees} ;; \theta=<v>^\circ", v=value)

    question = dice.choice(fill(questions, a=a, b=b, c=c))
    return Item(question, value, spell, near_numbers(value), [f"{value}\\text{{ cm}}"])


@kind
def no_angle(dice: Dice) -> Item:
    value = dice.randrange(5, 30)
    questions = r"""How many sides has a regular polygon whose angles are $<a>^\circ$?
        ;; In triangle $ABC$ with $\angle A=<a>^\circ$, find the length of $AB$.
        ;; Give $\angle KLM$ in radians, to the nearest whole number."""
    question = dice.choice(fill(questions, a=dice.randrange(100, 170)))
    wrong = fill(r"<v>^\circ ;; <v>\text{ degrees}", v=value)
    return Item(question, value, lambda value: [f"{value}", f"${value}$"], near_numbers(value), wrong)


@kind
def age(dice: Dice) -> Item:
    value = dice.randrange(5, 90)

    def spell(value: int) -> list[str]:
        return fill(r"<v> ;; <v> \text{ years} ;; <v> years ;; <v>\text{ years old} ;; <v> years old", v=value)

    question = f"How old is the {dice.choice(('tree', 'house', 'teacher'))}?"
    return Item(question, value, spell, near_numbers(value), fill(r"<v>\text{ months} ;; <v>\text{ days}", v=value))


@kind
def counted(dice: Dice) -> Item:
    value, noun = dice.randrange(10, 900), dice.choice(("ways", "paths", "colourings", "numbers", "marbles"))

    def spell(value: int) -> list[str]:
        spellings = r"<v> ;; <v> \text{ <n>} ;; <v> \text{ different <n>} ;; <v> <n> ;; <v>\text{ possible <n>.}"
        return fill(spellings, v=value, n=noun)

    wrong = fill(r"<v> \text{ pears} ;; <v>\%", v=value)
    return Item(f"How many {noun} are there?", value, spell, near_numbers(value), wrong)


@kind
def emphasis_and_scripts(dice: Dice) -> Item:
    value = dice.randrange(12, 9000)
    wide = {ord(digit): chr(ord(digit) + 0xFEE0) for digit in "0123456789-"}

    def spell(value: int) -> list[str]:
        spellings = r"<v> ;; **<v>** ;; <v>。 ;; <w> ;; <v>． ;; __<v>__ ;; \mathbf{<v>} ;; <v>। ;; `<v>` ;; <v>،"
        return fill(spellings, v=value, w=str(value).translate(wide))

    return Item("How many?", value, spell, near_numbers(value), [" ".join(str(value))])


@kind
def choice(dice: Dice) -> Item:
    options = dice.sample(range(10, 99), 5)
    place = dice.randrange(5)
    listed = " ".join(f"({letter}) {each}" for letter, each in zip("ABCDE", options, strict=True))

    def spell(value: int) -> list[str]:
        spellings = r"<l> ;; (<l>) ;; \text{<l>} ;; \textbf{(<l>)}\ <o> ;; \text{<l>. <o>} ;; <l>) <o> ;; **<l>**"
        return fill(spellings, l="ABCDE"[value], o=options[value])

    wrong = [f"({'ABCDE'[place]}) {options[place - 1]}", "A, B, C, D, E"]
    return Item(f"Which? {listed}", place, spell, [each for each in range(5) if each != place], wrong)


@kind
def no_solution(dice: Dice) -> Item:
    spellings = fill(
        r"""\text{no solution} ;; \text{No solutions} ;; no solution ;; \varnothing ;; \emptyset
            ;; \text{No real solutions}
        ;; ∅ ;; \{\} ;; There is no solution. ;; \text{No solution.}"""
    )
    wrong = fill(r"0 ;; \{0\} ;; 1 ;; x=0 ;; \infty ;; \text{all real numbers}")
    question = dice.choice(("Solve the equation.", "Solve the inequality."))
    return Item(question, "none", lambda _: spellings, [], wrong)


@kind
def function_by_another_name(dice: Dice) -> Item:
    a, b = whole(dice, 2, 9), whole(dice, -9, 9)

    def spell(value: Pair) -> list[str]:
        text = "f(<n>)=<a><n>^2<b><n>"
        return [fill(text, n=name, a=value[0], b=signed(value[1]))[0] for name in ("x", "t", "n", "u")]

    wrong = fill("f(t)=<a>x^2<b>x ;; g(x)=<a>x^2<b>x", a=a, b=signed(b))
    return Item("Find all functions $f$ on the reals.", (a, b), spell, near_tuples((a, b))[:9], wrong)


@kind
def money(dice: Dice) -> Item:
    value = Fraction(dice.randrange(200, 9000), 100)

    def spell(value: Fraction) -> list[str]:
        return fill(r"\$<v> ;; <v> ;; <v> \text{ dollars} ;; \$<v>.", v=decimal(value, 2))

    near = [value + Fraction(1, 100), value + 1, value * 10, value - Fraction(1, 10)]
    wrong = fill(r"<v>\text{ euros} ;; <v>\text{ cents}", v=decimal(value, 2))
    return Item("How many dollars does it cost?", value, spell, near, wrong)


@kind
def percentage(dice: Dice) -> Item:
    value = dice.randrange(3, 98)

    def spell(value: int) -> list[str]:
        return fill(r"<v>\% ;; <v> ;; <v>% ;; <v>\text{ percent} ;; <v> pct", v=value)

    return Item("What percentage of the seats is taken?", value, spell, near_numbers(value), [f"0.{value:02}\\%"])


# -- numbers -----------------------------------------------------------------------------------------------------------


@kind
def thousands(dice: Dice) -> Item:
    value = dice.randrange(10**6, 10**11)

    def spell(value: int) -> list[str]:
        marks = (",\\! ", ",", "{,}", "\\,", ",\\!", "")
        return [f"{value:,}".replace(",", mark) for mark in marks]

    return Item("Evaluate the product.", value, spell, [each for each in near_numbers(value) if each > 10**6])


@kind
def huge_power(dice: Dice) -> Item:
    a, b, c = dice.choice((2, 3, 5, 7)), 2 * dice.choice((1100, 1500, 2400, 5000, 20000)), dice.randrange(-3, 4)

    def spell(value: tuple[int, int, int]) -> list[str]:
        a, b, c = value
        spellings = r"<a>^{<b>}<c> ;; (<a>^{<b>})<c>" + r" ;; <c>+<a>^{<b>} ;; <a>\cdot <a>^{<e>}<c>" * bool(c)
        return fill(
            spellings + " ;; <s>^{<h>}<c>" * (not b % 2), a=a, b=b, e=b - 1, s=a * a, h=b // 2, c=signed(c) if c else ""
        )

    near = [(a, b + 1, c), (a, b, c + 1), (a, b, c - 1), (a + 1, b, c), (a, b - 2, c), (a, b, -c)]
    reference = spell((a, b, c))[0]
    return Item("How many subsets are there?", (a, b, c), spell, near, reference=reference)


@kind
def huge_surd(dice: Dice) -> Item:
    a, b, c = dice.choice((2, 3)), dice.choice((1100, 1300, 1400)), dice.choice((5, 7, 11))

    def spell(value: tuple[int, int, int]) -> list[str]:
        a, b, c = value
        spellings = r"""<a>^{<b>}\sqrt{<c>} ;; \sqrt{<c>\cdot <a>^{<d>}} ;; \sqrt{<c>}\cdot <a>^{<b>}
            ;; <a>^{<e>}\sqrt{<f>}"""
        return fill(spellings, a=a, b=b, c=c, d=2 * b, e=b - 1, f=c * a * a)

    near = [(a, b + 1, c), (a, b - 1, c), (a, b, c + 8), (a + 1, b, c)]
    return Item("Find the difference of the roots.", (a, b, c), spell, near, [f"{a}^{{{b}}}\\sqrt{{{c}}}+1"])


@kind
def power_difference(dice: Dice) -> Item:
    a, b, c = dice.choice((3, 5, 7)), dice.choice((900, 3000, 4000)), dice.choice((-1, 1))

    def spell(value: tuple[int, int, int]) -> list[str]:
        a, b, c = value
        spellings = r"""\frac{<a>^{<b>}<c>}{2} ;; \frac12\left(<a>^{<b>}<c>\right) ;; (<a>^{<b>}<c>)/2
            ;; \frac{<a>\cdot <a>^{<e>}<c>}{2}"""
        return fill(spellings, a=a, b=b, c=signed(c), e=b - 1)

    return Item("Find the sum.", (a, b, c), spell, [(a, b, -c), (a, b + 1, c), (a + 2, b, c), (a, b, c + 2)])


@kind
def in_binary(dice: Dice) -> Item:
    value = whole, part = f"{dice.randrange(1, 64):b}", f"{2 * dice.randrange(1, 16) + 1:05b}"

    def spell(value: tuple[str, str]) -> list[str]:
        spellings = r"<v>_{2} ;; <v>_2 ;; \displaystyle <v>_{2} ;; <v>_{\text{two}} ;; (<v>)_2"
        return fill(spellings, v=".".join(value))

    near = [(whole + "1", part), (whole, "0" + part), (whole, part + "1"), (whole, part[:-1] + "01")]
    return Item("Write it with binary digits.", value, spell, near, [f"{whole}.{part}_3"])


@kind
def prime_factors(dice: Dice) -> Item:
    value = tuple(dice.randrange(1, 5) for _ in range(3))

    def spell(value: tuple[int, ...]) -> list[str]:
        spellings = r"""2^<a> \cdot 3^<b> \cdot 5^<c> ;; 2^{<a>}\times3^{<b>}\times5^{<c>}
            ;; 5^<c>*3^<b>*2^<a> ;; 2^<a> 3^<b> 5^<c>"""
        return fill(spellings, a=value[0], b=value[1], c=value[2])

    near = [(*value[:place], value[place] + step, *value[place + 1 :]) for place in range(3) for step in (1, 2)]
    return Item("Factor the number.", value, spell, near)


@kind
def scientific(dice: Dice) -> Item:
    a, b = Fraction(dice.randrange(11, 99), 10), dice.choice([*range(-19, -3), *range(4, 20)])

    def spell(value: tuple[Fraction, int]) -> list[str]:
        spellings = r"<a>\times 10^{<b>} ;; <a> \cdot 10^{<b>} ;; <a>e<b> ;; <a>×10^{<b>}"
        return fill(spellings, a=decimal(value[0], 1), b=value[1])

    near = [(a, b + 1), (a, -b), (a + Fraction(1, 10), b), (-a, b), (a + 1, b)]
    return Item("How heavy is it?", (a, b), spell, near, ["0", "0.0"])


@kind
def mixed_number(dice: Dice) -> Item:
    value = dice.randrange(1, 12) + proper(dice)

    def spell(value: Fraction) -> list[str]:
        units, part = int(value), value - int(value)
        spellings = "<v> ;; <d>" + " ;; <u><f> ;; <u> <p>/<q>" * (value > 1 and part > 0)
        return fill(
            spellings, v=frac(value), d=_dfrac(value), u=units, f=frac(part), p=part.numerator, q=part.denominator
        )

    return Item("How many hours does it take?", value, spell, near_fractions(value))


@kind
def finished_by_chance(dice: Dice) -> Item:
    value = dice.choice((Fraction(1, 4), Fraction(1, 5), Fraction(3, 5), Fraction(3, 8), Fraction(7, 20)))
    questions = r"""A plank of <d> m leans on <f> of a wall. Two fair coins are thrown. What is the probability?
        ;; [asy] draw((0,0)--(<d>,<p>/<q>)); [/asy] Find $\sin A$.
        ;; Given $p=<f>$ and $q=<d>$ for heads, what is the probability of tails?
        ;; A plank is <d> m long. What is the probability of heads? Give the answer as a common fraction."""
    names = {"d": exact_decimal(value), "f": frac(value), "p": value.numerator, "q": value.denominator}

    def spell(value: Fraction) -> list[str]:
        return fill(
            "<v> ;; <p>/<q> ;; <d>", v=frac(value), p=value.numerator, q=value.denominator, d=exact_decimal(value)
        )

    reference = dice.choice((names["d"], names["f"]))
    return Item(dice.choice(fill(questions, **names)), value, spell, near_fractions(value), reference=str(reference))


# -- what is only set otherwise ----------------------------------------------------------------------------------------


@kind
def series(dice: Dice) -> Item:
    a, low = dice.randrange(2, 9), dice.randrange(0, 3)

    def spell(value: Pair) -> list[str]:
        spellings = r"""\sum_{n=<l>}^{\infty} <a>^n x^n ;; \sum_{n=<l>}^{\infty}<a>^nx^n
            ;; \displaystyle\sum_{n=<l>}^\infty <a>^n x^n ;; \sum\limits_{n=<l>}^{\infty} <a>^{n}x^{n}"""
        return fill(spellings, a=value[0], l=value[1])

    wrong = fill(r"\sum_{n=<l>}^{\infty} <a>^n x^{2n} ;; \sum_{k=<l>}^{\infty} <a>^n x^n", a=a, l=low)
    return Item("Write the series.", (a, low), spell, [(a + 1, low), (a, low + 1), (a + 2, low)], wrong)


@kind
def unread_integral(dice: Dice) -> Item:
    low, high = dice.randrange(0, 3), dice.randrange(3, 9)

    def spell(value: Pair) -> list[str]:
        spellings = r"""\int_<l>^<h> e^{-x^2}\,dx ;; \int_{<l>}^{<h>}e^{-x^2}dx
            ;; \displaystyle \int_<l>^<h> e^{-x^2} \, dx"""
        return fill(spellings, l=value[0], h=value[1])

    wrong = fill(r"\int_<l>^<h> e^{x^2}\,dx ;; \int_<h>^<l> e^{-x^2}\,dx", l=low, h=high)
    return Item("Write the area as an integral.", (low, high), spell, [(low + 1, high), (low, high + 1)], wrong)


@kind
def column(dice: Dice) -> Item:
    value = tuple(dice.sample(range(-9, 20), 3))

    def spell(value: tuple[int, ...]) -> list[str]:
        spellings = r"""\begin{pmatrix}<r>\end{pmatrix} ;; \begin{bmatrix} <r> \end{bmatrix} ;; (<c>)
            ;; \left(<c>\right)
            ;; \langle <c>\rangle ;; \vec{v}=(<c>)"""
        return fill(spellings, r="\\\\".join(map(str, value)), c=", ".join(map(str, value)))

    return Item("Find the vector.", value, spell, near_tuples(value))


@kind
def matrix(dice: Dice) -> Item:
    value = tuple(dice.randrange(-9, 10) for _ in range(4))

    def spell(value: tuple[int, ...]) -> list[str]:
        spellings = r"""\begin{pmatrix}<a>&<b>\\<c>&<d>\end{pmatrix}
            ;; \begin{bmatrix} <a> & <b> \\ <c> & <d> \end{bmatrix}
            ;; A=\left(\begin{array}{cc}<a>&<b>\\<c>&<d>\end{array}\right)"""
        return fill(spellings, a=value[0], b=value[1], c=value[2], d=value[3])

    return Item("Find the matrix.", value, spell, near_tuples(value)[:12])


@kind
def words(dice: Dice) -> Item:
    names = ("Monday", "Tuesday", "Thursday", "even", "odd", "ellipse", "parabola", "Anna", "blue")
    value = dice.choice(names)

    def spell(value: str) -> list[str]:
        spellings = r"\text{<v>} ;; <v> ;; \textbf{<v>} ;; <u> ;; <v>. ;; **<v>** ;; \text{ <v> }"
        return fill(spellings, v=value, u=value.upper())

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
    """Wrong answers: of each kind as many questions, each with all values that are near, in one of their spellings."""
    dice = random.Random(seed)
    for name, item in _items(each, seed):
        reference = item.reference or item.spell(item.value)[0]
        near = (value for value in item.near if differ(value, item.value))
        for answer in dict.fromkeys([*(dice.choice(item.spell(value)) for value in near), *item.wrong]):
            yield Case(name, item.question, reference, answer, False)


def _items(each: int, seed: int) -> Iterator[tuple[str, Item]]:
    for name, make in KINDS.items():
        dice = random.Random(f"{seed} {name}")
        for _ in range(each):
            yield name, make(dice)
