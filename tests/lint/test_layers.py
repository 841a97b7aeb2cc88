"""No module imports in a circle, the core is built in layers, and what CPU runs swap stays apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from declared import Tree

from gem_support.imports import against_layers, circles, graph_of

ROOT = Path(__file__).parents[2]
TREE = Tree(ROOT)
FOLDERS = [*(package.path for package in TREE.packages.values()), ROOT / "recipes"]
LAYERS = [
    "__main__",
    "cli",
    "vector | tools | wrappers | advantages",
    "registry",
    "plugins",
    "_builtin",
    "hookspecs",
    "env : match : _match_env : tool : specs : episode : turn_batch : update : errors : failures : "
    "seeding : interrupts : waiting : controls : installation : _arguments : partner : image : upstream : lazy",
    "responses",
]
"""Of the core, from the top down. A module imports only from below its layer; where `:` is between them, each other."""
MAX_LINES = 11_000


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_module_imports_in_a_circle(folder: Path) -> None:
    assert circles(graph_of([folder], TREE.is_data)) == []


def test_the_core_is_built_in_layers() -> None:
    assert against_layers(ROOT / "gem_core", LAYERS) == []


def test_the_core_stays_small() -> None:
    lines = sum(len(file.read_text().splitlines()) for file in (ROOT / "gem_core").rglob("*.py"))
    assert lines <= MAX_LINES, f"gem_core has {lines} lines; move what is not the core's into a package"


def test_what_is_swapped_for_one_framework_imports_nothing_of_another() -> None:
    """In a package for tests, each folder is for one framework."""
    for package in TREE.packages.values():
        if package.layer == "private":
            graph = graph_of([package.path], TREE.is_data)
            folders = {path.parent.name for path in package.path.glob("*/__init__.py")}
            for module, imported in graph.items():
                own = {*module.split(".")[1:2]} & folders
                foreign = {name for name in imported if {*name.split(".")[1:2]} & (folders - own)}
                assert not (own and foreign), f"{module} imports {foreign}"


def write(folder: Path, **modules: str) -> Path:
    """A package with these modules."""
    folder.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (folder / f"{name}.py").write_text(f"{text}\n")
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "import gem_circle",
        "def load():\n    from gem_circle import value",
        "if TYPE_CHECKING:\n    from gem_circle import Kind",
        "from . import value",
        "import importlib\nimportlib.import_module('gem_circle')",
    ],
)
def test_a_circle_is_found(text: str, tmp_path: Path) -> None:
    package = write(tmp_path / "gem_circle", __init__="from gem_circle.part import value", part=text)
    assert "gem_circle -> gem_circle.part -> gem_circle" in circles(graph_of([package]))


def test_a_longer_circle_is_found_and_others_are_not(tmp_path: Path) -> None:
    modules = {
        "a": "from gem_circle import b",
        "b": "from gem_circle.c import x",
        "c": "import gem_circle.a",
        "d": "import a",
    }
    found = circles(graph_of([write(tmp_path / "gem_circle", **modules)]))
    assert len(found) == 3
    assert "gem_circle.a -> gem_circle.b -> gem_circle.c -> gem_circle.a" in found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from gem_layered import low, twin", []),
        ("from gem_layered import other", ["gem_layered.mid -> gem_layered.other"]),
        ("def load():\n    from gem_layered import high", ["gem_layered.mid -> gem_layered.high"]),
        ("if TYPE_CHECKING:\n    from gem_layered.high import Kind", ["gem_layered.mid -> gem_layered.high"]),
    ],
)
def test_an_import_against_the_layers_is_found(text: str, wrong: list[str], tmp_path: Path) -> None:
    modules = {
        "high": "import gem_layered.mid",
        "other": "",
        "twin": "import gem_layered.low",
        "low": "import gem_layered.twin",
    }
    package = write(tmp_path / "gem_layered", **modules, mid=text)
    assert against_layers(package, ["high", "mid | other", "twin : low"]) == wrong
    assert against_layers(package, ["high", "mid | other", "twin"]) == ["low is in no layer", *wrong]
    assert against_layers(package, ["high", "mid | other", "*"]) == wrong
