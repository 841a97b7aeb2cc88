"""`gem-core play`: an environment in the terminal, played by a person or at random."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from gem_core.cli import first_line, plugins_at_work, say
from gem_core.env import Env, Info, shown_text
from gem_core.errors import EnvFailure, FailureKind, GemError, raised_at
from gem_core.image import images_of
from gem_core.plugins import manager
from gem_core.registry import build, spec

ActionSource: TypeAlias = Callable[[Env, str], str | None]
"""Chooses an action for an environment, given a prompt; `None` ends the game."""


@dataclass
class PlayedEpisode:
    """The result of an episode."""

    turns: int = 0
    total: float = 0.0
    success: bool | None = None
    """`None` if the environment did not report it."""
    ending: str | None = None
    """`terminated`, `truncated` or both; `None` for an episode that has not ended."""

    def __str__(self) -> str:
        success = {True: "yes", False: "no", None: "unknown"}[self.success]
        turns = "1 turn" if self.turns == 1 else f"{self.turns} turns"
        return f"{self.ending or 'not finished'} after {turns}, return {self.total:g}, success {success}"


def play_episodes(
    env_id: str,
    kwargs: Mapping[str, Any],
    choose: ActionSource,
    seed: int | None,
    episodes: int,
    *,
    data_index: int | None = None,
) -> list[PlayedEpisode]:
    """Play episodes and print them; end early if `choose` returns `None`.

    Args:
        env_id: the environment.
        kwargs: override its keyword arguments.
        choose: `ask` or `draw`.
        seed: seed of the first episode; later episodes continue its generator.
        episodes: how many to play.
        data_index: row of the data for the first episode, in environments that take one.

    Raises:
        GemError: the environment is unknown, cannot be built, or failed.
    """
    outcomes: list[PlayedEpisode] = []
    with plugins_at_work(manager):
        env_spec = spec(env_id)
    with _failures_named(env_id), build(env_spec, kwargs) as env:
        for number in range(1, episodes + 1):
            outcome = _play_episode(env, choose, *((seed, data_index) if number == 1 else (None, None)))
            outcomes.append(outcome)
            say(f"Episode {number}: {outcome}", bold=True)
            if outcome.ending is None:
                break
            say()
    if len(outcomes) > 1:
        _print_totals(outcomes)
    return outcomes


def ask(env: Env, prompt: str) -> str | None:
    """Read the action from a person; the end of the input ends the game."""
    _edit_lines()
    try:
        action = input(prompt)
    except EOFError:
        say("\nEnd of input.")
        return None
    if not sys.stdin.isatty():
        say(action)  # a terminal echoes input; a transcript must show it, too
    return action


def _edit_lines() -> None:
    # Line editing, with earlier actions on the arrow keys; some platforms lack the module.
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]


def draw(env: Env, prompt: str) -> str | None:
    """Take a random valid action of the environment."""
    action = env.sample_random_action()
    say(f"{prompt}{action}")
    return action


def _play_episode(env: Env, choose: ActionSource, seed: int | None, data_index: int | None) -> PlayedEpisode:
    outcome = PlayedEpisode()
    observation, info = env.reset(seed=seed, **({} if data_index is None else {"data_index": data_index}))
    _show(env, observation, info)
    while outcome.ending is None:
        action = choose(env, f"turn {outcome.turns + 1}> ")
        if action is None:
            break
        observation, reward, terminated, truncated, info = env.step(action)
        outcome.turns += 1
        reward = float(reward)
        outcome.total += reward
        outcome.ending = " and ".join(["terminated"] * bool(terminated) + ["truncated"] * bool(truncated)) or None
        _show(env, observation, info)
        say(f"reward {reward:g}{' (invalid action)' if info.get('invalid_action') else ''}", fg="cyan")
    if outcome.ending and "success" in info:
        outcome.success = bool(info["success"])
    return outcome


def _show(env: Env, observation: str, info: Info) -> None:
    text = shown_text(observation, info)
    say(text, newline=not text.endswith("\n"))
    for width, height in (image.size for image in images_of(info)):
        say(f"[image of {width} x {height} pixels]", dim=True)
    drawing = [line for line in (env.render() or "").splitlines() if line.strip() and line not in text]
    if drawing:  # lines that the text does not show already
        say("\n".join(drawing), dim=True)


def _print_totals(outcomes: Sequence[PlayedEpisode]) -> None:
    finished = [outcome for outcome in outcomes if outcome.ending]
    if finished:
        mean = sum(outcome.total for outcome in finished) / len(finished)
        solved = sum(outcome.success is True for outcome in finished)
        say(f"Finished episodes: {len(finished)}, mean return {mean:g}, success {solved} of {len(finished)}", bold=True)


@contextlib.contextmanager
def _failures_named(env_id: str) -> Generator[None]:
    # One line is enough for a player; the author of the environment needs the location.
    try:
        yield
    except (GemError, KeyboardInterrupt, BrokenPipeError):  # BrokenPipeError: the reader of our output has closed it
        raise
    except BaseException as error:
        place = raised_at(error)
        where = f" ({place})" if place else ""
        cause = f"{type(error).__name__}: {first_line(error)}{where}"
        raise EnvFailure(env_id, None, FailureKind.RAISED, cause) from error
