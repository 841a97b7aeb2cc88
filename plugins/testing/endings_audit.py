"""Plays actions that stop, kill, fill, flood and never return on every id that takes commands or programs.

python plugins/testing/endings_audit.py                  # all of them; fails if one does not end as a verdict in time
python plugins/testing/endings_audit.py code:Sample      # these ids only
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gem_core
from gem_core.env import Env
from gem_core.errors import GemError
from gem_core.plugins import manager
from gem_core.registry import make_tool
from gem_core.tools import ToolEnv

TIMEOUT = 3.0
"""Seconds that an action may take."""
GRACE = 240.0
"""Seconds that only a hang takes, on a busy machine, too: a program's own time does not go on while it has no core."""
TOOLS: Mapping[str, Mapping[str, Any]] = {
    "python:Interpreter": {},
    "python:Interpreter, keep_state": {"keep_state": True},
}
COMMANDS: Mapping[str, str] = {
    "stops all": "kill -STOP -1; echo x",
    "stops what keeps the shell": "(sleep 0.5; kill -STOP 2) & sleep 1000",
    "stops its shell": "(sleep 0.5; kill -STOP $$) & sleep 1000",
    "stops and goes on": "while :; do kill -STOP 2; kill -CONT 2; done",
    "kills all": "kill -9 -1; echo x",
    "kills what keeps the shell": "kill -9 2",
    "interrupts what keeps the shell": "kill -INT 2; sleep 1000",
    "floods with signals": "for i in 1 2 3; do (while :; do kill -CHLD 2; done) & done; sleep 1000",
    "fills the memory": "x=$(head -c 4G /dev/zero | tr '\\0' x)",
    "fills the disk": "head -c 4G /dev/zero > /tmp/full; mkdir /tmp/m; cd /tmp/m; for i in {1..30000}; do : > $i; done",
    "fills the processes": "f() { f | f & }; f; sleep 1000",
    "floods": "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
    "never returns": "trap '' INT TERM HUP; while :; do sleep 1000; done",
    "hides": "trap '' INT TERM HUP; (trap '' INT TERM HUP; sleep 1000 &) ; sleep 1000",
    "takes the answers": "for n in 4 5 6 7 8; do (cat /proc/2/fd/$n > /dev/null &); done 2> /dev/null; sleep 1000",
    "nests folders": "cd /tmp; for i in {1..1500}; do mkdir d 2> /dev/null; cd d || break; done",
    "ends its shell": "exec sleep 1000",
}
"""In bash, by what they do."""
PROGRAMS: Mapping[str, str] = {
    "stops itself": "import os, signal\nos.kill(0, signal.SIGSTOP)",
    "stops all": "import os, signal\nos.kill(-1, signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)",
    "kills all": "import os, signal\nos.kill(-1, signal.SIGKILL)\nos.kill(os.getpid(), signal.SIGKILL)",
    "fills the memory": "x = []\nwhile True: x.append(bytearray(1 << 24))",
    "fills the disk": "with open('a', 'wb') as file:\n    while True: file.write(bytes(1 << 20))",
    "fills the processes": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "floods": "while True: print('a' * 1000)",
    "never returns": "import signal, time\nsignal.signal(2, signal.SIG_IGN)\nwhile True: time.sleep(1000)",
    "leaves a child": "import os, time\nif os.fork() == 0: time.sleep(1000)\nprint(1)",
    "computes": "9**9**9**9",
    "closes all": "import os, time\nos.closerange(0, 256)\ntime.sleep(1000)",
    "dies": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
}
"""In Python."""


class Ending(NamedTuple):
    """The outcome of an action."""

    action: str
    seconds: float
    """Of the longest step."""
    reward: float
    problem: str | None = None
    """The problem; `None` if it ended as a verdict on the policy, in time."""


def endings(
    env: Env, actions: Mapping[str, str], wrapped: Callable[[str], str], *, seconds: float, end: str | None = None
) -> Iterator[Ending]:
    """Play an episode with each action.

    Args:
        env: whose actions they are.
        actions: by what they do.
        wrapped: makes a response of one.
        seconds: that no step may take longer than: the action's own limit, and grace.
        end: a response that asks for the verdict afterwards, if the episode goes on.
    """
    for name, text in actions.items():
        env.reset(seed=0)
        longest, reward = 0.0, 0.0
        problem: str | None = None
        for response in (wrapped(text), end):
            if response is None:
                break
            begin = time.monotonic()
            step: tuple[Any, ...] = ()
            try:
                step = env.step(response)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            longest = max(longest, time.monotonic() - begin)
            if not step or step[2] or step[3]:
                reward = float(step[1]) if step else 0.0
                break
        if problem is None and longest > seconds:
            problem = f"it took {longest:.0f} s, and {seconds:g} s are its limit with all grace"
        if problem is None and reward >= 1.0:
            problem = f"it was paid {reward:g}"
        yield Ending(name, longest, reward, problem)


def audited(name: str, folder: Path, *, timeout: float = TIMEOUT, left_out: Sequence[str] = ()) -> Iterator[Ending]:
    """The endings of an id, or of a tool.

    Args:
        name: its name.
        folder: for a file of questions.
        timeout: seconds that an action may take.
        left_out: actions that are not played.
    """
    seconds = timeout + GRACE
    commands, programs = ({n: t for n, t in some.items() if n not in left_out} for some in (COMMANDS, PROGRAMS))
    if name in TOOLS:
        tool = make_tool("python:Interpreter", timeout=timeout, **TOOLS[name])
        with ToolEnv(gem_core.make("math:Sample"), [tool], max_tool_uses=3) as env:
            wrapped = "<python>{}</python>".format
            yield from endings(env, programs, wrapped, seconds=seconds, end="\\boxed{x}")
    elif name.startswith("terminal:"):
        with gem_core.make(name, timeout=timeout, memory=256 << 20) as env:
            wrapped = "<bash>{}</bash>".format
            yield from endings(env.unwrapped, commands, wrapped, seconds=seconds, end="<finish></finish>")
    else:
        rows = [{"problem": "Print 7.", "tests": json.dumps({"inputs": [""], "outputs": ["7"]})}] * 2
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        data = {} if name == "code:Sample" else {"dataset": str(folder / "rows.jsonl"), "split": None}
        with gem_core.make(name, timeout=timeout, memory=256 << 20, max_tests=1, **data) as env:
            yield from endings(env.unwrapped, programs, "```python\n{}\n```".format, seconds=seconds)


def names() -> Iterator[str]:
    """All ids that take commands or programs and need nothing else, and the tools that do."""
    yield from TOOLS
    for namespace in ("code", "terminal"):
        for registration in manager.registrations("gem_envs", namespace):
            if registration.spec.id != "terminal:Folder":  # `Tasks-v0` is a folder
                yield registration.spec.id


def main() -> int:
    """Play, print a row for each action, and say whether all are right."""
    options = argparse.ArgumentParser()
    options.add_argument("ids", nargs="*")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        for name in options.parse_args().ids or [*names()]:
            try:
                for one in audited(name, Path(folder)):
                    wrong += one.problem is not None
                    print(f"{name:<32}{one.action:<34}{one.seconds:6.1f} s  {one.problem or 'a verdict'}", flush=True)
            except GemError as error:
                wrong += 1
                print(f"{name:<32}{error}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
