"""Shared by the core's tests: plugin distributions written to disk, and real tokenizers."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import re
import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from gem_core.plugins import GROUP, PluginManager
from gem_support.console import in_place
from gem_support.waiting import SECONDS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Site:
    """A folder of installed distributions that declare plugins, as pip would leave it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def add(self, name: str, source: str, **declared: Any) -> str:
        """Write a plugin module and the distribution that declares it; returns the module's name."""
        module = f"plugin_{name}_{uuid.uuid4().hex}"
        prologue = "import gem_core\nfrom gem_core import EnvSpec, hookimpl\n"
        (self.folder / f"{module}.py").write_text(prologue + textwrap.dedent(source))
        return self.declare(name, module, **declared)

    def declare(
        self,
        name: str,
        module: str,
        *,
        distribution: str | None = None,
        version: str = "1.0",
        requires: Sequence[str] = (),
    ) -> str:
        """Write a distribution whose entry point `name` is `module`."""
        distribution = distribution or f"gem-{name}"
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = [f"Name: {distribution}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
        extras = {found[1] for one in requires if (found := re.search(r"extra == '(\w+)'", one))}
        lines += [f"Provides-Extra: {extra}" for extra in sorted(extras)]
        (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}\n")
        self.modules.append(module)
        importlib.invalidate_caches()
        return module

    def entry_points(self) -> list[importlib.metadata.EntryPoint]:
        """The entry points of all distributions here, with the distributions behind them."""
        installed = importlib.metadata.distributions(path=[str(self.folder)])
        return [entry for one in installed for entry in one.entry_points if entry.group == GROUP]

    def manager(self) -> PluginManager:
        """A manager that knows the distributions added so far and afterwards, until it first looks."""
        return PluginManager(discover=self.entry_points)

    def module(self, name: str) -> ModuleType:
        """A plugin module that was imported."""
        return sys.modules[name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder of distributions, on the import path."""
    for name in ("GEM_PLUGINS", "GEM_DISABLE_PLUGINS", "GEM_STRICT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    made = Site(tmp_path)
    yield made
    for module in made.modules:
        sys.modules.pop(module, None)


@pytest.fixture
def in_force(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], PluginManager]]:
    """Puts a manager of the site's plugins in the place of the process's own, in every module that uses it."""
    with contextlib.ExitStack() as stack:

        def put() -> PluginManager:
            replacement = site.manager()
            stack.enter_context(in_place(replacement, monkeypatch))
            return replacement

        yield put


@pytest.fixture
def patient_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors that close give up no worker, however long a busy machine keeps it from closing its environments."""
    monkeypatch.setattr("gem_core.vector._pool.CLOSE_SECONDS", SECONDS)


def _real_tokenizers() -> ModuleType:
    for needed in ("transformers", "jinja2"):
        pytest.importorskip(needed, reason="it needs the dependency group `tokenizers`")
    return importlib.import_module("gem_support.real_tokenizers")


@pytest.fixture(scope="session")
def words() -> PreTrainedTokenizerFast:
    """One token per word."""
    return _real_tokenizers().word_tokenizer()


@pytest.fixture(scope="session")
def chatml() -> PreTrainedTokenizerFast:
    """Byte-level BPE with a ChatML template."""
    return _real_tokenizers().chatml_tokenizer()


@pytest.fixture(scope="session", params=["words", "chatml"])
def tokenizer(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    """Each of the two in turn."""
    return request.getfixturevalue(request.param)
