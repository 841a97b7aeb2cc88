"""The Python tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from gem_core.tools import CallContext, Function, Tool, ToolResult
from gem_sandbox import Execution, Imports, Limits, LocalSandbox, Sandbox, SandboxError, SandboxSession

_RESTARTED = "The interpreter was lost, and what was defined before is gone."


class PythonTool(Tool):
    """Runs programs in a sandbox, and shows what they print.

    A call succeeds where the program ends with exit code 0. What it wrote to standard error is shown after what it
    printed. Where calls share nothing, a program that uses a well-known name without importing it (`np`, `sqrt`,
    `Counter`) is run again with the import, as upstream does, all within its time limit. A sandbox that fails itself is
    no observation: the turn fails.

    Args:
        timeout: seconds that a program may run. Waiting for a free place in the sandbox does not count.
        memory: bytes that each process of a program may have.
        output: bytes of standard output, and of standard error, that are kept.
        backend: how programs are confined; see `LocalSandbox`.
        allow_unsafe: also run where nothing but resource limits confines a program; see `LocalSandbox`.
        preload: modules that programs find imported already, for example `("numpy", "sympy")`.
        sandbox: in place of one on this machine, for example a remote one; then the five arguments above are its own
            business, but for `timeout`.
        keep_state: calls of one episode share an interpreter, and what one defines the next one finds. An interpreter
            that hits a limit is lost, and the result says so.
        last_error_line: of standard error, show the last line only.

    Raises:
        SandboxError: limits that are none; at the first reset, where no backend works on this machine; by a call, where
            the machine has no room for a program.
    """

    keeps_time = True
    instead_of: ClassVar[Mapping[str, str]] = {
        "sandbox_type": "Use backend=...",
        "keep_error_last_line": "Use last_error_line=...",
    }

    def __init__(
        self,
        *,
        timeout: float = 5.0,
        memory: int = 1 << 30,
        output: int = 1 << 16,
        backend: str = "auto",
        allow_unsafe: bool = False,
        preload: Sequence[str] = (),
        sandbox: Sandbox | None = None,
        keep_state: bool = False,
        last_error_line: bool = False,
    ) -> None:
        if sandbox is not None and not isinstance(sandbox, Sandbox):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SandboxError(f"sandbox must be a gem_sandbox.Sandbox, not {sandbox!r}")
        self._limits = Limits(wall=timeout, memory=memory, output=output)
        self.timeout = timeout
        self.keeps_state = keep_state
        self._sandbox = sandbox or LocalSandbox(backend=backend, preload=preload, allow_unsafe=allow_unsafe)
        self._last_error_line = last_error_line
        self._sessions: dict[str, SandboxSession] = {}

    def functions(self) -> Sequence[Function]:
        """`python`, which takes a program. Starts the sandbox, so that one that cannot be had shows before training."""
        trial = self._sandbox.run("", limits=self._limits)
        if not trial.succeeded:
            raise SandboxError(f"the sandbox runs no program: {trial.ending}: {trial.stderr.strip()[-500:]}")
        state = " It can use what earlier programs defined." if self.keeps_state else ""
        return [
            Function(
                name="python",
                description=f"Runs a complete Python program for at most {self.timeout:g} seconds and shows what it "
                f"prints.{state} There is no network.",
                parameters={
                    "type": "object",
                    "properties": {"code": {"type": "string", "description": "The program."}},
                    "required": ["code"],
                },
                tag="python",
                fence="python",
                examples=({"code": "print(6 * 7)"},),
                reply="Code execution result: {}\n",
            )
        ]

    def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> ToolResult:
        """Run a program."""
        execution = self._run(arguments["code"], context.episode)
        return ToolResult(self._shown(execution), error=not execution.succeeded)

    def _run(self, code: str, episode: str) -> Execution:
        if self.keeps_state:
            if episode not in self._sessions:
                self._sessions[episode] = self._sandbox.session(limits=self._limits)
            return self._sessions[episode].run(code)
        program = Imports(code, self.timeout)
        while True:
            execution = self._sandbox.run(program.code, limits=replace(self._limits, wall=program.seconds))
            if not program.complete(execution):
                return execution

    def _shown(self, execution: Execution) -> str:
        errors = execution.stderr.strip("\n")
        if self._last_error_line:
            errors = errors.rpartition("\n")[2]
        parts = [_RESTARTED if execution.restarted else "", execution.stdout.strip("\n"), errors, self._end(execution)]
        return "\n".join(filter(None, parts)) or "The program printed nothing."

    def _end(self, execution: Execution) -> str:
        if execution.exceeded_memory:
            return "Error: the program was stopped: its processes together used more memory than they may."
        if execution.ending == "timeout":
            return f"Error: the program was stopped after {self.timeout:g} seconds."
        if execution.ending == "killed" and execution.exit_code is not None:
            return f"Error: the program was ended by signal {-execution.exit_code}."
        return ""

    def end_episode(self, episode: str) -> None:
        """End its interpreter."""
        if session := self._sessions.pop(episode, None):
            session.close()

    def close(self) -> None:
        """End all interpreters, and the sandbox."""
        for episode in [*self._sessions]:
            self.end_episode(episode)
        self._sandbox.close()
