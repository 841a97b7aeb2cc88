"""How a distribution came into this environment, and what to type to add an extra of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_NAME = "gem-core"


def install_line(extra: str | None, distribution: str = _NAME) -> str:
    """The command that installs an extra of a distribution, or with `None` what the distribution itself lacks.

    An installation from a clone, a wheel or a repository is extended from there: no index may have this version. Where
    the clone or wheel is gone, the line names what the extra consists of.
    """
    if extra is None:
        return _install([one for one in _requirements(None, distribution) if not _is_installed(one.name)])
    origin = _origin(distribution)
    url = str(origin.get("url", ""))
    if url.startswith("file:"):
        path = Path(unquote(urlsplit(url).path))
        if not path.exists() and (needed := _requirements(extra, distribution)):
            return _install(needed)
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{_quoted(f'{path}[{extra}]')}"
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"pip install {_quoted(f'{distribution}[{extra}]' + (f' @ {url}' if url else ''))}"


def missing_from(extra: str | None, distribution: str = _NAME) -> list[str]:
    """Names of the distributions of an extra that are not installed; their versions are not compared.

    With `None`, those that the distribution needs without an extra.
    """
    return [one.name for one in _requirements(extra, distribution) if not _is_installed(one.name)]


def extras_of(distribution: str) -> frozenset[str]:
    """The extras that a distribution has; none for one that is not installed."""
    import importlib.metadata

    if not _is_installed(distribution):
        return frozenset()
    return frozenset(importlib.metadata.metadata(distribution).get_all("Provides-Extra") or ())


def _origin(distribution: str) -> dict[str, Any]:
    """Where pip installed a distribution from (PEP 610); empty for a package index."""
    import importlib.metadata  # see `gem_core.plugins`

    if not _is_installed(distribution):
        return {}
    text = importlib.metadata.distribution(distribution).read_text("direct_url.json")
    return json.loads(text) if text else {}


def _requirements(extra: str | None, distribution: str) -> list[Requirement]:
    """What an extra adds on this Python and platform, or with `None` what is needed without one.

    Empty for an unknown extra, and for a distribution without metadata or with invalid requirements.
    """
    import importlib.metadata

    from packaging.requirements import InvalidRequirement, Requirement

    try:
        found = [Requirement(one) for one in importlib.metadata.requires(distribution) or ()]
    except (importlib.metadata.PackageNotFoundError, InvalidRequirement):
        return []
    if extra is None:
        return [one for one in found if _applies(one, "")]
    return [one for one in found if _applies(one, extra) and not _applies(one, "")]


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _install(needed: Iterable[Requirement]) -> str:
    return f"pip install {' '.join(_quoted(_plain(one)) for one in needed)}"


def _plain(requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _is_installed(distribution: str) -> bool:
    import importlib.metadata

    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _quoted(argument: str) -> str:
    return f'"{argument}"'
