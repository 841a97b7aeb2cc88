"""Specs: frozen data that plugins declare, so that code is imported only when it is used."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gem_core.errors import (
    GemError,
    MissingExtraError,
    PluginError,
    PluginLoadError,
    convert_errors,
    located,
    raised_at,
)
from gem_core.installation import extras_of, install_line, missing_from


@dataclass(frozen=True)
class Provenance:
    """The installed distribution of a spec; recorded with every run."""

    plugin: str
    """Name of the entry point, or `gem_core` / `<in-process>`."""
    distribution: str
    """Name of the distribution, as pip shows it."""
    version: str
    """Version of that distribution."""
    libraries: tuple[str, ...] = ()
    """The distributions whose environment it is, with their versions: `gymnasium 1.4.0`."""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} ({', '.join([f'plugin {self.plugin!r}', *self.libraries])})"


@dataclass(frozen=True)
class Spec:
    """The base of everything that a plugin declares by name."""

    id: str
    """`namespace:Name`; the namespace is the name of the plugin's entry point. Built-ins have no namespace."""
    entry_point: str | Callable[..., Any]
    """`"package.module:attribute"`, imported on first use; `register()` also takes the object itself."""
    declared_by: str = field(default="gem-core", kw_only=True, repr=False, compare=False)
    """The distribution whose `extra` it names; the plugin host fills it in."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # plugins err
            raise PluginError(f"{type(self).__name__}: the id must be a string, not {self.id!r}")
        for name, words in ("tags", getattr(self, "tags", ())), ("trusting", getattr(self, "trusting", None) or ()):
            if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words):  # pyright: ignore[reportUnknownVariableType]
                raise PluginError(f"{self.id}: {name} must be a tuple of strings, not {words!r}")

    @property
    def namespace(self) -> str:
        """The part of the id before the colon, or an empty string."""
        return namespace_of(self.id)

    def resolve(self) -> Any:
        """Import what the entry point names.

        Raises:
            PluginError: the entry point is not of the form `package.module:attribute`, or has no such attribute.
            MissingExtraError: a module that it imports is not installed.
            PluginLoadError: importing the module raised another error.
        """
        if not isinstance(self.entry_point, str):
            return self.entry_point
        module_name, _, attribute = self.entry_point.partition(":")
        if not module_name or not attribute:
            raise PluginError(f"{self.id}: entry point {self.entry_point!r} is not 'package.module:attribute'")
        with convert_errors(lambda error: self._not_imported(module_name, error)):
            module = importlib.import_module(module_name)
        try:
            return getattr(module, attribute)
        except AttributeError as error:
            raise PluginError(f"{self.id}: module {module_name!r} has no attribute {attribute!r}") from error

    def _not_imported(self, module: str, error: BaseException) -> GemError:
        if not isinstance(error, ModuleNotFoundError) or not error.name:
            return PluginLoadError(f"{self.id}: importing {module!r} failed{located(error)}")
        named = f"{module}.".startswith(f"{error.name}.")
        if named and _is_only_part_missing(error.name):
            return PluginError(
                f"{self.id}: its entry point {self.entry_point!r} names the module {error.name!r}, which does not exist"
            )
        return self.missing(error)

    def missing(self, error: ModuleNotFoundError) -> MissingExtraError:
        """The error that names the module that was not found, the import, and what to install."""
        extra: str | None = getattr(self, "extra", None)
        name = error.name or str(error)
        package = name.partition(".")[0]
        place = raised_at(error)
        imported = f" (imported at {place})" if place else ""
        state, remedy = "is not installed", f"install the package that provides {package!r}"
        if _is_only_part_missing(name):
            state = f"the installed package {package!r} does not have"
            remedy = f"install the version of {package!r} that this plugin was written for"
        if extra in extras_of(self.declared_by):
            remedy = install_line(extra, self.declared_by)
        elif missing_from(None, self.declared_by):
            remedy = install_line(None, self.declared_by)
        return MissingExtraError(f"{self.id} needs the module {name!r}{imported}, which {state}. Next: {remedy}")


def _is_only_part_missing(module: str) -> bool:
    """Whether the top-level package is installed, but lacks this module."""
    package = module.partition(".")[0]
    return package != module and (package in sys.modules or importlib.util.find_spec(package) is not None)


@dataclass(frozen=True)
class EnvSpec(Spec):
    """An environment as data."""

    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Keyword arguments of this id; `make(id, **kwargs)` overrides them one by one."""
    tags: tuple[str, ...] = ()
    """Words to filter by: category, `multi-turn` or `single-turn`, tools needed, data source."""
    extra: str | None = None
    """The extra of the declaring distribution that installs the dependencies."""
    libraries: tuple[str, ...] = ()
    """Distributions whose environment this is; their versions are recorded with every run."""
    trusting: tuple[str, ...] | None = None
    """Arguments that are paths, addresses, code or permissions; `None` if the plugin doesn't say, so all may be."""
    builder: Callable[[EnvSpec, Mapping[str, Any]], Any] | None = field(default=None, repr=False, compare=False)
    """Builds another environment of this spec with other keyword arguments; set once an environment is built."""


