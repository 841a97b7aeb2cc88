"""The start of a task as its Dockerfile says it, as far as that takes no image build.

A file with `FROM` a plain distribution, `WORKDIR`, `ENV`, `COPY` and `ADD` of local files, and instructions without an
effect on files, says no more than which files lie where. The programs are then those of this machine instead of the
image's. Anything else needs a container.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from gem_sandbox import Entry
from gem_terminal._errors import TaskRefused
from gem_terminal._task import WORK, entry_of, files_below

_BASES = re.compile(r"^(?:docker\.io/)?(?:library/)?(?:debian|ubuntu|python)(?::[\w.-]+)?$")
"""Images that bring nothing but a system."""
_BENCH = re.compile(r"^ghcr\.io/laude-institute/t-bench/(?:ubuntu|debian|python)[\w.-]*(?::[\w.-]+)?$")
_WITHOUT_EFFECT = {"CMD", "ENTRYPOINT", "LABEL", "MAINTAINER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
CONTAINERS = "Docker or podman for it. Give backend='docker' or 'podman'"
"""What a task needs that the sandbox cannot start."""
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass
class Start:
    """The start of a task."""

    folder: str = WORK
    files: dict[str, Entry] = field(default_factory=dict[str, Entry])
    variables: dict[str, str] = field(default_factory=dict[str, str])


def is_plain(image: str) -> bool:
    """Whether an image brings nothing but a system."""
    return bool(_BASES.match(image) or _BENCH.match(image))


def read(path: Path, name: str) -> Start:
    """The start that a Dockerfile describes.

    Args:
        path: the file; what it copies lies beside it.
        name: of the task, for the error.

    Raises:
        TaskRefused: it needs an image build, or an image that is more than a system.
    """
    start = Start()
    for instruction, rest in _instructions(path.read_text(encoding="utf-8", errors="replace")):
        if instruction == "FROM":
            image = rest.split()[0]
            if not is_plain(image):
                raise TaskRefused(f"{name}: it needs the image {image!r}, and {CONTAINERS}")
        elif instruction == "WORKDIR":
            start.folder = posixpath.join(start.folder, _filled(rest, start))
            start.files.setdefault(start.folder, Entry(is_folder=True, mode=0o755))
        elif instruction == "ENV":
            start.variables |= _variables(rest, name)
        elif instruction in ("COPY", "ADD"):
            start.files |= _copied(path.parent, rest, start, name)
        elif instruction not in _WITHOUT_EFFECT:
            raise TaskRefused(f"{name}: it needs an image build ({instruction} {rest[:60]!r}), and {CONTAINERS}")
    return start


def _instructions(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\s*\n", " ", "\n".join(lines)).splitlines()
    words = [line.strip().split(None, 1) for line in whole if line.strip()]
    return [(word[0].upper(), word[1] if len(word) > 1 else "") for word in words]


def _filled(text: str, start: Start) -> str:
    return _VARIABLE.sub(lambda match: start.variables.get(match[1], ""), text.strip())


def _variables(rest: str, name: str) -> dict[str, str]:
    if "=" not in rest.split()[0]:
        key, _, value = rest.partition(" ")
        return {key: value.strip()}
    try:
        return dict(word.split("=", 1) for word in shlex.split(rest))
    except ValueError as error:
        raise TaskRefused(f"{name}: its Dockerfile has ENV {rest!r}, which cannot be read: {error}") from None


def _copied(beside: Path, rest: str, start: Start, name: str) -> dict[str, Entry]:
    words = [_filled(word, start) for word in rest.split()]
    if any(word.startswith(("--", "http:", "https:", "[", "git@")) for word in words):
        raise TaskRefused(f"{name}: it needs an image build (COPY {rest[:60]!r}), and {CONTAINERS}")
    *sources, target = words
    place = posixpath.normpath(posixpath.join(start.folder, target))
    found: dict[str, Entry] = {}
    for source in sources:
        paths = [beside] if source in (".", "./") else sorted(beside.glob(source.lstrip("/")))
        if not paths or any(beside.resolve() not in (path.resolve(), *path.resolve().parents) for path in paths):
            raise TaskRefused(f"{name}: its Dockerfile copies {source!r}, which is not in {beside}")
        for path in paths:
            into = target.endswith(("/", ".")) or len(sources) > 1 or len(paths) > 1
            if path.is_dir():
                found |= {place: Entry(is_folder=True, mode=0o755), **files_below(path, place)}
            else:
                found[posixpath.join(place, path.name) if into or place == start.folder else place] = entry_of(path)
    return found
