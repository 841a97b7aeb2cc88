"""An environment of Gymnasium, played in text."""

from __future__ import annotations

import copy
import importlib
import inspect
import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, EnvKwargsError, MissingExtraError, described, near_matches
from gem_core.responses import last_box
from gem_core.specs import Spec
from gem_gym._finding import registered
from gem_gym.codec import Codec

gymnasium: Any = importlib.import_module("gymnasium")  # untyped, and missing where types are checked
registration: Any = importlib.import_module("gymnasium.envs.registration")

_CODECS = {
    "gymnasium.envs.toy_text.frozen_lake:": "gem_gym.toy_text:FrozenLake",
    "gymnasium.envs.toy_text.taxi:": "gem_gym.toy_text:Taxi",
    "gymnasium.envs.toy_text.blackjack:": "gem_gym.toy_text:Blackjack",
    "gymnasium.envs.toy_text.cliffwalking:": "gem_gym.toy_text:CliffWalking",
    "minigrid.envs": "gem_gym.minigrid:MiniGrid",
}
"""Our codecs, by what the registered entry point of an environment begins with."""
_SEEDS = 2**31
"""Some environments keep a seed in 32 bits with a sign."""
_MAX_ITEMS = 1024
"""Items of an array or list of an info; a longer one is left out."""


class Gymnasium(Env):
    """Plays an environment of Gymnasium through a text codec; the last `\\boxed{...}` of a response is the action.

    | action | reward | episode |
    | --- | --- | --- |
    | no box, or not an action of the environment | `invalid_reward` | terminated, `info["invalid_action"]` |
    | any other | the environment's | terminated and truncated as the environment says |

    The environment's own info is `info["gymnasium"]`, as far as it is JSON. `info["success"]` is the codec's word.
    Any argument that is not named below goes to the environment: `make("gym:FrozenLake-v1", is_slippery=False)`.

    Args:
        gymnasium_id: as for `gymnasium.make`.
        codec: a subclass of `gem_gym.codec.Codec`, or `"module:Class"`; by default ours for the toy-text family and
            MiniGrid, and for other environments the one that describes the spaces.
        invalid_reward: reward of an invalid action; the codec's by default.
        max_episode_steps: turns of an episode; by default as registered, or else the codec's.
        arguments: of the environment.

    Raises:
        EnvKwargsError: the environment has no such argument.
        EnvError: the environment cannot be built, a space has no text, or a number is out of range.
        MissingExtraError: a package that the environment needs is not installed.
        PluginError: there is no such codec.
    """

    def __init__(
        self,
        gymnasium_id: str,
        *,
        codec: str | type[Codec] | None = None,
        invalid_reward: float | None = None,
        max_episode_steps: int | None = None,
        **arguments: Any,
    ) -> None:
        _check_numbers(gymnasium_id, invalid_reward, max_episode_steps)
        spec = registered(gymnasium_id)
        kind = _codec_class(gymnasium_id, codec or _usual_codec(spec))
        if max_episode_steps is None and spec.max_episode_steps is None:
            max_episode_steps = kind.max_episode_steps
        limit = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
        with _needed(gymnasium_id):
            _check_arguments(gymnasium_id, spec, arguments)
            self._env = _made(gymnasium_id, spec, {**arguments, **limit})
        self._codec = kind(self._env)
        self._invalid_reward = self._codec.invalid_reward if invalid_reward is None else invalid_reward
        self._total = 0.0
        self._shown = ""

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode, with the codec's rules."""
        super().reset(seed=seed, **options)
        observation, info = self._env.reset(seed=self.rng.randrange(_SEEDS) if seed is None else seed % _SEEDS)
        self._total = 0.0
        text = self._codec.observe(observation, info)
        return f"{self._codec.rules()}\n{text}", self._info(text, info)

    def step(self, action: str) -> StepResult:
        """Take the action."""
        try:
            chosen = self._codec.parse(_boxed(action))
        except ValueError:
            return self._invalid()
        observation, reward, terminated, truncated, info = self._env.step(chosen)
        self._total += float(reward)
        text = self._codec.observe(observation, info)
        shown = self._info(text, info)
        if terminated or truncated:
            shown["success"] = bool(self._codec.succeeded(self._total, bool(terminated), info))
        return text, float(reward), bool(terminated), bool(truncated), shown

    def sample_random_action(self) -> str:
        """A random action of the environment's space."""
        return f"\\boxed{{{self._codec.show(self._codec.sample(self.rng))}}}"

    def get_state(self) -> Any:
        """A deep copy.

        Raises:
            NotImplementedError: the environment cannot be copied, for example because of a simulator.
        """
        try:
            return copy.deepcopy(vars(self))
        except Exception as error:
            raise NotImplementedError(f"{self!r} cannot be copied: {described(error)}") from error

    def render(self) -> str:
        """The last observation with the board."""
        return self._shown

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _info(self, text: str, given: dict[str, Any]) -> Info:
        info: Info = {}
        board = self._codec.board()
        if board is not None:
            info["suffix"] = board
        self._shown = text if board is None else f"{text}\n{board}"
        if own := _as_json(given):
            info["gymnasium"] = own
        return info

    def _invalid(self) -> StepResult:
        info: Info = {"success": False, "invalid_action": True}
        return f"There is no valid action. {self._codec.form()}", self._invalid_reward, True, False, info


