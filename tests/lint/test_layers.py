"""No module imports in a circle, and the linter refuses an import against the layers however it is written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
import tomllib

ROOT = Path(__file__).parents[2]
PACKAGES: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
LINT = "from importlinter.cli import lint_imports_command as main; main()"
UPWARD = "from gem_train.rollout import recorder"


def circles(graph: grimp.ImportGraph) -> list[str]:
    """One chain of imports per import that closes a circle."""
    chains = (
        graph.find_shortest_chain(imported, module)
        for module in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(module))
    )
    return [" -> ".join((chain[-1], *chain)) for chain in chains if chain]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_in_a_circle(package: str) -> None:
    # import-linter's `acyclic_siblings` compares siblings only; this also sees a package and a module inside it.
    assert circles(grimp.build_graph(package, cache_dir=None)) == []


def test_a_circle_through_a_function_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gem_lint_circle"
    package.mkdir()
    (package / "__init__.py").write_text("from gem_lint_circle import part\n")
    (package / "part.py").write_text("def load():\n    from gem_lint_circle import value\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = circles(grimp.build_graph("gem_lint_circle", cache_dir=None))
    assert "gem_lint_circle -> gem_lint_circle.part -> gem_lint_circle" in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("specs", UPWARD),
        ("specs", f"def load():\n    {UPWARD}"),
        ("specs", f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {UPWARD}"),
        ("vector/base", "from gem_core.tools import toolbox"),  # a neighbor in the same layer
        ("registry", "def load():\n    from gem_testing import play"),
    ],
)
def test_an_import_against_the_layers_is_refused(tmp_path: Path, module: str, source: str) -> None:
    shutil.copytree(ROOT / "gem_core", tmp_path / "gem_core", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file = tmp_path / "gem_core" / f"{module}.py"
    file.write_text(f"{file.read_text()}\n{source}\n")
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--contract", "layers"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 1
    importer = f"gem_core.{module.replace('/', '.')}"
    imported = f"gem_core.{source.partition('from gem_core.')[2].split()[0]}"
    assert f"- {importer} -> {imported}" in done.stdout
