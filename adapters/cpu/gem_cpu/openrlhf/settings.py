"""The environment variables, flags and private Ray with which OpenRLHF trains on a CPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gem_cpu.fork_server import client_command
from gem_cpu.openrlhf.install import install
from gem_cpu.processes import RAY_ENVIRONMENT, python_path, ray_folder

PATH = Path(__file__).with_name("path")
# What the fork server imports for Ray's workers.
WORKERS_IMPORT = [
    "gem_openrlhf._launcher",
    "gem_openrlhf._trainer",
    "gem_openrlhf._default_agent",
    "gem_openrlhf._workers",
]


@contextmanager
def on_cpu(ranks: int = 1) -> Iterator[list[str]]:
    """Make this process and its children use the CPU in place of GPUs. Call before OpenRLHF is imported.

    Args:
        ranks: number of processes that train a model.

    Yields:
        Flags of OpenRLHF; add the flags of your training.

    Raises:
        FrameworkVersionError: OpenRLHF is missing, or has another version than the adapter supports.
        ValueError: the path of the temporary folder is too long for Ray's sockets.
    """
    from gem_openrlhf.plugin import OPENRLHF
    from gem_train import require

    require(OPENRLHF)
    prepare()
    with ray_folder(WORKERS_IMPORT) as folder:
        _start_ray(folder, ranks)
        yield flags(ranks)


def prepare() -> None:
    """As `on_cpu`, without Ray and flags."""
    os.environ.update(environment())
    sys.path.insert(0, str(PATH))
    install()


def environment() -> dict[str, str]:
    """Environment variables of the process that runs OpenRLHF; the processes of Ray and vLLM inherit them."""
    return {
        **RAY_ENVIRONMENT,
        "PYTHONPATH": python_path(PATH),
        "DS_ACCELERATOR": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # otherwise all workers would claim the same cores
        "VLLM_NO_USAGE_STATS": "1",
        # OpenRLHF asks for a worker in the engine's process. Otherwise, on a CPU, vLLM starts a process for the worker.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "TORCH_COMPILE_DISABLE": "1",  # even with `enforce_eager`, vLLM compiles some sampling code for half a minute
    }


def flags(ranks: int = 1) -> list[str]:
    """The flags that a CPU needs."""
    places = {"actor": ranks, "critic": ranks, "ref": ranks}
    return [
        "--ds.attn_implementation",  # flash attention is for GPUs
        "sdpa",
        "--vllm.enforce_eager",  # no compiling
        "--vllm.num_engines",
        "1",
        "--vllm.gpu_memory_utilization",  # a share of the machine's memory, which vLLM checks but does not allocate
        "0.1",
        *(
            part
            for role, count in places.items()
            for part in (f"--{role}.num_nodes", "1", f"--{role}.num_gpus_per_node", str(count))
        ),
    ]


def _start_ray(folder: str, ranks: int) -> None:
    """Start a private Ray that treats the machine as one with GPUs."""
    import ray

    ray.init(
        num_gpus=3 * ranks + 1,  # for policy, critic, reference model, and the engine
        num_cpus=32,  # for actors that mostly wait for one another
        include_dashboard=False,
        object_store_memory=200_000_000,
        # vLLM leaves a file where temporary files go, so that is the folder, too.
        runtime_env={"py_executable": client_command(folder), "env_vars": {"TMPDIR": folder}},
        _temp_dir=folder,
    )
