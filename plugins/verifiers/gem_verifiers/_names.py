"""Installed environment modules. Nothing here imports one, nor verifiers."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from collections.abc import Mapping, Sequence

from packaging.requirements import InvalidRequirement, Requirement

from gem_core.errors import NotFoundError, near_matches
from gem_core.installation import install_line


def module_of(name: str) -> str:
    """The module of an environment's name, spelled as a module or as on the hub (`owner/my-env`).

    Raises:
        NotFoundError: no such module is installed; the message has similar ones.
    """
    module = name.replace("-", "_").rpartition("/")[2]
    if module.isidentifier() and importlib.util.find_spec(module) is not None:
        return module
    extra = "" if importlib.util.find_spec("verifiers") else f"{install_line('verifiers')}, and "
    raise NotFoundError(
        f"no environment 'verifiers:{name}': the module {module!r} is not installed."
        f"{near_matches(module, _environments())} Next: {extra}install the environment's package"
    )


def distributions_of(module: str) -> Sequence[str]:
    """The distributions that a module comes from."""
    return _distributions().get(module, ())


@functools.cache
def _distributions() -> Mapping[str, Sequence[str]]:
    return importlib.metadata.packages_distributions()


def _environments() -> list[str]:
    """The modules of all distributions that need verifiers: most of them are environments."""
    return [module for module, owners in _distributions().items() if any(map(_needs_verifiers, owners))]


@functools.cache
def _needs_verifiers(distribution: str) -> bool:
    return any(_required(line) == "verifiers" for line in importlib.metadata.requires(distribution) or ())


def _required(line: str) -> str | None:
    """The distribution that a line of requirements asks for, but for those of extras."""
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return None
    of_an_extra = requirement.marker is not None and "extra" in str(requirement.marker)
    return None if of_an_extra else requirement.name
