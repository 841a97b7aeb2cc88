"""What this package registers."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import AdapterSpec

GEM_PLUGIN_API = ">=1,<2"

# 0.2.3 is the first release whose transitions carry the sampler's log-probabilities in the form that the learner reads.
# `adapters/oat/tests/test_contract.py` checks the internals that the adapter uses; 0.3 may change them.
OAT = AdapterSpec(
    "oat",
    "gem_oat",
    distribution="oat-llm",
    supported=">=0.2.3,<0.3",
    extra="oat",
    # The build of flash attention imports torch, in the version that Oat's vLLM brings.
    before=("vllm==0.8.4", "--no-build-isolation flash-attn==2.7.4.post1"),
    python="3.10",  # the last version of Launchpad and Plasma
    versions=("torch", "transformers", "vllm", "deepspeed"),
)


@hookimpl
def gem_adapters() -> Iterable[AdapterSpec]:
    """This adapter."""
    yield OAT
