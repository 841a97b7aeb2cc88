"""A session with an OpenEnv server, over its WebSocket."""

from __future__ import annotations

import json
import urllib.request
from typing import Any, cast

from gem_core.env import ResetResult, StepResult
from gem_core.errors import EnvError
from gem_openenv._fields import BadAction, Fields
from gem_remote import Failed, Lost, NotNow, Reset, Socket, Step, error_of, patiently

_SECONDS = 30
_FULL = "CAPACITY_REACHED"
_ENDS = ("terminated", "truncated")


def schemas_of(url: str, patience: float) -> dict[str, Any]:
    """What the server at this address says of its actions and observations.

    Args:
        url: `http://...` or `https://...`.
        patience: seconds for which a server that is starting is tried.

    Raises:
        EnvError: no server answers, or it is none of OpenEnv's.
    """
    return patiently(lambda: _schemas(url), patience)


def _schemas(url: str) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/schema", timeout=_SECONDS) as answer:
            schemas: Any = json.load(answer)
    except urllib.request.HTTPError as error:
        raise EnvError(f"what answers at {url} is no OpenEnv server: its /schema is HTTP {error.code}") from error
    except OSError as error:
        raise NotNow(f"no server answers at {url} ({error})") from error
    except ValueError as error:
        raise EnvError(f"what answers at {url} is no OpenEnv server: its /schema is no JSON") from error
    if not isinstance(schemas, dict):
        raise EnvError(f"what answers at {url} is no OpenEnv server: its /schema is no object")
    return cast("dict[str, Any]", schemas)


class OpenEnvSession:
    """Plays one environment of a server.

    Args:
        url: `http://...` or `https://...`.
        fields: how texts become actions.
        patience: seconds for which a server that is starting or full is tried.

    Raises:
        EnvError: no session can be had.
    """

    def __init__(self, url: str, fields: Fields, patience: float) -> None:
        self._url = url
        self._fields = fields
        self._socket = patiently(self._begun, patience)

    def _begun(self) -> Socket:
        opened = Socket(f"ws{self._url.removeprefix('http')}/ws")
        try:
            kind, data = _message(opened.exchange('{"type": "state"}'))
        except Lost as error:
            raise NotNow(str(error)) from error
        if kind == "error" and data.get("code") == _FULL:
            opened.close()
            raise NotNow(f"the server at {self._url} has no room ({data.get('message')})")
        return opened

    def ask(self, call: Any) -> Any:
        """The opening or the transition.

        Raises:
            Lost: the session is over.
            RemoteError: the environment raised, or refused the options of a reset.
        """
        return self._reset(call) if isinstance(call, Reset) else self._step(call)

    def close(self) -> None:
        """End the session."""
        self._socket.close()

    def _reset(self, call: Reset) -> ResetResult:
        kind, data = self._asked({"type": "reset", "data": {"seed": call.seed, **call.options}})
        if kind == "error":
            raise self._failure(data)
        observation = data["observation"]
        return self._fields.text_of(observation), self._info(data)

    def _step(self, call: Step) -> StepResult:
        try:
            action = self._fields.action_of(call.action)
        except BadAction as error:
            return self._invalid(str(error))
        kind, data = self._asked({"type": "step", "data": action})
        if kind == "error":
            if data.get("code") == "VALIDATION_ERROR":
                return self._invalid("The action does not fit its schema.")
            raise self._failure(data)
        reward = float(data.get("reward") or 0.0)
        return self._fields.text_of(data["observation"]), reward, *_ended(data), self._info(data)

    def _info(self, data: dict[str, Any]) -> dict[str, Any]:
        info = data["observation"].get("info")
        metadata = data.get("metadata")
        prefix = {"prefix": self._fields.instruction} if self._fields.instruction else {}
        return {**prefix, **(info if isinstance(info, dict) else {}), **({"metadata": metadata} if metadata else {})}

    def _invalid(self, said: str) -> StepResult:
        return said, 0.0, False, False, {"invalid_action": True, "prefix": self._fields.instruction}

    def _asked(self, message: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        try:
            kind, data = _message(self._socket.exchange(json.dumps(message)))
            if kind == "error" or isinstance(data.get("observation"), dict):
                return kind, data
        except (ValueError, RecursionError) as error:
            self.close()
            raise Lost(f"the server at {self._url} sent no valid reply: {error}") from error
        self.close()
        raise Lost(f"the server at {self._url} sent a reply without an observation")

    def _failure(self, data: dict[str, Any]) -> Exception:
        """Of the type that an exported package names before the text; other servers give the text alone."""
        said = str(data.get("message", ""))
        name, _, text = said.partition(": ")
        failed = Failed(name, text, over=False) if name.isidentifier() else Failed(str(data.get("code")), said, False)
        return error_of(failed, f"the server at {self._url}")


def _ended(data: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the episode is terminated and whether it is truncated; an optional field may be null."""
    places: tuple[dict[str, Any], ...] = (data["observation"], data.get("metadata") or {})
    said = {name: next((place[name] for place in places if place.get(name) is not None), False) for name in _ENDS}
    terminated, truncated = (bool(said[name]) for name in _ENDS)
    # Servers that keep the two apart say one of them; of others a `done` is all there is.
    return terminated or (bool(data.get("done")) and not truncated), truncated


def _message(data: bytes) -> tuple[str, dict[str, Any]]:
    message: Any = json.loads(data)
    parts: dict[str, Any] = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    if not isinstance(parts.get("data"), dict):
        raise ValueError("it is no message of OpenEnv")
    return str(parts.get("type")), parts["data"]
