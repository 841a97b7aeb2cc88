"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import AdapterSpec

GEM_PLUGIN_API = ">=1,<2"

# 1.16 is the first release tested; 2.0 may change the internals that `adapters/trl/tests/test_contract.py` checks.
TRL = AdapterSpec(
    "trl",
    "gem_trl",
    distribution="trl",
    supported=">=1.16,<2",
    extra="trl",
    versions=("torch", "transformers", "vllm"),
)


@hookimpl
def gem_adapters() -> Iterable[AdapterSpec]:
    """This adapter."""
    yield TRL
