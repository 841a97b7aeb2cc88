"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import AdapterSpec

GEM_PLUGIN_API = ">=1,<2"

# 0.11 is the first release with dotted flags and with agents that are executors.
# `adapters/openrlhf/tests/test_contract.py` checks the internals that the adapter uses; 0.12 may change them.
OPENRLHF = AdapterSpec(
    "openrlhf",
    "gem_openrlhf",
    distribution="openrlhf",
    supported=">=0.11,<0.12",
    extra="openrlhf",
    # The build of flash attention imports torch, in the version that OpenRLHF's vLLM brings.
    before=("vllm==0.29.0", "--no-build-isolation flash-attn==2.8.3"),
    versions=("torch", "transformers", "vllm", "deepspeed", "ray"),
)


@hookimpl
def gem_adapters() -> Iterable[AdapterSpec]:
    """This adapter."""
    yield OPENRLHF
