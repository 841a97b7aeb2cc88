"""Domains of a clone of tau-bench: data, functions, tasks and policy.

tau-bench is https://github.com/sierra-research/tau-bench (MIT); none of it is part of this project. A domain is a
folder `tau_bench/envs/<domain>` of the clone with

| part | contents |
| --- | --- |
| `data/__init__.py` | `load_data()` |
| `tools/__init__.py` | `ALL_TOOLS`: classes with `get_info()` and `invoke(data, **arguments)` |
| `tasks_<split>.py` | `TASKS_<SPLIT>` or `TASKS`: tasks with `instruction`, `actions` and `outputs` |
| `wiki.md` | the policy |

Reading a domain runs the code of the clone, in this process. What tau-bench needs beyond these parts is not loaded: its
users and its agents, and the libraries for models that these import. A function that imports something of the clone
only when it is called does not find it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pickle
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias, cast

import msgspec

from gem_core.errors import EnvError
from gem_core.tool import Function

VARIABLE = "TAU_BENCH_HOME"
"""Environment variable with the folder of the clone."""
Data: TypeAlias = "dict[str, Any]"

_PACKAGE = "tau_bench"
_LOADING = threading.Lock()


@dataclass(frozen=True)
class Reference:
    """A task of a clone."""

    name: str
    instruction: str
    """What a customer wants, is and knows."""
    actions: tuple[tuple[str, Mapping[str, Any]], ...]
    """Calls that lead to the wanted database."""
    outputs: tuple[str, ...]
    """Texts that the customer must be told."""


class Domain:
    """A domain with the tasks of a split. Made once per process; see `domain`.

    Args:
        policy: the rules that an agent is told.
        tools: classes by the names of their functions.
        functions: what a model sees of them.
        tasks: of the split.
        data: the database in the morning.
    """

    def __init__(
        self,
        policy: str,
        tools: Mapping[str, Any],
        functions: Sequence[Function],
        tasks: Sequence[Reference],
        data: Data,
    ) -> None:
        self.policy = policy
        self.functions = tuple(functions)
        self.tasks = tuple(tasks)
        self._tools = tools
        self._data = pickle.dumps(data)
        self._wanted = functools.lru_cache(maxsize=None)(self._digest_after)

    def data(self) -> Data:
        """A database of its own, as it is in the morning."""
        return pickle.loads(self._data)

    def invoke(self, data: Data, name: str, arguments: Mapping[str, Any]) -> str:
        """The result of a call as tau-bench's own loop has it: an exception is a text that begins with `Error: `."""
        try:
            return str(self._tools[name].invoke(data=data, **arguments))
        except Exception as error:
            return f"Error: {error}"

    def is_wanted(self, data: Data, number: int) -> bool:
        """Whether a database equals the one after the reference calls of a task."""
        return _digest(data) == self._wanted(number)

    def _digest_after(self, number: int) -> str:
        data = self.data()
        for name, arguments in self.tasks[number].actions:
            if name in self._tools:
                self.invoke(data, name, arguments)
        return _digest(data)


def folder_of(home: str | None) -> Path:
    """The folder of a clone; `None` means the one that the variable `TAU_BENCH_HOME` names.

    Raises:
        EnvError: none is named.
    """
    folder = home or os.environ.get(VARIABLE)
    if not folder:
        raise EnvError(
            "no clone of tau-bench is named. Next: git clone https://github.com/sierra-research/tau-bench, and give "
            f"its folder as home=... or in the variable {VARIABLE}"
        )
    return Path(folder).expanduser().resolve()


@functools.lru_cache(maxsize=8)
def domain(home: Path, name: str, split: str) -> Domain:
    """A domain of a clone, read once per process.

    Args:
        home: see `folder_of`.
        name: of the domain's folder.
        split: of the domain's tasks.

    Raises:
        EnvError: it has no such domain or split, or its code raises.
    """
    envs = home / _PACKAGE / "envs"
    _check(envs, name, split)
    try:
        with _LOADING, _packages(home, name):
            parts = {part: importlib.import_module(f"{_PACKAGE}.envs.{name}.{part}") for part in ("data", "tools")}
            tasks = importlib.import_module(f"{_PACKAGE}.envs.{name}.tasks_{split}")
        infos = [(tool, tool.get_info()["function"]) for tool in parts["tools"].ALL_TOOLS]
        return Domain(
            (envs / name / "wiki.md").read_text(encoding="utf-8"),
            {info["name"]: tool for tool, info in infos},
            [Function(info["name"], info["description"], info["parameters"]) for _, info in infos],
            _tasks(tasks, split),
            parts["data"].load_data(),
        )
    except Exception as error:
        raise EnvError(
            f"the domain {name!r} of {home} cannot be read: {error!r}. Next: clone tau-bench anew"
        ) from error


def _check(envs: Path, name: str, split: str) -> None:
    folders = [path.parent for path in sorted(envs.glob("*/tools")) if path.is_dir()]
    if not folders:
        raise EnvError(f"{envs} has no domains. Next: give the folder of a clone of tau-bench, which has {_PACKAGE}/")
    if envs / name not in folders:
        raise EnvError(f"domain must be one of {', '.join(path.name for path in folders)}, not {name!r}")
    splits = [path.stem.removeprefix("tasks_") for path in sorted((envs / name).glob("tasks_*.py"))]
    if split not in splits:
        raise EnvError(f"split must be one of {', '.join(splits)} for the domain {name}, not {split!r}")


@contextmanager
def _packages(home: Path, name: str) -> Generator[None]:
    """Let modules of the clone import each other, but without what its packages import at first.

    These packages are there meanwhile only. So an installed tau-bench and a second clone stay what they are.
    """
    before = _taken()
    try:
        for package in (_PACKAGE, f"{_PACKAGE}.envs", f"{_PACKAGE}.envs.{name}"):
            module = ModuleType(package)
            module.__path__ = [str(home.joinpath(*package.split(".")))]
            sys.modules[package] = module
        sys.modules[f"{_PACKAGE}.types"] = types = ModuleType(f"{_PACKAGE}.types")
        types.__dict__.update(Task=SimpleNamespace, Action=SimpleNamespace)
        importlib.invalidate_caches()
        yield
    finally:
        _taken()
        sys.modules.update(before)


def _taken() -> dict[str, ModuleType]:
    """The modules of the package, which are no longer loaded after this."""
    names = [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]
    return {name: sys.modules.pop(name) for name in names}


def _tasks(module: ModuleType, split: str) -> list[Reference]:
    found = getattr(module, f"TASKS_{split.upper()}", None) or getattr(module, "TASKS", None)
    if not found:
        raise EnvError(f"{module.__name__} has no tasks: neither TASKS_{split.upper()} nor TASKS")
    return [_task(task, f"{split}-{number}") for number, task in enumerate(cast("Sequence[Any]", found))]


def _task(task: Any, name: str) -> Reference:
    actions = tuple((action.name, action.kwargs) for action in task.actions)
    return Reference(name, task.instruction, actions, tuple(map(str, task.outputs)))


def _digest(data: Data) -> str:
    # 1 and 1.0 differ, as they do in tau-bench's own hash.
    return hashlib.sha256(msgspec.json.encode(data, order="deterministic")).hexdigest()
