"""The environment variables, configuration and private Ray with which ROLL trains on a CPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gem_cpu.processes import RAY_ENVIRONMENT, python_path, ray_folder
from gem_cpu.roll.install import DEVICES, install

PATH = Path(__file__).with_name("path")


@contextmanager
def on_cpu(ranks: int = 1) -> Iterator[list[str]]:
    """Make this process and its children use the CPU in place of GPUs. Call before ROLL is imported.

    The clone of ROLL is on the PYTHONPATH, or `ROLL_HOME` names it.

    Args:
        ranks: number of processes that train.

    Yields:
        Overrides of ROLL's configuration; add the settings of your training.

    Raises:
        FrameworkVersionError: ROLL is missing, or has another version than the adapter supports.
        ValueError: the path of the temporary folder is too long for Ray's sockets.
    """
    prepare(ranks)
    from gem_roll.plugin import ROLL
    from gem_train import require

    require(ROLL)
    with ray_folder() as folder:
        _start_ray(folder, ranks)
        yield overrides(ranks)


def prepare(ranks: int = 1) -> None:
    """As `on_cpu`, without Ray and overrides."""
    os.environ.update(environment(ranks))
    for folder in os.environ["PYTHONPATH"].split(os.pathsep):
        if folder not in sys.path:
            sys.path.append(folder)
    install()


def environment(ranks: int = 1) -> dict[str, str]:
    """Environment variables of the process that runs ROLL's pipeline; its Ray workers inherit them."""
    return {
        **RAY_ENVIRONMENT,
        "PYTHONPATH": python_path(PATH, os.environ.get("ROLL_HOME")),
        DEVICES: str(ranks + 1),  # and one for the engine
    }


def overrides(ranks: int = 1) -> list[str]:
    """The overrides that a CPU needs."""
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


def _start_ray(folder: str, ranks: int) -> None:
    """Start a private Ray that treats the machine as one with GPUs. ROLL itself would start or join a shared Ray."""
    import ray
    from roll.platforms import current_platform
    from roll.utils.constants import RAY_NAMESPACE

    ray.init(
        num_gpus=ranks + 1,
        num_cpus=32,  # for actors that mostly wait for one another
        include_dashboard=False,
        object_store_memory=200_000_000,
        namespace=RAY_NAMESPACE,
        runtime_env={"env_vars": current_platform.get_custom_env_vars()},
        _temp_dir=folder,
    )
