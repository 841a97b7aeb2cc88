"""A package is its folder and three lines of pyproject.toml: an extra, an entry point, its place in the wheel.

Tools and their configuration read the tree, so that nothing else has to be changed for a new package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomllib
from declared import Package, Tree, distributions_of

ROOT = Path(__file__).parents[2]
TREE = Tree(ROOT)
# Tools may name what everything else is built on.
PACKAGES = [package for package in TREE.packages.values() if package.layer not in ("core", "common")]
FRAMEWORKS = [package.folder.name for package in PACKAGES if package.layer == "adapter"]
TOOLS = ["noxfile.py", "mkdocs.yml", "docs/*.py", "tests/lint/*.py", "tests/wheel/*.py", "tests/docs/*.py"]
TOOLS += ["tests/support/gem_support/commands.py", "tests/package.toml", ".ci/*", ".github/**/*", "Dockerfile"]
FILES = sorted({path for glob in TOOLS for path in ROOT.glob(glob) if path.is_file()})
FIRST = re.compile(r'^[A-Z_]+ = "\w+"', re.MULTILINE)
"""The constant of noxfile.py with the adapter that README's first command trains with."""


def named(text: str) -> Iterator[str]:
    """Where a text names a package, its folder or, as a word by itself, the framework of an adapter."""
    folders = "|".join(re.escape(str(package.folder.relative_to(ROOT))) for package in PACKAGES)
    packages = "|".join(package.name for package in PACKAGES)
    frameworks = "|".join(FRAMEWORKS)
    names = re.compile(rf"\b({folders}|{packages})\b|([\"'])({frameworks})\2|^\s*- ({frameworks})\b")
    for number, line in enumerate(text.splitlines(), 1):
        if found := names.search(line):
            yield f"{number}: {found[0].strip()}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_tool_names_a_package(file: Path) -> None:
    found = [*named(file.read_text())]
    if file.name == "noxfile.py":
        constants = FIRST.findall(file.read_text())
        found = found[sum(1 for one in constants if [*named(one)]) == 1 :]
    assert found == []


def test_names_are_found() -> None:
    package = next(one for one in PACKAGES if one.layer == "adapter")
    folder, framework = str(package.folder.relative_to(ROOT)), package.folder.name
    for text in (f"import {package.name}.x", f"run('{folder}/tests')", f'["{framework}"]', f"  - {framework}"):
        assert [*named(f"\n{text}")], text
    for text in (f"{package.name}s", f"{folder}s", f"{framework} in a sentence", f"- {framework}s"):
        assert not [*named(text)], text


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_is_a_folder_as_the_scaffold_writes_it(package: Package) -> None:
    assert package.name == f"gem_{package.folder.name}"
    assert not [
        file
        for file in ("README.md", f"{package.name}/__init__.py", f"{package.name}/py.typed")
        if not (package.folder / file).is_file()
    ]


def test_sessions_have_names_of_their_own_and_say_whether_they_are_run_by_hand() -> None:
    text = (ROOT / "noxfile.py").read_text()
    keys = {*re.findall(r"^    (\w+): ", text.partition("class Session:")[2].partition("def start")[0], re.MULTILINE)}
    seen = {*re.findall(r"^def (\w+)\(session", text, re.MULTILINE)}
    for file in [ROOT / "tests" / "package.toml", *ROOT.glob("*/*/package.toml")]:
        tables = tomllib.loads(file.read_text())
        unknown = {*tables.pop("package", {})} - {"layer", "extras", "shared", "through_framework"}
        assert not unknown, f"{file}: {unknown} in [package]"
        for name, table in tables.items():
            assert name not in seen, f"{file}: another session is called {name!r}"
            assert {*table} <= keys, f"{file}: { {*table} - keys } in [{name}]"
            assert ("minutes" in table) != ("by hand" in table["about"]), (
                f"{file}: give [{name}] minutes, or say by hand"
            )
            seen.add(name)


def test_the_wheel_has_every_package() -> None:
    assert sorted(TREE.wheel) == sorted(str(one.path.relative_to(ROOT)) for one in TREE.packages.values())


def test_every_entry_point_is_in_the_tree() -> None:
    groups: dict[str, dict[str, str]] = {"": TREE.project["scripts"], **TREE.project["entry-points"]}
    modules = {value.partition(":")[0] for entries in groups.values() for value in entries.values()}
    for module in modules:
        path = TREE.packages[module.partition(".")[0]].path.parent / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__init__.py").exists(), module


def test_every_extra_is_of_one_package() -> None:
    """Those that no other package has are the core's, which then imports what they install."""
    owners = [(extra, package.name) for package in PACKAGES for extra in TREE.extras_of(package)]
    assert len({extra for extra, _ in owners}) == len(owners), owners
    core = TREE.packages["gem_core"]
    imported = {name for one in TREE.imports(core) for name in distributions_of(one.package)}
    assert [extra for extra in TREE.extras_of(core) if not TREE.extras[extra] <= imported] == []
