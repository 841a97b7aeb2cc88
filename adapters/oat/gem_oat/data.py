"""What Oat's learner reads: prompts that say nothing, and rows that know which they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oat.utils.data import TransitionDataset
from torch.utils.data import Dataset


class Slots(Dataset[tuple[str, str, str]]):
    """Episodes to be played, in the place of prompts.

    Args:
        count: how many; no more than a run plays, as samplers list all of them.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[str, str, str]:
        return "", "", ""


class NumberedRows(TransitionDataset):
    """Oat's rows, and with each batch which of the buffer's they are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for index, row in enumerate(self.transitions):
            row["row"] = index

    def collate_fn(self, item_list: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Oat's, with `rows`, the number of each."""
        return {**super().collate_fn(item_list), "rows": [item["row"] for item in item_list]}
