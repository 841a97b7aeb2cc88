"""Any environment of ours as a `gymnasium.Env` that speaks text."""

from __future__ import annotations

import importlib
import string
from typing import Any, ClassVar

from gem_core.env import Env, Info, shown_text
from gem_core.errors import MissingExtraError
from gem_core.installation import install_line
from gem_core.registry import make

try:
    gymnasium: Any = importlib.import_module("gymnasium")  # untyped, and missing where types are checked
except ImportError as error:
    raise MissingExtraError(
        f"gem_gym.exported needs Gymnasium for this, which is not installed. Next: {install_line('gym')}"
    ) from error

MAX_LENGTH = 1 << 20
"""Characters of an observation or action; Gymnasium's spaces need a limit."""
_SAMPLE_LENGTH = 32


class AnyText(gymnasium.spaces.Text):
    """Texts of any characters. Gymnasium's `Text` would have to list them all, a million entries.

    A sample is a short text of letters and digits, hence seldom a valid action.

    Args:
        seed: of the samples.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(MAX_LENGTH, min_length=0, charset=string.ascii_letters + string.digits, seed=seed)  # pyright: ignore[reportUnknownMemberType]

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A text of up to 32 letters and digits; the arguments are those of `Text`."""
        if mask is None and probability is None:
            mask = (int(self.np_random.integers(_SAMPLE_LENGTH + 1)), None)
        return str(super().sample(mask, probability))  # pyright: ignore

    def contains(self, x: Any) -> bool:
        """Whether it is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    @property
    def is_np_flattenable(self) -> bool:
        """No: characters have no numbers."""
        return False

    def __repr__(self) -> str:
        return f"AnyText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyText)


class GymnasiumEnv(gymnasium.Env):
    """An environment of ours behind Gymnasium's interface, for its wrappers, vectors and tools.

    An observation is the whole text that a policy would read now, with the info's `prefix` and `suffix`. Actions,
    rewards, flags and infos are the environment's. `options` of a reset are its options, such as `{"data_index": 3}`.

    Args:
        env: the environment; `env` is an attribute, so `sample_random_action()` can be reached.
        render_mode: `"ansi"` or `None`.

    Raises:
        ValueError: another render mode.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(self, env: Env, *, render_mode: str | None = None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode={render_mode!r} is not supported; give 'ansi' or None")
        self.env = env
        self.render_mode = render_mode
        self.observation_space = AnyText()
        self.action_space = AnyText()
        self._shown = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, Info]:
        """Start an episode.

        Raises:
            EnvKwargsError: an option that the environment does not have.
        """
        super().reset(seed=seed)  # pyright: ignore[reportUnknownMemberType]
        observation, info = self.env.reset(seed=seed, **(options or {}))
        self._shown = shown_text(observation, info)
        return self._shown, info

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Play one turn. Raises `ResetNeededError` if no episode is under way."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._shown = shown_text(observation, info)
        return self._shown, reward, terminated, truncated, info

    def render(self) -> str | None:
        """The state for a person: the environment's own rendering, or else the last observation."""
        return (self.env.render() or self._shown) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def to_gymnasium(env_id: str, *, render_mode: str | None = None, **kwargs: Any) -> GymnasiumEnv:
    """Build an environment of ours for Gymnasium. Raises as `gem_core.make`.

    Args:
        env_id: an id of ours.
        render_mode: `"ansi"` or `None`.
        kwargs: of the environment.

    Example:
        >>> import gymnasium
        >>> from gem_gym.exported import to_gymnasium
        >>> env = to_gymnasium("game:GuessTheNumber-v0-easy")
        >>> # Or under a name in Gymnasium's registry:
        >>> gymnasium.register(
        ...     "gem/Guess-v0",
        ...     entry_point="gem_gym.exported:to_gymnasium",
        ...     kwargs={"env_id": "game:GuessTheNumber-v0-easy"},
        ... )
    """
    return GymnasiumEnv(make(env_id, **kwargs), render_mode=render_mode)
