"""Comparing answers as texts and as plain numbers: in microseconds, in this process, evaluating nothing."""

from __future__ import annotations

import re
from fractions import Fraction

MAX_CHARACTERS = 1000
"""Longer answers are compared as they stand."""
_DIGITS = 100
_FAR = 1000
"""Numbers that differ by more than one part in this many are unequal however they were rounded."""

_DROPPED = re.compile(
    r"\\(?:left|right|displaystyle)(?![A-Za-z])"  # sizes of brackets
    r"|\\[!,;:()\[\] ]|[$~]"  # spaces and delimiters
    r"|\^(?:\\circ|\{\\circ\})|\\degree(?![A-Za-z])|°"
)
_WORDS = re.compile(r"\\(?:text|textrm|textbf|mathrm|mathbf|mbox|operatorname)\{([^{}]*)\}")
_UNIT = re.compile(r"(?<=[\d}%])\s*\\(?:text|textrm|mathrm|mbox)\{([^{}]*)\}(?:\^\{?[23]\}?)?$")
_SCALES = re.compile(r"\b(?:hundred|thousand|million|billion|trillion|dozen|percent)", re.IGNORECASE)
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_SHORT_FRACTION = re.compile(r"\\frac(?:(\d)(\d)|\{([^{}]*)\}(\d)|(\d)\{([^{}]*)\})")
_SPACE = re.compile(r"\s+")
_NAMED = re.compile(r"^[A-Za-z]=(?=.)")

_WHOLE = r"(?:\d{1,3}(?:[, ]\d{3})+|\d+)"
_DECIMAL = rf"(?:{_WHOLE}(?:\.\d*)?|\.\d+)"
_NUMBER = re.compile(rf"([+-]?)({_DECIMAL}(?:[eE][+-]?\d{{1,2}})?)")
_RATIO = re.compile(
    rf"([+-]?)(?:(\d+)[ ]?)?\\frac\{{([+-]?{_DECIMAL})\}}\{{([+-]?{_DECIMAL})\}}"
    rf"|([+-]?)(?:(\d+)[ ])?({_DECIMAL})/({_DECIMAL})"
)


def equal(answer: str, gold: str) -> bool | None:
    """Do two answers agree? `None` where texts and plain numbers do not tell."""
    if len(answer) > MAX_CHARACTERS or len(gold) > MAX_CHARACTERS:
        return True if answer.strip() == gold.strip() else None
    if (text := plain(answer)) and text == plain(gold):
        return True
    given, wanted = plain(_without_unit(answer)), plain(_without_unit(gold))
    if given and given == wanted:
        return True
    one, other = number(given.replace("%", "")), number(wanted.replace("%", ""))
    if one is None or other is None:
        return None
    if one == other:
        return True
    if ("%" in given) != ("%" in wanted):
        return None
    whole = one.denominator == other.denominator == 1
    return False if whole or abs(one - other) * _FAR > max(abs(one), abs(other)) else None


def plain(answer: str) -> str:
    """The text without what makes no difference: markup, white space, the name of a variable, case of words."""
    text = answer.strip().replace("\\%", "%").replace("\\$", "").replace("{,}", ",").replace("\u2212", "-")
    text = text.replace("\\pi", "pi")
    text = _WORDS.sub(r"\1", _DROPPED.sub("", text))
    text = _SHORT_FRACTION.sub(_full_fraction, _FRACTION.sub(r"\\frac", text))
    text = _NAMED.sub("", _SPACE.sub(_kept_space, text.strip()).rstrip("."))
    return text if "\\" in text else text.lower()


def number(text: str) -> Fraction | None:
    """The value of a plain number: an integer, a decimal, a fraction or a mixed number. `None` for all else."""
    if len(text) > _DIGITS:
        return None
    if match := _NUMBER.fullmatch(text):
        return _signed(match[1], _value(match[2]))
    if match := _RATIO.fullmatch(text):
        sign, whole, above, below = (match[group] or match[group + 4] for group in range(1, 5))
        divisor = _value(below)
        return _signed(sign, int(whole or 0) + _value(above) / divisor) if divisor else None
    return None


def _without_unit(answer: str) -> str:
    unit = _UNIT.search(answer.rstrip())
    return answer[: unit.start()] if unit and not _SCALES.search(unit[1]) else answer


def _signed(sign: str | None, value: Fraction) -> Fraction:
    return -value if sign == "-" else value


def _value(decimal: str) -> Fraction:
    return Fraction(decimal.replace(",", "").replace(" ", ""))


def _full_fraction(match: re.Match[str]) -> str:
    above, below = (
        next(part for part in pair if part is not None) for pair in (match.groups()[::2], match.groups()[1::2])
    )
    return f"\\frac{{{above}}}{{{below}}}"


def _kept_space(match: re.Match[str]) -> str:
    # "3 1/2" is not "31/2".
    text, before, after = match.string, match.start() - 1, match.end()
    between_digits = before >= 0 and after < len(text) and text[before].isdigit() and text[after].isdigit()
    return " " if between_digits else ""
