"""The environment: a task on a database."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, get_args

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, near_matches
from gem_core.tool import Function, ToolResult
from gem_core.tools import Form, ParsedCall, find_call, listed, written
from gem_postgres import _host as host
from gem_postgres._slot import Slot
from gem_postgres._tasks import PostgresTask, own_tasks

FINISH = Function("finish", "Says that the task is done. The database is then checked, once.")
_HARMLESS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("list_tables", {}),
    ("list_schemas", {}),
    ("query", {"sql": "SELECT 1 AS one"}),
    ("execute", {"sql": "CREATE TABLE IF NOT EXISTS notes (note text)"}),
)
_MIN_SECONDS, _MAX_SECONDS = 0.001, 2_000_000
"""Seconds, as PostgreSQL counts them: in whole milliseconds below 2**31."""


class PostgresEnv(Env):
    """A task to do in a database of PostgreSQL that is this episode's alone, by calls of a published MCP server.

    Action: a call, `<tool_call>{"name": "query", "arguments": {"sql": "SELECT 1"}}</tool_call>`. The first call of a
    response counts. In the native form, calls are written as a chat template shows them.

    | what happens | reward | end |
    | --- | --- | --- |
    | a call of the server, also one that fails | 0 | |
    | a call of `finish`, and the database is as it should be | 1 | terminated |
    | a call of `finish`, and it is not | 0 | terminated |
    | a response without a call | 0 | |
    | the turns are used up: nothing is checked | 0 | truncated |

    The server has the functions `query`, `execute`, `list_schemas`, `list_tables` and `describe_table`. Each call is a
    transaction of its own. The database is right if queries find in it what they find after the task's reference
    solution, and if the tables that the task does not mention are what they were.

    | `info` key | type | meaning |
    | --- | --- | --- |
    | `task_name` | str | after a reset |
    | `use_tool`, `tool_type`, `tool_error` | bool, str, str | on a call, as `gem_core.tools.ToolEnv` has them |
    | `check_problem` | str | at the end: the first check that failed, and how |
    | `tools` | list of dict | on a reset, in the native form |

    Args:
        database: `library`, `warehouse` or `school` for the tasks of one; all by default.
        only: names of tasks, in this order.
        form: `text` or `native`, see above.
        max_turns: calls of an episode.
        timeout: seconds of one statement.

    Raises:
        EnvError: a value that cannot be, or no task has a name that is asked for. On a reset or a step: PostgreSQL or
            the MCP server is not there, or the database server has ended.
    """

    takes_data_index = True
    instead_of: ClassVar[Mapping[str, str]] = {**Env.instead_of, "task_ids": "Use only=..."}

    def __init__(
        self,
        database: str | None = None,
        *,
        only: Sequence[str] | None = None,
        form: Form = "text",
        max_turns: int = 30,
        timeout: float = 20.0,
    ) -> None:
        known = {name: task for name, task in own_tasks().items() if database in (None, task.template)}
        if not known:
            names = sorted({task.template for task in own_tasks().values()})
            raise EnvError(f"database must be one of {', '.join(names)}, not {database!r}")
        self._begin(chosen(known, only), form, max_turns, timeout)

    def _begin(self, tasks: Sequence[PostgresTask], form: Form, max_turns: int, timeout: float) -> None:
        if form not in get_args(Form):
            raise EnvError(f"form must be one of {[*get_args(Form)]}, not {form!r}")
        if type(max_turns) is not int or max_turns < 1:
            raise EnvError(f"max_turns must be a number of turns, at least 1, not {max_turns!r}")
        if not _MIN_SECONDS <= timeout <= _MAX_SECONDS:
            raise EnvError(
                f"timeout must be a number of seconds from {_MIN_SECONDS} to {_MAX_SECONDS}, not {timeout!r}"
            )
        self.tasks = tuple(tasks)
        self.form: Form = form
        self.max_turns, self.timeout = max_turns, timeout
        self._place = _Place(timeout)
        self._next = 0
        self._calls: list[ParsedCall] = []
        """The calls of this episode, from which a copy gets its database."""
        self._turns = 0

    @property
    def data_size(self) -> int:
        """How many tasks there are."""
        return len(self.tasks)

    def reset(self, seed: int | None = None, *, data_index: int | None = None, **options: Any) -> ResetResult:
        """Begin a task: the one `data_index`, or one drawn by the seed, or else the next one."""
        super().reset(seed=seed, **options)
        self._place.leave()
        self.task = self.tasks[self._number(seed, data_index)]
        self._calls, self._turns = [], 0
        self._place.enter(self.task)
        info: Info = {"task_name": self.task.name}
        if self.form == "native":
            info["tools"] = [function.schema for function in self._functions]
            return self.task.instruction, info
        how = ["You work on a database of PostgreSQL by calls. End your reply with one call.", *listed(self._functions)]
        return "\n".join([self.task.instruction, "", *how, f"There are {self.max_turns} turns."]), info

    def step(self, action: str) -> StepResult:
        """Call the server, or have the database checked."""
        self._turns += 1
        call = find_call(action, self._functions, self.form)
        if call is None:
            info: Info = {"invalid_action": True}
            return self._continued("There was no call in the reply. Call `finish` when the task is done.", info)
        if call.function == FINISH.name and call.problem is None:
            return self._finished(action[: call.end])
        result = self._called(call)
        self._calls.append(call)
        info = {"use_tool": True, "tool_type": call.function, "parsed_action": action[: call.end]}
        info |= {"tool_error": result.text} if result.error else {}
        text = result.text if self.form == "native" else f"<tool_response>\n{result.text}\n</tool_response>"
        return self._continued(text, info)

    def sample_random_action(self) -> str:
        """A call that changes no row, or the end."""
        if self.rng.random() < 0.2:
            return written(FINISH, {}, self.form)
        name, arguments = self.rng.choice(_HARMLESS)
        return written(Function(name, ""), arguments, self.form)

    def close(self) -> None:
        """Give the database up. The last environment of a process ends the database server."""
        self._place.close()

    def get_state(self) -> Any:
        """The episode as its calls. A copy makes them again, so what depends on the time can differ."""
        own = {name: value for name, value in vars(self).items() if name != "_place"}
        return {**own, "_calls": [*self._calls], "_rng": self.rng.getstate()}

    def set_state(self, state: Any) -> None:
        """See `get_state`; the calls are made with the next one."""
        self._place.leave()
        rng = self.rng
        rng.setstate(state["_rng"])
        vars(self).update({**state, "_calls": [*state["_calls"]], "_rng": rng})

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_place": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._place = _Place(self.timeout)

    def __deepcopy__(self, memo: dict[int, Any]) -> PostgresEnv:
        twin = type(self).__new__(type(self))
        twin.__setstate__({**self.__getstate__(), "_calls": [*self._calls]})
        twin._rng = None
        twin.rng.setstate(self.rng.getstate())
        return twin

    @property
    def _functions(self) -> Sequence[Function]:
        return [*self._place.functions, FINISH]

    def _number(self, seed: int | None, data_index: int | None) -> int:
        if data_index is not None:
            if type(data_index) is not int or data_index < 0:
                raise EnvError(f"data_index must be the number of a task, 0 or more, not {data_index!r}")
            return data_index % len(self.tasks)
        if seed is not None:
            return self.rng.randrange(len(self.tasks))
        self._next += 1
        return (self._next - 1) % len(self.tasks)

    def _called(self, call: ParsedCall) -> ToolResult:
        self._restored()
        return self._place.call(call)

    def _restored(self) -> None:
        """A copy's database, in the state that the calls have left."""
        if self._place.enter(self.task):
            for call in self._calls:
                self._place.call(call)

    def _continued(self, text: str, info: Info) -> StepResult:
        if self._turns < self.max_turns:
            return text, 0.0, False, False, info
        self._place.leave()
        return f"{text}\nYour turns are used up.", 0.0, False, True, {**info, "success": False}

    def _finished(self, used: str) -> StepResult:
        self._restored()
        problem = self._place.problem(self.task)
        info: Info = {"parsed_action": used, "use_tool": True, "tool_type": FINISH.name, "success": problem is None}
        info |= {} if problem is None else {"check_problem": problem}
        return "", float(problem is None), True, False, info


