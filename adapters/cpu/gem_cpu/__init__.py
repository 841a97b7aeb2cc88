"""Training on a CPU in frameworks that are made for GPUs: which parts are replaced, and why.

One package per framework. TRL needs none: it trains on a CPU unchanged.

- `gem_cpu.verl`: the device, flash attention, and vLLM (transformers samples instead).
- `gem_cpu.openrlhf`: the device, NCCL, DeepSpeed's compiled kernels, bfloat16. vLLM is real: its CPU build.
- `gem_cpu.oat`: the device, DeepSpeed's compiled kernels. Also vLLM, Launchpad and Plasma if they are not installed.
- `gem_cpu.roll`: the device, and vLLM (transformers samples instead).

Code that trains, plays, schedules or computes an advantage is never replaced. The adapters do not depend on this
package: it is for trying an example on a laptop, and for the tests. `gem_cpu.sampling` samples for verl and ROLL.
"""
