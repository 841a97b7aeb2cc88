"""What this package registers: splits to evaluate on, in the order of the data.

Ids, data sets and columns are those of gem-llm 0.1.0, so that published results can be compared. With a file of
one's own as `dataset`, `split=None` belongs to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

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
    """Upstream's 14 splits."""
    for name, split in _MATH.items():
        yield _spec(name, "math", "gem_math.env:MathEnv", {"dataset": "axon-rl/math-eval", "split": split}, "math")
    code = {"dataset": "axon-rl/CodeContest", "split": "test"}
    yield _spec("CodeContest", "code", "gem_code.env:CodeEnv", code, "data")
    open_questions = {"dataset": "google-research-datasets/nq_open", "split": "validation"}
    yield _spec("QaOpen", "qa", "gem_qa.env:QaEnv", open_questions, "data")
    for name, split in _SEARCH.items():
        yield _spec(name, "qa", "gem_qa.env:QaEnv", {"dataset": "axon-rl/search-eval", "split": split}, "data")


def _spec(name: str, category: str, entry_point: str, kwargs: Mapping[str, Any], extra: str) -> EnvSpec:
    tags = ("eval", category, "single-turn", kwargs["dataset"])
    return EnvSpec(f"eval:{name}", entry_point, {**kwargs, "shuffle_seed": None}, tags, extra)
