"""Is an answer right? The verdict of `MathEnv`: an answer is right if it means what the reference means.

Both are read by one grammar, as numbers, expressions, units, sets and so on. What cannot be read is right only if it is
written as the reference is. Nothing is evaluated but arithmetic with limits, so this runs where training runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gem_math import _evaluation as evaluation
from gem_math import _forms as forms
from gem_math import _numbersets as numbersets
from gem_math import _quantities as quantities
from gem_math import _repetition as repetition
from gem_math import _units as units
from gem_math._answers import (
    Answer,
    Listing,
    Matrix,
    Named,
    Numeral,
    Ratio,
    Relation,
    Scalar,
    Tuple,
    Words,
    read,
)
from gem_math._expressions import Node
from gem_math._tokens import Unread

_CHOICE = re.compile(r"\(?([A-Ha-h])\)?\.?|([A-H])\)")
_MARKUP = re.compile(r"\\(?:text(?:rm|bf|it)?|math(?:rm|bf))\s*\{([^{}]*)\}|\\(?:left|right)(?![a-z])")
_ORDERED = re.compile(
    r"\b(?:order|ordered|ascending|descending|increasing|decreasing|arrange|sort|respectively|sequence|"
    r"(?:smallest|least|lowest|shortest) to|(?:largest|greatest|highest|longest) to)\b",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"percentage|\b(?:what|which|how many|in|as an?|the)\s+(?:percent|\\?%)", re.IGNORECASE)
_DEGREES = re.compile(r"degree|\\circ|°", re.IGNORECASE)
_DOLLARS = re.compile(r"dollar|\\\$|(?<![\d}\\])\$\d[\d,.]*(?![\d$\\^{+*/=-])", re.IGNORECASE)
_BINARY = {2: "binary", 8: "octal", 16: "hexadecimal"}
_LETTER_UNIT = re.compile(r"(?<=\d)(?:\s|\\[,;: ])*([AghJKLlmNsVW])(?![A-Za-z_(])")
_SPACE = re.compile(r"\s+")


def is_right(given: str, reference: str, question: str = "") -> bool:
    """Does an answer mean what the reference means?

    Args:
        given: what a policy answered.
        reference: what is known to be right.
        question: what was asked. It says which unit or base may be left out, whether order matters, and what an answer
            may not just repeat.
    """
    if not given.strip():
        return False
    if given.strip() == reference.strip():
        return True
    if (one := _choice(given)) and (other := _choice(reference)):
        return one == other
    try:
        return _means_the_same(given, reference, question)
    except Unread:
        return _written_alike(given, reference)


def _means_the_same(given: str, reference: str, question: str) -> bool:
    wanted = read(reference)
    found = _readings(given, wanted)
    if any(one == other for one in found for other in wanted):
        return True
    comparison = _Comparison(question)
    return any(
        comparison.same(one, other) and not _copied(given, one, other, question) for one in found for other in wanted
    )


def _readings(given: str, wanted: Sequence[Answer]) -> tuple[Answer, ...]:
    """With `5 m` as metres where the reference has a unit; it is a number times a variable otherwise."""
    measured = any(isinstance(each, Scalar) and quantities.without_unit(each.tree)[1] for each in wanted)
    marked = _LETTER_UNIT.sub(r"\\text{\1}", given) if measured else given
    return read(given) if marked == given else (*read(given), *read(marked))


def _written_alike(given: str, reference: str) -> bool:
    one, other = (_SPACE.sub(" ", _MARKUP.sub(_content, each)).strip(" .$").casefold() for each in (given, reference))
    return bool(one) and one == other


def _choice(answer: str) -> str:
    """The letter of a multiple choice, in brackets, in a text or as a capital."""
    bare = _MARKUP.sub(_content, answer).strip().strip("$")
    match = _CHOICE.fullmatch(bare.strip())
    if match is None or (bare == answer.strip() and bare.islower() and len(bare) == 1):
        return ""
    return (match[1] or match[2]).upper()


def _content(markup: re.Match[str]) -> str:
    return markup[1] or ""


def _copied(given: str, found: Answer, wanted: Answer, question: str) -> bool:
    """Does it repeat a piece of the question that the reference writes in another way, such as a sum to be computed?

    So it does if it differs from that piece by what takes no solving, such as twice an equation.
    """
    if isinstance(found, Words):
        return False
    if isinstance(found, Relation) and isinstance(wanted, Named):
        asked = map(_as_relation, repetition.formulas(question))
        return any(each is not None and _same_relation(found, each) for each in asked)
    if isinstance(found, Ratio) and found != wanted:
        ratios = (each for each in repetition.formulas(question) if isinstance(each, Ratio))
        return repetition.repeats(given, question) or any(_same_ratio(found, each) for each in ratios)
    if not isinstance(found, Scalar) or not isinstance(wanted, Scalar):
        return repetition.repeats(given, question)
    tree, reference = (quantities.without_unit(each.tree)[0] for each in (found, wanted))
    if tree == reference:
        return False
    if repetition.repeats(given, question) or repetition.rearranges(found.tree, question):
        return True
    if quantities.is_unfinished(tree, reference) and repetition.has_value(tree, question):
        return True
    return forms.is_missed(tree, reference, question)


class _Comparison:
    """Compares what was read, each kind with its own."""

    def __init__(self, question: str) -> None:
        self._question = question

    def same(self, given: Answer, reference: Answer) -> bool:
        """Do they mean the same?"""
        if numbersets.is_one(reference):
            return numbersets.equal(given, reference)
        if isinstance(given, Relation) and isinstance(reference, Relation) and _same_relation(given, reference):
            return True
        if numbersets.is_one(given):
            return numbersets.equal(given, reference)
        if isinstance(given, Named) or isinstance(reference, Named):
            return self._same_named(given, reference)
        if isinstance(given, Listing) or isinstance(reference, Listing):
            return self._same_listing(given, reference)
        if isinstance(given, Matrix) or isinstance(reference, Matrix):
            return self._same_matrix(given, reference)
        if isinstance(given, Scalar) and isinstance(reference, Scalar):
            return self._same_scalar(given.tree, reference.tree)
        if isinstance(given, Tuple) and isinstance(reference, Tuple):
            return given.brackets == reference.brackets and self._in_order(given.parts, reference.parts)
        if isinstance(given, Ratio) and isinstance(reference, Ratio):
            return _same_ratio(given, reference)
        if isinstance(given, Numeral) != isinstance(reference, Numeral):
            return self._same_numeral(given, reference)
        return given == reference

    def _same_named(self, given: Answer, reference: Answer) -> bool:
        """A name may be left out. What both name has to have one name. An equation that is solved has one on a side."""
        one, other = _inside(given), _inside(reference)
        if isinstance(given, Named) and isinstance(reference, Named):
            if given.name == reference.name:
                return self.same(one, other)
        elif not isinstance(given, Relation) and not isinstance(reference, Relation):
            return self.same(one, other)
        if isinstance(other, Scalar) and not evaluation.variables(other.tree):
            return False
        relations = _as_relation(given), _as_relation(reference)
        return None not in relations and _same_relation(*relations)  # pyright: ignore[reportArgumentType]

    def _same_listing(self, given: Answer, reference: Answer) -> bool:
        """One to one; in their order, where the question asks for one or the parts have different names."""
        one, other = (each if isinstance(each, Listing) else Listing((each,)) for each in (given, reference))
        if one.braces and other.braces:
            return self._same_set(one.parts, other.parts)
        if len(one.parts) != len(other.parts):
            return False
        if not (one.braces or other.braces) and (_ORDERED.search(self._question) or _mixed_names(one, other)):
            return self._in_order(one.parts, other.parts)
        return self._matched(one.parts, other.parts)

    def _same_set(self, given: Sequence[Answer], reference: Sequence[Answer]) -> bool:
        """Each is in the other. What is given is not compared with itself, so a long set costs what its length is."""
        if not all(any(self.same(part, other) for other in reference) for part in given):
            return False
        return all(any(self.same(part, other) for part in given) for other in reference)

    def _matched(self, given: Sequence[Answer], reference: Sequence[Answer]) -> bool:
        left = list(reference)
        for part in given:
            place = next((place for place, other in enumerate(left) if self.same(part, other)), None)
            if place is None:
                return False
            del left[place]
        return not left

    def _in_order(self, given: Sequence[Answer], reference: Sequence[Answer]) -> bool:
        return len(given) == len(reference) and all(map(self.same, given, reference))

    def _same_matrix(self, given: Answer, reference: Answer) -> bool:
        one, other = _rows(given), _rows(reference)
        if one is None or other is None or len(one) != len(other):
            return False
        return all(map(self._in_order, one, other))

    def _same_scalar(self, given: Node, reference: Node) -> bool:
        if quantities.equal(given, reference):
            return True
        (one, given_units), (other, wanted_units) = map(quantities.without_unit, (given, reference))
        if bool(given_units) == bool(wanted_units) or not all(map(self._names, given_units or wanted_units)):
            return False
        return quantities.equal(one, other)

    def _names(self, unit: str) -> bool:
        """Does the question ask for a number of this unit, so that it may be left out?"""
        if unit == "%":
            return bool(_PERCENT.search(self._question))
        if unit == "degree":
            return bool(_DEGREES.search(self._question))
        factor, base, _ = units.unit(unit)
        if base == "$" and factor == 1:
            return bool(_DOLLARS.search(self._question))
        return base == "unit" or units.named(unit, self._question)

    def _same_numeral(self, given: Answer, reference: Answer) -> bool:
        """Its base may be left out where the question names it."""
        numeral, other = (given, reference) if isinstance(given, Numeral) else (reference, given)
        if not isinstance(numeral, Numeral) or not isinstance(other, Scalar) or other.tree.kind != "number":
            return False
        named = rf"base[\s$-]*{numeral.base}\b|\d_\{{?{numeral.base}\b|{_BINARY.get(numeral.base, 'base-')}"
        digits = other.tree.text
        if not digits.isdigit() or not re.search(named, self._question, re.IGNORECASE):
            return False
        return all(int(digit) < numeral.base for digit in digits) and int(digits, numeral.base) == numeral.value


def _inside(answer: Answer) -> Answer:
    return answer.answer if isinstance(answer, Named) else answer


def _mixed_names(one: Listing, other: Listing) -> bool:
    """One gives names to its parts and the other does not, so that the order has to tell."""
    named = [{part.name for part in each.parts if isinstance(part, Named)} for each in (one, other)]
    return (len(named[0]) > 1) != (len(named[1]) > 1)


def _as_relation(answer: Answer) -> Relation | None:
    if isinstance(answer, Relation):
        return answer
    if isinstance(answer, Named) and answer.left is not None and isinstance(answer.answer, Scalar):
        return Relation(("=",), (answer.left, answer.answer.tree))
    return None


def _same_relation(given: Relation, reference: Relation) -> bool:
    """Equations and inequalities with the same solutions, up to a factor on both sides."""
    if len(given.signs) != 1 or len(reference.signs) != 1:
        return given == reference
    (sign, one), (other_sign, other) = map(_difference, (given, reference))
    if sign != other_sign:
        return False
    try:
        ratio = evaluation.ratio(one, other)
    except Unread:
        return False
    return ratio is not None and (sign in ("=", "!=") or ratio > 0)


def _difference(relation: Relation) -> tuple[str, Node]:
    """Left minus right, or the other way round where the left is to be greater."""
    sign, (left, right) = relation.signs[0], relation.sides
    if sign in (">", ">="):
        sign, left, right = sign.replace(">", "<"), right, left
    return sign, Node("sum", (left, Node("negation", (right,))))


def _same_ratio(given: Ratio, reference: Ratio) -> bool:
    """`6:8` is `3:4`; `2:30`, which may be a time, is only itself."""
    if len(given.parts) != len(reference.parts) or any(map(_is_minutes, (given, reference))):
        return False
    if not all(evaluation.real(part) for part in given.parts):
        return given == reference
    first = given.parts[0], reference.parts[0]
    pairs = zip(given.parts[1:], reference.parts[1:], strict=True)
    try:
        return all(
            evaluation.equal(Node("product", (one, first[1])), Node("product", (other, first[0])))
            for one, other in pairs
        )
    except Unread:
        return False


def _is_minutes(ratio: Ratio) -> bool:
    last = ratio.parts[-1]
    while last.parts:
        last = last.parts[0]
    return bool(re.fullmatch(r"[0-5]\d", last.text))


def _rows(answer: Answer) -> tuple[tuple[Answer, ...], ...] | None:
    """Those of a matrix; a point is a column."""
    if isinstance(answer, Matrix):
        return answer.rows
    if isinstance(answer, Tuple) and answer.brackets == "()":
        return tuple((part,) for part in answer.parts)
    return None
