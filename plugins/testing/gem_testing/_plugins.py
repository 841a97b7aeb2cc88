"""Plugins without installing them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from gem_core.errors import PluginError
from gem_core.plugins import GROUP, PluginManager


class IsolatedPluginManager(PluginManager):
    """A plugin manager that never reads the installed distributions, so that a test means the same everywhere.

    Example:
        >>> from gem_testing import IsolatedPluginManager
        >>> manager = IsolatedPluginManager()
        >>> manager.add_plugin("maze", my_mazes.plugin)
        >>> [registration.spec.id for registration in manager.registrations("gem_envs", "maze")]
    """

    def __init__(self) -> None:
        super().__init__(discover=self._added_entry_points)
        self._added: list[metadata.EntryPoint] = []
        self._read = False

    def add_plugin(
        self, namespace: str, plugin: object | str, *, distribution: str = "test-plugin", version: str = "1.0"
    ) -> None:
        """Add an object as if a distribution declared it.

        Args:
            namespace: the entry point's name, with which its ids start.
            plugin: a module or object with hook implementations, or the name of a module to import when it is loaded.
            distribution: the distribution that declares it; two may declare one namespace.
            version: that distribution's version.

        Raises:
            PluginError: the manager has already looked for plugins.
        """
        if self._read:
            raise PluginError(
                f"plugin {namespace!r} comes too late: this manager looked for plugins before. Add it first."
            )
        self._added.append(_entry_point(namespace, plugin, _Distribution(distribution, version)))

    def _added_entry_points(self) -> Iterable[metadata.EntryPoint]:
        if not self._added:
            raise PluginError(
                "this test's plugin manager was asked for plugins and has none: it never reads the installed "
                "distributions. Hand it some with add_plugin(namespace, module)."
            )
        self._read = True
        return self._added


class _InMemory(metadata.EntryPoint):
    """An entry point that holds its object."""

    def load(self) -> Any:
        return vars(self)["plugin"]


class _Distribution(metadata.Distribution):
    """A distribution that consists of its name and version."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Path:
        return Path(path)


def _entry_point(name: str, plugin: object | str, distribution: _Distribution) -> metadata.EntryPoint:
    if isinstance(plugin, str):
        entry = metadata.EntryPoint(name, plugin, GROUP)
    else:
        entry = _InMemory(name, f"<{type(plugin).__name__}>", GROUP)
    vars(entry).update(dist=distribution, plugin=plugin)  # entry points refuse plain assignment since Python 3.11
    return entry
