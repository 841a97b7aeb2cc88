"""The environment contract, whole, in one file.

An environment speaks text: it shows an observation, takes an action, and answers with the next observation and
a reward. `Env` is what an author writes, `Wrapper` what changes an environment from outside, and the keys below
are all that the rest of the project reads from `info`.

| `info` key | type | meaning |
| --- | --- | --- |
| `success` | bool | at the end of an episode: was the task solved? (a last reward of 1 is not a success test) |
| `invalid_action` | bool | the action could not be parsed or was not allowed; absent means valid |
| `prefix`, `suffix` | str | text shown before / after the history when a prompt is built, never stored in it |
| `parsed_action` | str | the part of the action that counted; replaces the raw action in histories |
| `use_tool` | bool | the observation is a tool's answer (chat role `tool`) |
| `tools` | list of dict | on a reset: functions to call natively, as JSON schemas for the chat template |
| `error` | str | set by the engine: the environment failed and its episode was cut off |
| `final_observation`, `final_info` | str, dict | set by autoreset: what the ended episode showed last |
| `seed`, `episode` | int | set by the engine on an episode's first info: its seed, and its number in that slot |
| `task` | int | the same, for environments that take one |

The keys that the engine sets are its own (`RESERVED`): where an environment's info has one, vectors and rollouts
show it as `env_<key>`, so that an environment's own `error` is not taken for its failure.
"""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from gem_core.specs import EnvSpec

Observation: TypeAlias = str
Info: TypeAlias = dict[str, Any]
ResetResult: TypeAlias = tuple[Observation, Info]
StepResult: TypeAlias = tuple[Observation, float, bool, bool, Info]

RESERVED = frozenset({"error", "final_observation", "final_info", "seed", "episode", "task"})
"""Keys of `info` that the engine sets, and an environment does not."""


def shown_text(observation: Observation, info: Info) -> str:
    """An observation as it stands in a prompt: with its info's `prefix`, and `suffix` on a line of its own."""
    prefix, suffix = info.get("prefix", ""), info.get("suffix", "")
    gap = "\n" if suffix and observation and not observation.endswith("\n") else ""
    return f"{prefix}{observation}{gap}{suffix}"


