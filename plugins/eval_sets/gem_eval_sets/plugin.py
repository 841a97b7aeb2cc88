"""What this package registers: splits to evaluate on, in the order of the data.

Ids, data sets and columns are those of gem-llm 0.1.0, so that published results can be compared. With a file of
one's own as `dataset`, `split=None` belongs to it. The ids without a version repeat published numbers, so their
verdicts are the published ones; those of `-v1` are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"
_TRUSTING = ("dataset", "grader", "backend", "allow_unsafe", "sandbox", "memory")

_MATH = {
    "MATH500": "math",
    "AMC": "amc",
    "OlympiadBench": "olympiad_bench",
    "Minerva": "minerva",
    "AIME24": "aime24",
}
_SEARCH = {
    "2Wiki": "2wiki",
    "PopQA": "popqa",
    "TriviaQA": "tq",
    "HotpotQA": "hotpotqa",
    "Bamboogle": "bamboogle",
    "NaturalQuestions": "nq",
    "Musique": "musique",
}


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Upstream's 14 splits, each with two versions of its verdicts."""
    for name, split in _MATH.items():
        yield from _versions(name, "math", "gem_math.env:MathEnv", {"dataset": "axon-rl/math-eval", "split": split})
    code = {"dataset": "axon-rl/CodeContest", "split": "test"}
    yield from _versions("CodeContest", "code", "gem_code.env:CodeEnv", code)
    open_questions = {"dataset": "google-research-datasets/nq_open", "split": "validation"}
    yield from _versions("QaOpen", "qa", "gem_qa.env:QaEnv", open_questions)
    for name, split in _SEARCH.items():
        yield from _versions(name, "qa", "gem_qa.env:QaEnv", {"dataset": "axon-rl/search-eval", "split": split})


def _versions(name: str, category: str, entry_point: str, kwargs: Mapping[str, Any]) -> Iterable[EnvSpec]:
    extra = "math" if category == "math" else "data"
    yield _spec(name, category, entry_point, {**kwargs, "published": True}, extra)
    yield _spec(f"{name}-v1", category, entry_point, kwargs, extra)


def _spec(name: str, category: str, entry_point: str, kwargs: Mapping[str, Any], extra: str) -> EnvSpec:
    tags = ("eval", category, "single-turn", kwargs["dataset"])
    return EnvSpec(f"eval:{name}", entry_point, {**kwargs, "shuffle_seed": None}, tags, extra, trusting=_TRUSTING)
