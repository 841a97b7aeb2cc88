"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import AdapterSpec

GEM_PLUGIN_API = ">=1,<2"

# 0.11 is the first release whose flags are dotted and whose agents are executors; what is relied on is pinned down in
# `tests/adapters/openrlhf/test_contract.py`, and 0.12 may move it.
OPENRLHF = AdapterSpec("openrlhf", "gem_openrlhf", distribution="openrlhf", supported=">=0.11,<0.12", extra="openrlhf")


@hookimpl
def gem_adapters() -> Iterable[AdapterSpec]:
    """This adapter."""
    yield OPENRLHF