class Env(ABC):
    """A task that is played in turns of text.

    Constructors do no network access and start no process, and take only the keyword arguments they name.
    An instance owns its random generator, `self.rng`; nothing touches the global `random` or `numpy.random`, so
    that one seed and one list of actions give one episode: alone, in any vector, in any process.

    Example:
        >>> from gem_core import Env
        >>> class Echo(Env):
        ...     def reset(self, seed=None, **options):
        ...         super().reset(seed=seed)
        ...         self.word = self.rng.choice(["ping", "pong"])
        ...         return f"Repeat: {self.word}", {}
        ...     def step(self, action):
        ...         hit = action.strip() == self.word
        ...         return "", float(hit), True, False, {"success": hit}
        ...     def sample_random_action(self):
        ...         return self.rng.choice(["ping", "pong"])
    """

    spec: EnvSpec | None = None
    """What `make` built this environment from; `None` for one built by hand."""
    takes_task: bool = False
    """Over a data set: the engine calls `reset(seed=..., task=k)`, where `k` counts the episodes of a run, each number
    once over all environments and processes (and once per group), so that no row repeats before all had their turn."""

    _rng: random.Random | None = None

    @property
    def rng(self) -> random.Random:
        """This environment's own random generator, seeded by `reset(seed=...)`."""
        if self._rng is None:
            self._rng = random.Random()
        return self._rng

    @abstractmethod
    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode. Implementations call `super().reset(seed=seed)` first.

        Args:
            seed: makes the episode reproducible; `None` goes on with the present generator.
            options: what the environment itself documents, for example the row of a data set.

        Returns:
            The first observation and its info.
        """
        if seed is not None:
            self._rng = random.Random(seed)
        return "", {}

    @abstractmethod
    def step(self, action: str) -> StepResult:
        """Play one turn. Any string is an action: an absurd one costs reward, it never raises.

        Args:
            action: the text that the policy wrote.

        Returns:
            `(observation, reward, terminated, truncated, info)`: the next observation, this turn's reward, whether
            the task ended, whether a limit from outside the task cut it off, and the info described above.
        """

    @abstractmethod
    def sample_random_action(self) -> str:
        """A valid action in the present state, drawn from `self.rng`."""

    def close(self) -> None:  # noqa: B027 - most environments hold nothing
        """Give back what the environment holds. Safe to call twice."""

    def get_state(self) -> Any:
        """A snapshot that `set_state` takes back: a deep copy of the attributes.

        Environments that hold handles or large shared data override this, or raise `NotImplementedError`.
        """
        return copy.deepcopy(vars(self))

    def set_state(self, state: Any) -> None:
        """Go back to a snapshot of `get_state`, which can be used again afterwards."""
        vars(self).clear()
        vars(self).update(copy.deepcopy(state))

    def spawn(self, *, same_state: bool = False, **kwargs: Any) -> Env:
        """A new environment of the same id, with `kwargs` in place of this one's where given.

        Args:
            same_state: start where this one stands now.

        Raises:
            EnvError: this environment was not built by `make`, so nothing says how to build another.
        """
        from gem_core.errors import EnvError
        from gem_core.registry import build

        if self.spec is None:
            raise EnvError(
                f"{self!r} was not built by gem_core.make(), so nothing says how to spawn another. Use make()."
            )
        twin = build(self.spec, kwargs)
        if same_state:
            twin.set_state(self.get_state())
        return twin

    def render(self) -> str | None:
        """The present state for a person, or `None` where the observation says it all."""
        return None

    @property
    def unwrapped(self) -> Env:
        """The environment under all wrappers."""
        return self

    def __enter__(self) -> Env:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.spec.id}' if self.spec else ''}>"


class Wrapper(Env):
    """An environment that changes another one's observations, rewards or endings.

    Attributes that the wrapper lacks are looked up in the wrapped environment each time, never copied, so they
    cannot go stale.
    """

    _spec: EnvSpec | None = None

    def __init__(self, env: Env) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        # Only reached for names the wrapper lacks. `env` itself is missing while unpickling.
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)

    @property
    def spec(self) -> EnvSpec | None:
        """Its own, where an id's entry point gives a wrapped environment; otherwise that of the environment inside."""
        return self._spec or self.env.spec

    @spec.setter
    def spec(self, value: EnvSpec | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._spec = value

    @property
    def takes_task(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the wrapped environment says."""
        return self.env.takes_task

    @property
    def rng(self) -> random.Random:
        """The wrapped environment's generator."""
        return self.env.rng

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Pass on to the wrapped environment."""
        return self.env.reset(seed=seed, **options)

    def step(self, action: str) -> StepResult:
        """Pass on to the wrapped environment."""
        return self.env.step(action)

    def sample_random_action(self) -> str:
        """Pass on to the wrapped environment."""
        return self.env.sample_random_action()

    def close(self) -> None:
        """Pass on to the wrapped environment."""
        self.env.close()

    def get_state(self) -> Any:
        """The wrapped environment's own snapshot, and a deep copy of the wrapper's attributes."""
        own = {name: value for name, value in vars(self).items() if name != "env"}
        return self.env.get_state(), copy.deepcopy(own)

    def set_state(self, state: Any) -> None:
        """Go back to a snapshot of `get_state`, the wrapped environment included."""
        inner, own = state
        env = self.env
        env.set_state(inner)
        vars(self).clear()
        vars(self).update(copy.deepcopy(own), env=env)

    def spawn(self, *, same_state: bool = False, **kwargs: Any) -> Env:
        """The same wrappers around a new environment."""
        if self._spec is not None:
            return super().spawn(same_state=same_state, **kwargs)
        return copy.deepcopy(self, {id(self.env): self.env.spawn(same_state=same_state, **kwargs)})

    def render(self) -> str | None:
        """Pass on to the wrapped environment."""
        return self.env.render()

    @property
    def unwrapped(self) -> Env:
        """The environment under all wrappers."""
        return self.env.unwrapped

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.env!r}>"
