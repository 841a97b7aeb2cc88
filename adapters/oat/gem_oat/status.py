"""What the processes of a run let the one that started them know."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil

Method = TypeVar("Method", bound=Callable[..., Any])

FOLDER = "GEM_OAT_SIGNS"
"""Environment variable with the folder that the signs are in, which all processes of a run on this machine have."""


class Signs:
    """The first error, who failed, and which learners are done.

    Args:
        folder: where they are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._error = folder, folder / "error"

    @classmethod
    def of_this_run(cls) -> Signs | None:
        """Those of the run that this process belongs to, `None` where `gem_oat.run` did not start it."""
        folder = os.environ.get(FOLDER)
        return None if folder is None else cls(Path(folder))

    @property
    def processes(self) -> list[psutil.Process]:
        """Those of this run that are alive on this machine, whoever started them."""
        return [one for one in psutil.process_iter() if _folder_of(one) == str(self._folder)]

    @property
    def error(self) -> str | None:
        """The first error, with its traceback."""
        return self._error.read_text() if self._error.exists() else None

    @property
    def failed(self) -> set[int]:
        """The processes that said what went wrong in them."""
        return {int(error.suffix[1:]) for error in self._folder.glob("error.*")}

    @property
    def finished(self) -> set[int]:
        """The processes of the learners that came to their end."""
        return {int(done.suffix[1:]) for done in self._folder.glob("done.*")}

    def finish(self) -> None:
        """Say that this process, a learner, did, with all that Oat does in the end."""
        (self._folder / f"done.{os.getpid()}").touch()

    def fail(self, error: BaseException) -> None:
        """Say what went wrong. The first that was said, in any process, stays `error`."""
        descriptor, whole = tempfile.mkstemp(dir=self._folder)
        with open(descriptor, "w") as file:
            file.writelines(traceback.format_exception(type(error), error, error.__traceback__))
        with contextlib.suppress(FileExistsError):
            os.link(whole, self._error)  # whole and at once, or not at all
        os.replace(whole, self._error.with_suffix(f".{os.getpid()}"))


def _folder_of(process: psutil.Process) -> str | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else process.environ().get(FOLDER)
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # ended meanwhile, or somebody else's
        return None


def reported(method: Method) -> Method:
    """A method whose exceptions are `Signs.fail` before they go on their way."""

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            if signs := Signs.of_this_run():
                signs.fail(error)
            raise

    return wrapper  # pyright: ignore[reportReturnType]
