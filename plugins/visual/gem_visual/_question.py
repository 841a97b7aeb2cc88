"""The base of the questions: one image, one question, one answer in a box."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

from PIL import Image

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.image import IMAGES, PngImage
from gem_core.responses import last_box

NO_ANSWER_REWARD = -0.1
"""Reward of an action without a box."""


class Posed(NamedTuple):
    """A question, as it was drawn."""

    image: Image.Image
    question: str
    answer: str
    choices: tuple[str, ...]
    """All answers that the question allows, the right one included."""


class Question(Env):
    """A question about an image, answered in `\\boxed{...}`; the last box counts.

    | answer | reward | episode |
    | --- | --- | --- |
    | right | 1 | terminated |
    | wrong | 0 | terminated |
    | no box | -0.1 | terminated |

    The image has no text, so it looks the same with any font.
    """

    answer: str = ""
    choices: tuple[str, ...] = ()

    @abstractmethod
    def pose(self) -> Posed:
        """Draw a question from `self.rng`."""

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Draw a new image, and ask about it."""
        super().reset(seed=seed)
        posed = self.pose()
        self.answer, self.choices = posed.answer, posed.choices
        example = boxed(self.rng.choice(self.choices))
        shown = f"{posed.question} Answer in a box, for example {example}.\n"
        return shown, {IMAGES: [PngImage.of(posed.image).uri]}

    def step(self, action: str) -> StepResult:
        """Grade an answer."""
        given = last_box(action)
        success = given is not None and given.lower() == self.answer
        info: Info = {"success": success}
        if given is None:
            info["invalid_action"] = True
            return f"There is no box. It was {self.answer}.\n", NO_ANSWER_REWARD, True, False, info
        verdict = "Right" if success else "Wrong"
        return f"{verdict}. It was {self.answer}.\n", float(success), True, False, info

    def sample_random_action(self) -> str:
        """One of the answers that the question allows."""
        return boxed(self.rng.choice(self.choices))

    def expert_action(self) -> str:
        """The right action."""
        return boxed(self.answer)

    def render(self) -> str:
        """The answer, for a person who cannot see the image."""
        return f"answer: {self.answer}"


def boxed(content: object) -> str:
    """`\\boxed{content}`."""
    return f"\\boxed{{{content}}}"
