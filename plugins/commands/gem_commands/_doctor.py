"""`gem-core doctor`: what is installed, whether the versions are compatible, and what to do if they are not."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Sequence
from typing import TypeVar

from gem_commands import _machine as machine
from gem_commands._listing import plugin_record, plugin_rows
from gem_core.cli import Row, first_line, plugins_at_work, print_json, print_table, warn
from gem_core.plugins import manager
from gem_core.specs import AdapterSpec, Capability, Isolation
from gem_train.versions import installed_version, is_supported, remedy

_T = TypeVar("_T")


def examine(as_json: bool) -> bool:
    """Print the state of this installation and machine. Returns `False` if a plugin is broken."""
    with plugins_at_work(manager):
        frameworks = [_framework(one.spec) for one in manager.all_registrations("gem_adapters")]
        capabilities, isolations = _reports()
    plugins = manager.plugins()
    for problem in manager.selection_problems():
        warn(problem)
    if as_json:
        print_json(
            {
                "installation": _installation(),
                "frameworks": frameworks,
                "plugins": [plugin_record(plugin) for plugin in plugins],
                "capabilities": [dataclasses.asdict(capability) for capability in capabilities],
                "isolations": [dataclasses.asdict(isolation) for isolation in isolations],
                "accelerator": machine.accelerator(),
            }
        )
    else:
        print_table("Installation", _pairs(_installation()))
        print_table("Training frameworks", frameworks)
        print_table("Plugins", plugin_rows(plugins))
        print_table("Capabilities", [_capability(capability) for capability in capabilities])
        print_table("Isolation", [_isolation(isolation) for isolation in isolations])
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


def _reports() -> tuple[list[Capability], list[Isolation]]:
    """The reports of plugins, in calling order."""
    capabilities: list[Capability] = []
    isolations: list[Isolation] = []
    manager.notify("gem_doctor", capabilities=capabilities, isolations=isolations)
    return _only(Capability, capabilities), _only(Isolation, isolations)


def _only(kind: type[_T], reported: Sequence[object]) -> list[_T]:
    for one in reported:
        if not isinstance(one, kind):
            warn(f"a plugin's gem_doctor added {one!r}, which is not a gem_core.specs.{kind.__name__}; it was left out")
    return [one for one in reported if isinstance(one, kind)]


def _capability(one: Capability) -> Row:
    return {"capability": one.name, "status": "yes" if one.available else "no", "detail": one.detail}


def _isolation(isolation: Isolation) -> Row:
    return {"confined": isolation.holds, "status": "yes" if isolation.in_force else "no", "detail": isolation.how}


def _pairs(values: dict[str, str | None]) -> list[Row]:
    return [{"name": name, "value": value or "none"} for name, value in values.items()]
