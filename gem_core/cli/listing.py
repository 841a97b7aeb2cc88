"""`gem-core list`: every environment that is installed, and the plugins that could not offer theirs."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gem_core.cli.terminal import Row, first_line, print_json, print_table, prints_aside, say
from gem_core.errors import near_matches
from gem_core.plugins import Offer, Plugin, manager
from gem_core.specs import EnvSpec


def show_environments(pattern: str | None, tags: Sequence[str], as_json: bool) -> None:
    """Print the environments that fit, and every plugin that is broken or disabled."""
    everything = environments()
    found = [record for record in everything if _fits(record, pattern, tags)]
    if as_json:
        print_json({"environments": found, "plugins": [plugin_record(plugin) for plugin in manager.plugins()]})
        return
    print_table("Environments", [{**record, "tags": ", ".join(record["tags"])} for record in found])
    if not found:
        say("No environment fits." + near_matches(pattern or "", [record["id"] for record in everything]))
    print_table("Plugins left out", plugin_rows(plugin for plugin in manager.plugins() if plugin.status != "ok"))


def environments() -> list[dict[str, Any]]:
    """Every environment, in the order of their ids. Loads every plugin."""
    with prints_aside():
        offers: list[Offer[EnvSpec]] = manager.all_offers("gem_envs")
    claims = Counter(offer.spec.id for offer in offers)
    records = (_environment(offer, claims[offer.spec.id]) for offer in offers)
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


def _environment(offer: Offer[EnvSpec], claims: int) -> dict[str, Any]:
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
