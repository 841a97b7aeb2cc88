"""Mathematical questions with pictures."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from gem_core.env import Info
from gem_core.errors import EnvError
from gem_math.env import MathEnv
from gem_questions.env import as_list
from gem_questions.rows import Row


class GeometryEnv(MathEnv):
    """As `MathEnv`, with the pictures in `info["images"]`: data URIs of PNG files, in base64.

    Observations are text, and no adapter of this project shows pictures to a model yet: in training it sees the text
    alone.

    Args:
        images: the column of the pictures, as `datasets` reads them.

    The others, and the errors: see `MathEnv`.
    """

    instead_of: ClassVar[Mapping[str, str]] = {**MathEnv.instead_of, "image_key": "Use images=..."}

    def __init__(
        self,
        dataset: str | os.PathLike[str],
        *,
        split: str | None = None,
        subset: str | None = None,
        question: str = "problem",
        answer: str = "answer",
        images: str = "images",
        template: str | None = None,
        format_reward: float = 0.0,
        shuffle_seed: int | None = 0,
        streaming: bool = False,
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
            format_reward=format_reward,
            shuffle_seed=shuffle_seed,
            streaming=streaming,
            published=published,
            timeout=timeout,
        )
        self.images = images

    def begin(self, row: Row) -> Info:
        """Read the pictures too."""
        info = super().begin(row)
        pictures = self.column(row, self.images)
        return {**info, "images": [self._data_uri(picture) for picture in as_list(pictures)]}

    def _data_uri(self, picture: Any) -> str:
        if not hasattr(picture, "save"):
            raise EnvError(
                f"{self.questions.source}: column {self.images!r} must hold pictures, and one is {picture!r:.80}. "
                "Store it with datasets.Image()"
            )
        file = io.BytesIO()
        picture.save(file, format="PNG")
        return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
