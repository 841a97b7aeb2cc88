"""The environment variables and the configuration overrides with which verl trains on a CPU."""

from __future__ import annotations

import os
from pathlib import Path

# Ray's sockets lie in a folder of this one, and a socket's path has at most 107 characters.
LONGEST_RAY_FOLDER = 107 - len("/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store")


def environment() -> dict[str, str]:
    """For the process that runs `verl.trainer.main_ppo`; Ray hands them on to its workers."""
    here = Path(__file__).parents[1]
    # Not the folder of both, in which `trl` would be found where TRL is not installed.
    folders = [str(here), str(here.parent / "engine"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(folders),
        "VERL_USE_EXTERNAL_MODULES": "verl_on_cpu.install",  # `import verl` imports it, in every process
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",  # the FSDP engine is registered for `cuda` only, but works on any device
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # more threads fight over the cores
        "TOKENIZERS_PARALLELISM": "false",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's default from its next version on, and it warns till then
        "RAY_DEDUP_LOGS": "0",  # print a line of a worker each time it comes, not once per five seconds
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def overrides(ray_folder: str | Path, ranks: int = 1) -> list[str]:
    """Hydra overrides: all that a CPU asks for, and nothing about what is trained.

    `ray_folder` is where this run's Ray keeps its sockets and logs; a short path, see `LONGEST_RAY_FOLDER`.
    """
    if len(str(ray_folder)) > LONGEST_RAY_FOLDER:
        raise ValueError(f"Ray needs a folder of at most {LONGEST_RAY_FOLDER} characters; {ray_folder} is longer")
    config = [
        "trainer.device=cpu",
        f"trainer.n_gpus_per_node={ranks}",
        # Ray: a private one that believes in as many GPUs as there are ranks. The number of CPUs is that of the
        # actors that have to fit in; they mostly wait for one another.
        f"+ray_kwargs.ray_init.num_gpus={ranks}",
        "ray_kwargs.ray_init.num_cpus=32",
        f"+ray_kwargs.ray_init._temp_dir={ray_folder}",
        "+ray_kwargs.ray_init.include_dashboard=False",
        # One process each instead of eight, and none to compute rewards, which come from the agent loop: starting
        # them is most of the time of a short run.
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        "actor_rollout_ref.rollout.agent.num_workers=1",
        "reward.num_workers=0",
        "data.dataloader_num_workers=0",
        # The rollout back end of this package, one replica per rank.
        "actor_rollout_ref.rollout.name=transformers",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
        "actor_rollout_ref.rollout.full_determinism=True",  # a seed for each request, so that runs repeat
        # Flash attention is for GPUs, and without it rows packed into one sequence cost the square of its length.
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
            f"{engine}.use_torch_compile=False",  # takes half a minute, and a C++ compiler
        ]
    return config
