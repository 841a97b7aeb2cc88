"""Questions that a few words answer, graded by exact match after normalisation."""

from __future__ import annotations

import os
import re
import string

from gem_questions.env import RIGHT, WRONG, QuestionEnv, Verdict, as_list
from gem_questions.extraction import last_box, last_tag

TAGGED = (
    "Think first, inside <think> and </think>. Then give the answer alone, inside <answer> and </answer>, for example "
    "<answer>Lake Victoria</answer>.\n\nQuestion: {question}\n"
)
"""How questions are shown whose answer stands in tags."""
BOXED = "Think first. Then give the answer alone in a box, for example \\boxed{True}.\n\nQuestion: {question}\n"
"""How questions are shown whose answer stands in a box."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_WORDS = ("Paris", "1969", "oxygen", "Marie Curie", "True", "the Nile")


class QaEnv(QuestionEnv):
    """A question with one or several accepted answers, each a few words.

    Action: the answer in the last `<answer>...</answer>`, or with `boxed` in the last `\\boxed{...}`.

    | answer | reward |
    | --- | --- |
    | one of the accepted, up to case, punctuation, articles and white space | 1 |
    | another | 0 |
    | none | `format_reward` |

    Args:
        boxed: the answer stands in a box.
        template: `None` asks for the format that is graded.

    The others, and the errors: see `gem_questions.env.QuestionEnv`. The answer column holds a text, a number, or a list
    of them.
    """

    def __init__(
        self,
        dataset: str | os.PathLike[str],
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "question",
        answer: str = "answer",
        template: str | None = None,
        format_reward: float = 0.0,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
        boxed: bool = False,
    ) -> None:
        super().__init__(
            dataset,
            split=split,
            subset=subset,
            question=question,
            answer=answer,
            template=template if template is not None else BOXED if boxed else TAGGED,
            format_reward=format_reward,
            shuffle_seed=shuffle_seed,
            streaming=streaming,
        )
        self.boxed = boxed

    def grade(self, action: str) -> Verdict:
        """Compare with every accepted answer."""
        given = (last_box if self.boxed else last_tag)(action)
        if given is None:
            return self.no_answer
        text = normalised(given)
        return RIGHT if any(text == normalised(str(each)) for each in as_list(self.answer)) else WRONG

    def sample_random_action(self) -> str:
        """Some words."""
        words = self.rng.choice(_WORDS)
        return f"\\boxed{{{words}}}" if self.boxed else f"<answer>{words}</answer>"


def normalised(text: str) -> str:
    """Lower case, without punctuation, articles and repeated white space, as in the evaluation of SQuAD."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())
