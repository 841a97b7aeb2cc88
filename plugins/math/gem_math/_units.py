"""Units as factors: a centimetre is a hundredth of a metre, a percent a hundredth, a million a million.

So units are compared by what they mean, and none is dropped: 100 cm are 1 m, and 5 cm are neither 5 km nor 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple


class Unit(NamedTuple):
    """What a word after a number stands for: a factor, times a power of something that is measured."""

    factor: Fraction
    base: str = ""
    """A letter or a name; empty for a plain number such as a million."""
    power: int = 1


_NUMBERS = {
    "hundred": 10**2,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
_MEASURED = {
    # base: factors with their names, as they are written after a number
    "m": """
        1 m meter metre | 1e-2 cm centimeter centimetre | 1e-3 mm millimeter millimetre | 1e3 km kilometer kilometre
        | 1e-9 nm nanometer nanometre | 0.0254 in inch inches | 0.3048 ft foot feet | 0.9144 yd yard
        | 1609.344 mi mile""",
    "s": """
        1 s sec second | 1e-3 ms millisecond | 60 min minute | 3600 h hr hour | 86400 day | 604800 week""",
    "month": "1 month | 12 yr year",
    "g": "1 g gram | 1000 kg kilogram | 1e-3 mg milligram | 1 gm | 453.59237 lb pound | 28.349523125 oz ounce",
    "L": "1 L l liter litre | 1e-3 mL ml milliliter millilitre",
    "$": "1 $ dollar USD | 1/100 cent ¢",
    "€": "1 € euro EUR",
    "£": "1 £ GBP",
    "N": "1 N newton | 1000 kN kilonewton",
    "J": "1 J joule | 1000 kJ kilojoule",
    "W": "1 W watt | 1000 kW kilowatt",
    "V": "1 V volt",
    "A": "1 A amp ampere",
    "K": "1 K kelvin",
    "Pa": "1 Pa pascal | 1000 kPa kilopascal",
    "Hz": "1 Hz hertz",
    "mol": "1 mol mole",
    "eV": "1 eV",
    "unit": "1 unit",
    "rad": "1 rad radian",
}
LAST = frozenset(("total", "altogether", "overall", "old"))
SILENT = LAST | frozenset(("different", "distinct", "possible", "such", "unique", "ordered", "separate", "full"))
"""Words between a number and what it counts that leave the number as it is; those of `LAST` also behind it."""
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
PER = frozenset({"per"})
"""Words between two units whose quotient is meant."""


def _measured() -> Iterator[tuple[str, Unit]]:
    for base, lines in _MEASURED.items():
        for line in lines.split("|"):
            factor, *names = line.split()
            for name in names:
                yield name, Unit(Fraction(factor), base)


_UNITS = {
    **{name: Unit(Fraction(number)) for name, number in _NUMBERS.items()},
    **dict(_measured()),
    "mph": Unit(Fraction("0.44704"), "m/s"),
}
SCALES = frozenset(_NUMBERS)
"""Words that are a part of the number before them."""


def power(word: str) -> int | None:
    """2 for `square`, 3 for `cubic`."""
    return _POWERS.get(word.lower())


def known(word: str) -> bool:
    """Is it one of ours, as it is written in a formula?"""
    return _singular(word) in _UNITS


def unit(word: str) -> Unit:
    """What a word stands for; a word that is not known stands for itself, singular and plural alike."""
    name = _singular(word)
    return _UNITS.get(name) or Unit(Fraction(1), f"unit {name}")


def named(word: str, text: str) -> bool:
    """Does a text name this unit, by whichever of its names? A quotient of units such as mph by what it is made of."""
    found = unit(word)
    if "/" in found.base:
        bases = found.base.split("/")
        return _has_any([word], text) or all(
            _has_any([name for name, each in _UNITS.items() if each.base == base], text) for base in bases
        )
    names = [name for name, each in _UNITS.items() if each == found]
    return _has_any(names or [found.base.removeprefix("unit ")], text)


def _has_any(words: Sequence[str], text: str) -> bool:
    lower = text.lower()
    return any(_occurs(word, lower if len(word) > 2 else text) for word in words)


def _singular(word: str) -> str:
    if word in _UNITS:
        return word
    name = word if len(word) <= 2 else word.lower()
    for singular in (name, name.removesuffix("s"), name.removesuffix("es")):
        if singular in _UNITS:
            return singular
    return name.removesuffix("s") if len(name) > 3 else name


def _occurs(word: str, text: str) -> bool:
    """As a word of its own, or as its plural."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        after = text[end : end + 2]
        if not text[start - 1 : start].isalpha() and (not after[:1].isalpha() or _is_plural(after)):
            return True
        start = text.find(word, end)
    return False


def _is_plural(after: str) -> bool:
    return (after[:1] == "s" and not after[1:].isalpha()) or after == "es"
