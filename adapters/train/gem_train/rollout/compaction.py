"""Compaction: a summary takes the room of what was said before it, so that an episode may outlast the context."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from gem_core.episode import Turn

BY_POLICY = "policy"
"""The policy writes the summaries."""

REQUEST = (
    "The conversation is too long to continue. Write a summary that replaces it: what the task is, what you have done "
    "and found out, your last action, and what to do next. You will see only the first message, your summary, and what "
    "follows your last action. Write the summary alone, without an action."
)
"""What the policy is asked where the context is nearly full."""

Rule: TypeAlias = Callable[[Sequence[Turn]], str]
"""Writes the summary of an episode from its turns so far."""


def load_rule(path: str) -> Rule:
    """The rule at `package.module:function`.

    Raises:
        ValueError: there is no such function.
    """
    module, colon, name = path.partition(":")
    try:
        if not (colon and module and name) or module.startswith("."):
            raise ImportError("it is not 'package.module:function'")
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"compaction must be None, {BY_POLICY!r} or the 'package.module:function' of a rule, not {path!r}: {error}"
        ) from error
    if not callable(found):
        raise ValueError(f"compaction: {path!r} is not a function that takes the turns of an episode")
    return cast("Rule", found)
