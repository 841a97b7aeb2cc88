"""Any environment of ours as an environment of verifiers."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from gem_core.env import Env, shown_text
from gem_core.errors import EnvError, MissingExtraError, described
from gem_core.installation import install_line
from gem_core.registry import make
from gem_core.seeding import derive_seed

try:
    # Untyped, and missing where types are checked. 0.3 is the last line of verifiers that has them.
    multiturn: Any = importlib.import_module("verifiers.envs.multiturn_env")
    verifiers: Any = importlib.import_module("verifiers")
    datasets: Any = importlib.import_module("datasets")
except ImportError as error:
    raise MissingExtraError(
        "gem_verifiers.exported needs verifiers 0.3 for this (later releases have no MultiTurnEnv), and Python 3.11 or "
        f"newer. Next: {install_line('verifiers')}"
    ) from error

_ENV, _SAID, _LAST, _INVALID = "gem_env", "gem_said", "gem_last", "gem_invalid"
"""Keys of a rollout's state: its environment, what that said last, the end of its last turn, invalid actions so far."""

_OPTION = "gem_"
"""Before the names of a reset's options in the info of a row, where verifiers has names of its own, such as `task`."""


class VerifiersEnv(multiturn.MultiTurnEnv):
    """An environment of ours that verifiers plays, with its own clients, `evaluate` and results.

    A row of its data sets is an episode: a seed and, for environments over data, a `data_index`, as `gem_core` numbers
    the tasks of a run. The evaluation set has the same tasks with other seeds. A model's text is an action. Each step
    of the trajectory has the environment's reward, and the reward of a rollout is their sum. `success`,
    `invalid_actions` and `truncated` are metrics.

    The environment works in threads, so a slow one does not delay other rollouts. One that fails ends its own rollout,
    with an `InfraError`. Environments are used again for later rollouts.

    Args:
        env_id: an id of ours.
        arguments: of the environment.
        num_examples: rows of each data set.
        seed: of the run.
        options: of `verifiers.MultiTurnEnv`, such as `system_prompt` or `max_turns`.

    Raises:
        EnvError: no rows, or an environment whose tools are called natively. Besides, as `gem_core.make`.
    """

    def __init__(
        self, env_id: str, arguments: Mapping[str, Any], *, num_examples: int = 100, seed: int = 0, **options: Any
    ) -> None:
        if num_examples < 1:
            raise EnvError(f"num_examples={num_examples} leaves no episode; give at least 1")
        self._id = env_id
        self._arguments = dict(arguments)
        self._idle = [make(env_id, **arguments)]
        self._num_examples = num_examples
        rubric = verifiers.Rubric(funcs=[reward])
        for metric in (success, invalid_actions, truncated):
            rubric.add_metric(metric)
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            dataset=lambda: self._rows(seed),
            eval_dataset=lambda: self._rows(derive_seed(seed, "evaluation")),
            rubric=rubric,
            **options,
        )

    async def setup_state(self, state: Any) -> Any:
        """Start the episode of the row."""
        state[_INVALID] = 0
        state[_ENV] = self._idle.pop() if self._idle else await _called(make, self._id, **self._arguments)
        await _called(state[_ENV].reset, **_options(state["info"]))
        return state

    async def add_trajectory_step(self, state: Any, trajectory_step: Any) -> None:
        """Play the turn at once: the last one that `max_turns` allows counts, too."""
        await super().add_trajectory_step(state, trajectory_step)  # pyright: ignore[reportUnknownMemberType]
        turn = await _called(state[_ENV].step, _text(trajectory_step["completion"]))
        observation, paid, terminated, was_truncated, info = turn
        trajectory_step["reward"] = float(paid)
        state[_INVALID] += bool(info.get("invalid_action"))
        state[_LAST] = {"success": bool(info.get("success")), "truncated": was_truncated}
        state[_SAID] = [verifiers.UserMessage(content=shown_text(observation, info))]
        if terminated or was_truncated:
            state["final_env_response"] = state[_SAID]

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        """What the environment said to the last response."""
        return state[_SAID]

    @verifiers.cleanup
    async def give_back(self, state: Any) -> None:
        """Keep the environment for another rollout, unless it failed or may still be at work."""
        env: Env | None = state.pop(_ENV, None)
        if env is None or state.get("timed_out") or not state["is_completed"]:
            return
        if state["error"] is None:
            self._idle.append(env)
        else:
            await asyncio.to_thread(env.close)

    @verifiers.teardown
    async def close_environments(self) -> None:
        """Close the environments that wait for a rollout."""
        while self._idle:
            self._idle.pop().close()

    def _rows(self, seed: int) -> Any:
        """A data set with the first prompt of each episode."""
        with make(self._id, **self._arguments) as env:
            return datasets.Dataset.from_list([_row(env, seed, number) for number in range(self._num_examples)])


