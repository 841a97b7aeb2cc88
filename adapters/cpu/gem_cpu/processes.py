"""What the processes of a CPU training share: environment variables, and a private Ray."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from gem_cpu.fork_server import fork_server
from gem_train.cleanup import clean_up_after_this_process

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # more threads compete for the cores
    "TOKENIZERS_PARALLELISM": "false",
}
"""Environment variables for every framework."""

RAY_ENVIRONMENT = {
    **ENVIRONMENT,
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the default of Ray's next version; without it, Ray warns
    "RAY_DEDUP_LOGS": "0",  # print each line of a worker at once, not repeated lines every five seconds
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_prestart_worker_first_driver": "0",  # no actor would use them: they lack its runtime environment
    "RAY_worker_register_timeout_seconds": "120",  # workers wait until the fork server has imported the framework
}
"""Environment variables for frameworks that use Ray."""

# Ray's sockets are in a subfolder, and the path of a socket has at most 107 characters.
MAX_RAY_FOLDER_LENGTH = 107 - len("/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store")


def python_path(*folders: Path | str | None) -> str:
    """The PYTHONPATH with these folders in front."""
    given = [str(folder) for folder in folders if folder]
    present = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([*given, *(folder for folder in present if folder and folder not in given)])


@contextmanager
def ray_folder(modules: Sequence[str] = ()) -> Iterator[str]:
    """A temporary folder for the sockets and logs of a private Ray. At the end Ray is stopped and the folder removed.

    Args:
        modules: what the folder's fork server imports for Ray's workers; without any, there is no server.

    Raises:
        ValueError: the path of the temporary folder is too long for Ray's sockets.
    """
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        # Before Ray starts, whose processes inherit this run's mark. SIGTERM ends this process inside of the block.
        clean_up_after_this_process(folder)
        check_ray_folder(folder)
        with fork_server(folder, modules) if modules else nullcontext():
            try:
                yield folder
            finally:
                if ray := sys.modules.get("ray"):
                    ray.shutdown()  # otherwise Ray's processes would write to the folder while it is removed


def check_ray_folder(folder: str | Path) -> None:
    """Raise `ValueError` if the path is too long for Ray's sockets."""
    if len(str(folder)) > MAX_RAY_FOLDER_LENGTH:
        raise ValueError(
            f"Ray needs a folder of at most {MAX_RAY_FOLDER_LENGTH} characters, and {folder} is longer. "
            "Next: set TMPDIR to a folder with a short path, such as /tmp"
        )
