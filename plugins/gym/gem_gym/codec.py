"""Between a Gymnasium environment and text: the base of all codecs, which describes the spaces in words."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from gem_core.errors import EnvError
from gem_gym import _spaces as spaces

MAX_ACTION = 32_768
"""Characters of an action in its box; a longer one is invalid."""


class Codec:
    """Shows observations as text, and reads actions from text.

    The base works with any environment of small spaces: an action is JSON, or one of `actions` by name. A subclass
    overrides what it says better. A codec keeps nothing of an episode but what `self.env` has.

    Args:
        env: the environment, from `gymnasium.make`.

    Raises:
        EnvError: a space has no text, and the class does not read or show it itself; or `actions` are not the names of
            the environment's actions.

    Example:
        >>> from gem_gym.codec import Codec
        >>> class CartPole(Codec):
        ...     actions = ("left", "right")
        ...     def task(self):
        ...         return "Balance the pole: push the cart to the left or to the right."
        ...     def observe(self, observation, info):
        ...         position, speed, angle, turning = observation
        ...         return f"The cart is at {position:.2f}, and the pole leans by {angle:.2f} rad."
    """

    actions: Sequence[str] = ()
    """Names of the actions of a Discrete space, in order; empty if actions have none. Capitals do not matter."""
    invalid_reward: float = -0.1
    """Reward of an invalid action, which ends the episode. It should be no more than what an episode of doing nothing
    earns: otherwise a policy learns to end episodes this way."""
    max_episode_steps: ClassVar[int | None] = None
    """Turns of an episode, for an environment that is registered without a limit."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self._space = copy.deepcopy(env.action_space)  # drawing from it seeds it
        name = env.spec.id if env.spec else type(env.unwrapped).__name__
        if type(self).parse is Codec.parse:
            spaces.check(env.action_space, f"{name}: its actions")
        if self.actions and not spaces.has_names(env.action_space, self.actions):
            raise EnvError(
                f"{name}: {type(self).__name__}.actions has {len(self.actions)} names, and the actions are "
                f"{env.action_space}. Give one name for each action of a Discrete space, or none"
            )
        if type(self).observe is Codec.observe:
            spaces.check(env.observation_space, f"{name}: its observations")

    # -- what the policy reads --------------------------------------------------------------------------------------

    def task(self) -> str:
        """What is to be done, at the start of the first observation."""
        name = self.env.spec.id if self.env.spec else type(self.env.unwrapped).__name__
        return f"Play {name} and earn as much reward as you can. An observation is {self._observation_in_words()}."

    def rules(self) -> str:
        """The whole text before the first state: the task, the limit, and the form of an action."""
        limit = self.env.spec.max_episode_steps if self.env.spec else None
        turns = f" You have {limit} turns." if limit else ""
        return f"{self.task()}{turns} {self.form()}"

    def form(self) -> str:
        """The form of an action, with an example."""
        example = self.show(self.sample(random.Random(0)))
        what = f"one of {', '.join(self.actions)}" if self.actions else spaces.in_words(self.env.action_space)
        return f"An action is {what}. Put it in a box, for example \\boxed{{{example}}}."

    def observe(self, observation: Any, info: dict[str, Any]) -> str:
        """An observation as text, which stays in the history.

        Args:
            observation: in the environment's observation space.
            info: from the environment.
        """
        return spaces.shown(self.env.observation_space, observation)

    def board(self) -> str | None:
        """The present state as text, shown after the history and never kept in it; `None` if `observe` says all."""
        return None

    def _observation_in_words(self) -> str:
        if type(self).observe is not Codec.observe:
            return "a text"
        return spaces.in_words(self.env.observation_space)

    # -- what the policy writes -------------------------------------------------------------------------------------

    def parse(self, text: str) -> Any:
        """The action that the box contains.

        Raises:
            ValueError: it is none.
        """
        if len(text) > MAX_ACTION:
            raise ValueError("an action that long is invalid")
        if self.actions:
            return self._first() + [name.lower() for name in self.actions].index(text.strip().lower())
        try:
            value = json.loads(text, parse_constant=_refuse)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        return spaces.from_plain(self.env.action_space, value)

    def show(self, action: Any) -> str:
        """An action as `parse` reads it."""
        if self.actions:
            return self.actions[int(action) - self._first()]
        return _STRING.sub(_without_braces, json.dumps(spaces.to_plain(self.env.action_space, action)))

    def sample(self, rng: random.Random) -> Any:
        """A random action, drawn from this generator."""
        self._space.seed(rng.getrandbits(31))
        return self._space.sample()

    def _first(self) -> int:
        return int(self.env.action_space.start)

    # -- what counts --------------------------------------------------------------------------------------------------

    def succeeded(self, total: float, terminated: bool, info: dict[str, Any]) -> bool:
        """Was the task solved? Asked when an episode ends.

        The default is `info["is_success"]` if the environment says it; otherwise whether the return reached the
        registered `reward_threshold`, or is positive where none is registered.

        Args:
            total: the sum of the rewards.
            terminated: whether the environment ended the episode, not a limit.
            info: the last one from the environment.
        """
        if "is_success" in info:
            return bool(info["is_success"])
        threshold = self.env.spec.reward_threshold if self.env.spec else None
        return total > 0 if threshold is None else total >= threshold


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def _without_braces(string: re.Match[str]) -> str:
    """A string of JSON that has no braces, which would end the box too early."""
    return string[0].replace("{", "\\u007b").replace("}", "\\u007d")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")
