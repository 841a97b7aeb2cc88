"""What this package registers for conclusions from rules: ids and data sets, as data.

Ids, data sets and columns are those of gem-llm 0.1.0, so that published recipes carry over. With `-v0` the verdicts are
the published ones, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("logic", "single-turn")
_TRUSTING = ("dataset", "grader")
_INSTRUCTION = "Reason step by step. Then put your answer, and nothing else, in a box, for example \\boxed{True}."


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """RuleTaker, by the number of steps that a conclusion takes."""
    for depth in (0, 1, 2, 3, 5):
        dataset = f"axon-rl/RuleTaker-d{depth}-70k"
        kwargs = {"dataset": dataset, "split": "train", "boxed": True, "instruction": _INSTRUCTION}
        name, tags = f"logic:RuleTaker-d{depth}", (*_TAGS, dataset)
        yield EnvSpec(name, "gem_qa.env:QaEnv", kwargs, tags, "data", trusting=_TRUSTING)
        yield EnvSpec(f"{name}-v0", "gem_qa.env:QaEnv", {**kwargs, "published": True}, tags, "data", trusting=_TRUSTING)
