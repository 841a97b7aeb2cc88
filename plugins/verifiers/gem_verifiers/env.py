"""An environment of verifiers, played in text."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError
from gem_questions import checks, order
from gem_verifiers._library import Definition, in_a_line
from gem_verifiers._messages import functions_of, last_words, new_messages, text_of, written
from gem_verifiers._rollout import Asked, Ended, Rollout

_LIMITS = {"max_turns_reached", "timeout_reached", "max_total_completion_tokens_reached", "prompt_too_long"}
"""Stop conditions of verifiers that are limits from outside the task."""
_OF_THE_POLICY = {"ToolError", "ToolParseError", "ToolCallError"}
"""Errors of verifiers that an action causes."""


class Verifiers(Env):
    """Plays an environment of verifiers: each text that its loop would ask a model for is an action.

    | action | reward | episode |
    | --- | --- | --- |
    | the last one | the rubric's, for the whole episode | terminated; truncated by a limit of turns or time |
    | any other | 0 | continues with the text of `env_response` |

    The only turn of a single-turn environment terminates. At the end, `info["success"]` says that the reward reaches
    the environment's `pass_threshold`, `info["metrics"]` has what its reward functions gave, and
    `info["stop_condition"]` which condition ended it.

    | `reset(...)` | row of the data set |
    | --- | --- |
    | `data_index=k`, as the engine calls it | place `k` of the shuffled order, which begins anew after the last row |
    | `seed=s` | drawn from all |
    | nothing | the next in the shuffled order |
    | `row=i` | row `i` of the data as it is, for evaluation |

    An environment with tools names them in `info["tools"]` of a reset. The first call in an action, in the dialect of
    any model family, is made. An unreadable call is `info["invalid_action"]`, and the environment sees it as text.

    The module is imported when an environment is built. Its `load_environment` is called at the first reset, once per
    process and arguments, and all environments share the result and one event loop, as in verifiers.

    Args:
        module: an installed module with a function `load_environment`.
        rows: `"train"` for the rows of its data set, `"eval"` for those of its evaluation set.
        shuffle_seed: one order of the rows per seed; `None` plays them in the order of the data.
        arguments: of `load_environment`.

    Raises:
        EnvError: the module is no environment of verifiers. On the first reset: it cannot be loaded, or it needs a
            container, group scoring or images, or has no such rows.
        EnvKwargsError: its `load_environment` has no such argument.
        MissingExtraError: verifiers is not installed, or a release without `load_environment`.
    """

    takes_data_index = True
    reads_thoughts = True
    """Its parsers and rubrics read them; calls are made from the speech alone."""

    def __init__(
        self,
        module: str,
        *,
        rows: Literal["train", "eval"] = "train",
        shuffle_seed: int | None = 0,
        **arguments: Any,
    ) -> None:
        if rows not in ("train", "eval"):
            raise EnvError(f"verifiers:{module}: rows={rows!r} is neither 'train' nor 'eval'")
        self._definition = Definition(module, arguments)
        self._definition.check()
        self._split = rows
        self._shuffle_seed = shuffle_seed
        self._next = 0
        self._row = 0
        self._actions: list[str] = []
        self._shown: Sequence[Any] = ()
        self._rollout: Rollout | None = None
        self._tools: Sequence[Any] | None = None

    @property
    def data_size(self) -> int:
        """The number of rows, which loads them."""
        return len(self._rows())

    def reset(
        self, seed: int | None = None, *, data_index: int | None = None, row: int | None = None, **options: Any
    ) -> ResetResult:
        """Start an episode; the table above says with which row.

        Raises:
            EnvError: see the class; or there is no row with that number, or the environment failed.
        """
        super().reset(seed=seed, **options)
        self._leave()
        self._row = self._chosen(seed, data_index, row)
        self._actions = []
        self._shown = ()
        asked = self._begin()
        if isinstance(asked, Ended):
            reason = asked.output["stop_condition"]
            raise EnvError(f"{self._definition}, row {self._row}: it ended ({reason}) before the first turn")
        info: Info = {"tools": [one.schema for one in functions_of(asked.tools)]} if asked.tools else {}
        return self._told(asked), info

    def step(self, action: str) -> StepResult:
        """Give the environment a response."""
        self._replay()
        turn, problem = self._play(action)
        self._actions.append(action)
        info: Info = {"invalid_action": True} if problem else {}
        if isinstance(turn, Asked):
            if turn.messages[-1].role == "tool":
                info["use_tool"] = True
            return self._told(turn), 0.0, False, False, info
        return self._ended(turn, info)

    def sample_random_action(self) -> str:
        """The row's answer, half of the time where it has one, or a number; seldom what the environment wants."""
        answer = self._rows()[self._row].get("answer")
        if isinstance(answer, str) and answer and self.rng.random() < 0.5:
            return answer
        return str(self.rng.randint(0, 99))

    def close(self) -> None:
        """End the episode, if one is under way."""
        self._leave()

    def get_state(self) -> Any:
        """The row and the actions so far, which are played again after `set_state`."""
        return copy.deepcopy(self.__getstate__())

    def set_state(self, state: Any) -> None:
        """Restore a snapshot. Whether it plays on as before is up to the environment: nothing may be random in it."""
        self._leave()
        super().set_state(state)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_rollout": None, "_shown": (), "_tools": None}

    def _rows(self) -> Any:
        environment = self._definition.environment()
        name = "build_dataset" if self._split == "train" else "build_eval_dataset"
        rows = getattr(environment, name)()
        if rows is None or not len(rows):
            other = "eval" if self._split == "train" else "train"
            raise EnvError(f"{self._definition} has no rows for {self._split!r}. Next: give rows={other!r}")
        return rows

    def _chosen(self, seed: int | None, data_index: int | None, row: int | None) -> int:
        count = len(self._rows())
        if row is not None:
            if not 0 <= checks.whole("row", row, 0) < count:
                raise EnvError(f"{self._definition} has {count} rows, so there is no row {row}: 0 is the first")
            return row
        if data_index is None and seed is not None:
            return self.rng.randrange(count)
        if data_index is None:
            data_index = self._next
            self._next += 1
        epoch, place = divmod(checks.whole("data_index", data_index, 0), count)
        return place if self._shuffle_seed is None else order(count, self._shuffle_seed, epoch)[place]

    def _begin(self) -> Asked | Ended:
        self._rollout = Rollout(self._definition.environment(), dict(self._rows()[self._row]))
        return self._turn(self._rollout.begin)

    def _play(self, action: str) -> tuple[Asked | Ended, str | None]:
        rollout = self._rollout
        assert rollout is not None
        response, problem = written(action, functions_of(self._tools))
        return self._turn(lambda: rollout.answer(response)), problem

    def _replay(self) -> None:
        """Play the episode up to here again, in an environment that came by pickle or from a snapshot."""
        if self._rollout is None:
            turn = self._begin()
            for action in self._actions:
                if isinstance(turn, Asked):
                    self._told(turn)
                    turn, _ = self._play(action)
            if isinstance(turn, Ended):
                raise EnvError(f"{self._definition}, row {self._row}: the same actions ended another episode earlier")
            self._told(turn)

    def _told(self, asked: Asked) -> str:
        text = text_of(new_messages(asked.messages, self._shown))
        self._shown, self._tools = asked.messages, asked.tools
        return text

    def _ended(self, ended: Ended, info: Info) -> StepResult:
        self._rollout = None
        output = ended.output
        reward = float(output["reward"])
        if not math.isfinite(reward):
            raise EnvError(f"{self._definition}, row {self._row}: its rubric gave {reward}")
        environment = self._definition.environment()
        stop = output["stop_condition"]
        limit = stop in _LIMITS and getattr(environment, "max_turns", -1) != 1
        info["success"] = reward >= environment.pass_threshold
        info["metrics"] = {name: float(value) for name, value in output["metrics"].items()}
        info["stop_condition"] = stop
        return last_words(output["completion"] or ()), reward, not limit, limit, info

    def _turn(self, call: Callable[[], Asked | Ended]) -> Asked | Ended:
        """Let verifiers go on until it asks or ends. Raises `EnvError` where the environment fails."""
        try:
            turn = call()
        except Exception as error:
            raise EnvError(f"{self._definition}, row {self._row}: it raised {in_a_line(error)}") from error
        failure = turn.output["error"] if isinstance(turn, Ended) else None
        if failure is not None and failure["error"] not in _OF_THE_POLICY:
            raise EnvError(f"{self._definition}, row {self._row}: it failed: {failure['error_chain_repr']}")
        return turn

    def _leave(self) -> None:
        rollout, self._rollout = self._rollout, None
        if rollout is not None:
            rollout.abandon()
