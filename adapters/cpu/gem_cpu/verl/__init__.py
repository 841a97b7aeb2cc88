"""verl's own trainer, unchanged, without a GPU.

Swapped, each with its reason where it is done:

- verl's platform: one for the CPU is registered (`platform`, `install`).
- The process group: `gloo` alone, because torch refuses to get the CPU's back end twice (`install`).
- The critic's flash attention, and pinned memory, which are for GPUs (`install`).
- The rollout: transformers sample in place of vLLM (`replica`), because vLLM's build for CPUs pins another torch.
  `vllm` is for an environment that has that build.

verl imports `install` in each of its processes, because the environment variable `VERL_USE_EXTERNAL_MODULES` names it.
"""

from gem_cpu.verl.settings import environment, on_cpu, overrides

__all__ = ["environment", "on_cpu", "overrides"]
