"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import AdapterSpec

GEM_PLUGIN_API = ">=1,<2"

# 0.9 is the first release whose default trainer takes several rows per episode. `adapters/verl/tests/test_contract.py`
# checks the internals that the adapter uses; 0.10 may change them.
VERL = AdapterSpec(
    "verl",
    "gem_verl",
    distribution="verl",
    supported=">=0.9,<0.10",
    extra="verl",
    versions=("torch", "transformers", "vllm", "ray"),
)


@hookimpl
def gem_adapters() -> Iterable[AdapterSpec]:
    """This adapter."""
    yield VERL
