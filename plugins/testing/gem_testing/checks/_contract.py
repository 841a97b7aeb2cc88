"""The arguments, results and side effects of an environment's methods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gem_core.env import RESERVED, Env
from gem_core.errors import EnvKwargsError, GemError, ResetNeededError
from gem_core.registry import spec
from gem_testing._play import (
    MAX_TURNS,
    SEEDS,
    Subject,
    as_json,
    go_midway,
    observation_problem,
    random_actions,
    transition_problem,
)
from gem_testing._watch import watched

_INFO_TYPES = {
    "success": bool,
    "invalid_action": bool,
    "use_tool": bool,
    "prefix": str,
    "suffix": str,
    "parsed_action": str,
}


def construction(subject: Subject) -> Iterator[str]:
    """The constructor does no network access and starts no process or thread."""
    with suppress(GemError):
        spec(subject.env_id).resolve()  # the import of modules is not the constructor's doing
    env: Env | None = None
    with watched() as deeds:
        try:
            env = subject.make()
        except Exception:
            if not deeds:
                raise
    for deed in dict.fromkeys(deeds):
        yield f"the constructor {deed}. Do that in reset(), when it is first needed"
    if env is not None:
        env.close()


def keyword_arguments(subject: Subject) -> Iterator[str]:
    """An argument that the constructor does not name is an error."""
    with suppress(EnvKwargsError):
        subject.make(no_such_argument=1).close()
        yield (
            f"make({subject.env_id!r}, no_such_argument=1) was accepted, so a misspelt argument would be lost without "
            "a word. Name every argument of the constructor and take no **kwargs"
        )


def reset(subject: Subject) -> Iterator[str]:
    """`reset` gives a text and a dict, with a seed and without."""
    env = subject.make()
    for seed in (None, *SEEDS, None):
        result: Any = env.reset(seed=seed)
        if not isinstance(result, tuple) or len(result) != 2:  # pyright: ignore[reportUnknownArgumentType]
            yield f"reset(seed={seed}) gave {result!r:.80}. Give the tuple (observation, info)"
            return
        observation, info = result  # pyright: ignore[reportUnknownVariableType]
        if problem := observation_problem(observation):
            yield f"reset(seed={seed}) {problem}"
        if not isinstance(info, dict):
            yield f"reset(seed={seed}) gave the info {info!r:.80}. Give a dict"


def step(subject: Subject) -> Iterator[str]:
    """`step` gives a text, a finite number, two flags and a dict."""
    env = subject.make()
    for seed in range(subject.seeds):
        env.reset(seed=seed)
        for action in random_actions(env):
            result: Any = env.step(action)
            if problem := transition_problem(result):
                yield f"step({action!r:.60}) {problem} (seed {seed})"
                return
            if result[2] or result[3]:
                break


def order(subject: Subject) -> Iterator[str]:
    """A step without an episode is refused, and so is an option that `reset` does not have."""
    env = subject.make()
    for when in ("before reset()", "after the end of an episode"):
        try:
            env.step("")
            yield f"step() {when} was answered. Define step() as a method of the class, so that Env can refuse it"
        except ResetNeededError:
            pass
        except Exception as error:
            yield f"step() {when} raised {type(error).__name__}: {error}. Define step() as a method of the class"
        env.reset(seed=SEEDS[0])
        for action in random_actions(env):
            result = env.step(action)
            if result[2] or result[3]:
                break
        else:
            break
    with suppress(EnvKwargsError):
        subject.make().reset(seed=SEEDS[0], no_such_option=1)
        yield (
            "reset(no_such_option=1) was accepted, so a misspelled option would be lost without a word. Define reset() "
            "as a method of the class, so that Env can refuse what it does not name"
        )


def info(subject: Subject) -> Iterator[str]:
    """Infos are JSON and never change later, and the keys that the engine reads have their types."""
    env = subject.make()
    problems: dict[str, None] = {}
    for seed in range(subject.seeds):
        infos = [env.reset(seed=seed)[1]]
        given = [as_json(infos[0])]
        for action in random_actions(env):
            *_, terminated, truncated, info = env.step(action)
            infos.append(info)
            given.append(as_json(info))
            if terminated or truncated:
                break
        problems.update(dict.fromkeys(problem for info in infos for problem in info_problems(info)))
        if given != [as_json(info) for info in infos]:
            problems["an info changed in a later turn, so records would too. Give a new dict, and copies of lists"] = (
                None
            )
    yield from problems


def info_problems(info: dict[str, Any]) -> Iterator[str]:
    """What is wrong with one info, as sentences."""
    try:
        json.dumps(info, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"gave an info that is not JSON ({error}), so no record can keep it. Use plain values"
    for key in sorted(RESERVED & info.keys()):
        yield f"gave an info with the key {key!r}, which only the engine sets. Give it another name"
    for key, kind in _INFO_TYPES.items():
        if key in info and not isinstance(info[key], kind):
            yield f"gave info[{key!r}] = {info[key]!r:.60}. Give a {kind.__name__}, or leave the key out"


def success(subject: Subject) -> Iterator[str]:
    """The last info of an episode says whether the task was solved."""
    env = subject.make()
    for seed in range(subject.seeds):
        env.reset(seed=seed)
        for action in random_actions(env):
            *_, terminated, truncated, info = env.step(action)
            if not terminated and not truncated:
                continue
            if not isinstance(info.get("success"), bool):
                yield (
                    f"the episode of seed {seed} ended with info {info!r:.80}, which does not say if the task was "
                    'solved. Set info["success"] to a bool whenever terminated or truncated'
                )
                return
            break


def random_action(subject: Subject) -> Iterator[str]:
    """`sample_random_action` gives valid actions in every state, the same ones under one seed."""
    env, twin = subject.make(), subject.make()
    for seed in range(subject.seeds):
        env.reset(seed=seed)
        twin.reset(seed=seed)
        for turn in range(1, MAX_TURNS + 1):
            action, again = env.sample_random_action(), twin.sample_random_action()
            where = f"in turn {turn} of seed {seed}"
            if not isinstance(action, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                yield f"sample_random_action() gave {action!r:.80} {where}. Give a string"
                return
            if action != again:
                yield f"sample_random_action() gave {action!r:.60} and {again!r:.60} {where}. Draw from self.rng"
                return
            _, _, terminated, truncated, info = env.step(action)
            twin.step(action)
            if info.get("invalid_action"):
                yield (
                    f"sample_random_action() gave {action!r:.60} {where}, which step() called invalid. "
                    "Draw only from what the present state allows"
                )
                return
            if terminated or truncated:
                break


def closing(subject: Subject) -> Iterator[str]:
    """`close` is safe before the first reset, in the middle of an episode, and twice."""
    for moment in ("before the first reset", "in the middle of an episode"):
        env = subject.make()
        if moment == "in the middle of an episode":
            go_midway(env, SEEDS[0])
        for which in ("first", "second"):
            try:
                env.close()
            except Exception as error:
                yield (
                    f"the {which} close() {moment} raised {type(error).__name__}: {error}. "
                    "Close what is open and forget it, so that closing again does nothing"
                )
                break
