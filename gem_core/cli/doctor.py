"""`gem-core doctor`: what is installed, whether the parts fit together, and what to do if they do not."""

from __future__ import annotations

import dataclasses
import platform

from gem_core.cli import machine
from gem_core.cli.listing import plugin_record, plugin_rows
from gem_core.cli.terminal import Row, first_line, plugins_at_work, print_json, print_table, warn
from gem_core.plugins import manager
from gem_core.specs import Ability, AdapterSpec
from gem_core.training import installed_version, is_supported, remedy


def examine(as_json: bool) -> bool:
    """Print the state of this installation and machine; returns false if a plugin is broken."""
    with plugins_at_work(manager):
        frameworks = [_framework(one.spec) for one in manager.all_registrations("gem_adapters")]
        abilities = _abilities()
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
                "accelerator": machine.accelerator(),
            }
        )
    else:
        print_table("Installation", _pairs(_installation()))
        print_table("Training frameworks", frameworks)
        print_table("Plugins", plugin_rows(plugins))
        print_table("Abilities", [_ability(ability) for ability in abilities])
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


def _abilities() -> list[Ability]:
    reported: list[Ability] = []
    manager.notify("gem_doctor", abilities=reported)
    for one in reported:
        if not isinstance(one, Ability):  # pyright: ignore[reportUnnecessaryIsInstance]  # plugins err
            warn(f"a plugin's gem_doctor added {one!r}, which is not a gem_core.specs.Ability; it was left out")
    return [one for one in reported if isinstance(one, Ability)]  # pyright: ignore[reportUnnecessaryIsInstance]


def _ability(ability: Ability) -> Row:
    return {"ability": ability.name, "status": "yes" if ability.available else "no", "detail": ability.detail}


def _pairs(values: dict[str, str | None]) -> list[Row]:
    return [{"name": name, "value": value or "none"} for name, value in values.items()]
