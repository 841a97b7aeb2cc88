"""Commands of plugins: entry points of the group `gem_core.commands`, each a function or a `typer.Typer`.

    [project.entry-points."gem_core.commands"]
    draw-maze = "my_mazes.command:draw"

The name of the entry point is the command's.
"""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any

import typer
from typer.main import get_command

from gem_core.cli._terminal import first_line, plugins_at_work, warn
from gem_core.errors import PluginError, convert_errors
from gem_core.plugins import command_entries, load_entry, manager

if TYPE_CHECKING:
    import importlib.metadata

    from gem_core.specs import Provenance

_OURS = "gem-core"


def load_command(name: str) -> Any:
    """The command of that name, or `None` if no plugin has it.

    Raises:
        PluginError: it cannot be loaded, or several distributions have one of this name.
    """
    found = [(entry, provenance) for entry, provenance in command_entries() if entry.name == name]
    own = [(entry, provenance) for entry, provenance in found if provenance.distribution == _OURS]
    found = own or found  # no other distribution can take the place of a command of ours
    if len(found) > 1:
        claims = " and ".join(str(provenance) for _, provenance in found)
        raise PluginError(
            f"the command {name!r} is claimed by {claims}. Uninstall one, or name its distribution in "
            "GEM_DISABLE_PLUGINS."
        )
    return _loaded(*found[0]) if found else None


def load_others(known: Container[str]) -> Iterator[tuple[str, Any]]:
    """All commands of plugins, by name. Those that cannot be loaded, or whose name is taken, are warnings."""
    entries = command_entries()
    ours = {entry.name for entry, provenance in entries if provenance.distribution == _OURS}
    for entry, provenance in entries:
        if entry.name in ours and provenance.distribution != _OURS:
            warn(f"a plugin's command was left out: another command has the name {entry.name!r}")
    for name in dict.fromkeys(entry.name for entry, _ in entries):
        try:
            if name in known:
                raise PluginError(f"another command has the name {name!r}")
            yield name, load_command(name)
        except PluginError as error:
            warn(f"a plugin's command was left out: {error}")


def _loaded(entry: importlib.metadata.EntryPoint, provenance: Provenance) -> Any:
    with plugins_at_work(manager), manager.around(f"loading {provenance}"):
        target = load_entry(entry, provenance)
        with convert_errors(lambda error: PluginError(f"{provenance}: {type(error).__name__}: {first_line(error)}")):
            return _command(entry, target)  # reads the types of its parameters


def _command(entry: importlib.metadata.EntryPoint, target: Any) -> Any:
    if not isinstance(target, typer.Typer):
        if not inspect.isroutine(target):
            raise PluginError(f"{entry.value!r} is neither a function nor a typer.Typer")
        target, function = typer.Typer(), target
        target.command(entry.name)(function)
    command: Any = get_command(target)
    command.name = entry.name
    # Completion belongs to the whole command line. Plain help (no rich markup) cannot break on a plugin's text.
    command.params = [one for one in command.params if one.name not in ("install_completion", "show_completion")]
    for one in (command, *getattr(command, "commands", {}).values()):
        one.rich_markup_mode = None
    return command
