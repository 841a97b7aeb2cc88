"""OpenRLHF's own training, unchanged, without a GPU; vLLM is its build for CPUs.

Swapped, each with its reason in `install`:

- What OpenRLHF asks of `torch.cuda`, and the two places where its code says "cuda".
- NCCL, by which weights travel to vLLM: here through the store by which both ends found each other.
- DeepSpeed's Adam and its shared-memory operator, which are compiled for minutes: torch's Adam, and gloo.
- vLLM's packing of weights for the CPU, after which later weights would be lost.
- bfloat16, which is slow on a CPU: float32.
- `flash_attn`, which OpenRLHF imports unconditionally: empty functions (`path/flash_attn`).

The folder `path` is on the PYTHONPATH of all its processes. Python imports `sitecustomize` from there when it starts,
which has `install` change these modules as soon as they are imported.
"""

from gem_cpu.openrlhf.settings import environment, flags, on_cpu, prepare

__all__ = ["environment", "flags", "on_cpu", "prepare"]
