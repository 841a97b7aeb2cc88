"""The promises of `gem_core.Env`, one function each.

A check plays the environment and yields a sentence for each problem: what happened, what was given, what to do.
`check_env` and `EnvConformance` use the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from gem_testing._play import Subject
from gem_testing.checks._contract import (
    closing,
    construction,
    info,
    keyword_arguments,
    order,
    random_action,
    reset,
    step,
    success,
)
from gem_testing.checks._expert import expert
from gem_testing.checks._form import form
from gem_testing.checks._repeatability import (
    global_random,
    own_state,
    pickling,
    saved_state,
    seeding,
    seeds_differ,
    spawning,
    threads,
)
from gem_testing.checks._robustness import adversarial, long
from gem_testing.checks._vectors import vector

__all__ = [
    "CHECKS",
    "FIRST",
    "OTHERS",
    "Check",
    "adversarial",
    "closing",
    "construction",
    "expert",
    "form",
    "global_random",
    "info",
    "keyword_arguments",
    "long",
    "order",
    "own_state",
    "pickling",
    "random_action",
    "reset",
    "saved_state",
    "seeding",
    "seeds_differ",
    "spawning",
    "step",
    "success",
    "threads",
    "vector",
]

Check: TypeAlias = Callable[[Subject], Iterator[str]]

FIRST: tuple[Check, ...] = (construction, keyword_arguments, reset, step)
"""The basis of all others. The first to build an environment is the one that watches it."""
OTHERS: tuple[Check, ...] = (
    order,
    info,
    success,
    random_action,
    expert,
    form,
    closing,
    seeding,
    seeds_differ,
    global_random,
    own_state,
    threads,
    pickling,
    saved_state,
    spawning,
    adversarial,
    long,
)
"""The rest, in order."""
CHECKS: tuple[Check, ...] = (*FIRST, *OTHERS)
"""All checks of every environment, in order. `vector` is for who asks for a backend."""
