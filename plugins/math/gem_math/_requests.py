"""What a question says about the form of its answer: an order, a unit, a base, rounding, solutions, an angle."""

from __future__ import annotations

import re

from gem_math import _units as units
from gem_math._questions import Question

_ORDERED = re.compile(
    r"\b(?:order|ordered|ascending|descending|increasing|decreasing|arrange|sort|respectively|sequence|"
    r"(?:smallest|least|lowest|shortest) to|(?:largest|greatest|highest|longest) to)\b",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"percentage|\b(?:what|which|how many|in|as an?|the)\s+(?:percent|\\?%)", re.IGNORECASE)
_DOLLARS = re.compile(r"dollar|\\\$|(?<![\d}\\])\$\d[\d,.]*(?![\d$\\^{+*/=-])", re.IGNORECASE)
_POWER = re.compile(
    r"\barea|\bsurface|\bvolume|\bsquare|\bsq\b|\bcubic|\bcubed|\^|[²³]|accelerat|gravit|\bper\b|\bdensity|\bbox\b|\bcapacity",
    re.IGNORECASE,
)
_AREA = re.compile(
    r"\b(?:what\s+is|find|calculate|determine|compute)\s+(?:the|its)\s+(?:(?:total|surface|lateral|shaded)\s+){0,2}"
    r"(?:area|volume)\b",
    re.IGNORECASE,
)
_BINARY = {2: "binary", 8: "octal", 16: "hexadecimal"}
_AGE = re.compile(r"\bhow old\b|\bage\b|\bages\b", re.IGNORECASE)
_ROUNDED = re.compile(
    r"\bround|\bnearest|approximat|estimat|\bdecimal|\babout how|significant (?:figure|digit)", re.IGNORECASE
)
_PLACES = re.compile(
    r"\bnearest\s+(?:whole|integer|unit|tens?|hundreds?|thousands?|tenths?|hundredths?|thousandths?|cent|percent|0?\.\d)|"
    r"\b(?:to|with|one|two|three|four|five|six|\d)\s+(?:an?\s+)?(?:decimal\s+(?:place|digit|point)|decimals?\b|significant)",
    re.IGNORECASE,
)
_CONVERTED = re.compile(
    r"\bconvert|\bsimplif|\bequal\s+to\b|\breduced?\b|\brewrite|\b(?:as|to|into|in)\s+(?:an?\s+|its\s+|the\s+)?(?:[a-z]+\s+){0,2}?"
    r"(?:fractions?|decimals?|percent|mixed number|scientific notation|lowest terms|simplest form)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.?!])\s")
