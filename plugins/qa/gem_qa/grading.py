"""Grading an answer without an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gem_core.responses import last_box
from gem_qa.verdicts import is_right, is_right_in_squad
from gem_questions import RIGHT, WRONG, Verdict, last_tag, read_references, speech_in

_TAG, _BOX = "<answer>", "\\boxed"


def verify(
    answer: str, reference: str | float | Sequence[str | float], question: str = "", *, published: bool = False
) -> Verdict:
    """Has an answer the words, numbers and signs of an accepted one? The verdict of the `qa:` and `logic:` ids.

    Args:
        answer: the answer, or a whole response with the answer in its last `<answer>...</answer>`, or without such tags
            in its last `\\boxed{...}`; thoughts are left out.
        reference: an accepted answer, or a list of answers of which any will do.
        question: not used; the graders of other kinds of question need it.
        published: compare the normal forms of SQuAD, as published results do, which is laxer; see `gem_qa.env.QaEnv`.

    Returns:
        A verdict, which is true if the answer is right. `found` is false where a response has tags or a box that are
        not closed.

    Raises:
        TypeError: the answer is no text.
        ValueError: there is no reference.

    Example:
        >>> from gem_qa import verify
        >>> verify("the Nile", "Nile").correct, verify("15", "1.5").correct
        (True, False)
        >>> verify("It was hers: <answer>Ada Lovelace</answer>", ["Lovelace", "Ada Lovelace"]).reward
        1.0
        >>> bool(verify("15", "1.5", published=True))
        True
    """
    speech = speech_in(answer)
    references = read_references(reference, accepted_text)
    given = last_tag(speech) if _TAG in speech else last_box(speech) if _BOX in speech else speech
    return Verdict(0.0, found=False) if given is None else by_words(given, references, published)


def by_words(given: str, accepted: Sequence[str], published: bool) -> Verdict:
    """Compare an answer with accepted ones."""
    compare = is_right_in_squad if published else is_right
    return RIGHT if any(compare(given, each) for each in accepted) else WRONG


def accepted_text(answer: Any) -> str:
    """An accepted answer as a text. A number that a file holds as 1969.0 is 1969."""
    return str(int(answer)) if isinstance(answer, float) and answer.is_integer() else str(answer)
