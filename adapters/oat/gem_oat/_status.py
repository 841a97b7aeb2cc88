"""What the processes of a run report to the process that started them."""

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

FOLDER = "GEM_OAT_STATUS"
"""Environment variable with the folder of the status, in all processes of a run on this machine."""


class RunStatus:
    """The first error of a run, the processes that failed, and the learners that finished.

    Args:
        folder: where processes that failed or finished write a file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._error = folder, folder / "error"

    @classmethod
    def of_this_run(cls) -> RunStatus | None:
        """The status of the run that this process belongs to; `None` where `gem_oat.run` did not start it."""
        folder = os.environ.get(FOLDER)
        return None if folder is None else cls(Path(folder))

    @property
    def processes(self) -> list[psutil.Process]:
        """The processes of this run that are alive on this machine, including those started by other processes."""
        return [one for one in psutil.process_iter() if _folder_of(one) == str(self._folder)]

    @property
    def error(self) -> str | None:
        """The first error, with its traceback."""
        return self._error.read_text() if self._error.exists() else None

    @property
    def failed(self) -> set[int]:
        """Ids of the processes that reported an error."""
        return {int(error.suffix[1:]) for error in self._folder.glob("error.*")}

    @property
    def finished(self) -> set[int]:
        """Ids of the learners' processes that finished."""
        return {int(done.suffix[1:]) for done in self._folder.glob("done.*")}

    def finish(self) -> None:
        """Report that this process, a learner, has finished, including Oat's own last steps."""
        (self._folder / f"done.{os.getpid()}").touch()

    def fail(self, error: BaseException) -> None:
        """Report an error of this process. `error` remains the first error of any process."""
        descriptor, whole = tempfile.mkstemp(dir=self._folder)
        with open(descriptor, "w") as file:
            file.writelines(traceback.format_exception(type(error), error, error.__traceback__))
        with contextlib.suppress(FileExistsError):
            os.link(whole, self._error)  # a reader sees the whole error or none
        os.replace(whole, self._error.with_suffix(f".{os.getpid()}"))


def _folder_of(process: psutil.Process) -> str | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else process.environ().get(FOLDER)
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # already ended, or another user's
        return None


def reported(method: Method) -> Method:
    """A method whose exceptions are reported with `RunStatus.fail` and then raised."""

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            if status := RunStatus.of_this_run():
                status.fail(error)
            raise

    return wrapper  # pyright: ignore[reportReturnType]
