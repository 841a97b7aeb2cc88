"""ROLL's own agentic pipeline, unchanged, without a GPU.

Replaced, each with its reason in `install`:

- ROLL's platform for CPUs gets the methods that its pipelines call on every platform.
- The rollout: transformers samples in place of vLLM (`engine`), because vLLM's CPU build cannot load new weights the
  way ROLL sends them.

The folder `path` is on the PYTHONPATH of all processes. Python imports `sitecustomize` from there when it starts, and
`sitecustomize` calls `install`, which changes these modules as soon as they are imported.
"""

from gem_cpu.roll.settings import environment, on_cpu, overrides, prepare

__all__ = ["environment", "on_cpu", "overrides", "prepare"]
