"""The environment variables, the configuration and the Ray with which ROLL trains on a CPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from roll_on_cpu.install import install

HERE = Path(__file__).parent

# Ray's sockets lie in a folder of this one, and a socket's path has at most 107 characters.
LONGEST_RAY_FOLDER = 107 - len("/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store")


def prepare(ranks: int = 1) -> None:
    """Have this process, and those that it starts, take the CPU for GPUs. Before ROLL is imported.

    Args:
        ranks: processes that train.
    """
    os.environ.update(environment(ranks))
    for folder in os.environ["PYTHONPATH"].split(os.pathsep):
        if folder not in sys.path:
            sys.path.append(folder)
    install()


def environment(ranks: int = 1) -> dict[str, str]:
    """For the process that runs ROLL's pipeline; Ray hands them on to its workers."""
    clone = os.environ.get("ROLL_HOME")
    engine = HERE.parents[1] / "engine"  # which verl's CPU runs share
    folders = [str(HERE / "path"), str(HERE.parent), str(engine), clone, os.environ.get("PYTHONPATH")]
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
        "ROLL_CPU_DEVICES": str(ranks + 1),  # and one for the engine
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # more threads fight over the cores
        "TOKENIZERS_PARALLELISM": "false",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's default from its next version on, and it warns till then
        "RAY_DEDUP_LOGS": "0",  # print a line of a worker each time it comes, not once per five seconds
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def overrides(ranks: int = 1) -> list[str]:
    """All that a CPU asks for, and nothing about what is trained."""
    sharding = f"{{fsdp_size: {ranks}, param_dtype: fp32, reduce_dtype: fp32}}"
    return [
        f"++actor_train.device_mapping='{[*range(ranks)]}'",
        f"++actor_infer.device_mapping='{[ranks]}'",
        # The default, bfloat16, is slow here, and too coarse to compare probabilities. Flash attention is for GPUs.
        "++actor_train.model_args={dtype: fp32, attn_implementation: sdpa, disable_gradient_checkpointing: true}",
        "++actor_infer.model_args={dtype: fp32, disable_gradient_checkpointing: true}",
        f"++actor_train.strategy_args={{strategy_name: fsdp2_train, strategy_config: {sharding}}}",
        "++actor_infer.strategy_args={strategy_name: vllm, strategy_config: {}}",
        "++env_monitor.enable=false",
    ]


def start_ray(folder: str | Path, ranks: int = 1) -> None:
    """A private Ray that believes in GPUs; after `prepare`. ROLL's own would be the machine's.

    Args:
        folder: where it keeps its sockets and logs; a short path, see `LONGEST_RAY_FOLDER`.
        ranks: processes that train a model.
    """
    import ray
    from roll.platforms import current_platform
    from roll.utils.constants import RAY_NAMESPACE

    if len(str(folder)) > LONGEST_RAY_FOLDER:
        raise ValueError(f"Ray needs a folder of at most {LONGEST_RAY_FOLDER} characters; {folder} is longer")
    ray.init(
        num_gpus=ranks + 1,
        num_cpus=32,  # of actors that mostly wait for one another
        include_dashboard=False,
        object_store_memory=200_000_000,
        namespace=RAY_NAMESPACE,
        runtime_env={"env_vars": current_platform.get_custom_env_vars()},
        _temp_dir=str(folder),
    )
