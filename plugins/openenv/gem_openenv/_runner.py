"""A program that serves an OpenEnv package until its standard input ends.

    python runner.py PACKAGE

`PACKAGE` is the folder of a package or the name of an installed one. The server listens on a free port of the loopback
interface, and this program writes the port to standard output once it answers. Standard input is a pipe whose other end
belongs to the owner alone, so the kernel ends it even if the owner is killed. The program leads a process group, which
is killed at the end, so nothing that the package started is left. It needs the package's requirements, not gem-core.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import uvicorn

GRACE = 5.0
"""Seconds that the server may take to end sessions."""


def main(package: str) -> None:
    """Serve a package."""
    report = os.dup(1)
    os.dup2(2, 1)  # what the package prints is no port
    servers: list[uvicorn.Server] = []
    threading.Thread(target=_end_with_owner, args=[servers], daemon=True).start()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            _application(package), log_level="warning", access_log=False, timeout_graceful_shutdown=int(GRACE)
        )
        server = _Server(config, report, listener.getsockname()[1])
        servers.append(server)
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Tells its port as soon as it answers."""

    def __init__(self, config: uvicorn.Config, report: int, port: int) -> None:
        super().__init__(config)
        self._report = report
        self._port = port

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            os.write(self._report, b"%d\n" % self._port)
        os.close(self._report)


def _application(package: str) -> Any:
    folder = Path(package)
    if not folder.is_dir():
        del sys.path[0]  # the folder of this file
        return importlib.import_module(f"{package}.server.app").app
    os.chdir(folder)
    sys.path[0] = str(folder)  # as `uvicorn server.app:app` has it in this folder
    module, _, name = _declared(folder).partition(":")
    return getattr(importlib.import_module(module), name or "app")


def _declared(folder: Path) -> str:
    """What `app:` of a package's manifest says."""
    import yaml

    manifest = yaml.safe_load((folder / "openenv.yaml").read_text())
    return str(manifest.get("app", "server.app:app"))


def _end_with_owner(servers: list[uvicorn.Server]) -> None:
    """Wait for the end of standard input. A package that is still being imported, maybe for ever, gets no time."""
    while os.read(0, 1024):
        pass
    for server in servers:
        server.should_exit = True
        time.sleep(GRACE)
    _end_group()


def _end_group() -> None:
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        _end_group()
