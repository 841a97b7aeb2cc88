"""Grading an answer without an environment."""

from __future__ import annotations

from collections.abc import Sequence

from gem_core.responses import last_box
from gem_math.references import answer_of, is_read, need
from gem_questions import RIGHT, WRONG, Verdict, read_references, speech_in

_BOX = "\\boxed"


def verify(
    answer: str,
    reference: str | float | Sequence[str | float],
    question: str = "",
    *,
    published: bool = False,
    timeout: float = 3.0,
) -> Verdict:
    """Does an answer mean what the reference means? The verdict of the `math:` ids, for programs of your own.

    Args:
        answer: the answer, or a whole response with the answer in its last `\\boxed{...}`, or without a box behind
            `####`, thoughts left out.
        reference: what is known to be right, as data sets have it: the answer, a text with the answer in a box or after
            the `####` of GSM8K, or a list of answers of which any will do.
        question: what was asked. It says which unit may be left out, whether order matters, and what an answer may not
            just repeat.
        published: give the verdict that published results rest on, which is laxer; see `gem_math.env.MathEnv`.
        timeout: seconds that a published verdict may take.

    Returns:
        A verdict, which is true if the answer is right. `found` is false where a response has no closed box. `unread`
        says that the `answer` or the `reference` could not be read as mathematics: then only an answer that is written
        like the reference is right, and "wrong" may mean "not understood". `info["grading_error"]` has the reference
        that could not be read, or why a published verdict failed.

    Raises:
        TypeError: the answer is no text.
        ValueError: there is no reference.
        MissingExtraError: mpmath is not installed, or for a published verdict math-verify.

    Example:
        >>> from gem_math import verify
        >>> verify("0.5", r"\\frac{1}{2}").correct
        True
        >>> verify(r"Both legs are 5, so \\boxed{5\\sqrt2}.", "sqrt(50)").reward
        1.0
        >>> bool(verify("5", "5 cm")), bool(verify("5", "5 cm", "How many centimeters is it?"))
        (False, True)
        >>> verify("18", "She sells 9 eggs for 2 dollars each.\\n#### 18").correct
        True
        >>> verify("7", "It depends on how many of them came on Monday.").unread
        'reference'
    """
    speech = speech_in(answer)
    references = read_references(reference, lambda each: answer_of(str(each), published=published))
    need("math_verify" if published else "mpmath")
    given = last_box(speech) if _BOX in speech else speech if published else answer_of(speech)
    if given is None:
        return Verdict(0.0, found=False)
    if published:
        return by_published_rules(given, references, timeout)
    verdict = by_meaning(given, references, question)
    return verdict if verdict or verdict.unread or is_read(given) else Verdict(0.0, unread="answer")


def by_meaning(given: str, references: Sequence[str], question: str) -> Verdict:
    """Compare an answer with references that `answer_of` gave. A wrong one says where no reference can be read."""
    from gem_math.verdicts import is_right

    if any(is_right(given, each, question) for each in references):
        return RIGHT
    if any(map(is_read, references)):
        return WRONG
    why = f"the reference cannot be read as mathematics, and was compared as it is written: {references[0]!r:.200}"
    return Verdict(0.0, info={"grading_error": why}, unread="reference")


def by_published_rules(given: str, references: Sequence[str], timeout: float) -> Verdict:
    """The published verdict on an answer."""
    from gem_math import published

    try:
        return RIGHT if published.is_right(given, references, timeout) else WRONG
    except published.Ungraded as failure:
        return Verdict(0.0, info={"grading_error": str(failure)})
