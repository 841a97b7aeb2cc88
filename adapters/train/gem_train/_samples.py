"""Some episodes, from the processes that play to the process that reports."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Any

import msgspec

from gem_core.episode import Episode, Source
from gem_core.hookspecs import hookimpl
from gem_train.rollout._recorder import encoded
from gem_train.rollout._reporter import MAX_SAMPLES, without_tokens
from gem_train.rollout.records import recorded, restored

_SAMPLES = ".gem_samples"


class SampleFolder:
    """A folder inside the folder of a run, which all its processes see. It exists while samples are wanted.

    Each playing process has the files `0-...` to `7-...`, and writes those that the reporting process has taken. So
    neither the files nor the time for them grow with the number of episodes.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / _SAMPLES

    @classmethod
    def of(cls, source: Source) -> SampleFolder | None:
        """The folder of a source whose samples somebody wants."""
        return cls(source.folder) if source.track and source.folder is not None else None

    def open(self) -> None:
        """Ask for samples. What an earlier run left is deleted. Raises nothing."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.mkdir(parents=True, exist_ok=True)

    def take(self) -> list[Episode]:
        """At most `MAX_SAMPLES` episodes that ended since the last call, from all processes. Raises nothing."""
        found: list[Episode] = []
        # Sorted, so that all processes have a share.
        for file in sorted(self.path.glob("*.json")):
            with contextlib.suppress(OSError, msgspec.DecodeError):
                record = file.read_bytes()
                file.unlink()
                if len(found) < MAX_SAMPLES:
                    found.append(restored(msgspec.json.decode(record, type=dict[str, Any])))
        return found

    def close(self) -> None:
        """Delete the samples and the folder; no more are written. Raises nothing."""
        for file in [*self.path.glob("[0-9]-*.json"), *self.path.glob("[0-9]-*.new")]:
            with contextlib.suppress(OSError):
                file.unlink()
        with contextlib.suppress(OSError):  # not there, or somebody put a file of their own into it
            self.path.rmdir()


class SampleWriter:
    """Writes the next episodes of a playing process to the sample folder while there is room."""

    def __init__(self, folder: SampleFolder) -> None:
        self._files = [
            folder.path / f"{number}-{socket.gethostname()}-{os.getpid()}.json" for number in range(MAX_SAMPLES)
        ]
        self._lock = threading.Lock()

    @hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        """Write the episode if a file is free. A folder that is not there or full takes none."""
        with self._lock, contextlib.suppress(OSError):
            for file in self._files:
                if not file.exists():
                    new = file.with_suffix(".new")
                    sample = without_tokens(episode)
                    new.write_bytes(encoded(recorded(sample), sample))
                    new.replace(file)
                    return
