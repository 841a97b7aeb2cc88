"""What each package of the tree may import: what it declares, and packages of the layers below its own.

A package declares with gem-core's extras. Its own are that with the name of its folder, those whose names begin with
it (`search-server` of `search`), and those that the folder's `package.toml` names. Frameworks pin their parts
themselves, so an adapter only says there which of them it imports. The keys at the top of that file, all optional:

    shared = ["eval"]                       # extras, the main one first, that the shared environment of the tests has
    extras = ["eval-local"]                 # and those that it has not
    through_framework = ["torch", "ray"]
    layer = "common"                        # if it is not that of the folders beside it
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gem_support.imports import Import, chain, imports_of, modules_of

MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "common": {"core"},
    "plugin": {"core", "common", "plugin"},
    "model": {"core", "common"},
    "adapter": {"core", "common", "model"},
    "private": {"core", "common", "plugin", "model", "adapter", "private"},
}
"""The layers from below, and those that one may import. Plugins import one another, without a circle."""
DISTRIBUTIONS = {"PIL": "pillow", "Stemmer": "pystemmer", "faiss": "faiss-cpu", "hydra": "hydra-core", "yaml": "pyyaml"}
DISTRIBUTIONS["transfer_queue"] = "transferqueue"
"""Of modules that need not be installed where this runs: the distribution, if its name is another one."""
LOADED_BY = {"pytest11": "pytest"}
"""Who loads the modules of a group of entry points. They need not declare it."""
WEIGHTS = frozenset({"torch", "transformers", "vllm"})
"""What a plugin has in a further extra only, and imports in functions only; as with adapters' frameworks."""


@dataclass(frozen=True)
class Package:
    """A package of the tree."""

    path: Path
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def folder(self) -> Path:
        """With the package, its tests and its page."""
        return self.path.parent

    @property
    def layer(self) -> str:
        return self.settings.get(
            "layer", {"plugins": "plugin", "adapters": "adapter"}.get(self.folder.parent.name, "core")
        )

    @property
    def extra(self) -> str:
        """How an extra of its own would be called."""
        return self.folder.name.replace("_", "-")


class Tree:
    """The packages below a folder, and what its pyproject.toml declares."""

    def __init__(self, root: Path) -> None:
        self.root = root
        text = tomllib.loads((root / "pyproject.toml").read_text())
        self.project: dict[str, Any] = text["project"]
        self.wheel: list[str] = (
            text.get("tool", {})
            .get("hatch", {})
            .get("build", {})
            .get("targets", {})
            .get("wheel", {})
            .get("packages", [])
        )
        self._data = [root / path for path in text.get("tool", {}).get("pyright", {}).get("exclude", ())]
        paths = [root / "gem_core", *sorted(root.glob("adapters/*/gem_*")), *sorted(root.glob("plugins/*/gem_*"))]
        self.packages = {path.name: Package(path, _settings(path.parent)) for path in paths}

    @cached_property
    def extras(self) -> dict[str, set[str]]:
        """The distributions of each extra."""
        return {name: _names(lines) for name, lines in self.project.get("optional-dependencies", {}).items()}

    @cached_property
    def frameworks(self) -> set[str]:
        """The frameworks of all adapters, and the distributions that load weights."""
        files = (one.path / "plugin.py" for one in self.packages.values() if one.layer == "adapter")
        named = (re.findall(r'distribution="([\w.-]+)"', file.read_text()) for file in files if file.exists())
        return {*WEIGHTS, *(canonicalize_name(name) for names in named for name in names)}

    def is_data(self, file: Path) -> bool:
        """Whether a package only carries this file. pyright leaves out the same."""
        return any(file.is_relative_to(path) for path in self._data)

    def imports(self, package: Package) -> Iterator[Import]:
        """What a package imports that is neither its own nor the standard library's."""
        for name, file in modules_of(package.path, self.is_data).items():
            for one in imports_of(name, file):
                is_code = not one.is_text or one.package in self.packages
                if is_code and one.package not in (package.name, *sys.stdlib_module_names):
                    yield one

    def extras_of(self, package: Package) -> list[str]:
        """The extras of a package, the main one first. Those that no folder has are the core's."""
        if package.layer == "core":
            others = [extra for one in self.packages.values() if one is not package for extra in self.extras_of(one)]
            return [extra for extra in self.extras if extra not in others]
        begun = [extra for extra in self.extras if f"{extra}-".startswith(f"{package.extra}-")]
        return list(dict.fromkeys([*package.settings.get("shared", ()), *package.settings.get("extras", ()), *begun]))

    def allowed(self, package: Package) -> set[str]:
        """The distributions that a package may import."""
        found = _names(self.project.get("dependencies", ())) | _names(package.settings.get("through_framework", ()))
        for extra in self.extras_of(package):
            found |= self.extras.get(extra, set())
        if package.layer == "common":  # it runs beside an adapter, so it has what all of them declare
            declared = [
                self.extras[one.extra]
                for one in self.packages.values()
                if one.layer == "adapter" and one.extra in self.extras
            ]
            found |= set.intersection(*declared) if declared else set()
        for group, loader in LOADED_BY.items():
            entries: dict[str, str] = self.project.get("entry-points", {}).get(group, {})
            found |= {loader for entry in entries.values() if entry.partition(".")[0] == package.name}
        return found


def faults(tree: Tree) -> list[str]:
    """Each fault of the tree, where it is and what it is."""
    found: set[str] = set()
    needs: dict[str, set[str]] = {}
    for package in tree.packages.values():
        imports = [*tree.imports(package)]
        needs[package.name] = {one.package for one in imports} & {*tree.packages}
        found.update(_of_extras(tree, package), _of_imports(tree, package, imports))
    ways = (chain(needs, other, name) for name in needs for other in sorted(needs[name]))
    return sorted(found | {" -> ".join((way[-1], *way)) for way in ways if way})


def _of_extras(tree: Tree, package: Package) -> Iterator[str]:
    folder, extras = package.folder.relative_to(tree.root), tree.extras_of(package)
    yield from (f"{folder}: there is no extra {extra!r}" for extra in extras if extra not in tree.extras)
    if package.layer == "plugin" and extras:
        wrong = tree.extras.get(extras[0], set()) & tree.frameworks
        yield from (f"{folder}: [{extras[0]}] may not need {one}" for one in wrong)


def _of_imports(tree: Tree, package: Package, imports: Iterable[Import]) -> Iterator[str]:
    allowed = tree.allowed(package)
    for one in imports:
        where = f"{one.file.relative_to(tree.root)}:{one.line}"
        names = distributions_of(one.package)
        if other := tree.packages.get(one.package):
            if other.layer not in MAY_IMPORT[package.layer]:
                yield f"{where}: {package.name} ({package.layer}) may not import {other.name} ({other.layer})"
        elif package.layer == "private":  # only tests import it
            continue
        elif not names & allowed:
            yield f"{where}: {package.name} does not declare {one.package}"
        elif package.layer == "plugin" and one.at_once and names & tree.frameworks:
            yield f"{where}: {package.name} may import {one.package} in functions only"


def _names(requirements: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(one).name) for one in requirements}


def distributions_of(module: str) -> set[str]:
    """Names of the distributions that a module may come from."""
    installed = _INSTALLED.get(module, ())
    return {canonicalize_name(name) for name in (DISTRIBUTIONS.get(module, module), *installed)}


def _settings(folder: Path) -> dict[str, Any]:
    file = folder / "package.toml"
    return tomllib.loads(file.read_text()).get("package", {}) if file.exists() else {}


_INSTALLED = importlib.metadata.packages_distributions()