class _Place:
    """An environment's use of the host of its process, and of a slot there."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._private: host.Host | None = None
        """A server for one episode, because roles belong to the whole server."""
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._user = secrets.token_hex(8)
        self._host: host.Host | None = None
        self._slot: Slot | None = None
        # An environment that nobody closes must not keep the server.
        weakref.finalize(self, _left, self._user).atexit = False

    @property
    def functions(self) -> Sequence[Function]:
        self._own()
        return self._attached().functions

    def enter(self, task: PostgresTask) -> bool:
        """Get a database, unless there is one; whether there was none."""
        self._own()
        if self._slot is not None:
            return False
        self._close_private()
        try:
            if task.makes_roles:
                self._private = host.Host(self._timeout, makes_roles=True)
            attached = self._private or self._attached()
            attached.prepare(task.template, task.fill)
            self._slot = attached.begin(task.template)
        except BaseException:
            self._close_private()
            raise
        return True

    def call(self, call: ParsedCall) -> ToolResult:
        attached, slot = self._now()
        result = slot.call(call)
        if result.error and not attached.cluster.alive:
            self._slot = None
            self._close_private()
            raise EnvError("the database server has ended during the episode. The next reset starts another one.")
        return result

    def problem(self, task: PostgresTask) -> str | None:
        """End the episode; what is wrong with what it has left."""
        attached, slot = self._now()
        try:
            attached.settle(slot)
            return task.problem(attached, slot)
        finally:
            self._end(attached, slot)

    def leave(self) -> None:
        """Give the database up."""
        self._own()
        if self._slot is None:
            self._close_private()
            return
        attached, slot = self._now()
        try:
            with contextlib.suppress(EnvError):  # the server has ended
                attached.settle(slot)
        finally:
            self._end(attached, slot)

    def close(self) -> None:
        try:
            self.leave()
        finally:
            self._host = None
            host.detach(self._user)

    def _own(self) -> None:
        """In a fork: leave what is the parent's alone, and begin anew."""
        if self._process == os.getpid():
            return
        if self._private is not None:
            self._private.cluster.forget()
            self._private = None
        self._start()

    def _end(self, attached: host.Host, slot: Slot) -> None:
        self._slot = None
        if attached is not self._private:
            attached.end(slot)
        self._close_private()

    def _close_private(self) -> None:
        private, self._private = self._private, None
        if private is not None:
            private.close()

    def _now(self) -> tuple[host.Host, Slot]:
        attached = self._private or self._host
        assert attached is not None
        assert self._slot is not None
        return attached, self._slot

    def _attached(self) -> host.Host:
        if self._host is None or (self._slot is None and not self._host.cluster.alive):
            self._host = host.attach(self._user, self._timeout)
        return self._host


def _left(user: str) -> None:
    # The garbage collector runs this anywhere, so it must not wait.
    with contextlib.suppress(RuntimeError):  # at exit no thread can be started, and the server ends with the process
        threading.Thread(target=_detached, args=(user,), name="gem-postgres-left", daemon=True).start()


def _detached(user: str) -> None:
    with contextlib.suppress(RuntimeError):  # the exit began meanwhile: the same
        host.detach(user)


def chosen(known: Mapping[str, PostgresTask], only: Sequence[str] | None) -> list[PostgresTask]:
    """Tasks by their names, in this order; all by default. Raises `EnvError`."""
    if isinstance(only, str):
        raise EnvError(f"only is a list of names of tasks, not {only!r}")
    for name in only or ():
        if name not in known:
            raise EnvError(f"there is no task {name!r}.{near_matches(name, [*known])}")
    if only is not None and not only:
        raise EnvError("only is a list of names of tasks, and it is empty")
    return [*known.values()] if only is None else [known[name] for name in only]
