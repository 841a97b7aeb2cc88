"""How the server of programs is started: by bubblewrap or by our own launcher, which give it a view of the file system
of its own, or without one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from gem_sandbox.view import BOX, DEVICES, PACKAGE_FOLDER, view

SAFE = ("bubblewrap", "namespaces")
UNSAFE = "limits"
BACKENDS = (*SAFE, UNSAFE)

_SERVER = "import sys; sys.path[0] = {!r}; from gem_sandbox._server import main; main()"
_LAUNCHER = "import sys; sys.path.insert(0, {!r}); from gem_sandbox.launcher import main; main()"
_HERE = str(Path(__file__).parents[1])


def command(backend: str, file: int) -> list[str]:
    """What starts a server that serves the socket with this file descriptor."""
    folder = PACKAGE_FOLDER if backend in SAFE else _HERE
    server = [sys.executable, "-c", _SERVER.format(folder), str(file)]
    if backend == "bubblewrap":
        return [*_bubblewrap(), *server]
    if backend == "namespaces":
        task = json.dumps([view(), server])
        return [sys.executable, "-I", "-S", "-c", _LAUNCHER.format(_HERE), task]
    return server


def _bubblewrap() -> list[str]:
    seen = view()
    binds = [word for path, source in seen.binds.items() for word in ("--ro-bind", source, path)]
    # Or they would be for root alone.
    above = sorted({str(folder) for path in [*seen.binds, *seen.links] for folder in Path(path).parents} - {"/"})
    folders = [word for path in above for word in ("--perms", "0755", "--dir", path)]
    links = [word for path, target in seen.links.items() for word in ("--symlink", target, path)]
    devices = [word for path in DEVICES for word in ("--dev-bind", path, path)]
    # The server makes itself a user that is not root, and sets up user namespaces through /proc.
    root = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if os.geteuid() == 0 else []
    return [
        str(shutil.which("bwrap")), "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", *root, *folders,
        *links, *binds, *devices, "--dir", BOX, "--bind", "/proc", "/proc", "--remount-ro", "/", "--chdir", "/", "--",
    ]  # fmt: skip
