"""A task: what is to be done, in which files, and what decides whether it was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from gem_sandbox import Entry

Rule: TypeAlias = Literal["check", "exit code", "reward file", "pytest"]
"""How the tests say their verdict: a Python program that runs to its end; a shell script with its exit code; with the
number in /logs/verifier/reward.txt or reward.json; with the summary that pytest prints."""

TESTS = "/tests"
WORK = "/app"
JUDGED = (WORK, "/home", "/opt", "/root", "/srv", "/tmp", "/var")
"""The folders that tests get as they were left, where a task names no others."""


class Rewards(NamedTuple):
    """Between which numbers the reward of a task lies."""

    least: float = 0.0
    most: float = 1.0
    """Of a task that is solved."""


@dataclass(frozen=True)
class Image:
    """What a container of a task is made of: one of the two."""

    name: str | None = None
    """An image that the engine has or gets from a registry."""
    context: Path | None = None
    """A folder with a Dockerfile."""


@dataclass(frozen=True)
class TerminalTask:
    """A task, read from its folder."""

    name: str
    instruction: str
    start: Mapping[str, Entry]
    """The files that are there at the start, by absolute path."""
    tests: Mapping[str, Entry]
    """The files of the tests, below /tests. They are there only while the tests run."""
    script: str
    """The path of the tests' shell script, or of the Python program with the rule `check`."""
    rule: Rule
    seconds: float = 600.0
    """Seconds that all commands of an episode may take together."""
    test_seconds: float = 600.0
    """Seconds that the tests may take."""
    folder: str = WORK
    """Where commands start."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables of commands and tests."""
    solution: str | None = None
    """A shell script that solves it, where the folder has one. Never shown."""
    image: Image | None = None
    """What it runs in, where it was read for containers. `start` is empty then."""
    judged: tuple[str, ...] = JUDGED
    """Files and folders that the tests get as the episode has left them; none lies in another one. All others are as
    at the start."""
    rewards: Rewards = field(default_factory=Rewards)


def files_below(folder: Path, place: str) -> dict[str, Entry]:
    """The files, folders and links below a folder, as they are to be found below another one.

    Args:
        folder: on this machine.
        place: an absolute path in the shell.
    """
    found: dict[str, Entry] = {}
    for path in sorted(folder.rglob("*")):
        if "__pycache__" not in path.parts:
            found[os.path.join(place, path.relative_to(folder).as_posix())] = entry_of(path)
    return found


def entry_of(path: Path) -> Entry:
    """A file, folder or link of this machine. Of its rights, whether it can be executed is kept, as git does."""
    if path.is_symlink():
        return Entry(target=os.readlink(path))
    if path.is_dir():
        return Entry(is_folder=True, mode=0o755)
    return Entry(path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
