"""`gem-core doctor`: what is installed, whether the versions are compatible, and what to do if they are not."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Sequence
from typing import TypeVar

from gem_core.cli import machine
from gem_core.cli.listing import plugin_record, plugin_rows
from gem_core.cli.terminal import Row, first_line, plugins_at_work, print_json, print_table, warn
from gem_core.plugins import manager
from gem_core.specs import Ability, AdapterSpec, Boundary
from gem_core.versions import installed_version, is_supported, remedy

_T = TypeVar("_T")


def examine(as_json: bool) -> bool:
    """Print the state of this installation and machine. Returns `False` if a plugin is broken."""
    with plugins_at_work(manager):
        frameworks = [_framework(one.spec) for one in manager.all_registrations("gem_adapters")]
        abilities, boundaries = _reports()
    plugins = manager.plugins()
    for problem in manager.selection_problems():
        warn(problem)
    if as_json:
        print_json(
            {
                "installation": _installation(),
                "frameworks": frameworks,
                "plugins": [plugin_record(plugin) for plugin in plugins],
                "abilities": [dataclasses.asdict(ability) for ability in abilities],
                "boundaries": [dataclasses.asdict(boundary) for boundary in boundaries],
                "accelerator": machine.accelerator(),
            }
        )
    else:
        print_table("Installation", _pairs(_installation()))
        print_table("Training frameworks", frameworks)
        print_table("Plugins", plugin_rows(plugins))
        print_table("Abilities", [_ability(ability) for ability in abilities])
        print_table("Boundaries", [_boundary(boundary) for boundary in boundaries])
        print_table("Accelerator", _pairs(machine.accelerator()))
    return all(plugin.status != "broken" for plugin in plugins)


def _installation() -> dict[str, str | None]:
    return {
        "gem-core": machine.distribution_version("gem-core"),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
    }


def _framework(spec: AdapterSpec) -> Row:
    row = {"framework": spec.id, "supported": f"{spec.distribution}{spec.supported}"}
    try:
        version = installed_version(spec)
        supported = version is not None and is_supported(spec, version)
    except Exception as error:  # a plugin may have declared something that is not a version range
        return {**row, "installed": None, "status": "broken", "next": first_line(error)}
    status = "not installed" if version is None else "ok" if supported else "unsupported"
    return {**row, "installed": version, "status": status, "next": None if supported else remedy(spec)}


def _reports() -> tuple[list[Ability], list[Boundary]]:
    """The reports of plugins, in calling order."""
    abilities: list[Ability] = []
    boundaries: list[Boundary] = []
    manager.notify("gem_doctor", abilities=abilities, boundaries=boundaries)
    return _only(Ability, abilities), _only(Boundary, boundaries)


def _only(kind: type[_T], reported: Sequence[object]) -> list[_T]:
    for one in reported:
        if not isinstance(one, kind):
            warn(f"a plugin's gem_doctor added {one!r}, which is not a gem_core.specs.{kind.__name__}; it was left out")
    return [one for one in reported if isinstance(one, kind)]


def _ability(ability: Ability) -> Row:
    return {"ability": ability.name, "status": "yes" if ability.available else "no", "detail": ability.detail}


def _boundary(boundary: Boundary) -> Row:
    return {"confined": boundary.holds, "status": "yes" if boundary.in_force else "no", "detail": boundary.how}


def _pairs(values: dict[str, str | None]) -> list[Row]:
    return [{"name": name, "value": value or "none"} for name, value in values.items()]
