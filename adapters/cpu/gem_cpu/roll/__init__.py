"""ROLL's own agentic pipeline, unchanged, without a GPU.

Swapped, each with its reason in `install`:

- ROLL's platform for CPUs gets what its pipelines ask every platform for.
- The rollout: transformers sample in place of vLLM (`engine`), because the build of vLLM for CPUs does not take new
  weights as ROLL sends them.

The folder `path` is on the PYTHONPATH of all its processes. Python imports `sitecustomize` from there when it starts,
which has `install` change these modules as soon as they are imported.
"""

from gem_cpu.roll.settings import environment, on_cpu, overrides, prepare

__all__ = ["environment", "on_cpu", "overrides", "prepare"]
