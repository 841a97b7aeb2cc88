"""OpenRLHF's own training, unchanged, without a GPU; vLLM is its CPU build.

Replaced, each with its reason in `install`:

- The functions of `torch.cuda` that OpenRLHF calls, and the two places where its code has "cuda".
- NCCL, which sends weights to vLLM, by the store through which both ends found each other.
- DeepSpeed's Adam and its shared-memory operator, which take minutes to compile, by torch's Adam and gloo.
- vLLM's packing of weights for the CPU, after which later weights would be lost.
- bfloat16, which is slow on a CPU, by float32.
- `flash_attn`, which OpenRLHF imports unconditionally, by empty functions (`path/flash_attn`).

The folder `path` is on the PYTHONPATH of all processes. Python imports `sitecustomize` from there when it starts, and
`sitecustomize` calls `install`, which changes these modules as soon as they are imported.
"""

from gem_cpu.openrlhf.settings import environment, flags, on_cpu, prepare

__all__ = ["environment", "flags", "on_cpu", "prepare"]
