"""Any string is an action: an invalid one may cost reward, but it never ends the run."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from typing import Any

from gem_core.env import Env
from gem_testing._adversarial import CANARY, adversarial_actions, long_actions
from gem_testing._play import SEEDS, Subject, go_midway, transition_problem
from gem_testing._watch import without_collection
from gem_testing.checks._contract import info_problems

LENGTHS = (16_384, 65_536, 262_144, 1_048_576)
"""Lengths of long actions, in characters. They grow, so that a quadratic parser is found before it takes minutes."""
STEP_SECONDS = 2.0
"""CPU time that one step may take in its thread, whatever the action. Other processes do not add to CPU time."""


def adversarial(subject: Subject) -> Iterator[str]:
    """No action raises, whatever it contains, and none is evaluated; the episode continues or ends as usual."""
    env = subject.make()
    moments = (False, True) if go_midway(env, SEEDS[0]) else (False,)  # one turn may end every episode
    for what, action in adversarial_actions(_example(env)).items():
        for midway in moments:
            env.reset(seed=SEEDS[0])
            if midway:
                go_midway(env, SEEDS[0])
            if problem := _answer_problem(env, action):
                yield f"step({action!r:.40}), an action made of {what}, {problem}"
                break


def long(subject: Subject) -> Iterator[str]:
    """An action of a million characters is answered in time."""
    env = subject.make()
    for what, build in long_actions(_example(env)).items():
        longest = math.inf  # seconds of the longest action, if they grow with the square of its length
        for length in LENGTHS:
            if longest > STEP_SECONDS or length == LENGTHS[-1]:
                seconds, problem = _timed(env, build(length))
                if problem:
                    yield f"step() of {length:,} characters made of {what} {problem}"
                    break
                longest = seconds * (LENGTHS[-1] / length) ** 2


def _example(env: Env) -> str:
    env.reset(seed=SEEDS[0])
    return env.sample_random_action()


def _answer_problem(env: Env, action: str) -> str | None:
    """What is wrong with the answer to an action, or with the turn after it."""
    sys.modules.pop(CANARY, None)
    try:
        result: Any = env.step(action)
    except Exception as error:
        return _raised(error)
    if CANARY in sys.modules:
        return "was run as Python, so a policy can run any code here. Parse actions, never eval() them"
    problem = transition_problem(result) or next(info_problems(result[4]), None)
    if problem or result[2] or result[3]:
        return problem
    try:
        problem = transition_problem(env.step(env.sample_random_action()))
    except Exception as error:
        problem = _raised(error)
    return problem and f"was survived, but the turn after it {problem}"


def _timed(env: Env, action: str) -> tuple[float, str | None]:
    """The CPU time of the answer to an action, and what is wrong with it."""
    env.reset(seed=SEEDS[0])
    with without_collection():
        start = time.thread_time()
        try:
            env.step(action)
        except Exception as error:
            return 0.0, _raised(error)
        took = time.thread_time() - start
    if took <= STEP_SECONDS:
        return took, None
    return took, (
        f"took {took:.1f} s of CPU time, and {STEP_SECONDS} s is the limit. "
        "Parse in one pass, or only the end of the action"
    )


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error!s:.160}. Any string is an action: let an invalid one cost reward"
