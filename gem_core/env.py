"""The environment contract, whole, in one file.

An environment speaks text: it shows an observation, takes an action, and returns the next observation and a reward. It
may show images, too.
Authors derive from `Env`; a `Wrapper` changes an environment from outside. The rest of the project reads only the keys
below from `info`.

| `info` key | type | meaning |
| --- | --- | --- |
| `success` | bool | at the end of an episode: was the task solved? (a last reward of 1 is not a success test) |
| `invalid_action` | bool | the action could not be parsed or was not allowed; absent means valid |
| `prefix`, `suffix` | str | text shown before / after the history when a prompt is built, never stored in it |
| `parsed_action` | str | the part of the action that counted; replaces the raw action in histories |
| `images` | list | images that the observation shows, see `gem_core.image`; vectors make data URIs of them |
| `use_tool` | bool | the observation is a tool's answer (chat role `tool`) |
| `partner_replies` | list of str | what a partner answered since the step before, see `gem_core.partner` |
| `partner_thoughts` | list of str | what it thought before each of these answers, if it thought before any |
| `tools` | list of dict | after a reset: functions for native calls, as JSON schemas for the chat template |
| `error` | str | set by the engine: the environment failed and its episode was cut off |
| `timed_out` | bool | set by the engine beside `error`, as true: a call exceeded its time limit |
| `final_observation`, `final_info` | str, dict | set by autoreset: the last observation and info of the ended episode |
| `seed`, `episode` | int | set by the engine on an episode's first info: its seed, and its number in that slot |
| `data_index` | int | set by the engine on an episode's first info, for environments over data: the row it uses |
| `agent` | str | in a match: who acts next; without it, the agent that acted (see `gem_core._match_env`) |
| `agent_rewards` | dict of float | in a match, by agent: rewards of the other agents, each for its last turn |
| `agent_infos` | dict of dict | in a match, by agent: what the infos of their last turns get in addition |
| `agent_ends` | dict of str | in a match, by agent: `terminated` or `truncated`, for those that are out of it now |
| `agent_forfeits` | dict of dict | in a match, by agent: the rewards of all agents if that one cannot go on |
| `agent_seen` | dict of str | in a match, by agent: the last observation of those that are out of it now |

The keys that the engine sets are reserved (`RESERVED`). If an environment's info has such a key, vectors and rollouts
rename it to `env_<key>`, so that an environment's own `error` is not mistaken for a failure.
"""

from __future__ import annotations

import copy
import functools
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from gem_core.errors import EnvError, EnvKwargsError, ResetNeededError, hint_for
from gem_core.responses import speech_of

if TYPE_CHECKING:
    from gem_core.specs import EnvSpec

Observation: TypeAlias = str
Info: TypeAlias = dict[str, Any]
ResetResult: TypeAlias = tuple[Observation, Info]
StepResult: TypeAlias = tuple[Observation, float, bool, bool, Info]

RESERVED = frozenset({"error", "timed_out", "final_observation", "final_info", "seed", "episode", "data_index"})
"""Keys of `info` that only the engine sets."""


def shown_text(observation: Observation, info: Info) -> str:
    """An observation as a prompt shows it: with its info's `prefix`, and its `suffix` on a separate line."""
    prefix, suffix = info.get("prefix", ""), info.get("suffix", "")
    gap = "\n" if suffix and observation and not observation.endswith("\n") else ""
    return f"{prefix}{observation}{gap}{suffix}"


_BEFORE = "before reset()"
_AFTER = "after its episode ended"


