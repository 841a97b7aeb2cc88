"""What client and server say to each other: plain values in MessagePack, one WebSocket per session.

The client's first message is `Open`. The server answers each message with one `Answer` or `Failed`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import msgspec

from gem_core.errors import EnvError
from gem_core.vector import values

PROTOCOL = 1
"""Version of these messages."""
TOKEN = "GEM_SERVE_TOKEN"
"""Environment variable with the secret that server and clients share. Not an option: those show in process lists."""
URL = "GEM_REMOTE_URL"
"""Environment variable with the address of the server or servers, for environments that are given none, and for which
the token is."""
KEEPALIVE = 20.0
"""Seconds between pings, and until a side that answers none counts as gone."""


def shared_token() -> str:
    """The secret that server and clients share; empty if there is none.

    Raises:
        EnvError: no header can carry it.
    """
    token = os.environ.get(TOKEN, "")
    if not re.fullmatch("[!-~]*", token):
        raise EnvError(f"{TOKEN} has blanks or characters outside of ASCII. Next: a token of letters, digits and signs")
    return token


class _Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    pass


class Open(_Message, tag="open"):
    """Begin the session; answered with `[takes_data_index]`."""

    protocol: int
    env_id: str


class Reset(_Message, tag="reset"):
    """`Env.reset`."""

    seed: int | None
    options: Mapping[str, Any]


class Step(_Message, tag="step"):
    """`Env.step`."""

    action: str


class Sample(_Message, tag="sample"):
    """`Env.sample_random_action`."""


class Draw(_Message, tag="draw"):
    """`Env.draw_action`, with a generator of this seed."""

    seed: int


class Render(_Message, tag="render"):
    """`Env.render`."""


class DataSize(_Message, tag="data_size"):
    """`Env.data_size`."""


class Answer(_Message, tag="answer"):
    """What the environment returned."""

    value: Any


class Failed(_Message, tag="failed"):
    """The environment raised, or the server refuses."""

    error: str
    """Name of the exception's type."""
    text: str
    """Its text."""
    over: bool
    """The session is over: the server closes the connection."""


RemoteCall: TypeAlias = Reset | Step | Sample | Draw | Render | DataSize
Request: TypeAlias = Open | RemoteCall
Reply: TypeAlias = Answer | Failed
PlayedCall: TypeAlias = Reset | Step | Sample
"""What determines an episode."""


def encoded(message: Request | Reply) -> bytes:
    """A message as data.

    Raises:
        TypeError, ValueError: it holds what is no plain value.
    """
    config = message.__struct_config__
    return values.encoded([config.tag, *(getattr(message, name) for name in message.__struct_fields__)])


def least_size(value: Any, enough: int, depth: int = 0) -> int:
    """Bytes that a value has at least once it is encoded, counted without encoding it.

    Args:
        value: whatever an environment has returned.
        enough: a larger size need not be exact.
        depth: levels above it.
    """
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, dict):
        parts: Any = [*cast("Any", value), *cast("Any", value).values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = cast("Any", value)
    elif isinstance(value, int):
        return 1 + value.bit_length() // 8
    else:
        return getattr(value, "nbytes", 1)
    size = 1
    if depth < values.MAX_DEPTH:  # more is not encoded anyway
        for part in parts:
            size += least_size(part, enough - size, depth + 1)
            if size > enough:
                break
    return size


def decoded_request(data: bytes) -> Request:
    """The request that these bytes are.

    Raises:
        ValueError: they are none.
    """
    return _decoded(data, Request)


def decoded_reply(data: bytes) -> Reply:
    """The reply that these bytes are. Raises as `decoded_request`."""
    return _decoded(data, Reply)


def _decoded(data: bytes, kind: Any) -> Any:
    try:
        return msgspec.convert(values.decoded(data), kind)
    except Exception as error:  # a decoder's own, a RecursionError, whatever a value of an extension raises
        raise ValueError(f"no message of protocol {PROTOCOL}: {type(error).__name__}: {error}") from error
