"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import AdapterSpec

GEM_PLUGIN_API = ">=1,<2"

# `adapters/roll/tests/test_contract.py` checks one commit of 0.3.0; 0.4 may change what the adapter uses.
ROLL = AdapterSpec(
    "roll",
    "gem_roll",
    distribution="roll",
    supported=">=0.3,<0.4",
    clone="https://github.com/alibaba/ROLL",
    versions=("torch", "transformers", "vllm", "deepspeed", "ray"),
)


@hookimpl
def gem_adapters() -> Iterable[AdapterSpec]:
    """This adapter."""
    yield ROLL
