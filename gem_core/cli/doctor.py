"""`gem-core doctor`: what is installed, whether it fits together, and what to do where it does not."""

from __future__ import annotations

import dataclasses
import platform

from gem_core.cli import machine
from gem_core.cli.listing import plugin_record, plugin_rows
from gem_core.cli.terminal import Row, first_line, print_json, print_table, prints_aside
from gem_core.plugins import manager
from gem_core.specs import Ability, AdapterSpec
from gem_core.training import installed_version, is_supported, remedy


def examine(as_json: bool) -> bool:
    """Print the state of this installation and machine; returns whether every plugin is sound."""
    abilities: list[Ability] = []
    with prints_aside():
        offers = manager.all_offers("gem_adapters")
        manager.notify("gem_doctor", abilities=abilities)
    frameworks = [_framework(offer.spec) for offer in offers]
    plugins = manager.plugins()
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
    except Exception as error:  # what a plugin wrote may be no version range
        return {**row, "installed": None, "status": "broken", "next": first_line(error)}
    status = "not installed" if version is None else "ok" if supported else "unsupported"
    return {**row, "installed": version, "status": status, "next": None if supported else remedy(spec)}


def _ability(ability: Ability) -> Row:
    return {"ability": ability.name, "status": "yes" if ability.available else "no", "detail": ability.detail}


def _pairs(values: dict[str, str | None]) -> list[Row]:
    return [{"name": name, "value": value or "none"} for name, value in values.items()]
