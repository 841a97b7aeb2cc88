"""verl's own trainer, unchanged, without a GPU.

Replaced, each with its reason in the code:

- verl's platform: a CPU platform is registered (`platform`, `install`).
- The process group: `gloo` alone, because torch refuses the CPU's back end twice (`install`).
- The processor of Qwen2-VL is built without its part for videos, which needs torchvision (`gem_cpu.images`).
- The critic's flash attention, and pinned memory, which need GPUs (`install`).
- The transfer of weights to rollout servers with devices of their own: gloo in place of NCCL (`gloo`).
- The rollout: transformers samples in place of vLLM (`replica`), because vLLM's CPU build pins another torch. `vllm` is
  for virtual environments with that build.

verl imports `install` in each of its processes, because the environment variable `VERL_USE_EXTERNAL_MODULES` names it.
"""

from gem_cpu.verl.settings import environment, on_cpu, overrides, separate

__all__ = ["environment", "on_cpu", "overrides", "separate"]
