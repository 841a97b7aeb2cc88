"""`gem-core list`: every environment and tool that is installed, and the plugins that could not offer theirs."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gem_core.cli.terminal import Row, first_line, print_json, print_table, prints_aside, say
from gem_core.errors import near_matches
from gem_core.plugins import Offer, Plugin, manager
from gem_core.specs import EnvSpec, ToolSpec

_HOOKS = {"environments": "gem_envs", "tools": "gem_tools"}


def show_offers(pattern: str | None, tags: Sequence[str], as_json: bool) -> None:
    """Print the environments and tools that fit, and every plugin that is broken or disabled."""
    everything = {what: _records(hook) for what, hook in _HOOKS.items()}
    found = {what: [one for one in records if _fits(one, pattern, tags)] for what, records in everything.items()}
    if as_json:
        print_json({**found, "plugins": [plugin_record(plugin) for plugin in manager.plugins()]})
        return
    for what, records in found.items():
        print_table(what.capitalize(), [{**record, "tags": ", ".join(record["tags"])} for record in records])
    if not any(found.values()):
        known = [record["id"] for records in everything.values() for record in records]
        say("Nothing fits." + near_matches(pattern or "", known))
    print_table("Plugins left out", plugin_rows(plugin for plugin in manager.plugins() if plugin.status != "ok"))


def _records(hook: str) -> list[dict[str, Any]]:
    """Everything that is offered through a hook, in the order of ids. Loads every plugin."""
    with prints_aside():
        offers: list[Offer[EnvSpec | ToolSpec]] = manager.all_offers(hook)
    claims = Counter(offer.spec.id for offer in offers)
    records = (_record(offer, claims[offer.spec.id]) for offer in offers)
    return sorted(records, key=lambda record: (record["id"], record["distribution"]))


def plugin_record(plugin: Plugin) -> dict[str, str | None]:
    """What is known about a plugin."""
    return {
        "plugin": plugin.name,
        "distribution": plugin.provenance.distribution,
        "version": plugin.provenance.version,
        "status": plugin.status,
        "error": None if plugin.error is None else str(plugin.error),
    }


def plugin_rows(plugins: Iterable[Plugin]) -> list[Row]:
    """The same for a table: one line each, which also says why a plugin is disabled."""
    return [{**plugin_record(plugin), "error": _reason(plugin)} for plugin in plugins]


def _record(offer: Offer[EnvSpec | ToolSpec], claims: int) -> dict[str, Any]:
    return {
        "id": offer.spec.id,
        "plugin": offer.provenance.plugin,
        "distribution": offer.provenance.distribution,
        "version": offer.provenance.version,
        "status": "duplicate" if claims > 1 else "ok",
        "tags": list(offer.spec.tags),
    }


def _fits(record: dict[str, Any], pattern: str | None, tags: Sequence[str]) -> bool:
    return set(tags) <= set(record["tags"]) and (pattern is None or _matches(record["id"].lower(), pattern.lower()))


def _matches(env_id: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(env_id, pattern) if any(char in pattern for char in "*?[") else pattern in env_id


def _reason(plugin: Plugin) -> str:
    if plugin.status == "disabled":
        return "named in GEM_DISABLE_PLUGINS, or not named in GEM_PLUGINS"
    return first_line(plugin.error) if plugin.error else ""