def _boxed(text: str) -> str:
    content = last_box(text)
    if content is None:
        raise ValueError("no box")
    return content


def _usual_codec(spec: Any) -> str | type[Codec]:
    for beginning, codec in _CODECS.items():
        if str(spec.entry_point).startswith(beginning):
            return codec
    return Codec


def _codec_class(name: str, codec: str | type[Codec]) -> type[Codec]:
    kind = Spec(f"the codec of gym:{name}", codec).resolve()
    if not inspect.isclass(kind) or not issubclass(kind, Codec):
        raise EnvError(f"gym:{name}: the codec {codec!r} is not a subclass of gem_gym.codec.Codec")
    return kind


def _check_arguments(name: str, spec: Any, arguments: dict[str, Any]) -> None:
    """Check the names of the arguments, as far as the environment lists them."""
    entry_point = spec.entry_point
    creator = registration.load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    parameters = inspect.signature(creator).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return
    known = [*_OWN, *parameters]
    for argument, value in arguments.items():
        if argument not in parameters:
            raise EnvKwargsError(
                f"gym:{name} has no argument {argument!r} (given {value!r:.200}).{near_matches(argument, known)} "
                f"It takes: {', '.join(known)}"
            )


_OWN = ("codec", "invalid_reward", "max_episode_steps")


def _made(name: str, spec: Any, arguments: dict[str, Any]) -> Any:
    try:
        # Its checker would compare every observation with the space.
        return gymnasium.make(spec, disable_env_checker=True, **arguments)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise EnvKwargsError(f"gym:{name} was given an argument that it does not have: {error}") from error


@contextmanager
def _needed(name: str) -> Generator[None]:
    """What the environment imports and is not installed is not in our extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"gym:{name} needs the module {error.name!r}, which is not installed. Next: install it; our extra does not"
        ) from error
    except gymnasium.error.DependencyNotInstalled as error:
        raise MissingExtraError(f"gym:{name}: {error}") from error


def _check_numbers(name: str, invalid_reward: float | None, max_episode_steps: int | None) -> None:
    if invalid_reward is not None and not math.isfinite(invalid_reward):
        raise EnvError(f"gym:{name}: invalid_reward={invalid_reward} is not finite; give a number such as -0.1")
    if max_episode_steps is not None and max_episode_steps < 1:
        raise EnvError(f"gym:{name}: max_episode_steps={max_episode_steps} leaves no turn; give at least 1")


def _as_json(info: dict[str, Any]) -> dict[str, Any]:
    """Those entries of an info that are JSON, arrays as lists."""
    plain = {key: _plain(value) for key, value in info.items() if isinstance(key, str)}  # pyright: ignore[reportUnnecessaryIsInstance]
    return {key: value for key, value in plain.items() if value is not _NO_JSON}


_NO_JSON = object()


def _plain(value: Any) -> Any:
    """The value as JSON, copied, or `_NO_JSON`."""
    if isinstance(value, np.ndarray | np.generic):
        array = cast("Any", value)
        value = array.tolist() if array.size <= _MAX_ITEMS else _NO_JSON
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _NO_JSON
    if isinstance(value, dict):
        return _as_json(cast("dict[str, Any]", value))
    if isinstance(value, list | tuple):
        items = [_plain(one) for one in cast("list[Any]", value)[:_MAX_ITEMS]]
        return _NO_JSON if len(cast("list[Any]", value)) > _MAX_ITEMS or _NO_JSON in items else items
    return _NO_JSON
