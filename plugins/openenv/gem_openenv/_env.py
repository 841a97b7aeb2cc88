"""Environments that an OpenEnv server plays: one that runs already, or one of a package, started for it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gem_core.errors import EnvError
from gem_core.waiting import waiting
from gem_openenv._fields import Fields
from gem_openenv._local import LocalServer
from gem_openenv._session import OpenEnvSession, schemas_of
from gem_remote import EnvElsewhere


class OpenEnvEnv(EnvElsewhere):
    """Plays the environment of an OpenEnv server.

    `terminated` and `truncated` are the server's where its observations or their metadata have these fields. Otherwise
    the end of an episode is `terminated`. Whether a seed repeats an episode is up to the server.

    Args:
        url: `http://host:port` or `https://...`.
        action: the field of an action that takes the policy's text. By default the only field, if it is a text;
            otherwise the policy writes a JSON object.
        observation: the field of an observation that is shown. By default the only field, if it is a text; otherwise a
            JSON object of all.
        patience: seconds for which `reset()` tries to reach a server that is starting or full.
    """

    def __init__(
        self, url: str, *, action: str | None = None, observation: str | None = None, patience: float = 30.0
    ) -> None:
        super().__init__()
        if not url.startswith(("http://", "https://")):
            raise EnvError(f"openenv:{url} names no server; write openenv:http://host:port")
        self._url = url.rstrip("/")
        self._names = action, observation
        self._patience = patience
        self._fields: Fields | None = None

    def _opened(self) -> OpenEnvSession:
        return OpenEnvSession(self._address(), self._known_fields(), self._patience)

    def _address(self) -> str:
        """Where the server is."""
        return self._url

    def _known_fields(self) -> Fields:
        if self._fields is None:
            try:
                self._fields = Fields(schemas_of(self._address(), self._patience), *self._names)
            except ValueError as error:
                raise EnvError(f"{self!r}: {error}") from error
        return self._fields

    def sample_random_action(self) -> str:
        """An action that the server's schema allows; its rules may call it invalid."""
        return self._known_fields().random_action(self.rng)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """The server checks them."""


class PackageEnv(OpenEnvEnv):
    """Plays an OpenEnv package, whose server it starts on this machine with the first call.

    The server belongs to this environment and ends with `close()`, or with the process. After a lost session the next
    `reset()` starts another server.

    Args:
        package: the folder of a package, with its `openenv.yaml`; or the name of an installed one.
        action, observation, patience: as `OpenEnvEnv`.
        python: the interpreter that runs the server, for a package in an environment of its own. By default this one.
        start_seconds: how long the server may take to start. No time limit of a vector counts it.
    """

    def __init__(
        self,
        package: str,
        *,
        action: str | None = None,
        observation: str | None = None,
        patience: float = 30.0,
        python: str | None = None,
        start_seconds: float = 120.0,
    ) -> None:
        super().__init__("http://127.0.0.1", action=action, observation=observation, patience=patience)
        self._package = _found(package, python)
        self._start = python, start_seconds
        self._server: LocalServer | None = None
        self._had_session = False

    def close(self) -> None:
        """End the session and the server."""
        super().close()
        self._end_server()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_server": None, "_had_session": False}

    def _opened(self) -> OpenEnvSession:
        if self._had_session:  # and lost it: the server is dying, or it is one that loses sessions
            self._end_server()
        session = super()._opened()
        self._had_session = True
        return session

    def _end_server(self) -> None:
        server, self._server = self._server, None
        self._had_session = False
        if server is not None:
            server.close()

    def _address(self) -> str:
        if self._server is not None and not self._server.running:
            self._end_server()
        if self._server is None:
            with waiting():
                self._server = LocalServer(self._package, *self._start)
        return self._server.url


def _found(package: str, python: str | None) -> str:
    """The package as its server finds it, whatever the working directory is then."""
    folder = Path(package).expanduser()
    if (folder / "openenv.yaml").is_file():
        return str(folder.resolve())
    if folder.is_dir():
        raise EnvError(f"openenv:{package}: the folder has no openenv.yaml, so it is no OpenEnv package")
    if package.isidentifier() and (python is not None or find_spec(package) is not None):
        return package
    raise EnvError(
        f"openenv:{package} is no folder of an OpenEnv package, and no installed package; write "
        "openenv:http://host:port for a server that runs, openenv:./folder or openenv:package"
    )
