"""The files and folders that a task judges: its tests get them as the episode left them.

It is a list of what is allowed. The places where the system looks for the code of its programs are on no such list
unless a task puts them there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from gem_terminal._errors import TaskRefused
from gem_terminal._task import JUDGED, TESTS

_T = TypeVar("_T")
NEVER = (TESTS, "/logs", "/solution", "/oracle")
"""Folders that the tests bring themselves, or must not find."""
EVERYTHING = "/"
"""In a container: the tests run in that of the episode, as Harbor's do."""
_SYSTEM = (
    *NEVER, "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32",
    "/usr/lib64", "/usr/libx32", "/dev", "/proc", "/run", "/sys",
)  # fmt: skip
"""Where nothing is judged."""
_OF_THE_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.preload")


def judged(named: Any, folder: str, start: Iterable[str], name: str, *, containers: bool = False) -> tuple[str, ...]:
    """The files and folders that a task judges.

    Args:
        named: its own list, or `None`: then its working folder, `JUDGED`, and the files of its start that lie
            elsewhere.
        folder: where its commands start; empty for the image's own.
        start: the paths of its files at the start.
        name: of the task, for the error.
        containers: it runs in those, where a task may name `EVERYTHING`.

    Raises:
        TaskRefused: the list names something else, or places that hold the system; or the working folder is such a
            place.
    """
    if named is None:
        own = [folder] if folder else []
        return _outermost([*_checked(own, "its working folder", name), *JUDGED, *filter(_is_judged_file, start)])
    if containers and named == [EVERYTHING]:
        return (EVERYTHING,)
    if not isinstance(named, list) or not named or not all(isinstance(one, str) for one in cast("list[Any]", named)):
        raise TaskRefused(f"{name}: judged must be a list of absolute paths, and is {named!r:.80}")
    return _outermost(_checked(cast("list[str]", named), "judged", name))


def with_folder(judged: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """The judged folders, with the working folder unless it is part of the system."""
    return _outermost([*judged, folder]) if _is_plain(folder) else judged


def without(entries: Mapping[str, _T], judged: Iterable[str]) -> dict[str, _T]:
    """Those that are not judged, by path."""
    return {path: entry for path, entry in entries.items() if not any(_is_below(path, one) for one in judged)}


def _checked(paths: Iterable[str], what: str, name: str) -> list[str]:
    for path in paths:
        if not _is_plain(path):
            raise TaskRefused(
                f"{name}: {what} is {path!r}, which cannot be judged: name files and folders by absolute paths that "
                "hold nothing of the system, as judged = [...] under [verifier] in task.toml"
            )
    return [*paths]


def _is_plain(path: str) -> bool:
    """Whether it is an absolute path to something that holds nothing of the system."""
    clean = path.startswith("/") and posixpath.normpath(path) == path and not path.startswith("//")
    return clean and not any(_is_below(path, place) or _is_below(place, path) for place in (*_SYSTEM, *_OF_THE_LOADER))


def _is_judged_file(path: str) -> bool:
    return not any(_is_below(path, place) for place in (*_SYSTEM, "/usr"))


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    different = {*paths}
    return tuple(sorted(path for path in different if not any(_is_below(path, one) for one in different - {path})))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