def to_verifiers(
    env_id: str, *, num_examples: int = 100, seed: int = 0, system_prompt: str | None = None, **kwargs: Any
) -> VerifiersEnv:
    """Build an environment of ours for verifiers.

    Args:
        env_id: an id of ours.
        num_examples: episodes of each data set.
        seed: of the run.
        system_prompt: shown before the first observation.
        kwargs: of the environment.

    Raises:
        EnvError: see `VerifiersEnv`. Besides, as `gem_core.make`.

    Example:
        >>> from gem_verifiers.exported import to_verifiers
        >>> env = to_verifiers("game:GuessTheNumber-v0-easy", num_examples=20)
        >>> results = env.evaluate_sync(client_config, "my-model", max_concurrent=8)
    """
    env = VerifiersEnv(env_id, kwargs, num_examples=num_examples, seed=seed, system_prompt=system_prompt)
    # How verifiers' own server builds it again, in a process of its own.
    env.env_id = __name__
    env.env_args = {"id": env_id, "num_examples": num_examples, "seed": seed, "system_prompt": system_prompt, **kwargs}
    return env


def load_environment(id: str, **arguments: Any) -> VerifiersEnv:
    """As `to_verifiers`, by the name that verifiers' own commands look for:

    `vf-eval gem_verifiers.exported -a '{"id": "game:GuessTheNumber-v0-easy"}'`
    """
    return to_verifiers(id, **arguments)


async def reward(state: Any) -> float:
    """The rewards of all turns, added up."""
    return float(sum(step["reward"] or 0.0 for step in state["trajectory"]))


async def success(state: Any) -> float:
    """Whether the environment said that its task was solved."""
    return float(state.get(_LAST, {}).get("success", False))


async def truncated(state: Any) -> float:
    """Whether a limit of the environment ended the episode."""
    return float(state.get(_LAST, {}).get("truncated", False))


async def invalid_actions(state: Any) -> float:
    """Turns whose action was invalid."""
    return float(state.get(_INVALID, 0))


def _row(env: Env, seed: int, number: int) -> dict[str, Any]:
    info = {f"{_OPTION}seed": derive_seed(seed, number)}
    if env.takes_data_index:
        info[f"{_OPTION}data_index"] = number
    observation, said = env.reset(**_options(info))
    if said.get("tools"):
        raise EnvError(f"{env!r} has tools that are called natively, which to_verifiers does not pass on")
    return {"prompt": [{"role": "user", "content": shown_text(observation, said)}], "info": info}


def _options(info: Mapping[str, Any]) -> dict[str, int]:
    """The options of a reset, as the info of a row has them."""
    return {name.removeprefix(_OPTION): int(value) for name, value in info.items() if name.startswith(_OPTION)}


def _text(completion: Any) -> str:
    """What the model wrote."""
    return "".join(message.content for message in completion if isinstance(message.content, str))


async def _called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call it in a thread. Raises `verifiers.InfraError`, which ends the rollout and no other."""
    try:
        return await asyncio.to_thread(function, *args, **kwargs)
    except Exception as error:
        raise verifiers.InfraError(described(error)) from error
