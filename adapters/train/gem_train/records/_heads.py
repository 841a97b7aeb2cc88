"""The heads of frames: a struct for each kind, decoded strictly."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, get_args

import msgspec
from msgspec import Meta

from gem_core.episode import EpisodeSummary

_Count: TypeAlias = Annotated[int, Meta(ge=0)]


class _Head(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    n: Annotated[int, Meta(ge=1)] | None = None
    """The number of the frame; some kinds have none."""


class StartHead(_Head, frozen=True, tag="start"):
    """The process began; its body is a `StartBody`."""


class RolloutHead(_Head, frozen=True, kw_only=True, tag="rollout"):
    """A rollout began."""

    id: str
    label: str


class RolloutEndHead(_Head, frozen=True, kw_only=True, tag="rollout_end"):
    """A rollout ended."""

    id: str


class TextsHead(_Head, frozen=True, tag="texts"):
    """Texts of tokens; its body is a `TextsBody`."""


class EpisodeHead(_Head, frozen=True, kw_only=True, tag="episode"):
    """An episode. Its head also has the fields of `EpisodeSummary`: see `summary_in`."""

    rollout: str
    data_index: int | None


class MetricsHead(_Head, frozen=True, kw_only=True, tag="metrics"):
    """The metrics of an update."""

    step: int
    metrics: dict[str, float]


class UpdateHead(_Head, frozen=True, kw_only=True, tag="update"):
    """The episodes that one process trained on in an update; the body has a part for each."""

    number: _Count
    rank: _Count
    ranks: Annotated[int, Meta(ge=1)]
    episodes: list[str]
    sizes: list[Annotated[int, Meta(ge=32)]]
    """Of the parts; the keys of one alone are longer."""
    version: _Count | None = None
    """Updates of the policy before it, if `number` counts batches."""


class OtherHead(_Head, frozen=True, kw_only=True, tag=False):
    """A kind that this release does not know."""

    kind: str


class StartBody(msgspec.Struct, frozen=True):
    """How a process began."""

    settings: dict[str, Any] = {}
    versions: dict[str, str] = {}
    time: float = 0.0


class TextsBody(msgspec.Struct, frozen=True):
    """The text of each token, or its bytes where it has a part of a character."""

    ids: list[int]
    texts: list[Any]  # msgspec has no union of these two

    def __post_init__(self) -> None:
        if not all(isinstance(one, str | bytes) for one in self.texts):
            raise ValueError("the text of a token is a text or bytes")


_Known: TypeAlias = StartHead | RolloutHead | RolloutEndHead | TextsHead | EpisodeHead | MetricsHead | UpdateHead
Head: TypeAlias = _Known | OtherHead

_KINDS = {kind.__struct_config__.tag for kind in get_args(_Known)}
_HEADS = msgspec.msgpack.Decoder(_Known)
_OTHERS = msgspec.msgpack.Decoder(OtherHead)
_SUMMARIES = msgspec.msgpack.Decoder(EpisodeSummary)


def read_head(encoded: bytes) -> Head:
    """The head of a frame.

    Raises:
        msgspec.DecodeError, ValueError, RecursionError: it is none, or one of a known kind with other fields.
    """
    try:
        return _HEADS.decode(encoded)
    except msgspec.ValidationError:
        other = _OTHERS.decode(encoded)
        if other.kind in _KINDS:
            raise
        return other


def summary_in(encoded: bytes) -> EpisodeSummary:
    """The summary in the head of an episode. Raises as `read_head`."""
    return _SUMMARIES.decode(encoded)
