"""The form in which a question wants its answer, and the text that says so."""

from __future__ import annotations

from typing import Any, NamedTuple

from gem_core.env import Info
from gem_core.errors import EnvError


class ReplyForm(NamedTuple):
    """Where an answer stands in a reply."""

    mark: str
    """The text that such an answer has around it; a template with this mark says the form itself."""
    text: str
    """What a policy is told."""


BOX = ReplyForm("\\boxed{", "Reason step by step, and put your final answer in \\boxed{}.")
BLOCK = ReplyForm(
    "```",
    "Answer with a Python program that reads standard input and prints the result. "
    "Put the whole program in one block:\n```python\n# your program\n```",
)
TAGS = ReplyForm(
    "<answer>",
    "Think first. Then give your final answer, and nothing else, inside <answer> and </answer>, "
    "for example <answer>Lake Victoria</answer>.",
)


def checked_instruction(instruction: Any) -> bool | str:
    """The argument `instruction` as it is. Raises `EnvError` for anything but `True`, `False` and a text."""
    if not isinstance(instruction, (bool, str)):
        raise EnvError(
            f"instruction must be True, False, or a text to show in place of the usual one, and is {instruction!r:.80}"
        )
    return instruction


def instructed(info: Info, form: ReplyForm | None, instruction: bool | str, template: str | None = None) -> Info:
    """The info of a question, with a `suffix` that says the form of the answer.

    Args:
        info: what else the info holds.
        form: of the answer; `None` has no text.
        instruction: `True` for the form's own text, unless the template has its mark; `False` for none; or a text.
        template: what shows the question.
    """
    if instruction is True:
        instruction = form is not None and form.mark not in (template or "") and form.text
    return {**info, "suffix": instruction} if instruction else info
