"""`gem-core list`: every environment, tool and estimator, and the plugins that are broken or disabled."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gem_core.cli import Row, first_line, plugins_at_work, print_json, print_table, say, warn
from gem_core.errors import GemError, near_matches
from gem_core.installation import install_line, missing_from
from gem_core.plugins import Plugin, Registration, manager
from gem_core.specs import AdvantageSpec, EnvSpec, ToolSpec

_Listed = EnvSpec | ToolSpec | AdvantageSpec
_InstallLines = Mapping[tuple[str | None, str], str]
"""A command by extra and distribution."""

_HOOKS = {"environments": "gem_envs", "tools": "gem_tools", "estimators": "gem_advantages"}


def show_registrations(pattern: str | None, tags: Sequence[str], as_json: bool) -> None:
    """Print the environments, tools and estimators that match, and every plugin that is broken or disabled."""
    everything = {what: _records(hook) for what, hook in _HOOKS.items()}
    for problem in manager.selection_problems():
        warn(problem)
    found = {what: [one for one in records if _fits(one, pattern, tags)] for what, records in everything.items()}
    hint = ""
    if pattern is not None and not any(found.values()):
        try:
            found["environments"] = [one for one in _on_demand(pattern) if set(tags) <= set(one["tags"])]
        except GemError as error:  # the plugin of this namespace knows better than we do
            hint = f" {error}"
    if as_json:
        print_json({**found, "plugins": [plugin_record(plugin) for plugin in manager.plugins()]})
        return
    for what, records in found.items():
        print_table(what.capitalize(), [_row(record) for record in records])
    lines = {(one["needs"], one["install"]) for records in found.values() for one in records if one["needs"]}
    for extra, line in sorted(lines):
        say(f"needs [{extra}]: {line}")
    if lines:
        say()
    if not any(found.values()):
        known = [record["id"] for records in everything.values() for record in records]
        say("Nothing matches." + (hint or near_matches(pattern or "", known)))
    print_table("Plugins left out", plugin_rows(plugin for plugin in manager.plugins() if plugin.status != "ok"))


def _records(hook: str) -> list[dict[str, Any]]:
    """Every registration of a collect hook, in the order of ids. Loads every plugin."""
    with plugins_at_work(manager):
        registrations: list[Registration[_Listed]] = manager.all_registrations(hook)
    claims = Counter(one.spec.id for one in registrations)
    lines = _install_lines(registrations)
    records = (_record(one, claims[one.spec.id], lines) for one in registrations)
    return sorted(records, key=lambda record: (record["id"], record["distribution"]))


def _install_lines(registrations: Iterable[Registration[_Listed]]) -> _InstallLines:
    """How to install each extra that these need and that is not installed."""
    needed = {_extra(one.spec) for one in registrations}
    return {(extra, of): install_line(extra, of) for extra, of in needed if extra and missing_from(extra, of)}


def _extra(spec: _Listed) -> tuple[str | None, str]:
    return getattr(spec, "extra", None), spec.declared_by


def _on_demand(env_id: str) -> list[dict[str, Any]]:
    """The environment of an id that a plugin finds only when it is asked for it. Raises as `manager.find`."""
    with plugins_at_work(manager):
        registration: Registration[_Listed] | None = manager.find("gem_envs", env_id)
    return [] if registration is None else [_record(registration, 1, _install_lines([registration]))]


def plugin_record(plugin: Plugin) -> dict[str, str | None]:
    """A plugin for JSON output."""
    return {
        "plugin": plugin.name,
        "distribution": plugin.provenance.distribution,
        "version": plugin.provenance.version,
        "status": plugin.status,
        "error": None if plugin.error is None else str(plugin.error),
    }


def plugin_rows(plugins: Iterable[Plugin]) -> list[Row]:
    """Plugins for a table: one line each, with the reason why a plugin is broken or disabled."""
    return [
        {**plugin_record(plugin), "error": first_line(plugin.reason) if plugin.reason else ""} for plugin in plugins
    ]


def _record(registration: Registration[_Listed], claims: int, lines: _InstallLines) -> dict[str, Any]:
    line = lines.get(_extra(registration.spec))
    return {
        "id": registration.spec.id,
        "plugin": registration.provenance.plugin,
        "distribution": registration.provenance.distribution,
        "version": registration.provenance.version,
        "status": "duplicate" if claims > 1 else "ok",
        "needs": _extra(registration.spec)[0] if line else None,
        "install": line,
        "tags": _tags(registration.spec),
    }


def _tags(spec: _Listed) -> list[str]:
    """Words to filter by; of an estimator what it needs."""
    if isinstance(spec, AdvantageSpec):
        needs = {
            "needs-groups": spec.needs_groups,
            "needs-values": spec.needs_values,
            "needs-states": spec.needs_states,
        }
        return [tag for tag, needed in needs.items() if needed]
    return list(spec.tags)


def _row(record: dict[str, Any]) -> Row:
    """A record for a table. A missing extra stands for the status, but for a duplicate id."""
    shown = {**record, "tags": ", ".join(record["tags"])}
    needs, _ = shown.pop("needs"), shown.pop("install")
    return {**shown, "status": f"needs [{needs}]"} if needs and shown["status"] == "ok" else shown


def _fits(record: dict[str, Any], pattern: str | None, tags: Sequence[str]) -> bool:
    return set(tags) <= set(record["tags"]) and (pattern is None or _matches(record["id"].lower(), pattern.lower()))


def _matches(env_id: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(env_id, pattern) if any(char in pattern for char in "*?[") else pattern in env_id
