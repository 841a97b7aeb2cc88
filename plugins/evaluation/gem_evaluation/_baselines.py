"""Players to compare a model with: chance, an expert and a person."""

from __future__ import annotations

import asyncio
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from gem_core.env import Env, ResetResult, StepResult, Wrapper
from gem_core.errors import EnvError
from gem_evaluation._conversation import DRAWN_ACTION, Prompt, Reply
from gem_evaluation._models import LocalPlayer


class ChosenActions(Wrapper, ABC):
    """Plays an action of its own in place of the given one, and reports it in the info."""

    @abstractmethod
    def choose(self, given: str) -> str:
        """The action to play."""

    def step(self, action: str) -> StepResult:
        """Choose an action and play it."""
        chosen = self.choose(action)
        observation, reward, terminated, truncated, info = self.env.step(chosen)
        return observation, reward, terminated, truncated, {**info, DRAWN_ACTION: chosen}


class RandomActions(ChosenActions):
    """Plays a random valid action in each turn. The first action of an episode is the seed of their generator."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._generator: random.Random | None = None

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode."""
        self._generator = None
        return self.env.reset(seed=seed, **options)

    def choose(self, given: str) -> str:
        """Draw it."""
        if self._generator is None:
            self._generator = random.Random(given)
        return self.env.draw_action(self._generator)


class ExpertActions(ChosenActions):
    """Plays the best known action in each turn."""

    def choose(self, given: str) -> str:
        """Ask the expert. Raises `EnvError` if the environment has none."""
        try:
            return self.env.expert_action()
        except NotImplementedError as error:
            raise EnvError(f"there is no expert here: {error}. Environments with one define expert_action()") from error


class BuiltInPlayer(LocalPlayer):
    """A player that acts inside of the environment. The same episode is played alike on every machine."""

    most_at_once = 64

    def __init__(self, name: str, actions: type[ChosenActions]) -> None:
        self.name = name
        self.identity: Mapping[str, Any] = {"kind": name}
        self.wrappers = (actions,)

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """The name of the episode, from which random actions get a seed. Repeats of a task differ in it."""
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
