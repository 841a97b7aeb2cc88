"""The folder of shards beside a page."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gem_viewer._errors import ViewError

if TYPE_CHECKING:
    from gem_train.records import Records

MARK = "gem-core-view.txt"
"""The file that says that a folder was written here, and may be replaced."""

_SAID = "gem-core view wrote this folder for the page beside it, and replaces it together with the page.\n"


class ShardFolder:
    """A folder that is written beside the one it replaces, and takes its place at the end.

    Args:
        page: the page; the folder is beside it.
        opened: the runs that are read meanwhile.

    Raises:
        ViewError: the folder has files that were not written here, or holds or lies in one of the runs.
    """

    def __init__(self, page: Path, opened: Sequence[Records]) -> None:
        self.path = page.with_name(f"{page.stem}_data")
        self._new = self.path.with_name(f"{self.path.name}.new")
        for folder in (self.path, self._new):
            _check(folder, opened)
        _remove(self._new)  # of a process that was killed
        self._new.mkdir(parents=True)
        (self._new / MARK).write_text(_SAID)
        self.size = 0
        """Bytes of the shards."""

    def add(self, name: str, content: bytes) -> None:
        """Write a file."""
        (self._new / name).write_bytes(content)
        self.size += len(content)

    def replace(self) -> None:
        """Put the folder in its place."""
        _remove(self.path)
        self._new.rename(self.path)

    def discard(self) -> None:
        """Remove what was written, unless it is in its place."""
        shutil.rmtree(self._new, ignore_errors=True)


def _check(folder: Path, opened: Sequence[Records]) -> None:
    for records in opened:
        ours, run = folder.resolve(), records.path.resolve()
        if ours == run or ours in run.parents or run in ours.parents:
            raise ViewError(f"{folder} would lie in the run {records.path}, or hold it: give --export another name")
    if not folder.exists() and not folder.is_symlink():
        return
    ours = folder.is_dir() and not folder.is_symlink()
    if not ours or (any(folder.iterdir()) and not (folder / MARK).is_file()):
        raise ViewError(f"{folder} was not written by gem-core view: give --export another name, or move it away")


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
