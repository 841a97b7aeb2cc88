"""The files of a new distribution."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from gem_core.errors import GemError
from gem_core.plugins import manager

_MAX_LENGTH = 30
"""Characters of a name: with more, lines of the files would be longer than their own linter allows."""


@dataclass(frozen=True)
class Part:
    """Something that a plugin declares: a module with its tests, and a hook in `plugin.py`."""

    name: str
    """Of the module and of its templates."""
    contents: str
    """What the module has, for the README."""
    spec: str
    """Name of the class of its spec."""
    id: str
    """Template of its id."""

    @property
    def module(self) -> str:
        """Template of the module's path."""
        return f"$package/{self.name}.py"

    @property
    def files(self) -> dict[str, str]:
        """The templates by the path in the distribution, which has placeholders, too."""
        return {self.module: f"{self.name}.py", f"tests/test_{self.name}.py": f"test_{self.name}.py"}


_COMMON = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    ".gitignore": "gitignore",
    ".github/workflows/tests.yml": "workflow.yml",
    "$package/__init__.py": "init.py",
    "$package/plugin.py": "plugin.py",
    "$package/py.typed": "py.typed",
    "tests/test_plugin.py": "test_plugin.py",
}
_ENV = Part("env", "the environment", "EnvSpec", "$name:$title-v0")
_TOOL = Part("tool", "the tool", "ToolSpec", "$name:$title")
_ESTIMATOR = Part("estimator", "the advantage estimator", "AdvantageSpec", "$name:clipped")

KINDS: Mapping[str, tuple[Part, ...]] = {
    "env": (_ENV,),
    "tool": (_TOOL,),
    "estimator": (_ESTIMATOR,),
    "plugin": (_ENV, _TOOL, _ESTIMATOR),
}
"""What each kind of distribution consists of."""


class Project:
    """A distribution to write.

    Args:
        kind: one of `KINDS`.
        name: the namespace of its ids.

    Raises:
        GemError: the name cannot be a namespace and a package, or an installed plugin, package or distribution has it.
    """

    def __init__(self, kind: str, name: str) -> None:
        _check_name(name)
        package = f"gem_{name.replace('-', '_')}"
        self.distribution = f"gem-{name.replace('_', '-')}"
        self._parts = KINDS[kind]
        self._values = {
            "name": name,
            "title": "".join(word.capitalize() for word in re.split("[-_]", name)),
            "package": package,
            "distribution": self.distribution,
        }
        _check_free(name, package, self.distribution)
        self.ids = [self._filled(part.id) for part in self._parts]
        self._values |= self._assembled()

    def write(self, folder: Path) -> list[Path]:
        """Write all files; returns their paths.

        Raises:
            GemError: the folder has something in it, or cannot be written.
        """
        files = {
            path: template
            for part in (_COMMON, *(part.files for part in self._parts))
            for path, template in part.items()
        }
        written: list[Path] = []
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise GemError(f"{str(folder)!r} is not an empty folder. Give another one with --folder")
            for path, template in files.items():
                target = folder / self._filled(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(self._filled(_template(template)), encoding="utf-8")
                written.append(target)
        except OSError as error:
            raise GemError(f"{str(folder)!r} could not be written: {error}. Give another one with --folder") from error
        return written

    def _assembled(self) -> dict[str, str]:
        """The values that depend on the parts."""
        specs = sorted(part.spec for part in self._parts)
        rows = [f"| `{self._filled(part.module)}` | {part.contents} |" for part in self._parts]
        return {
            "imports": ", ".join([*specs, "hookimpl"]),
            "hooks": "\n\n".join(self._filled(_template(f"hook_{part.name}.py")) for part in self._parts).rstrip("\n"),
            "rows": "\n".join(rows),
            "ids": "\n".join(f'        "{id_}",' for id_ in self.ids),
            "checks": "\n".join(f"gem-core check {id_}" for id_ in self.ids),
        }

    def _filled(self, template: str) -> str:
        return Template(template).substitute(self._values)


def _template(name: str) -> str:
    return (resources.files("gem_scaffold") / "templates" / f"{name}.tmpl").read_text(encoding="utf-8")


def _check_name(name: str) -> None:
    if len(name) > _MAX_LENGTH or not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise GemError(
            f"{name!r} cannot be the name of a plugin. Give at most {_MAX_LENGTH} lower-case letters, digits and "
            "single hyphens, starting with a letter, for example word-maze"
        )


def _check_free(name: str, package: str, distribution: str) -> None:
    for plugin in manager.plugins():
        if plugin.name == name:
            raise GemError(f"the installed {plugin.provenance} has the name {name!r}. Give another name")
    if importlib.util.find_spec(package) is not None:
        raise GemError(f"the Python package {package!r} exists, and this one would have its name. Give another name")
    if any(_normal(one.name) == distribution for one in importlib.metadata.distributions() if one.name):
        raise GemError(f"the distribution {distribution!r} is installed, and pip would replace it. Give another name")


def _normal(distribution: str) -> str:
    """The name as pip compares it."""
    return re.sub("[-_.]+", "-", distribution).lower()
