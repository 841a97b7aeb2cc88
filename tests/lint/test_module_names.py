"""Modules of tests that one pytest process imports have different names, as their folders are no packages."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from declared import Tree

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "tests" / "core", ROOT / "tests" / "together"]
FOLDERS += [one.folder / "tests" for one in Tree(ROOT).packages.values() if one.layer in ("common", "plugin")]


def test_tests_that_run_together_share_no_module_name() -> None:
    """Two of one name end the collection, and with it the whole run."""
    paths: dict[str, list[str]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.py")):
            paths[path.name].append(str(path.relative_to(ROOT)))
    del paths["conftest.py"]  # pytest knows these by their paths
    assert [same for same in paths.values() if len(same) > 1] == []
