"""Mathematical questions with images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gem_core.env import Info
from gem_core.errors import EnvError
from gem_core.image import PngImage
from gem_math.env import MathEnv
from gem_questions import Data, Grader, Row, as_list


class GeometryEnv(MathEnv):
    """As `MathEnv`, with the images of a question in `info["images"]`; see `gem_core.image`.

    Args:
        images: the column of the images, as `datasets` reads them.

    The others, and the errors: see `MathEnv`.
    """

    instead_of: ClassVar[Mapping[str, str]] = {**MathEnv.instead_of, "image_key": "Use images=..."}

    def __init__(
        self,
        dataset: Data,
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "problem",
        answer: str = "answer",
        images: str = "images",
        template: str | None = None,
        instruction: bool | str = True,
        format_reward: float = 0.0,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
        grader: Grader | str | None = None,
        published: bool = False,
        timeout: float = 3.0,
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
            published=published,
            timeout=timeout,
        )
        self.images = images

    def begin(self, row: Row) -> Info:
        """Read the images too."""
        info = super().begin(row)
        images = self.column(row, self.images)
        return {**info, "images": [self._image(one).uri for one in as_list(images)]}

    def _image(self, image: Any) -> PngImage:
        if not hasattr(image, "save"):
            raise EnvError(
                f"{self.questions.source}: column {self.images!r} must hold images, and one is {image!r:.80}. "
                "Store it with datasets.Image()"
            )
        return PngImage.of(image)
