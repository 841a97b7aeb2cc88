"""The data of Oat's learner: placeholder prompts, and numbered rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oat.utils.data import TransitionDataset
from torch.utils.data import Dataset


class PlaceholderPrompts(Dataset[tuple[str, str, str]]):
    """An empty prompt for each episode: environments write the prompts.

    Args:
        count: number of episodes of the run; not more, because samplers list all prompts.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[str, str, str]:
        return "", "", ""


class NumberedRows(TransitionDataset):
    """Oat's rows; a batch has the position of each row in the buffer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for index, row in enumerate(self.transitions):
            row["row"] = index

    def collate_fn(self, item_list: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Oat's method, which adds `rows`, the index of each row in the buffer."""
        return {**super().collate_fn(item_list), "rows": [item["row"] for item in item_list]}
