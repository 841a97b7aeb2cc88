"""Players to compare a model with: chance, an expert and a person."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Mapping
from typing import Any

from gem_core.env import Env, ResetResult, StepResult, Wrapper
from gem_core.errors import EnvError
from gem_evaluation._conversation import DRAWN_ACTION, Prompt, Reply
from gem_evaluation._models import LocalPlayer


class DrawnActions(Wrapper):
    """Plays a random valid action in each turn. The first action of an episode is the seed of their generator."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._generator: random.Random | None = None

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode."""
        self._generator = None
        return self.env.reset(seed=seed, **options)

    def step(self, action: str) -> StepResult:
        """Draw an action and play it."""
        if self._generator is None:
            self._generator = random.Random(action)
        drawn = self.env.draw_action(self._generator)
        observation, reward, terminated, truncated, info = self.env.step(drawn)
        return observation, reward, terminated, truncated, {**info, DRAWN_ACTION: drawn}


class RandomModel(LocalPlayer):
    """Random valid actions. Repeats of a task differ, and the same episode is played alike on every machine."""

    name = "random"
    most_at_once = 64
    identity: Mapping[str, Any] = {"kind": "random"}
    wrappers = (DrawnActions,)

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """The seed that `DrawnActions` draws with."""
        return Reply(episode)


class ExpertActions(Wrapper):
    """Plays the expert's action in each turn.

    Raises:
        EnvError: on a reset; the environment has no expert.
    """

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode."""
        result = self.env.reset(seed=seed, **options)
        self._expert()
        return result

    def step(self, action: str) -> StepResult:
        """Play the expert's action."""
        played = self._expert()
        observation, reward, terminated, truncated, info = self.env.step(played)
        return observation, reward, terminated, truncated, {**info, DRAWN_ACTION: played}

    def _expert(self) -> str:
        try:
            return self.env.expert_action()
        except NotImplementedError as error:
            raise EnvError(f"there is no expert here: {error}. Environments with one define expert_action()") from error


class ExpertModel(LocalPlayer):
    """The best known play of each environment, `Env.expert_action`."""

    name = "expert"
    most_at_once = 64
    identity: Mapping[str, Any] = {"kind": "expert"}
    wrappers = (ExpertActions,)

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """Anything; `ExpertActions` plays in its place."""
        return Reply(episode)


class HumanModel(LocalPlayer):
    """A person at the terminal, who plays one episode after another."""

    name = "human"
    most_at_once = 1
    identity: Mapping[str, Any] = {"kind": "human"}

    def __init__(self) -> None:
        self._episode = ""

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """What the person types. The end of the input ends the evaluation, like Ctrl-C."""
        from gem_core.cli import say

        if episode != self._episode:
            say(f"\n{episode}", bold=True)
        self._episode = episode
        say(prompt.messages[-1].content)
        try:
            return Reply(await _typed())
        except EOFError:
            raise KeyboardInterrupt from None


async def _typed() -> str:
    """The next line. A terminal is waited for in a way that Ctrl-C ends, which it does not for `input` in a thread."""
    print("> ", end="", flush=True)
    if sys.stdin.isatty():
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(sys.stdin)
    return input()
