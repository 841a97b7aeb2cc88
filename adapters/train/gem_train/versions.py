"""Which training frameworks are installed, whether their versions are supported, and how these differ."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import importlib.util
import platform
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from gem_core.errors import FrameworkVersionError
from gem_core.installation import install_line
from gem_core.specs import AdapterSpec


def installed_version(spec: AdapterSpec) -> str | None:
    """Version of the framework's distribution, or of its clone on the path; `None` if there is neither."""
    if spec.clone is not None:
        return _cloned_version(spec.distribution)
    try:
        return importlib.metadata.version(spec.distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_supported(spec: AdapterSpec, version: str) -> bool:
    """Whether the version is in the supported range; pre-releases count by their number."""
    return SpecifierSet(spec.supported).contains(version, prereleases=True)


def remedy(spec: AdapterSpec) -> str:
    """How to get the framework in a supported version."""
    if spec.clone is not None:
        return f"git clone {spec.clone}, and put it on PYTHONPATH; see adapters/{spec.id}/README.md for the commit"
    if spec.extra is None:
        return f'pip install "{spec.distribution}{spec.supported}"'
    lines = " && ".join([*(f"pip install {each}" for each in spec.before), install_line(spec.extra, spec.declared_by)])
    here = ".".join(platform.python_version_tuple()[:2])
    if spec.python not in (None, here):
        return f"in an environment with Python {spec.python}, which {spec.distribution} needs (this is {here}): {lines}"
    return lines


def require(spec: AdapterSpec) -> None:
    """Check that the framework is installed in a supported version.

    Raises:
        FrameworkVersionError: it is missing, or outside the range.
    """
    version = installed_version(spec)
    if version is None:
        raise FrameworkVersionError(
            f"the {spec.id} adapter needs {spec.distribution}{spec.supported}, which is not installed. "
            f"Next: {remedy(spec)}"
        )
    if not is_supported(spec, version):
        raise FrameworkVersionError(
            f"the {spec.id} adapter supports {spec.distribution}{spec.supported}, but {version} is installed. "
            f"Next, in a separate virtual environment: {remedy(spec)}"
        )


@functools.cache
def cache_name() -> str:
    """The name of the keys and values among the arguments and outputs of a model of transformers.

    It is `cache` since 5.24, which warns of the older name.
    """
    return "cache" if Version(importlib.metadata.version("transformers")) >= Version("5.24") else "past_key_values"


def _cloned_version(package: str) -> str | None:
    """The version in `setup(name=..., version=...)` next to the package; `None` for another project of that name."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:  # a folder of that name without `__init__.py` is not a package
        return None
    setup = Path(found.origin).parents[1] / "setup.py"
    if not setup.is_file():
        return None
    for call in ast.walk(ast.parse(setup.read_text())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "setup":
            given = {one.arg: one.value.value for one in call.keywords if isinstance(one.value, ast.Constant)}
            if given.get("name") == package:
                return str(given.get("version"))
    return None
