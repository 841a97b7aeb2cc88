"""Notations of a number that a question asks for: a decimal, a percentage, a fraction, a power of ten."""

from __future__ import annotations

import math
import re

from gem_math import _evaluation as evaluation
from gem_math import _quantities as quantities
from gem_math import _requests as requests
from gem_math._expressions import Node
from gem_math._questions import Question

_AS = r"\b(?:as|to|into|in)\s+(?:an?\s+|its\s+|the\s+)?(?:[a-z]+\s+){0,2}?"
_DECIMAL = re.compile(rf"{_AS}decimals?\b(?!\s+or\b)|\bdecimal\s+(?:form|notation|equivalent)", re.IGNORECASE)
_PERCENT = re.compile(rf"{_AS}percent(?:age)?s?\b(?!\s+or\b)", re.IGNORECASE)
_FRACTION = re.compile(rf"{_AS}fractions?\b(?!\s+or\b)", re.IGNORECASE)
_MIXED = re.compile(r"\bmixed\s+(?:number|fraction|numeral)", re.IGNORECASE)
_IMPROPER = re.compile(r"\bimproper\s+fraction", re.IGNORECASE)
_SCIENTIFIC = re.compile(
    r"\b(?:in|as|to|using)\s+(?:\w+\s+)?(?:scientific|exponential)\s+(?:notation|form)", re.IGNORECASE
)
_REDUCED = re.compile(
    r"\b(?:lowest|simplest)\s+(?:terms|form)|\b(?:fully\s+|completely\s+)?(?:reduced|simplified)\s+fraction|\birreducible",
    re.IGNORECASE,
)
_TEN = 10


def is_missed(given: Node, reference: Node, question: Question) -> bool:
    """Does the question ask for a notation that the reference has, and an answer of the same value has not?"""
    text = question.text
    one, other = _kind(given), _kind(reference)
    if one != other:
        if one == "percent":
            return _asks(_DECIMAL, text) or (_asks(_FRACTION, text) and requests.is_conversion(question))
        if other == "percent":
            return _asks(_PERCENT, text) and evaluation.same_value(given, reference)
        if other == "scientific":
            return _asks(_SCIENTIFIC, text)
        if {one, other} == {"fraction", "mixed"}:
            return _asks(_MIXED if other == "mixed" else _IMPROPER, text)
        if {one, other} <= {"decimal", "fraction", "mixed"}:
            return _asks(_DECIMAL if other == "decimal" else _FRACTION, text) and requests.is_conversion(question)
    return other == "fraction" and _can_be_reduced(given) and _asks(_REDUCED, text)


def _asks(notation: re.Pattern[str], text: str) -> bool:
    return bool(notation.search(text))


def _kind(tree: Node) -> str:
    bare, found = quantities.without_unit(tree)
    if "%" in found:
        return "percent"
    bare = bare.parts[0] if bare.kind == "negation" else bare
    if bare.kind == "quotient":
        return "fraction"
    literal = quantities.decimal(bare)
    if literal is None:
        return bare.kind
    if literal is not bare or "e" in literal.text.lower():
        return "scientific" if literal is bare or 1 <= abs(literal.value) < _TEN else "product"
    return "decimal" if "." in literal.text else "whole"


def _can_be_reduced(tree: Node) -> bool:
    tree = quantities.without_unit(tree)[0]
    tree = tree.parts[0] if tree.kind == "negation" else tree
    values = [evaluation.exact(part) for part in tree.parts] if tree.kind == "quotient" else []
    if not values or None in values or any(value is None or value.denominator != 1 for value in values):
        return False
    return math.gcd(*(int(value) for value in values if value is not None)) > 1
