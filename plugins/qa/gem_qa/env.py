"""Questions that a few words answer, graded by exact match of what carries meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gem_core.responses import last_box
from gem_qa.grading import accepted_text, by_words
from gem_questions import BOX, TAGS, Data, Grader, QuestionEnv, Verdict, as_list, last_tag, published_box

_WORDS = ("Paris", "1969", "oxygen", "Marie Curie", "True", "the Nile")


class QaEnv(QuestionEnv):
    """A question with one or several accepted answers, each a few words.

    Action: the answer in the last `<answer>...</answer>`, or with `boxed` in the last `\\boxed{...}`.

    | answer | reward |
    | --- | --- |
    | the words, numbers and signs of one of the accepted | 1 |
    | others, or none of them | 0 |
    | none | `format_reward` |

    Case, white space, articles before a word, markup around all of it, and punctuation that belongs to no number or
    name do not matter: `the Nile!` is `Nile`, but `15` is not `1.5`, `C` is not `C++`, and nothing is not `A`.

    Args:
        boxed: the answer stands in a box.
        published: compare the normal forms of SQuAD, as published results do: without any punctuation and article.
            They accept some wrong answers (docs/environments.md).

    The others, and the errors: see `gem_questions.env.QuestionEnv`. The answer column holds a text, a number, or a list
    of them.
    """

    instead_of: ClassVar[Mapping[str, str]] = {
        **QuestionEnv.instead_of,
        "extract_boxed": "Use boxed=...",
        "load_from_cache_file": "Leave it out: templates are applied as questions are asked",
    }

    def __init__(
        self,
        dataset: Data,
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "question",
        answer: str = "answer",
        template: str | None = None,
        instruction: bool | str = True,
        format_reward: float = 0.0,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
        grader: Grader | str | None = None,
        boxed: bool = False,
        published: bool = False,
    ) -> None:
        super().__init__(
            dataset,
            split=split,
            subset=subset,
            question=question,
            answer=answer,
            template=template,
            instruction=instruction,
            format_reward=format_reward,
            shuffle_seed=shuffle_seed,
            streaming=streaming,
            grader=grader,
        )
        self.boxed = boxed
        self.reply_form = BOX if boxed else TAGS
        self.published = published

    def answer_in(self, response: str) -> str | None:
        """The content of the last tags, or of the last box."""
        if not self.boxed:
            return last_tag(response)
        return (published_box if self.published else last_box)(response)

    def grade(self, action: str) -> Verdict:
        """Compare with every accepted answer."""
        given = self.answer_in(action)
        if given is None:
            return self.no_answer
        return by_words(given, [*map(accepted_text, as_list(self.answer))], self.published)

    def sample_random_action(self) -> str:
        """Some words."""
        words = self.rng.choice(_WORDS)
        return self._written(words)

    def expert_action(self) -> str:
        """The first accepted answer of the data."""
        return self._written(accepted_text(as_list(self.answer)[0]))

    def _written(self, words: str) -> str:
        return f"\\boxed{{{words}}}" if self.boxed else f"<answer>{words}</answer>"
