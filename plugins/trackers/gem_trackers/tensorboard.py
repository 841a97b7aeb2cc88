"""A source as event files of TensorBoard, without TensorFlow or torch."""

from __future__ import annotations

import importlib
import json
import os
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gem_core.episode import Episode, Source
from gem_trackers._conversations import as_text, facts
from gem_train.rollout import as_utf8

# No types.
event_pb2: Any = importlib.import_module("tensorboard.compat.proto.event_pb2")
summary_pb2: Any = importlib.import_module("tensorboard.compat.proto.summary_pb2")
text_metadata: Any = importlib.import_module("tensorboard.plugins.text.metadata")
writer: Any = importlib.import_module("tensorboard.summary.writer.event_file_writer")
tensor_util: Any = importlib.import_module("tensorboard.util.tensor_util")

FOLDER = "TENSORBOARD_LOGGING_DIR"
"""The environment variable with the folder of all runs; transformers reads the same one."""
RUNS = "runs"
"""The folder where neither that variable nor the source names one."""


class TensorBoardTracker:
    """An event file in `$TENSORBOARD_LOGGING_DIR/<id>`, `<folder of the source>/tensorboard`, or `runs/<id>`.

    A resumed source adds a file to the same folder, which TensorBoard shows as one run.

    Args:
        source: what is tracked.
    """

    def __init__(self, source: Source) -> None:
        self._writer = writer.EventFileWriter(str(_folder(source)))
        self._add_text("settings", _code(json.dumps(source.settings, indent=2, default=repr)), 0)
        self._writer.flush()

    def add_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Scalars."""
        values = [summary_pb2.Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._add(summary_pb2.Summary(value=values), step)
        self._writer.flush()  # each step can be seen at once, and survives a kill

    def add_samples(self, step: int, episodes: Sequence[Episode]) -> None:
        """Texts: a tag for each place."""
        for number, episode in enumerate(episodes):
            known = ", ".join(f"{name}: {value}" for name, value in facts(episode).items() if value is not None)
            self._add_text(f"episodes/{number}", _code(f"{known}\n\n{as_text(episode)}"), step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _add_text(self, tag: str, text: str, step: int) -> None:
        metadata = text_metadata.create_summary_metadata(display_name=tag, description="")
        tensor = tensor_util.make_tensor_proto(as_utf8(text))
        self._add(summary_pb2.Summary(value=[{"tag": tag, "metadata": metadata, "tensor": tensor}]), step)

    def _add(self, summary: Any, step: int) -> None:
        self._writer.add_event(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))


def _folder(source: Source) -> Path:
    if chosen := os.environ.get(FOLDER):
        return Path(chosen) / source.id
    return Path(RUNS) / source.id if source.folder is None else Path(source.folder) / "tensorboard"


def _code(text: str) -> str:
    """Text that TensorBoard's markdown shows as it is."""
    return textwrap.indent(text, "    ", lambda _: True)
