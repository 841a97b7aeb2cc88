"""Folders of tasks, as their authors publish them: Harbor's, which ours are, too, and terminal-bench's.

| | Harbor | terminal-bench |
| --- | --- | --- |
| settings | `task.toml` | `task.yaml` |
| instruction | `instruction.md` | in `task.yaml` |
| start | `environment/`: its Dockerfile, or else its files, which lie in /app | `Dockerfile`, `docker-compose.yaml` |
| tests | `tests/test.sh` | `run-tests.sh`, `tests/` |
| verdict | /logs/verifier/reward.txt or reward.json | the summary that pytest prints |
| solution | `solution/solve.sh` | `solution.sh` |

A task of ours says `reward = "check"` under `[verifier]`: `tests/check.py` is a Python program that raises no
exception where the task is solved. Its symbolic links are in `[environment.links]`, because a wheel has none.

| key of ours under `[verifier]` | |
| --- | --- |
| `reward` | `"check"`, or `"exit code"`: that of tests/test.sh decides; the reward file if it is left out |
| `reward_range` | `[least, most]` of the reward file, `[0, 1]` by default |
| `judged` | paths that the tests get as they were left, in place of `gem_terminal._task.JUDGED` |
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml

from gem_sandbox import Entry
from gem_terminal import _dockerfile as dockerfile
from gem_terminal import _needs as needs
from gem_terminal._errors import TaskRefused
from gem_terminal._judged import judged
from gem_terminal._task import TESTS, WORK, Image, Rewards, Rule, TerminalTask, entry_of, files_below

_toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_HARBOR, _BENCH = "task.toml", "task.yaml"
_RULES: Mapping[Any, tuple[Rule, str]] = {
    None: ("reward file", "test.sh"),
    "exit code": ("exit code", "test.sh"),
    "check": ("check", "check.py"),
}
"""By what `reward` says, with the file of the tests."""
_MAX_SECONDS = 86_400.0
_MAX_REWARD = 1e6


class Where(NamedTuple):
    """Where tasks are to run."""

    containers: bool
    """In containers, and not in the sandbox."""
    network: bool
    """Whether there is a network."""


SANDBOX = Where(containers=False, network=False)


class Tasks(NamedTuple):
    """What a folder holds."""

    runnable: tuple[TerminalTask, ...]
    """By name."""
    refused: Mapping[str, str]
    """Why the others cannot run here, by their names."""


def read_tasks(folder: Path, where: Where = SANDBOX) -> Tasks:
    """The task in a folder, or all tasks in the folders right below it.

    Args:
        folder: of a task, or of tasks.
        where: they are to run.

    Raises:
        TaskRefused: there is no task.
    """
    if not folder.is_dir():
        raise TaskRefused(f"there is no folder {str(folder)!r}. Give the folder of a task, or one with such folders")
    folders = [folder] if _is_task(folder) else sorted(path for path in folder.iterdir() if _is_task(path))
    if not folders:
        raise TaskRefused(f"{folder} holds no task: neither {_HARBOR} nor {_BENCH} is in it or right below it")
    runnable: list[TerminalTask] = []
    refused: dict[str, str] = {}
    for one in folders:
        try:
            runnable.append(read_task(one, where))
        except TaskRefused as error:
            refused[one.name] = str(error)
    return Tasks(tuple(runnable), refused)


def read_task(folder: Path, where: Where = SANDBOX) -> TerminalTask:
    """The task in a folder.

    Args:
        folder: of the task.
        where: it is to run.

    Raises:
        TaskRefused: it cannot run here, or the folder holds none.
    """
    try:
        return _harbor(folder, where) if (folder / _HARBOR).is_file() else _terminal_bench(folder, where)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # of TOML and of texts: ValueError
        raise TaskRefused(f"{folder.name}: it cannot be read: {error}") from error


def _is_task(folder: Path) -> bool:
    return (folder / _HARBOR).is_file() or (folder / _BENCH).is_file()


def _harbor(folder: Path, where: Where) -> TerminalTask:
    name = folder.name
    settings: dict[str, Any] = _toml.loads((folder / _HARBOR).read_text(encoding="utf-8"))
    agent, verifier, environment = (_table(settings, key, name) for key in ("agent", "verifier", "environment"))
    if settings.get("steps"):
        raise TaskRefused(f"{name}: it has several steps, which this package does not run")
    named = environment.get("docker_image")
    if named is not None and not where.containers and not dockerfile.is_plain(str(named)):
        raise TaskRefused(f"{name}: it needs the image {named!r}, and {dockerfile.CONTAINERS}")
    rule, script = _rule(verifier.get("reward"), name)
    _check(folder, [folder / "tests" / script], folder / "environment", where)
    image = _image(folder / "environment", named, name) if where.containers else None
    start = dockerfile.Start("") if image else _start(folder / "environment", name)
    links = {path: Entry(target=target) for path, target in _texts(environment.get("links")).items()}
    files, work = {**start.files, **links}, str(environment.get("workdir") or start.folder)
    return TerminalTask(
        name,
        (folder / "instruction.md").read_text(encoding="utf-8").strip(),
        files,
        files_below(folder / "tests", TESTS),
        f"{TESTS}/{script}",
        rule,
        _seconds(agent, "timeout_sec", name),
        _seconds(verifier, "timeout_sec", name),
        work,
        {**start.variables, **_texts(environment.get("env"))},
        _text(folder / "solution" / "solve.sh"),
        image,
        judged(verifier.get("judged"), work, files, name, containers=where.containers),
        _rewards(verifier.get("reward_range", [0, 1]), name),
    )


def _terminal_bench(folder: Path, where: Where) -> TerminalTask:
    name = folder.name
    settings = yaml.safe_load((folder / _BENCH).read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise TaskRefused(f"{name}: {_BENCH} holds no settings")
    settings = cast("dict[str, Any]", settings)
    if settings.get("parser_name", "pytest") != "pytest":
        raise TaskRefused(f"{name}: its tests are read by {settings['parser_name']!r}; this package reads pytest's")
    if settings.get("run_tests_in_same_shell"):
        raise TaskRefused(f"{name}: its tests run in the shell of the policy, and here they never do")
    script = folder / "run-tests.sh"
    _check(folder, [script, *sorted(folder.glob("tests/*.sh"))], folder, where)
    image = _image(folder, None, name) if where.containers else None
    built = (folder / "Dockerfile").is_file() and not image
    start = dockerfile.read(folder / "Dockerfile", name) if built else dockerfile.Start("" if image else WORK)
    own = {f"{TESTS}/run-tests.sh": entry_of(script)}
    return TerminalTask(
        name,
        _instruction(settings, name),
        start.files,
        {**files_below(folder / "tests", TESTS), **own},
        f"{TESTS}/run-tests.sh",
        "pytest",
        _seconds(settings, "max_agent_timeout_sec", name),
        _seconds(settings, "max_test_timeout_sec", name),
        start.folder,
        {**start.variables, "TEST_DIR": TESTS},
        _text(folder / "solution.sh"),
        image,
        judged(None, start.folder, start.files, name),
    )


def _instruction(settings: Mapping[str, Any], name: str) -> str:
    text = settings.get("instruction")
    if not isinstance(text, str):
        raise TaskRefused(f"{name}: {_BENCH} has no instruction")
    return text.strip()


def _start(folder: Path, name: str) -> dockerfile.Start:
    if (folder / "Dockerfile").is_file():
        return dockerfile.read(folder / "Dockerfile", name)
    return dockerfile.Start(files=files_below(folder, WORK) if folder.is_dir() else {})


def _image(context: Path, named: Any, name: str) -> Image:
    """What the containers of a task are made of."""
    if (context / "Dockerfile").is_file():
        return Image(context=context.resolve())
    if named is None:
        raise TaskRefused(f"{name}: it has no Dockerfile and names no image. Leave out backend=... to run it")
    return Image(name=str(named))


def _check(folder: Path, scripts: list[Path], environment: Path, where: Where) -> None:
    """Raises `TaskRefused` for what can be seen to need more than there is."""
    name = folder.name
    if missing := next((path for path in scripts if not path.is_file()), None):
        raise TaskRefused(f"{name}: it has no {missing.relative_to(folder).as_posix()}")
    for compose in (environment / "docker-compose.yaml", environment / "docker-compose.yml"):
        if compose.is_file():
            content = yaml.safe_load(compose.read_text(encoding="utf-8"))
            services = _table(cast("dict[str, Any]", content or {}), "services", name)
            if len(services) > 1:
                raise TaskRefused(f"{name}: it needs {len(services)} containers, and this package runs one")
    if problem := needs.problem_of(scripts, folder, own_programs=where.containers, network=where.network):
        raise TaskRefused(f"{name}: {problem}")


def _table(settings: Mapping[str, Any], key: str, name: str) -> dict[str, Any]:
    value = settings.get(key, {})
    if not isinstance(value, dict):
        raise TaskRefused(f"{name}: {key!r} must be a table, and is {value!r:.80}")
    return cast("dict[str, Any]", value)


def _seconds(table: Mapping[str, Any], key: str, name: str) -> float:
    value = table.get(key, 600.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _MAX_SECONDS:
        raise TaskRefused(f"{name}: {key} must be a number of seconds, up to {_MAX_SECONDS:g}, and is {value!r:.80}")
    return float(value)


def _rule(reward: Any, name: str) -> tuple[Rule, str]:
    if isinstance(reward, (list, dict)) or reward not in _RULES:
        raise TaskRefused(f"{name}: reward must be 'check', 'exit code', or left out, and is {reward!r:.80}")
    return _RULES[reward]


def _rewards(value: Any, name: str) -> Rewards:
    numbers = cast("list[Any]", value) if isinstance(value, list) else []
    right = [one for one in numbers if type(one) in (int, float) and abs(one) <= _MAX_REWARD]
    if len(numbers) != 2 or len(right) != 2 or not right[0] < right[1]:
        raise TaskRefused(f"{name}: reward_range must be [least, most], two numbers, and is {value!r:.80}")
    return Rewards(*map(float, right))


def _texts(value: Any) -> dict[str, str]:
    items = cast("dict[str, Any]", value).items() if isinstance(value, dict) else ()
    return {str(key): str(one) for key, one in items}


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
