"""verifiers, and its environments as this process has loaded them."""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import cloudpickle  # pyright: ignore[reportMissingTypeStubs]

from gem_core.errors import EnvError, EnvKwargsError, MissingExtraError, described, near_matches
from gem_core.installation import install_line

try:
    # Untyped, and missing where types are checked. The last line of the package with these names is 0.3.
    environments: Any = importlib.import_module("verifiers.envs.environment")
    verifiers: Any = importlib.import_module("verifiers")
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "verifiers":
        raise
    raise MissingExtraError(
        "environments of verifiers need its 0.3 (later releases have no load_environment) and Python 3.11 or newer. "
        f"Next: {install_line('verifiers')}"
    ) from error

_IN_CONTAINERS = {"SandboxEnv", "CliAgentEnv", "SandboxMixin", "BrowserEnv", "OpenEnvEnv", "HarborEnv"}
"""Classes whose environments run in a container, in a browser, or on a server."""
_OWN = ("rows", "shuffle_seed")

_loaded: dict[bytes, Any] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Definition:
    """An environment to load: an installed module and the arguments of its `load_environment`."""

    module: str
    arguments: Mapping[str, Any]

    def check(self) -> None:
        """Check the module and the names of the arguments, and load nothing.

        Raises:
            EnvError: the module cannot be imported, or is no environment.
            EnvKwargsError: it has no such argument; the message names the near match.
        """
        parameters = inspect.signature(self._function()).parameters
        if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            return
        known = [*_OWN, *parameters]
        for name, value in self.arguments.items():
            if name not in parameters:
                raise EnvKwargsError(
                    f"{self} has no argument {name!r} (given {value!r:.200}).{near_matches(name, known)} "
                    f"It takes: {', '.join(known)}"
                )

    def environment(self) -> Any:
        """verifiers' own environment, loaded at the first call in a process and shared by all that ask for it.

        Raises:
            EnvError: it could not be loaded, or cannot be played here.
        """
        key: bytes = cloudpickle.dumps((self.module, sorted(self.arguments.items())))  # pyright: ignore[reportUnknownMemberType]
        with _lock:
            if key not in _loaded:
                with _without_signal_handlers():
                    _loaded[key] = self._load()
            return _loaded[key]

    def _load(self) -> Any:
        try:
            environment = verifiers.load_environment(self.module, **self.arguments)
        except Exception as error:
            raise EnvError(f"{self}: load_environment failed: {in_a_line(error.__cause__ or error)}") from error
        for part in [environment, *getattr(environment, "envs", ())]:
            if reason := _reason_against(part):
                raise EnvError(
                    f"{self} cannot be played here: {reason}. Next: use verifiers itself, or another environment"
                )
        return environment

    def _function(self) -> Callable[..., Any]:
        try:
            module = importlib.import_module(self.module)
        except Exception as error:
            raise EnvError(f"{self}: importing the module failed: {in_a_line(error)}") from error
        function = getattr(module, "load_environment", None)
        if function is None:
            raise EnvError(
                f"{self}: the module {self.module!r} has no load_environment, so it is no environment of verifiers "
                "0.3. One with a Taskset is for verifiers.v1, which is not played here"
            )
        return function

    def __str__(self) -> str:
        return f"verifiers:{self.module}"


def in_a_line(error: BaseException) -> str:
    """An error in one line; pydantic's have several."""
    return " ".join(described(error).split())


def _reason_against(environment: Any) -> str | None:
    kind = cast("type[Any]", type(environment))
    if not isinstance(environment, environments.Environment):
        return f"its load_environment returned {kind.__name__}, which is no verifiers.Environment"
    if outside := _IN_CONTAINERS & {base.__name__ for base in kind.__mro__}:
        return f"it is a {sorted(outside)[0]}, which runs outside this process, in a container or on a server"
    if environment.requires_group_rollouts:
        return "its rubric scores several episodes of a task together, and an environment here plays one"
    return None


@contextmanager
def _without_signal_handlers() -> Generator[None]:
    """Let environments be built in any thread: each would replace the process's handlers of SIGINT and SIGTERM."""
    own = environments.signal
    environments.signal = SimpleNamespace(signal=_ignore, SIGINT=own.SIGINT, SIGTERM=own.SIGTERM)
    try:
        yield
    finally:
        environments.signal = own


def _ignore(number: int, handler: object) -> None:
    """In place of `signal.signal`."""
