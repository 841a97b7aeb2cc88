"""What this package registers: ids and data sets, as data.

Ids, data sets and columns are those of gem-llm 0.1.0, so that published recipes carry over. With `-v0` the verdicts are
the published ones, too, and nothing says the form of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"
_TRUSTING = ("dataset", "grader")

_TAGS = ("math", "single-turn")
_CLASS = "gem_math.env:MathEnv"

_HUB = {
    "ASDiv2K": "axon-rl/ASDIV-2k",
    "GSM8K": "axon-rl/GSM-8k",
    "Math12K": "axon-rl/MATH-12k",
    "Math8K-3to5": "axon-rl/MATH-lvl3to5-8k",
    "Orz57K": "axon-rl/ORZ-57k",
    "DeepScaleR40K": "axon-rl/DeepScaleR-40K",
}


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Upstream's data sets, a bundled sample, and any data set of the user's."""
    yield EnvSpec("math:Dataset", _CLASS, tags=(*_TAGS, "any-dataset"), extra="math", trusting=_TRUSTING)
    yield EnvSpec(
        "math:Sample",
        _CLASS,
        {"dataset": "package:gem_math/sample.jsonl"},
        (*_TAGS, "bundled"),
        "math",
        trusting=_TRUSTING,
    )
    for name, dataset in _HUB.items():
        yield from _versions(f"math:{name}", _CLASS, {"dataset": dataset}, (*_TAGS, dataset))
    geometry = {"dataset": "axon-rl/geometry3k", "split": "train"}
    tags = (*_TAGS, "images", "axon-rl/geometry3k")
    yield from _versions("math:Geometry3K", "gem_math.geometry:GeometryEnv", geometry, tags)


def _versions(name: str, entry_point: str, kwargs: Mapping[str, Any], tags: tuple[str, ...]) -> Iterable[EnvSpec]:
    """Our verdict under the plain id; the bare question and the published verdict under `-v0`."""
    yield EnvSpec(name, entry_point, kwargs, tags, "math", trusting=_TRUSTING)
    bare = {**kwargs, "published": True, "instruction": False}
    yield EnvSpec(f"{name}-v0", entry_point, bare, (*tags, "bare"), "math", trusting=_TRUSTING)
