"""Environments in place of a data set: each row is a task."""

from __future__ import annotations

from typing import Any

import torch
from omegaconf import DictConfig
from torch.utils.data import Dataset

from gem_core.errors import SettingsError
from gem_core.vector import TaskTable

# verl imports this module in every process that plays, before it looks the agent loop up by its name.
from gem_verl._loop import NAME
from gem_verl.settings import VerlSettings

ENDLESS = 1 << 40
"""Number of training rows, more than any run reads. Rows are made on access."""


class EnvTasks(Dataset[dict[str, Any]]):
    """The tasks of training or validation, for verl's `data.custom_cls`.

    Row `i` is the task `i` of the run: an environment, and the number from which agent workers derive the seed.
    Environments share each batch by their weights. Each counts its own `data_index`, so that one over data skips no
    row.

    Args:
        data_files: `train` or `eval`.
        config: the section `data`, including `gem`.
        kwargs: other arguments of verl, not used.
    """

    def __init__(self, data_files: str, config: DictConfig, **kwargs: Any) -> None:
        settings = VerlSettings.of(config.gem)
        if data_files not in ("train", "eval"):
            raise SettingsError(f"no tasks {data_files!r}: rows come from environments, not from files")
        self.split = data_files
        train = self.split == "train"
        batch = config.train_batch_size if train else settings.eval_episodes
        self._tasks = TaskTable(settings.weights(self.split), batch)
        self._length = ENDLESS if train else settings.eval_episodes

    def __len__(self) -> int:
        """Number of tasks."""
        return self._length

    def __getitem__(self, index: int) -> dict[str, Any]:
        """One task, in the form of verl's rows."""
        task = self._tasks[index]
        return {
            "agent_name": NAME,
            "split": self.split,
            "env_id": task.env_id,
            "task_id": index,
            "data_index": task.data_index,
            # Columns that verl reads: the prompt, and the name under which verl logs validation.
            "data_source": task.env_id,
            "index": index,
            "raw_prompt": [],
            "reward_model": {"style": "environment", "ground_truth": ""},
            "dummy_tensor": torch.zeros(1, dtype=torch.uint8),
        }
