"""Training on a CPU in frameworks that are made for GPUs: what is swapped, and why.

One package per framework. TRL needs none: it trains on a CPU as it is.

- `gem_cpu.verl`: the device, flash attention, and vLLM, for which transformers samples.
- `gem_cpu.openrlhf`: the device, NCCL, DeepSpeed's compiled kernels, bfloat16. vLLM is real: its build for CPUs.
- `gem_cpu.oat`: the device, DeepSpeed's compiled kernels. Where they are not installed also vLLM, Launchpad and Plasma.
- `gem_cpu.roll`: the device, and vLLM, for which transformers samples.

Nothing is swapped that trains, plays, schedules or computes an advantage. The adapters know nothing of this package:
it is for trying an example on a laptop and for the tests. `gem_cpu.sampling` is what samples for verl and ROLL.
"""
