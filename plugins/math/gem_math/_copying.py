"""Answers that were copied from the question, where the reference writes the same in another way."""

from __future__ import annotations

from gem_math import _claims as claims
from gem_math import _forms as forms
from gem_math import _notations as notations
from gem_math import _numbersets as numbersets
from gem_math import _quantities as quantities
from gem_math import _relations as relations
from gem_math import _repetition as repetition
from gem_math import _requests as requests
from gem_math._answers import Answer, Family, Named, Ratio, Relation, Rounded, Scalar, System, Words
from gem_math._expressions import Node
from gem_math._questions import Question


def is_copied(given: str, found: Answer, wanted: Answer, question: Question) -> bool:
    """Does an answer repeat a piece of the question, such as a sum to be computed?

    So it does if it differs from that piece by what takes no solving, such as twice an equation. A number that is
    finished may stand there by chance, unless the question wants it in another form.
    """
    found, wanted = (each.answer if isinstance(each, Family) else each for each in (found, wanted))
    if isinstance(found, (Words, System)) or not question.text:
        return False
    if isinstance(found, Relation) and (isinstance(wanted, (Named, Relation)) or numbersets.is_of_distance(found)):
        return found != wanted and _repeats_equation(found, question)
    found, wanted = _value(found), _value(wanted)
    if isinstance(found, Ratio) and found != wanted:
        ratios = (each for each in question.formulas if isinstance(each, Ratio))
        return repetition.repeats(given, question) or any(
            relations.same_ratio(found, each, may_be_time=False) for each in ratios
        )
    if not isinstance(found, Scalar) or not isinstance(wanted, Scalar):
        return repetition.repeats(given, question)
    return _is_copied_number(given, found.tree, wanted.tree, question)


def _is_copied_number(given: str, found: Node, wanted: Node, question: Question) -> bool:
    tree, reference = (quantities.without_unit(each)[0] for each in (found, wanted))
    if notations.is_missed(found, wanted, question):
        return True
    if tree == reference:
        return False
    if forms.is_missed(tree, reference, question.text):
        return True
    unfinished = quantities.is_unfinished(tree, reference)
    finished = quantities.is_plain(tree) and not unfinished
    if finished and not requests.is_conversion(question) and not repetition.is_task(tree, question):
        return False
    if repetition.repeats(given, question) or repetition.rearranges(found, question):
        return True
    return unfinished and repetition.has_value(tree, question)


def _repeats_equation(found: Relation, question: Question) -> bool:
    asked = map(relations.of, question.formulas)
    return any(each is not None and relations.same(found, each) for each in asked)


def _value(answer: Answer) -> Answer:
    """What is said of a name or a quantity; what is exact of what is rounded."""
    if isinstance(answer, (Named, Relation)):
        claim = claims.of(answer)
        return answer if claim is None else claim.answer
    return answer.exact if isinstance(answer, Rounded) else answer
