"""What this package registers for questions from an encyclopedia: ids and data sets, as data.

Ids, data sets and columns are those of gem-llm 0.1.0, so that published recipes carry over. With `-v0` the verdicts are
the published ones, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"
_TRUSTING = ("dataset", "grader")

_TAGS = ("qa", "single-turn")
_CLASS = "gem_qa.env:QaEnv"


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Upstream's data sets, a bundled sample, and any data set of the user's."""
    yield EnvSpec("qa:Dataset", _CLASS, tags=(*_TAGS, "any-dataset"), extra="data", trusting=_TRUSTING)
    yield EnvSpec(
        "qa:Sample", _CLASS, {"dataset": "package:gem_qa/sample.jsonl"}, (*_TAGS, "bundled"), trusting=_TRUSTING
    )
    for name in ("NaturalQuestions", "HotpotQA"):
        dataset = f"axon-rl/{name}"
        kwargs = {"dataset": dataset, "split": "train", "question": "problem"}
        tags = (*_TAGS, dataset)
        yield EnvSpec(f"qa:{name}", _CLASS, kwargs, tags, "data", trusting=_TRUSTING)
        yield EnvSpec(f"qa:{name}-v0", _CLASS, {**kwargs, "published": True}, tags, "data", trusting=_TRUSTING)