@dataclass(frozen=True)
class ToolSpec(Spec):
    """A tool as data."""

    tags: tuple[str, ...] = ()
    """Words to filter by."""
    extra: str | None = None
    """The extra of the declaring distribution that installs the dependencies."""


@dataclass(frozen=True)
class AdvantageSpec(Spec):
    """An advantage estimator as data; see `gem_core.advantages` for the signature."""

    needs_groups: bool = False
    """The estimator compares the episodes of a task, so each task needs at least two."""
    needs_values: bool = False
    """The estimator needs a critic's value per turn."""
    needs_states: bool = False
    """The estimator compares turns with equal observations."""


@dataclass(frozen=True)
class BackendSpec(Spec):
    """A vector backend as data; see `gem_core.vector.backends` for its signature.

    Its id is what `make_vec(backend=...)` takes: the name of the plugin, alone or with a colon and a word after it.
    """

    extra: str | None = None
    """The extra of the declaring distribution that installs the dependencies."""

    @property
    def namespace(self) -> str:
        """The name of the plugin."""
        return self.id.partition(":")[0]


@dataclass(frozen=True)
class AdapterSpec(Spec):
    """A training framework, and the versions that its adapter was tested with."""

    distribution: str = ""
    """The framework's distribution on PyPI."""
    supported: str = ""
    """Supported versions as a PEP 440 specifier, for example `>=1.16,<2`."""
    extra: str | None = None
    """The extra of the declaring distribution that installs the framework."""
    before: tuple[str, ...] = ()
    """Arguments of `pip install` that precede the extra, in this order: what is built from source may need them."""
    python: str | None = None
    """The only version of Python that the framework supports, for example `3.10`."""
    clone: str | None = None
    """The repository, for a framework that is not on a package index and is used from a clone. Then `distribution` is
    the name of the package, and the version comes from the `setup.py` next to the package."""
    versions: tuple[str, ...] = ()
    """Further distributions whose versions are recorded with every run, where they are installed."""


@dataclass(frozen=True)
class Capability:
    """A capability of the machine, present or missing, for `gem-core doctor`."""

    name: str
    available: bool
    detail: str


@dataclass(frozen=True)
class Isolation:
    """A protection against untrusted code on this machine, for `gem-core doctor`."""

    holds: str
    """The confined code, for example `programs that a policy wrote`."""
    in_force: bool
    """Whether it holds against code that is written to escape."""
    how: str
    """The mechanism, or what is missing and what to do."""


@dataclass(frozen=True)
class RecordSource:
    """A file of episodes as JSON lines, for `gem_train.records.open_records`."""

    kind: str
    """What wrote it, for example `evaluation`."""
    lines: Path
    """Each line is the record of an episode, or an object that has it as `episode`."""
    split: str = ""
    """What the episodes were played for: `train`, `eval`, or empty."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The settings of the run."""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Versions of the distributions that took part."""
    gaps: Sequence[str] = ()
    """What is missing, a sentence each."""
    entry_of: Callable[[Mapping[str, Any]], str] | None = None
    """What the episode of a line was played as, where that is more than its id. Gets the line's object, and raises
    `msgspec.DecodeError` for one that does not say it."""


def namespace_of(name: str) -> str:
    """The namespace of an id, or an empty string: `game` for `game:Corridor-v0`."""
    namespace, colon, _ = name.partition(":")
    return namespace if colon else ""
