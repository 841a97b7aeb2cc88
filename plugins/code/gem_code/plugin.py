"""What this package registers: ids and data sets, as data.

Ids, data sets and columns are those of gem-llm 0.1.0, so that published recipes carry over. With `-v0` the verdicts are
the published ones, too, and nothing says the form of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("code", "single-turn")
_CLASS = "gem_code.env:CodeEnv"
_TRUSTING = ("dataset", "grader", "backend", "allow_unsafe", "sandbox", "memory")

_HUB = {
    "CodeContest": "axon-rl/CodeContest",
    "Taco8k": "axon-rl/TACO-8k",
    "PrimeIntellect15k": "axon-rl/PrimeIntellect-15k",
}


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Upstream's data sets, a bundled sample, and any data set of the user's."""
    yield EnvSpec("code:Dataset", _CLASS, tags=(*_TAGS, "any-dataset"), extra="data", trusting=_TRUSTING)
    yield EnvSpec(
        "code:Sample", _CLASS, {"dataset": "package:gem_code/sample.jsonl"}, (*_TAGS, "bundled"), trusting=_TRUSTING
    )
    for name, dataset in _HUB.items():
        kwargs = {"dataset": dataset, "split": "train"}
        yield EnvSpec(f"code:{name}", _CLASS, kwargs, (*_TAGS, dataset), "data", trusting=_TRUSTING)
        bare = {**kwargs, "published": True, "instruction": False}
        yield EnvSpec(f"code:{name}-v0", _CLASS, bare, (*_TAGS, dataset, "bare"), "data", trusting=_TRUSTING)
