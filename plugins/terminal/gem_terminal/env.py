"""The environment: a task in a terminal."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, get_args

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, near_matches
from gem_core.tools import Form
from gem_sandbox import Limits, LocalSandbox, LocalShell, Ran, ShellError
from gem_terminal import _actions as actions
from gem_terminal._actions import Command, Finish, Unclear
from gem_terminal._container import NO_NETWORK, PROGRAMS, ContainerShell, Engine
from gem_terminal._errors import TaskRefused
from gem_terminal._task import TerminalTask
from gem_terminal._verification import OUTPUT, SYSTEM_PATH, Verdict, variables_of, verify, verify_there
from gem_terminal.formats import Where, read_tasks

_AT_ONE_TIME = 256
"""Commands of all environments of a process. Many of them wait for something, so they are more than there are cores."""
_HARMLESS = ("ls", "pwd", "ls /etc/passwd", "whoami", "echo hello", "ls -1 | wc -l")
_RULES = {
    "text": "To run a command, write it between <bash> and </bash>. When the task is done, write <finish></finish>.",
    "native": "Use the function bash to run commands, and finish when the task is done.",
}


class TerminalEnv(Env):
    """A task to do with commands of bash, in a file system that is this episode's alone.

    Action, in the text form: the first `<bash>command</bash>` or `<finish></finish>`. Between the tags of a command may
    also be YAML with `cmd` and `timeout_secs`, as in gem-llm. In the native form: a call of `bash` or `finish`.

    | what happens | reward | end |
    | --- | --- | --- |
    | a command | 0 | |
    | `finish`, and the tests of the task pass | 1, or what the tests say | terminated |
    | `finish`, and they do not | 0, or what the tests say | terminated |
    | a response that asks for neither | 0 | |
    | the turns or the task's time are used up: no tests are run | 0 | truncated |
    | a command ended the whole shell, by its memory for example: no tests are run | 0 | terminated |

    Commands share one shell. A command that takes too long is ended alone. At the end all processes are ended, and the
    tests run in another root that holds the files which were left, or in the same container
    (plugins/terminal/README.md).

    | `info` key | type | meaning |
    | --- | --- | --- |
    | `task_name` | str | after a reset |
    | `exit_code` | int | of a command that ended by itself |
    | `test_problem` | str | why there was no verdict of the tests |

    Args:
        tasks: a folder with a task or with folders of tasks, ours, Harbor's or terminal-bench's;
            `package:<package>/<folder>` for one in an installed package.
        only: names of tasks, in this order; all by default, by name.
        form: `text` or `native`, see above.
        max_turns: commands of an episode.
        timeout: seconds for a command that asks for no other time; and no command gets more than ten times that.
        output: bytes of a command's output that are shown: the first half and the last.
        memory, disk, processes: limits of a shell; see `gem_sandbox.Limits`. Containers have no limit of `disk`.
        backend: `auto`, `bubblewrap` or `namespaces` (see `gem_sandbox.LocalSandbox`); or `docker` or `podman`: a
            container for each episode, from the task's Dockerfile or image (plugins/terminal/README.md).
        network: of containers, as `--network` of Docker takes it: `none`, or for example `bridge`.

    Raises:
        EnvError: a value that cannot be; no task can run here, or none has a name that is asked for. On a reset or a
            step: there is no sandbox, no container can be started, or the machine has no room.
    """

    takes_data_index = True
    instead_of: ClassVar[Mapping[str, str]] = {
        **Env.instead_of,
        "task_ids": "Use only=...",
        "max_retry": "Leave it out: failed commands do not end an episode",
    }

    def __init__(
        self,
        tasks: str | os.PathLike[str],
        *,
        only: Sequence[str] | None = None,
        form: Form = "text",
        max_turns: int = 30,
        timeout: float = 30.0,
        output: int = 8000,
        memory: int = 1 << 30,
        disk: int = 64 << 20,
        processes: int = 64,
        backend: str = "auto",
        network: str = NO_NETWORK,
    ) -> None:
        if form not in get_args(Form):
            raise EnvError(f"form must be one of {[*get_args(Form)]}, not {form!r}")
        if type(max_turns) is not int or max_turns < 1:
            raise EnvError(f"max_turns must be a number of turns, at least 1, not {max_turns!r}")
        self._engine = Engine(backend, network) if backend in PROGRAMS else None
        if self._engine is None and network != NO_NETWORK:
            raise EnvError(f"network={network!r} needs backend='docker' or 'podman': the sandbox has no network")
        where = Where(containers=self._engine is not None, network=network != NO_NETWORK)
        self.tasks = _chosen(os.fspath(tasks), only, where)
        self.form: Form = form
        self.max_turns = max_turns
        self._limits = Limits(
            wall=timeout, cpu=max(600.0, timeout), memory=memory, processes=processes, disk=disk, output=output
        )
        sandbox = "auto" if self._engine is not None else backend  # it starts nothing before it is used
        self._sandbox = LocalSandbox(backend=sandbox, concurrency=_AT_ONE_TIME)
        self._shell: LocalShell | ContainerShell | None = None
        self._next = 0
        self._ran: list[Command] = []
        """The commands of this episode, from which a copy gets its shell."""
        self._turns = 0
        self._spent = 0.0
        """Seconds that commands took."""

    @property
    def data_size(self) -> int:
        """How many tasks there are."""
        return len(self.tasks)

    def reset(self, seed: int | None = None, *, data_index: int | None = None, **options: Any) -> ResetResult:
        """Begin a task: the one `data_index`, or one drawn by the seed, or else the next one."""
        super().reset(seed=seed, **options)
        self._end_shell()
        self.task = self.tasks[self._number(seed, data_index)]
        self._ran, self._turns, self._spent = [], 0, 0.0
        self._open()
        info: Info = {"task_name": self.task.name}
        if self.form == "native":
            info["tools"] = [function.schema for function in actions.FUNCTIONS]
        return f"{self.task.instruction}\n\n{self._rules()}", info

    def step(self, action: str) -> StepResult:
        """Run a command, or test what was done."""
        read = actions.read(action, self.form)
        self._turns += 1
        info: Info = {"parsed_action": read.text}
        if isinstance(read.asked, Finish):
            return self._finished(info)
        if isinstance(read.asked, Unclear):
            info["invalid_action"] = True
            return self._continued(f"Nothing was run: {read.asked.problem}. {_RULES[self.form]}", info)
        return self._commanded(read.asked, info)

    def sample_random_action(self) -> str:
        """A command that changes nothing, or the end."""
        if self.rng.random() < 0.2:
            return actions.finish(self.form)
        return actions.command(self.rng.choice(_HARMLESS), self.form)

    def close(self) -> None:
        """End the shell and the sandbox."""
        self._end_shell()
        self._sandbox.close()

    def get_state(self) -> Any:
        """The episode as its commands. A copy runs them again, so what depends on the time can differ."""
        own = {name: value for name, value in vars(self).items() if name not in ("_shell", "_sandbox")}
        return {**own, "_ran": [*self._ran], "_rng": self.rng.getstate()}

    def set_state(self, state: Any) -> None:
        """See `get_state`; the commands run with the next one."""
        self._end_shell()
        rng = self.rng
        rng.setstate(state["_rng"])
        vars(self).update({**state, "_ran": [*state["_ran"]], "_rng": rng})

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_shell": None}

    def _number(self, seed: int | None, data_index: int | None) -> int:
        if data_index is not None:
            if type(data_index) is not int or data_index < 0:
                raise EnvError(f"data_index must be the number of a task, 0 or more, not {data_index!r}")
            return data_index % len(self.tasks)
        if seed is not None:
            return self.rng.randrange(len(self.tasks))
        self._next += 1
        return (self._next - 1) % len(self.tasks)

    def _rules(self) -> str:
        folder = f", in {self.task.folder}" if self.task.folder else ""
        network = " There is no network." if self._engine is None or self._engine.network == NO_NETWORK else ""
        return (
            f"You are in a terminal{folder}.{network} {_RULES[self.form]} A command may "
            f"take {self._limits.wall:g} seconds unless you ask for more, and you have {self.max_turns} turns."
        )

    def _open(self) -> LocalShell | ContainerShell:
        """The episode's shell, in the state that its commands have left."""
        if self._shell is None:
            self._shell = self._started()
            if self.task.start:
                self._shell.put(self.task.start)
            for command in self._ran:
                self._shell.run(command.text, seconds=self._seconds(command))
        return self._shell

    def _started(self) -> LocalShell | ContainerShell:
        task = self.task
        if self._engine is not None:
            return self._container(task.variables)
        path = f"/usr/local/bin:{SYSTEM_PATH}"
        return self._sandbox.shell(limits=self._limits, folder=task.folder, variables={"PATH": path, **task.variables})

    def _fresh(self) -> LocalShell:
        """A shell for the tests, with room for their files beside those that were left."""
        limits = replace(self._limits, disk=2 * self._limits.disk, output=OUTPUT)
        variables = {**variables_of(self.task), "PATH": SYSTEM_PATH}
        return self._sandbox.shell(limits=limits, folder=self.task.folder, variables=variables, guarded=True)

    def _container(self, variables: Mapping[str, str], output: int | None = None) -> ContainerShell:
        engine, image = self._engine, self.task.image
        assert engine is not None
        assert image is not None
        limits = self._limits if output is None else replace(self._limits, output=output)
        return ContainerShell(engine, engine.image(image), limits, self.task.folder, variables)

    def _end_shell(self) -> None:
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def _seconds(self, command: Command) -> float:
        return min(command.seconds or self._limits.wall, 10 * self._limits.wall, self.task.seconds)

    def _commanded(self, command: Command, info: Info) -> StepResult:
        try:
            ran = self._open().run(command.text, seconds=self._seconds(command))
        except ShellError as error:  # what ran in the background has ended it
            return f"The terminal has ended: {error}", 0.0, True, False, {**info, "success": False}
        self._ran.append(command)
        self._spent += ran.seconds
        if ran.exit_code is not None:
            info["exit_code"] = ran.exit_code
        if self.form == "native":
            info["use_tool"] = True
        text = self._shown(ran, command)
        if self._shell is not None and self._shell.ended is not None:
            return f"{text}\nThe terminal has ended: {self._shell.ended}.", 0.0, True, False, {**info, "success": False}
        return self._continued(text, info)

    def _continued(self, text: str, info: Info) -> StepResult:
        if self._turns < self.max_turns and self._spent < self.task.seconds:
            return text, 0.0, False, False, info
        self._end_shell()
        used = "turns are" if self._turns >= self.max_turns else "time is"
        return f"{text}\nYour {used} used up.", 0.0, False, True, {**info, "success": False}

    def _finished(self, info: Info) -> StepResult:
        verdict = self._verdict()
        info["success"] = verdict.solved
        if verdict.problem is not None:
            info["test_problem"] = verdict.problem
        return "", verdict.reward, True, False, info

    def _verdict(self) -> Verdict:
        try:
            shell, self._shell = self._open(), None
        except ShellError as error:  # a copy of the environment has run its commands again
            return Verdict(0.0, problem=str(error))
        if isinstance(shell, ContainerShell):
            return verify_there(self.task, shell, lambda: self._container(variables_of(self.task), OUTPUT))
        return verify(self.task, shell, self._fresh)

    def _shown(self, ran: Ran, command: Command) -> str:
        output = ran.output.strip("\n")
        parts = [f"<bash_output>\n{output}\n</bash_output>" if output else "<bash_output>\n</bash_output>"]
        if ran.ending == "timeout":
            parts.append(f"The command was ended after {self._seconds(command):g} seconds.")
        elif ran.exit_code:
            parts.append(f"Exit code: {ran.exit_code}")
        if ran.new_shell:
            place = f" in {self.task.folder}" if self.task.folder else ""
            parts.append(f"The shell has ended. The next command finds a new one{place}, and all files.")
        return "\n".join(parts)


