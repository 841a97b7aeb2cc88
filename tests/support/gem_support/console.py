"""The console script without a process for each command: a new interpreter would import all plugins again."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gem_core.cli import main
from gem_core.plugins import PluginManager
from gem_core.plugins import manager as own
from gem_support.scripts import Answer


def console(*args: str, site: Path | str | None = None, **env: str) -> Answer:
    """Run `gem-core` here as a new process would: with a manager that has loaded nothing, and streams of its own.

    An exception that would be a traceback is raised. Plugins of the real environment stay imported between calls.

    Args:
        args: of the command line.
        site: a folder with more distributions, imported afresh in each call.
        env: environment variables to set.
    """
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for name in ("stdin", "stdout", "stderr")}
    code: object = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        in_place(PluginManager(), patch),
        _same_log_handlers(),
        _forgotten(site),
    ):
        for name, value in env.items():
            patch.setenv(name, value)
        if site is not None:
            patch.syspath_prepend(site)
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "argv", ["gem-core", *args])
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert code is None or isinstance(code, int), code
    return Answer(code or 0, _written(streams["stdout"]), _written(streams["stderr"]))


@contextlib.contextmanager
def in_place(replacement: PluginManager, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a manager in the place of the process's own, in every module that uses it or is imported meanwhile."""
    for module in _modules_with(own):
        patch.setattr(module, "manager", replacement)
    try:
        yield
    finally:
        for module in _modules_with(replacement):  # undoing the patch leaves those that were imported meanwhile
            vars(module)["manager"] = own


def _modules_with(used: PluginManager) -> list[ModuleType]:
    named = [module for name, module in list(sys.modules.items()) if name.startswith("gem_")]
    return [module for module in named if vars(module).get("manager") is used]


@contextlib.contextmanager
def _same_log_handlers() -> Iterator[None]:
    logger = logging.getLogger("gem_core")
    before = logger.handlers[:]
    try:
        yield
    finally:
        logger.handlers[:] = before


@contextlib.contextmanager
def _forgotten(site: Path | str | None) -> Iterator[None]:
    """Forget the modules of a folder afterwards."""
    try:
        yield
    finally:
        for name, module in list(sys.modules.items()):
            if site is not None and Path(site) in Path(getattr(module, "__file__", None) or "/").parents:
                del sys.modules[name]


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
