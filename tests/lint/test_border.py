"""No package reaches into another's private part: modules and names that begin with an underscore."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from declared import Tree

from gem_support.imports import Import, imports_of, modules_of

ROOT = Path(__file__).parents[2]
TREE = Tree(ROOT)
OTHERS = [ROOT / "recipes", ROOT / "examples" / "plugin" / "gem_example_mazes"]
# Packages for tests replace private parts of frameworks and adapters on purpose.
PACKAGES = [one.path for one in TREE.packages.values() if one.layer != "private"]
PROGRAMS = sorted([*ROOT.glob("examples/*.py"), *ROOT.glob("docs/*.py")])


def private_parts(imports: Iterable[Import], own: str) -> Iterator[str]:
    """What these imports take of another package that is not public."""
    for one in imports:
        parts = one.name.replace(":", ".").split(".")
        hidden = [part for part in parts[1:] if part.startswith("_") and not part.startswith("__")]
        if parts[0] in TREE.packages and parts[0] != own and hidden:
            yield f"{one.file.name}:{one.line}: {one.name}"


def private_attributes(file: Path, own: str) -> Iterator[str]:
    """Attributes of another package's modules that are not public: `gem_core.vector._base`."""
    tree = ast.parse(file.read_text())
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for one in node.names:
                origin = one.name if isinstance(node, ast.Import) else f"{node.module}.{one.name}"
                bound[one.asname or one.name.partition(".")[0]] = origin
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            origin = bound.get(root.id, "") if isinstance(root, ast.Name) else ""
            if origin.partition(".")[0] in {*TREE.packages} - {own} and not origin.rpartition(".")[2][:1].isupper():
                yield f"{file.name}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("folder", [*PACKAGES, *OTHERS], ids=lambda path: path.name)
def test_a_package_uses_the_public_part_of_others(folder: Path) -> None:
    modules = modules_of(folder, TREE.is_data).items()
    found = (one for name, file in modules for one in imports_of(name, file))
    assert [*private_parts(found, folder.name)] == []
    assert [part for _, file in modules for part in private_attributes(file, folder.name)] == []


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.name)
def test_a_program_uses_the_public_part_of_packages(file: Path) -> None:
    assert [*private_parts(imports_of(file.stem, file), file.stem)] == []


@pytest.mark.parametrize(
    "line",
    ["from gem_core.vector._base import VectorEnv", "from gem_core.env import _a", "x = 'gem_core._arguments:strict'"],
)
def test_a_private_part_is_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(line)
    assert len([*private_parts(imports_of("module", tmp_path / "module.py"), "module")]) == 1
    assert not [*private_parts(imports_of("module", tmp_path / "module.py"), "gem_core")]


@pytest.mark.parametrize("line", ["import gem_core\ngem_core.vector._base", "import gem_core.vector as v\nv._base.X"])
def test_a_private_attribute_is_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(line)
    assert len([*private_attributes(tmp_path / "module.py", "module")]) == 1
