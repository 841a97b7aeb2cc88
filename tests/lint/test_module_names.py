"""Modules of tests that one pytest process imports have different names, as their folders are no packages."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_core_and_plugins_share_no_module_name() -> None:
    """Two of one name end the collection of the session `core`, and with it the whole run."""
    paths: dict[str, list[str]] = defaultdict(list)
    for folder in ("core", "plugins", "shared"):
        for path in sorted((TESTS / folder).rglob("*.py")):
            paths[path.name].append(str(path.relative_to(TESTS)))
    assert [same for name, same in paths.items() if len(same) > 1 and name != "conftest.py"] == []