_HAS_FORMULA = re.compile(r"[\d$]|\\\(")
_OF_ANSWER = re.compile(r"\banswer|\bresult\b|\bprobability\b", re.IGNORECASE)
_SOLUTIONS = re.compile(r"\bfind\s+all\b|\bsolve|\bsolutions?\b|\broots?\b|\bzeros?\b", re.IGNORECASE)
_REPEATED = re.compile(r"multiplicit|repeat|\bfactors?\b|\bdata\b", re.IGNORECASE)
_FAMILY = re.compile(
    r"\\int(?![a-z])|∫|\bintegra|antiderivative|\bprimitive|differential equation|general solution|"
    r"\\frac\s*\{\s*d\s*[a-z]\s*\}\s*\{\s*d\s*[a-z]|\bd[a-z]/d[a-z]|[a-z]'(?:'|\(|\s*=)",
    re.IGNORECASE,
)
_CONSTANT = re.compile(r"(?:arbitrary|integration)\W+constant|constant\s+of\s+integration", re.IGNORECASE)
_DEGREES = re.compile(r"degree|\\circ|°", re.IGNORECASE)
_RADIANS = re.compile(r"\bradian", re.IGNORECASE)
_ASKED = re.compile(r"\b(?:find|what|how|determine|compute|calculate|evaluate|give|state|which)\b", re.IGNORECASE)
_ANGLE = re.compile(
    r"\bangles?\b|\\angle|∠|degree|\bbearing|\bmeasure\s+of|\bmeasure\b[^.?]*\barc|\\measuredangle", re.IGNORECASE
)
_OTHER = re.compile(
    r"\b(?:how\s+many|number\s+of)\b(?!\s+degrees)|\b(?:sin|cos|tan|sine|cosine|tangent|lengths?|areas?|perimeter|"
    r"distance|radius|height|slope|gradient|circumference|sides?|ratio|probability|volume|speed|long|far|tall|value\s+of\s+the\s+expression)\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\bhow\s+many((?:\s+[A-Za-z]+){1,3})|\b(?:find|what|how|determine|compute|calculate|express)\b", re.IGNORECASE
)
_RATIO = re.compile(r"ratio|[A-Za-z]\s*:\s*[A-Za-z]", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\s*\\?([a-z]+)\s*\$")


def has_order(question: Question) -> bool:
    """Does it want its answers in an order?"""
    return bool(_ORDERED.search(question.text))


def has_solutions(question: Question) -> bool:
    """Does it want what solves it, so that a solution that is listed twice is one?"""
    return bool(_SOLUTIONS.search(question.text)) and not _REPEATED.search(question.text)


def is_rounded(question: Question) -> bool:
    """Does it want a rounded number?"""
    return bool(_ROUNDED.search(question.text))


def has_places(question: Question) -> bool:
    """Does it say to which place its answer is rounded?"""
    return bool(_PLACES.search(question.text))


def is_conversion(question: Question) -> bool:
    """Does it want a number or a formula of its own in another form, and not just its answer in some form?"""
    sentences = _SENTENCE.split(question.text)
    return any(
        _CONVERTED.search(each) and _HAS_FORMULA.search(each) and not _OF_ANSWER.search(each) for each in sentences
    )


def has_family(question: Question) -> bool:
    """Does it want all functions that differ by a constant, or by several?"""
    return bool(_FAMILY.search(question.text))


def has_constant(question: Question) -> bool:
    """Does it speak of such a constant?"""
    return bool(_CONSTANT.search(question.text))


def has_ratio(question: Question) -> bool:
    """Does it speak of a ratio?"""
    return bool(_RATIO.search(question.text))


def has_unit(unit: str, question: Question) -> bool:
    """Does it ask for a number of this unit, so that it may be left out?"""
    if unit == "%":
        return bool(_PERCENT.search(question.text))
    if _counts_other(unit, question):
        return False
    if unit == "degree":
        return has_angle(question)
    if units.unit(unit).base == "rad":
        named = _RADIANS.search(question.text)
        return bool(named or (_ANGLE.search(question.text) and not _DEGREES.search(question.text)))
    factor, base, _ = units.unit(unit)
    if base == "$" and factor == 1:
        return bool(_DOLLARS.search(question.text))
    if base == "month" and factor == 12 and _AGE.search(question.text):
        return not units.named("month", question.text)
    return base == "unit" or units.named(unit, question.text)


def _counts_other(unit: str, question: Question) -> bool:
    """Does it end with "How many miles ...", or with another word that is not measured as this unit is?"""
    found = [*_COUNTED.finditer(question.text)]
    if not found or found[-1][1] is None or "answer" in question.text[found[-1].end() :].lower():
        return False
    words = found[-1][1].lower().split()
    if any(word.startswith("degree") for word in words):
        return unit != "degree"
    asked = [units.unit(word) for word in words if units.known(word)]
    given = units.unit(unit)
    is_measured = units.known(unit) and given.base not in ("", "unit") and "/" not in given.base
    return is_measured and given not in asked


def has_power(question: Question) -> bool:
    """Does it speak of a unit with an exponent, or of what is measured in one?"""
    return bool(_POWER.search(question.text))


def has_area(question: Question) -> bool:
    """Does it ask for an area or a volume, or in a unit with an exponent, so that a length is no answer?"""
    return bool(_AREA.search(question.text))


def has_base(base: int, question: Question) -> bool:
    """Does it name the base that numbers are written in?"""
    named = rf"base[\s$-]*{base}\b|\d_\{{?{base}\b|{_BINARY.get(base, 'base-')}"
    return bool(re.search(named, question.text, re.IGNORECASE))


def has_angle(question: Question) -> bool:
    """Does it ask for an angle, which is in degrees where nothing else is said?"""
    text = question.text
    if _RADIANS.search(text) or not (_DEGREES.search(text) or _ANGLE.search(text)):
        return False
    asked = text[next((match.start() for match in reversed([*_ASKED.finditer(text)])), 0) :]
    other, angle = _OTHER.search(asked), _ANGLE.search(asked) or _DEGREES.search(asked)
    if angle is not None:
        return other is None or other.start() > angle.start()
    variable = _VARIABLE.search(asked)
    return other is None and variable is not None and _is_angle(variable[1], text)


def _is_angle(name: str, text: str) -> bool:
    """Does a name stand before a sign of degrees, or as the size of an angle?"""
    before = rf"(?<![A-Za-z])\\?{name}(?![A-Za-z])[^$]{{0,12}}(?:\^\s*\{{?\s*\\circ|°|\\degree)"
    return bool(re.search(rf"{before}|\\angle[^$=]{{0,12}}=\s*\\?{name}(?![A-Za-z])", text))
