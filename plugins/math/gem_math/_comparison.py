"""Compares two answers that were read, each kind with its own, in the light of the question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gem_math import _claims as claims
from gem_math import _constants as constants
from gem_math import _evaluation as evaluation
from gem_math import _numbersets as numbersets
from gem_math import _quantities as quantities
from gem_math import _relations as relations
from gem_math import _requests as requests
from gem_math import _systems as systems
from gem_math import _units as units
from gem_math._answers import (
    Answer,
    Family,
    Listing,
    Matrix,
    Named,
    Numeral,
    Ratio,
    Relation,
    Rounded,
    Scalar,
    System,
    Tuple,
    Words,
)
from gem_math._expressions import Node
from gem_math._questions import Question

_NOTHING = re.compile(
    r"(?:there (?:is|are) )?(?:no|zero) (?:real )?(?:solutions?|roots?|values?)|none|no (?:real )?solutions? exists?"
)
_SAME_WORDS = (
    (re.compile(r"dne|(?:it |the limit )?does not exist"), "does not exist"),
    (re.compile(r"(?:there are )?infinite(?:ly many)?(?: solutions)?"), "infinitely many"),
)
"""Words with one meaning."""


class Comparison:
    """Compares answers to one question."""

    def __init__(self, question: Question) -> None:
        self._question = question

    def same(self, given: Answer, reference: Answer) -> bool:
        """Do they mean the same?"""
        if isinstance(given, Scalar) and isinstance(reference, Scalar):
            return self._same_scalar(given.tree, reference.tree)
        if isinstance(given, Family) or isinstance(reference, Family):
            return self._same_family(given, reference)
        if isinstance(given, Rounded) or isinstance(reference, Rounded):
            return self._same_rounded(given, reference)
        if _is_claim(given) or _is_claim(reference):
            return self._same_named(given, reference)
        given, reference = self._without_numbers(given, reference)
        if numbersets.is_one(reference):
            return numbersets.equal(given, reference)
        if isinstance(given, Relation) and isinstance(reference, Relation) and self._same_relation(given, reference):
            return True
        if numbersets.is_one(given):
            return numbersets.equal(given, reference)
        if isinstance(given, System) or isinstance(reference, System):
            return self._same_system(given, reference)
        if isinstance(given, (Named, Relation)) or isinstance(reference, (Named, Relation)):
            return self._same_named(given, reference)
        return self._same_kind(given, reference)

    def _same_kind(self, given: Answer, reference: Answer) -> bool:
        if _is_nothing(given) or _is_nothing(reference):  # a set with nothing in it is not the set of the empty set
            return _is_nothing(given) and _is_nothing(reference)
        if isinstance(given, Listing) or isinstance(reference, Listing):
            return self._same_listing(given, reference)
        if isinstance(given, Matrix) or isinstance(reference, Matrix):
            return self._same_matrix(given, reference)
        if isinstance(given, Tuple) and isinstance(reference, Tuple):
            return given.brackets == reference.brackets and self._in_order(given.parts, reference.parts)
        if isinstance(given, Ratio) or isinstance(reference, Ratio):
            return self._same_ratio(given, reference)
        if isinstance(given, Numeral) != isinstance(reference, Numeral):
            return self._same_numeral(given, reference)
        if isinstance(given, Words) and isinstance(reference, Words):
            return _plain_words(given.text) == _plain_words(reference.text)
        return given == reference

    # -- numbers -------------------------------------------------------------------------------------------------------

    def _same_scalar(self, given: Node, reference: Node) -> bool:
        if self._equal(given, reference):
            return True
        (one, given_units), (other, wanted_units) = map(quantities.without_unit, (given, reference))
        if bool(given_units) == bool(wanted_units):
            return any(self._equal(each, reference) for each in constants.renamed(given, reference, self._question))
        below = quantities.units_below(given) + quantities.units_below(reference)
        if not all(
            units.named(unit, self._question.text) if unit in below else requests.has_unit(unit, self._question)
            for unit in given_units or wanted_units
        ):
            return False
        if any(map(quantities.is_length, (given, reference))) and requests.has_area(self._question):
            return False
        if quantities.has_unit_power(given) and not requests.has_power(self._question):  # km^2 for km
            return False
        return self._equal(one, other)

    def _equal(self, given: Node, reference: Node) -> bool:
        wants_decimal = requests.has_places(self._question)
        return quantities.equal(given, reference, self._question.positive, wants_decimal=wants_decimal)

    def _same_rounded(self, given: Answer, reference: Answer) -> bool:
        """What is exact counts. What it is rounded to does where a rounded number is wanted."""
        if isinstance(reference, Rounded):
            return self.same(given, reference.exact) or self.same(given, reference.rounded)
        if not isinstance(given, Rounded):
            return False
        decimal = isinstance(reference, Scalar) and quantities.is_decimal(reference.tree)
        if (decimal or requests.is_rounded(self._question)) and self.same(given.rounded, reference):
            return True
        return self.same(given.exact, reference)

    def _same_ratio(self, given: Answer, reference: Answer) -> bool:
        """A ratio of two may be written as a fraction where the question speaks of a ratio."""
        if isinstance(given, Ratio) and isinstance(reference, Ratio):
            return relations.same_ratio(given, reference, may_be_time=not requests.has_ratio(self._question))
        if not requests.has_ratio(self._question):
            return False
        one, other = (
            Scalar(Node("quotient", each.parts)) if isinstance(each, Ratio) and len(each.parts) == 2 else each
            for each in (given, reference)
        )
        return isinstance(one, Scalar) and isinstance(other, Scalar) and evaluation.same_value(one.tree, other.tree)

    def _same_numeral(self, given: Answer, reference: Answer) -> bool:
        """Its base may be left out where the question names it."""
        numeral, other = (given, reference) if isinstance(given, Numeral) else (reference, given)
        if not isinstance(numeral, Numeral) or not isinstance(other, Scalar) or other.tree.kind != "number":
            return False
        digits = other.tree.text
        if not digits.isdigit() or not requests.has_base(numeral.base, self._question):
            return False
        return all(int(digit) < numeral.base for digit in digits) and int(digits, numeral.base) == numeral.value

    def _same_family(self, given: Answer, reference: Answer) -> bool:
        """Their letters mean nothing. What they are may be left out of an expression whose letters are its own."""
        if isinstance(given, Family) and isinstance(reference, Family):
            if given.kind != reference.kind or len(given.names) != len(reference.names):
                return False
            return self.same(constants.of_family(given, reference.names), reference.answer)
        family, other = (given, reference) if isinstance(given, Family) else (reference, given)
        if not isinstance(family, Family) or numbersets.is_one(family.answer) or family.kind != "integers":
            return False
        if any(map(self._question.has_name, family.names)):
            return False
        return self.same(family.answer, other) if family is given else self.same(other, family.answer)

    # -- names and equations -------------------------------------------------------------------------------------------

    def _same_named(self, given: Answer, reference: Answer) -> bool:
        """A name may be left out, and so may a quantity that the question asks for. What both name has to be the same.

        An equation that is solved has one name on a side.
        """
        if not isinstance(reference, (Named, Relation)):
            return self._same_claim(given, reference)
        if not isinstance(given, (Named, Relation)):
            wanted = claims.of(reference)
            return (
                wanted is not None
                and claims.may_be_left_out(wanted, self._question)
                and self.same(given, wanted.answer)
            )
        if isinstance(given, Named) and isinstance(reference, Named):
            if given.name == reference.name:
                return self.same(given.answer, reference.answer)
            if (definitions := claims.same_definition(given, reference)) is not None:
                return self.same(*definitions)
        value = reference.answer if isinstance(reference, Named) else None
        if isinstance(value, Scalar) and not evaluation.variables(value.tree):
            return False
        one, other = map(relations.of, (given, reference))
        return one is not None and other is not None and self._same_relation(one, other)

    def _same_claim(self, given: Answer, reference: Answer) -> bool:
        """Is what an answer says of a name, or of a quantity, the reference?"""
        claim = claims.of(given)
        if claim is None or not self.same(claim.answer, reference):
            return False
        return claims.may_be_named(claim, self._question) or claims.is_identity(given)

    def _same_relation(self, given: Relation, reference: Relation) -> bool:
        if relations.same(given, reference):
            return True
        one, other = (Node("sum", each.sides) if each.signs == ("=",) else None for each in (given, reference))
        if one is None or other is None:
            return False
        found = constants.renamed(one, other, self._question)
        return any(relations.same(Relation(("=",), (each.parts[0], each.parts[1])), reference) for each in found)

    def _without_numbers(self, given: Answer, reference: Answer) -> tuple[Answer, Answer]:
        """Without the numbers of roots, `x_1 = 1, x_2 = -2`, if the question has `x` or only one of both has them."""
        plain = [systems.unnumbered(each, self._question.has_numbered) for each in (given, reference)]
        changed = [one != other for one, other in zip(plain, (given, reference), strict=True)]
        if not any(changed) or (all(changed) and not self._question.has_name(systems.letter(plain[1]))):
            return given, reference
        return plain[0], plain[1]

    def _same_system(self, given: Answer, reference: Answer) -> bool:
        """The same values of the same names; a point has them in the order of the question, a list in their own."""
        one, other = (each if isinstance(each, System) else None for each in (given, reference))
        if one is not None and other is not None:
            values = [{part.name: part.answer for part in each.parts} for each in (one, other)]
            if values[0].keys() == values[1].keys():
                return all(self.same(values[0][name], values[1][name]) for name in values[0])
            return self._matched(one.parts, other.parts)
        single = given if one is None else reference
        if isinstance(single, (Tuple, Matrix)):
            if any(isinstance(each, System) and self._question.has_other_names(each.names) for each in (one, other)):
                return False
            points = [
                systems.point(each, self._question.order_of) if isinstance(each, System) else each
                for each in (given, reference)
            ]
            return self._same_kind(points[0], points[1])
        if not isinstance(single, Listing) or any(isinstance(part, System) for part in single.parts):
            return False
        parts = [each.parts for each in (given, reference) if isinstance(each, (System, Listing))]
        return self._in_order(parts[0], parts[1])

    # -- several answers -----------------------------------------------------------------------------------------------

    def _same_listing(self, given: Answer, reference: Answer) -> bool:
        """One to one; in their order, where the question asks for one or the parts have different names."""
        one, other = (each if isinstance(each, Listing) else Listing((each,)) for each in (given, reference))
        if one.word and one.word != other.word and "or" in (one.word, other.word):  # A or B is not A and B
            return False
        if one.braces and other.braces:
            return self._same_set(one.parts, other.parts)
        if isinstance(given, Listing) and isinstance(reference, Listing):
            one, other = map(self._without_repetition, (one, other))
        if len(one.parts) != len(other.parts):
            return False
        if not (one.braces or other.braces) and (requests.has_order(self._question) or _mixed_names(one, other)):
            return self._in_order(one.parts, other.parts)
        return self._matched(one.parts, other.parts)

    def _without_repetition(self, listing: Listing) -> Listing:
        """A solution that is listed twice is one solution."""
        points = all(isinstance(part, (Tuple, System)) for part in listing.parts)
        if not points and not requests.has_solutions(self._question):
            return listing
        return Listing(tuple(dict.fromkeys(listing.parts)), listing.braces, listing.either, listing.word)

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


def _is_claim(answer: Answer) -> bool:
    return isinstance(answer, Named) and answer.is_claim


def _plain_words(text: str) -> str:
    return next((plain for pattern, plain in _SAME_WORDS if pattern.fullmatch(text)), text)


def _is_nothing(answer: Answer) -> bool:
    """Does it say that nothing solves the question?"""
    if isinstance(answer, Words):
        return bool(_NOTHING.fullmatch(answer.text))
    return isinstance(answer, Listing) and not answer.parts


def _mixed_names(one: Listing, other: Listing) -> bool:
    """One gives names to its parts and the other does not, so that the order has to tell."""
    named = [{claim.name for claim in map(claims.of, each.parts) if claim is not None} for each in (one, other)]
    return (len(named[0]) > 1) != (len(named[1]) > 1)


def _rows(answer: Answer) -> tuple[tuple[Answer, ...], ...] | None:
    """Those of a matrix; a point is a column."""
    if isinstance(answer, Matrix):
        return answer.rows
    if isinstance(answer, Tuple) and answer.brackets == "[]":  # [[1, 2], [3, 4]]
        rows = tuple(part.parts for part in answer.parts if isinstance(part, Tuple) and part.brackets == "[]")
        return rows if len(rows) == len(answer.parts) else None
    if isinstance(answer, Tuple) and answer.brackets == "()":
        return tuple((part,) for part in answer.parts)
    return None