class Env(ABC):
    """A task that is played in turns of text.

    A constructor does not access the network, starts no process, and takes only the keyword arguments that it names.
    An instance has its own random generator, `self.rng`, and never uses the global `random` or `numpy.random`. So the
    same seed and actions give the same episode: alone, in any vector, in any process.

    Every subclass refuses a step before its first reset or after the end of an episode (`ResetNeededError`), and an
    option that no `reset` of its classes names as a parameter (`EnvKwargsError`).

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
    """The spec that `make` built this environment from; `None` for an environment built by hand."""
    takes_data_index: bool = False
    """For environments over data: the engine calls `reset(seed=..., data_index=k)`, where `k` counts the tasks of a run
    that have this environment's id. Each number is used once over all environments and processes (and once per group),
    so that no row repeats before all rows were used."""

    agents: tuple[str, ...] = ()
    """For matches: the agents that take turns in this environment, each with a conversation of its own."""

    plays_on: ClassVar[bool] = False
    """Whether a step without an episode under way is played and not refused, as programs for other suites expect."""
    reads_thoughts: bool = False
    """Whether `step` gets whole responses. By default, it gets what the model said, without what it only thought; see
    `gem_core.responses.read_response`."""

    instead_of: ClassVar[Mapping[str, str]] = {
        "seed": "Use reset(seed=...), or make_vec(seed=...)",
        "task": "Use reset(data_index=...)",
    }
    """What the error about an unknown argument or reset option says, by its name:
    `{"idx": "Use reset(row=...)"}`. For names that an earlier version or another library has."""

    _rng: random.Random | None = None
    _unplayable: str | None = _BEFORE
    """Why a step is refused now; `None` while an episode is under way."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Here and not in `make`, so that environments built by hand are guarded, too.
        for name, guard in _GUARDS.items():
            method = vars(cls).get(name)
            if isinstance(method, FunctionType) and not hasattr(method, _GUARDED):
                setattr(cls, name, guard(method))

    @property
    def data_size(self) -> int | None:
        """How many rows the data has, if `takes_data_index`; `None` if they never end. May load the data."""
        return None

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
            seed: makes the episode reproducible; `None` continues with the current generator.
            options: what the environment itself documents, for example the row of a data set. An implementation names
                each of its options as a parameter.

        Returns:
            The first observation and its info.

        Raises:
            EnvKwargsError: an option that the environment does not have.
        """
        if seed is not None:
            self.rng.seed(seed)
        return "", {}

    @abstractmethod
    def step(self, action: str) -> StepResult:
        """Play one turn. Any string is an action: an invalid action may cost reward, but never raises.

        Args:
            action: the text of the policy; its speech alone, unless `reads_thoughts` is set.

        Returns:
            `(observation, reward, terminated, truncated, info)`: the next observation, this turn's reward, whether
            the task ended, whether a limit from outside the task cut it off, and the info described above.

        Raises:
            ResetNeededError: no episode is under way.
        """

    @abstractmethod
    def sample_random_action(self) -> str:
        """A valid action in the current state, drawn from `self.rng`."""

    def expert_action(self) -> str:
        """The best known action in the current state, which it may read. Raises `NotImplementedError` without one."""
        raise NotImplementedError(f"{self!r} has no expert")

    def draw_action(self, rng: random.Random) -> str:
        """As `sample_random_action`, but drawn from another generator, so that the episode itself stays the same."""
        bare = self.unwrapped
        own, bare._rng = bare._rng, rng
        try:
            return self.sample_random_action()
        finally:
            bare._rng = own

    def close(self) -> None:  # noqa: B027 - most environments hold no resources
        """Release the resources of the environment. Safe to call twice."""

    def get_state(self) -> Any:
        """A snapshot for `set_state`: a deep copy of the attributes.

        Environments that hold handles or large shared data override this, or raise `NotImplementedError`.
        """
        return copy.deepcopy(vars(self))

    def set_state(self, state: Any) -> None:
        """Restore a snapshot of `get_state`. A snapshot can be restored any number of times."""
        vars(self).clear()
        vars(self).update(copy.deepcopy(state))

    def spawn(self, *, same_state: bool = False, **kwargs: Any) -> Env:
        """A new environment of the same id, with `kwargs` in place of this one's where given.

        Args:
            same_state: start in the current state of this environment.

        Raises:
            EnvError: this environment was not built by `make`, so its id is unknown.
        """
        if self.spec is None or self.spec.builder is None:
            raise EnvError(
                f"{self!r} was not built by gem_core.make(), so it cannot spawn another. Build it with make()."
            )
        twin: Env = self.spec.builder(self.spec, kwargs)
        if same_state:
            twin.set_state(self.get_state())
        return twin

    def render(self) -> str | None:
        """The current state for a person, or `None` where the observation shows all of it."""
        return None

    @property
    def unwrapped(self) -> Env:
        """The environment under all wrappers."""
        return self

    def __enter__(self) -> Env:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_options(self, options: Mapping[str, Any]) -> None:
        known = _option_names(type(self))
        for name in options:
            if name not in known:
                hint = hint_for(name, known, self.instead_of)
                raise EnvKwargsError(
                    f"{self!r} has no reset option {name!r} (given {options[name]!r:.200}).{hint} "
                    f"It takes: {', '.join(known)}"
                )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.spec.id}' if self.spec else ''}>"


_GUARDED = "__guarded_by_env__"
_GUARDING: set[int] = set()
"""The `id` of each environment in a guarded call. Calls from inside, such as `super().step()`, pass unguarded. Not an
attribute of the environment, because the environment may be copied during the call."""


def _guarded_reset(reset: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(reset)
    def guarded(self: Env, *args: Any, **options: Any) -> Any:
        if id(self) in _GUARDING:
            return reset(self, *args, **options)
        if len(options) > ("seed" in options):
            self._check_options(options)  # pyright: ignore[reportPrivateUsage]
        state = vars(self)
        _GUARDING.add(id(self))
        try:
            result = reset(self, *args, **options)
        except EnvKwargsError:  # raised by the wrapped environment, whose state did not change
            raise
        except BaseException:
            state["_unplayable"] = _BEFORE
            raise
        finally:
            _GUARDING.discard(id(self))
        state["_unplayable"] = None
        return result

    setattr(guarded, _GUARDED, True)
    return guarded


def _guarded_step(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def guarded(self: Env, action: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) in _GUARDING:
            return step(self, action, *args, **kwargs)
        if self._unplayable is not None and not self.plays_on:  # pyright: ignore[reportPrivateUsage]
            raise ResetNeededError(f"{self!r} was stepped {self._unplayable}. Call reset() first.")  # pyright: ignore[reportPrivateUsage]
        if isinstance(action, str) and not self.reads_thoughts:
            action = speech_of(action)
        _GUARDING.add(id(self))
        try:
            result = step(self, action, *args, **kwargs)
        finally:
            _GUARDING.discard(id(self))
        try:
            if result[2] or result[3]:
                vars(self)["_unplayable"] = _AFTER
        except Exception:  # not a transition: the caller's checks report it with more detail
            pass
        return result

    setattr(guarded, _GUARDED, True)
    return guarded


def _guarded_set_state(set_state: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(set_state)
    def guarded(self: Env, state: Any) -> None:
        before = self._unplayable  # pyright: ignore[reportPrivateUsage]
        # A snapshot from an overridden `get_state` may lack this attribute.
        vars(self)["_unplayable"] = None
        try:
            set_state(self, state)
        except BaseException:
            vars(self)["_unplayable"] = before
            raise

    setattr(guarded, _GUARDED, True)
    return guarded


_GUARDS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "reset": _guarded_reset,
    "step": _guarded_step,
    "set_state": _guarded_set_state,
}


@functools.lru_cache(maxsize=256)
def _option_names(kind: type[Env]) -> tuple[str, ...]:
    """The parameters that a class and its bases name in `reset`."""
    import inspect  # only resets with options need it

    names: dict[str, None] = {}
    for base in kind.__mro__:
        if (method := vars(base).get("reset")) is not None:
            parameters = list(inspect.signature(method).parameters.values())[1:]
            names.update(
                (one.name, None) for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
            )
    return tuple(names)


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
        """The wrapper's own spec if an id's entry point gives a wrapped environment, otherwise the inner one's."""
        return self._spec or self.env.spec

    @spec.setter
    def spec(self, value: EnvSpec | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._spec = value

    @property
    def takes_data_index(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the wrapped environment takes the index of a row."""
        return self.env.takes_data_index

    @property
    def data_size(self) -> int | None:
        """The number of rows of the wrapped environment."""
        return self.env.data_size

    @property
    def agents(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The agents of the wrapped environment."""
        return self.env.agents

    @property
    def reads_thoughts(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the wrapped environment gets whole responses; if so, this wrapper does, too."""
        return self.env.reads_thoughts

    @property
    def rng(self) -> random.Random:
        """The wrapped environment's generator."""
        return self.env.rng

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """The wrapped environment checks them."""

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Pass on to the wrapped environment."""
        return self.env.reset(seed=seed, **options)

    def step(self, action: str) -> StepResult:
        """Pass on to the wrapped environment."""
        return self.env.step(action)

    def sample_random_action(self) -> str:
        """Pass on to the wrapped environment."""
        return self.env.sample_random_action()

    def expert_action(self) -> str:
        """Pass on to the wrapped environment."""
        return self.env.expert_action()

    def close(self) -> None:
        """Pass on to the wrapped environment."""
        self.env.close()

    def get_state(self) -> Any:
        """The wrapped environment's own snapshot, and a deep copy of the wrapper's attributes."""
        own = {name: value for name, value in vars(self).items() if name != "env"}
        return self.env.get_state(), copy.deepcopy(own)

    def set_state(self, state: Any) -> None:
        """Restore a snapshot of `get_state`, including the wrapped environment."""
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
