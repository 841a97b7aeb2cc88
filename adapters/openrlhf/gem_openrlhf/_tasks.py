"""Tasks: rows of the data set that OpenRLHF reads. Each row is a task to play."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gem_core.errors import SettingsError
from gem_core.seeding import derive_seed
from gem_core.vector import Task, TaskTable
from gem_openrlhf._images import ImageIds
from gem_openrlhf.settings import OpenRLHFSettings
from gem_train.settings import Split

PROMPT, LABEL = "prompt", "label"
"""Columns of the data set: a name for people, and the task."""


class TaskLabel(msgspec.Struct, frozen=True):
    """A task to play, with everything that an engine needs. OpenRLHF carries it as the label."""

    split: Split
    task: Task
    max_concurrent: int
    """Number of episodes that one engine plays at a time."""
    settings: OpenRLHFSettings
    images: ImageIds | None = None
    """Of the model; `None` for one that reads text only."""

    @classmethod
    def decode(cls, label: str) -> TaskLabel:
        """The task in a label.

        Raises:
            SettingsError: the label is not a task.
        """
        try:
            return msgspec.json.decode(label, type=cls)
        except (msgspec.DecodeError, msgspec.ValidationError, TypeError) as error:
            raise SettingsError(
                f"the label {label!r:.80} is not a task: start training with gem_openrlhf.launch, which writes tasks, "
                "and not with openrlhf.cli.train_ppo_ray"
            ) from error


def write_tasks(
    path: Path,
    settings: OpenRLHFSettings,
    split: Split,
    *,
    batch: int,
    count: int,
    concurrent: int,
    images: ImageIds | None = None,
) -> None:
    """Write tasks in the order of play: batch by batch, in random order within each.

    Args:
        path: path of the JSON-lines file.
        settings: the settings of the run.
        split: `train` or `eval`.
        batch: number of tasks per batch; environments share a batch by their weights.
        count: number of tasks.
        concurrent: number of episodes that one engine plays at a time.
        images: ids of the model; `None` for one that reads text only.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for task in _tasks(settings, split, batch, count):
            name = f"{task.env_id} {split} {task.task_id}"
            label = msgspec.json.encode(TaskLabel(split, task, concurrent, settings, images)).decode()
            file.write(msgspec.json.encode({PROMPT: name, LABEL: label, "datasource": task.env_id}) + b"\n")


def _tasks(settings: OpenRLHFSettings, split: Split, batch: int, count: int) -> Iterator[Task]:
    table = TaskTable(settings.weights(split), batch)
    for start in range(0, count, batch):
        numbers = [*range(start, min(start + batch, count))]
        # OpenRLHF deals tasks to its engines in turn. In table order, an engine might play only one environment.
        random.Random(derive_seed(settings.seed, split, start)).shuffle(numbers)
        yield from (table[number] for number in numbers)
