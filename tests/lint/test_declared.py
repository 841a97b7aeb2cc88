"""A package imports what it declares, and packages of the layers below its own (`declared.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from declared import Tree, faults

ROOT = Path(__file__).parents[2]
PROJECT = """
[project]
dependencies = ["numpy>=1"]
[project.optional-dependencies]
one = ["frame-work>=1", "matplotlib"]
other = ["matplotlib"]
maze = ["Flask[async]>=1"]
maze-local = ["torch"]
stored = ["pyyaml"]
[project.entry-points.pytest11]
maze = "gem_maze.fixtures"
[tool.pyright]
exclude = ["plugins/maze/gem_maze/data"]
"""
FILES = {
    "gem_core/env.py": "import numpy.typing",
    "adapters/shared/package.toml": '[package]\nlayer = "common"',
    "adapters/shared/gem_shared/curve.py": "import gem_core.env, matplotlib",  # both adapters declare it
    "adapters/one/package.toml": '[package]\nthrough_framework = ["torch"]',
    "adapters/one/gem_one/plugin.py": 'SPEC = AdapterSpec("one", "gem_one", distribution="frame-work")',
    "adapters/one/gem_one/loop.py": "import frame_work, torch.nn\nfrom gem_shared import curve",
    "adapters/other/gem_other/loop.py": "import gem_shared.curve",
    "adapters/swapped/package.toml": '[package]\nlayer = "private"',
    "adapters/swapped/gem_swapped/all.py": "import gem_one, gem_maze, anything",
    "plugins/maze/gem_maze/env.py": "import flask, gem_shared\nfrom gem_walls.store import Store",
    "plugins/maze/gem_maze/local.py": "def load():\n    import torch",
    "plugins/maze/gem_maze/fixtures.py": "import pytest",
    "plugins/maze/gem_maze/data/program.py": "import anything",
    "plugins/walls/package.toml": '[package]\nextras = ["stored"]',
    "plugins/walls/gem_walls/store.py": "import importlib\nyaml = importlib.import_module('yaml')",
}


def tree(folder: Path, **more: str) -> Tree:
    """A small tree without a fault, with more lines in some modules."""
    (folder / "pyproject.toml").write_text(PROJECT)
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{text}\n")
    for path, text in more.items():
        with (folder / path).open("a") as file:
            file.write(f"{text}\n")
    return Tree(folder)


def test_packages_import_what_they_declare() -> None:
    assert faults(Tree(ROOT)) == []


def test_a_tree_without_a_fault(tmp_path: Path) -> None:
    assert faults(tree(tmp_path)) == []


MAZE, WALLS = "plugins/maze/gem_maze/env.py", "plugins/walls/gem_walls/store.py"


@pytest.mark.parametrize(
    ("path", "line", "fault"),
    [
        (MAZE, "import yaml", f"{MAZE}:3: gem_maze does not declare yaml"),
        (MAZE, "def load():\n    from yaml import safe_load", f"{MAZE}:4: gem_maze does not declare yaml"),
        (MAZE, "if TYPE_CHECKING:\n    import yaml", f"{MAZE}:4: gem_maze does not declare yaml"),
        (MAZE, "yaml = import_module('yaml.nodes')", f"{MAZE}:3: gem_maze does not declare yaml"),
        (MAZE, "import torch", f"{MAZE}:3: gem_maze may import torch in functions only"),
        (MAZE, "import frame_work", f"{MAZE}:3: gem_maze does not declare frame_work"),
        (MAZE, "import gem_one.loop", f"{MAZE}:3: gem_maze (plugin) may not import gem_one (adapter)"),
        (MAZE, "ENTRY = 'gem_one.loop:Loop'", f"{MAZE}:3: gem_maze (plugin) may not import gem_one (adapter)"),
        (WALLS, "ENTRY = 'gem_maze:Maze'", "gem_maze -> gem_walls -> gem_maze"),
        (WALLS, "import gem_swapped.all", f"{WALLS}:3: gem_walls (plugin) may not import gem_swapped (private)"),
        (WALLS, "import pytest", f"{WALLS}:3: gem_walls does not declare pytest"),
        (
            "adapters/other/gem_other/loop.py",
            "import gem_one",
            "adapters/other/gem_other/loop.py:2: gem_other (adapter) may not import gem_one (adapter)",
        ),
        (
            "adapters/one/gem_one/loop.py",
            "import gem_maze",
            "adapters/one/gem_one/loop.py:3: gem_one (adapter) may not import gem_maze (plugin)",
        ),
        (
            "adapters/shared/gem_shared/curve.py",
            "import torch",
            "adapters/shared/gem_shared/curve.py:2: gem_shared does not declare torch",
        ),
        (
            "gem_core/env.py",
            "import gem_shared",
            "gem_core/env.py:2: gem_core (core) may not import gem_shared (common)",
        ),
        ("gem_core/env.py", "import flask", "gem_core/env.py:2: gem_core does not declare flask"),
    ],
)
def test_a_fault_is_found(path: str, line: str, fault: str, tmp_path: Path) -> None:
    assert fault in faults(tree(tmp_path, **{path: line}))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"Flask[async]>=1"', '"Flask", "torch"', "plugins/maze: [maze] may not need torch"),
        ('"Flask[async]>=1"', '"Flask", "frame-work"', "plugins/maze: [maze] may not need frame-work"),
        ("stored =", "kept =", "plugins/walls: there is no extra 'stored'"),
    ],
)
def test_a_fault_of_an_extra_is_found(old: str, new: str, fault: str, tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / "pyproject.toml").write_text(PROJECT.replace(old, new))
    assert fault in faults(Tree(tmp_path))
