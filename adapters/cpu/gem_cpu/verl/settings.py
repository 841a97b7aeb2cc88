"""The environment variables and the configuration overrides with which verl trains on a CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gem_cpu.fork_server import client_command
from gem_cpu.processes import RAY_ENVIRONMENT, check_ray_folder, ray_folder

# What the fork server imports for Ray's workers.
WORKERS_IMPORT = ["gem_cpu.verl.replica", "gem_verl._loop", "gem_verl._trainer"]


@contextmanager
def on_cpu(ranks: int = 1) -> Iterator[list[str]]:
    """Make this process and verl's processes use the CPU in place of GPUs. Call before verl is imported.

    Args:
        ranks: number of processes that train.

    Yields:
        Hydra overrides; add the settings of your training.

    Raises:
        FrameworkVersionError: verl is missing, or has another version than the adapter supports.
        ValueError: the path of the temporary folder is too long for Ray's sockets.
    """
    from gem_train import require
    from gem_verl.plugin import VERL

    require(VERL)
    os.environ.update(environment())
    with ray_folder(WORKERS_IMPORT) as folder:
        yield overrides(folder, ranks)


def environment() -> dict[str, str]:
    """Environment variables of the process that runs verl; its Ray workers inherit them."""
    return {
        **RAY_ENVIRONMENT,
        "VERL_USE_EXTERNAL_MODULES": "gem_cpu.verl.install",  # `import verl` imports it, in every process
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",  # the FSDP engine is registered for `cuda` only, but works on any device
    }


def overrides(folder: str | Path, ranks: int = 1) -> list[str]:
    """The Hydra overrides that a CPU needs.

    Args:
        folder: where Ray keeps its sockets and logs.
        ranks: number of processes that train.

    Raises:
        ValueError: the path of the folder is too long for Ray's sockets.
    """
    check_ray_folder(folder)
    worker = client_command(folder).replace("'", r"\'")  # quoted for Hydra, below
    config = [
        "trainer.device=cpu",
        f"trainer.n_gpus_per_node={ranks}",
        # A private Ray that treats the machine as one with a GPU for each rank. Each actor needs one of the CPUs;
        # actors mostly wait for one another.
        f"+ray_kwargs.ray_init.num_gpus={ranks}",
        "ray_kwargs.ray_init.num_cpus=32",
        f"+ray_kwargs.ray_init._temp_dir={folder}",
        "+ray_kwargs.ray_init.include_dashboard=False",
        f"+ray_kwargs.ray_init.runtime_env.py_executable='{worker}'",
        # One process each instead of eight, and none for rewards, which come from the agent loop. Starting processes
        # takes most of the time of a short run.
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        "actor_rollout_ref.rollout.agent.num_workers=1",
        "reward.num_workers=0",
        "data.dataloader_num_workers=0",
        # The rollout back end of this package, one replica for each rank.
        "actor_rollout_ref.rollout.name=transformers",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
        "actor_rollout_ref.rollout.full_determinism=True",  # a seed for each request, so that runs repeat
        # Flash attention needs GPUs. Without it, rows packed into one sequence cost the square of its length.
        *(
            flag
            for role in ("actor_rollout_ref", "critic")
            for flag in (
                f"+{role}.model.override_config.attn_implementation=sdpa",
                f"{role}.model.use_remove_padding=False",
                f"{role}.model.enable_gradient_checkpointing=False",  # saves memory that a tiny model does not need
            )
        ),
        # Version 1 of FSDP wants a GPU.
        "actor_rollout_ref.actor.strategy=fsdp2",
        "critic.strategy=fsdp2",
    ]
    for engine in ("actor_rollout_ref.actor.fsdp_config", "actor_rollout_ref.ref.fsdp_config", "critic.fsdp"):
        config += [
            # The default, bfloat16, is slow here, and too coarse to compare probabilities.
            f"+{engine}.mixed_precision={{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}}",
            f"{engine}.use_torch_compile=False",  # takes half a minute, and needs a C++ compiler
        ]
    return config


def separate(ranks: int = 1, servers: int = 1) -> list[str]:
    """The Hydra overrides, after those of `overrides`, for rollout servers in processes of their own.

    Args:
        ranks: number of processes that train.
        servers: number of rollout servers.
    """
    return [
        "actor_rollout_ref.hybrid_engine=False",
        "actor_rollout_ref.rollout.nnodes=1",
        f"actor_rollout_ref.rollout.n_gpus_per_node={servers}",
        "actor_rollout_ref.rollout.checkpoint_engine.backend=gloo",
        "actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module=gem_cpu.verl.gloo",
        f"ray_kwargs.ray_init.num_gpus={ranks + servers}",
    ]