@functools.lru_cache(maxsize=32)
def _read(folder: str, where: Where) -> tuple[Mapping[str, TerminalTask], Mapping[str, str]]:
    runnable, refused = read_tasks(_path(folder), where)
    return {task.name: task for task in runnable}, refused


def _path(folder: str) -> Path:
    """A folder; `package:<package>/<folder>` lies in an installed package."""
    if not folder.startswith("package:"):
        return Path(folder).expanduser()
    package, _, rest = folder.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise EnvError(f"there is no package {package!r}, which {folder!r} names")
    return Path(spec.origin).parent / rest


def _chosen(folder: str, only: Sequence[str] | None, where: Where) -> tuple[TerminalTask, ...]:
    known, refused = _read(folder, where)
    if isinstance(only, str):
        raise EnvError(f"only is a list of names of tasks, not {only!r}")
    for name in only or ():
        if name in refused:
            raise TaskRefused(f"it cannot run here. {refused[name]}")
        if name not in known:
            raise EnvError(f"there is no task {name!r} in {folder}.{near_matches(name, [*known])}")
    chosen = tuple(known.values()) if only is None else tuple(known[name] for name in only)
    if not chosen:
        reasons = "; ".join(refused.values())
        raise TaskRefused(f"no task of {folder} can run here: {reasons}")
    return chosen
