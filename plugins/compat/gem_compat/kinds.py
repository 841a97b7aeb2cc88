"""Which lenient class stands for which of this project's."""

from __future__ import annotations

import importlib

import gem_core.env
from gem_compat.lenient import Games, Lenient, lenient
from gem_compat.questions import Entries, Questions
from gem_questions import QuestionEnv

_BY_NAME = {
    "gem_math.env:MathEnv": "gem_compat.envs.math_env:MathEnv",
    "gem_qa.env:QaEnv": "gem_compat.envs.qa_env:QaEnv",
    "gem_code.env:CodeEnv": "gem_compat.envs.code_env:CodeEnv",
}
"""Those that upstream's programs import; a plugin's module is imported when it is needed."""


def lenient_kind(kind: type[gem_core.env.Env]) -> type[Lenient]:
    """The lenient class of one of this project's."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    if name in _BY_NAME:
        module, _, attribute = _BY_NAME[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    if issubclass(kind, QuestionEnv):
        return lenient(kind, Questions)
    if kind.__module__.startswith("gem_games.") and not kind.__module__.endswith(".wiki_game"):  # which asks a server
        return lenient(kind, Games)
    return lenient(kind, Entries if name == "gem_reasoning_gym.env:ReasoningGym" else Lenient)
