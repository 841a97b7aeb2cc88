"""How gem-core came into this environment, and what to type to add an extra to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_NAME = "gem-core"


def install_line(extra: str) -> str:
    """The command that installs an extra into this environment.

    An installation from a clone, a wheel or a repository is extended from there: no index may have this version. Where
    the clone or wheel is gone, the line names what the extra consists of.
    """
    origin = _origin()
    url = str(origin.get("url", ""))
    if url.startswith("file:"):
        path = Path(unquote(urlsplit(url).path))
        if not path.exists() and (needed := _requirements(extra)):
            return f"pip install {' '.join(_quoted(_plain(one)) for one in needed)}"
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{_quoted(f'{path}[{extra}]')}"
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"pip install {_quoted(f'{_NAME}[{extra}]' + (f' @ {url}' if url else ''))}"


def missing_from(extra: str) -> list[str]:
    """Names of the distributions of an extra that are not installed; their versions are not compared."""
    return [one.name for one in _requirements(extra) if not _is_installed(one.name)]


def _origin() -> dict[str, Any]:
    """Where pip installed this distribution from (PEP 610); empty for a package index."""
    import importlib.metadata  # see `gem_core.plugins`

    text = importlib.metadata.distribution(_NAME).read_text("direct_url.json")
    return json.loads(text) if text else {}


def _requirements(extra: str) -> list[Requirement]:
    """What an extra adds on this Python and platform; nothing for an extra that there is not."""
    import importlib.metadata

    from packaging.requirements import Requirement

    found = map(Requirement, importlib.metadata.requires(_NAME) or ())
    marked = [(one, one.marker) for one in found if one.marker]
    return [one for one, marker in marked if marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})]


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
