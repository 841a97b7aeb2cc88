"""Which training frameworks are here, and whether their versions fit."""

from __future__ import annotations

import importlib.metadata

from packaging.specifiers import SpecifierSet

from gem_core.errors import FrameworkVersionError
from gem_core.specs import AdapterSpec


def installed_version(spec: AdapterSpec) -> str | None:
    """Version of the framework's distribution, or `None` where it is not installed."""
    try:
        return importlib.metadata.version(spec.distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_supported(spec: AdapterSpec, version: str) -> bool:
    """Whether the adapter was tested with that version's range; pre-releases count by their number."""
    return SpecifierSet(spec.supported).contains(version, prereleases=True)


def require(spec: AdapterSpec) -> None:
    """Refuse to go on without the framework in a supported version.

    Raises:
        FrameworkVersionError: it is missing, or outside the range.
    """
    version = installed_version(spec)
    remedy = f'pip install "gem-core[{spec.extra}]", or in a clone pip install -e ".[{spec.extra}]"'
    if version is None:
        raise FrameworkVersionError(
            f"the {spec.id} adapter needs {spec.distribution}{spec.supported}, which is not installed. Next: {remedy}"
        )
    if not is_supported(spec, version):
        raise FrameworkVersionError(
            f"the {spec.id} adapter supports {spec.distribution}{spec.supported}, but {version} is installed. "
            f"Next, in an environment of its own: {remedy}"
        )
