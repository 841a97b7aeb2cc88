"""Is an answer right? The verdict of `MathEnv`: an answer is right if it means what the reference means.

Both are read by one grammar, as numbers, expressions, units, sets and so on. What cannot be read is right only if it is
written as the reference is. Nothing is evaluated but arithmetic with limits, so this runs where training runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gem_math import _choices as choices
from gem_math import _comparison as comparison
from gem_math import _copying as copying
from gem_math import _quantities as quantities
from gem_math import _requests as requests
from gem_math import _structure as structure
from gem_math import _wording as wording
from gem_math._answers import Answer, Listing, Rounded, Scalar
from gem_math._questions import Question, question_of
from gem_math._tokens import INVISIBLE, Unread

_LETTER_UNIT = re.compile(r"(?<=\d)(?:\s|\\[,;: ])*([AghJKLlmNsVW])(?![A-Za-z_(])")


def is_right(given: str, reference: str, question: str = "") -> bool:
    """Does an answer mean what the reference means?

    Args:
        given: what a policy answered.
        reference: what is known to be right.
        question: what was asked. It says which name, unit or base may be left out, whether order matters, and what an
            answer may not just repeat.
    """
    given, reference = given.translate(INVISIBLE), reference.translate(INVISIBLE)
    if not given.strip():
        return False
    if given.strip() == reference.strip():
        return True
    return _is_right(given, reference, question_of(question))


def _is_right(given: str, reference: str, question: Question) -> bool:
    if (choice := choices.read(given)) is not None and (verdict := _chosen(choice, reference, question)) is not None:
        return verdict
    if (wanted := choices.read(reference)) is not None:
        if wanted.text:
            return _is_right(given, wanted.text, question)
        if (text := choices.text_of(wanted.letter, question.text)) and _is_right(given, text, question):
            return True
    try:
        return _means_the_same(given, reference, question) or wording.have_same_tokens(given, reference)
    except Unread:
        return wording.are_alike(given, reference)


def _chosen(choice: choices.Choice, reference: str, question: Question) -> bool | None:
    """Is it the choice of the reference? `None` where that is none, and the answer may be something else, too."""
    text = choices.text_of(choice.letter, question.text) if choice.text else ""
    if not text:
        fits = not choices.names_another(choice)
    else:
        fits = wording.are_alike(choice.text, text) or _is_right(choice.text, text, question_of(""))
    wanted = choices.read(reference)
    if wanted is not None:
        return choice.letter == wanted.letter and fits
    return True if choice.text and fits and _is_right(choice.text, reference, question) else None


def _means_the_same(given: str, reference: str, question: Question) -> bool:
    compared = comparison.Comparison(question)
    wanted = _alternatives(structure.read(reference, question.functions), compared, question)
    found = _readings(given, wanted, question)
    if any(one == other for one in found for other in wanted):
        return True
    return any(
        compared.same(one, other) and not copying.is_copied(given, one, other, question)
        for one in found
        for other in wanted
    )


def _alternatives(wanted: Sequence[Answer], compared: comparison.Comparison, question: Question) -> list[Answer]:
    """A reference that says one thing twice, such as `0.75 or \\frac34`, is either."""
    found: list[Answer] = []
    for each in wanted:
        if isinstance(each, Rounded):  # what is to be rounded is the task where the question wants that
            found += (each.rounded,) if requests.is_rounded(question) else (each.exact, each.rounded)
        elif (
            isinstance(each, Listing) and each.either and all(compared.same(part, each.parts[0]) for part in each.parts)
        ):
            found += each.parts
        else:
            found.append(each)
    return found


def _readings(given: str, wanted: Sequence[Answer], question: Question) -> tuple[Answer, ...]:
    """With `5 m` as metres where the reference has a unit; it is a number times a variable otherwise."""
    measured = any(isinstance(each, Scalar) and quantities.without_unit(each.tree)[1] for each in wanted)
    marked = _LETTER_UNIT.sub(r"\\text{\1}", given) if measured else given
    found = structure.read(given, question.functions)
    return found if marked == given else (*found, *structure.read(marked, question.functions))
