"""The environment variables, the flags and the Ray with which OpenRLHF trains on a CPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from openrlhf_on_cpu.install import install

HERE = Path(__file__).parent

# Ray's sockets lie in a folder of this one, and a socket's path has at most 107 characters.
LONGEST_RAY_FOLDER = 107 - len("/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store")


def prepare() -> None:
    """Have this process, and those that it starts, take the CPU for a GPU. Before OpenRLHF is imported."""
    os.environ.update(environment())
    sys.path.insert(0, str(HERE / "path"))
    install()


def environment() -> dict[str, str]:
    """For the process that runs OpenRLHF's command; Ray and vLLM hand them on to theirs."""
    folders = [str(HERE / "path"), str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(folders),
        "DS_ACCELERATOR": "cpu",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # more threads fight over the cores
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # its workers would otherwise all claim the same cores
        "VLLM_NO_USAGE_STATS": "1",
        "TORCH_COMPILE_DISABLE": "1",  # even with `enforce_eager` some of its sampling is compiled, for half a minute
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's default from its next version on, and it warns till then
        "RAY_DEDUP_LOGS": "0",  # print a line of a worker each time it comes, not once per five seconds
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def flags(ranks: int = 1) -> list[str]:
    """All that a CPU asks for, and nothing about what is trained."""
    places = {"actor": ranks, "critic": ranks, "ref": ranks}
    return [
        "--ds.attn_implementation",  # flash attention is for GPUs
        "sdpa",
        "--vllm.enforce_eager",  # no compiling
        "--vllm.num_engines",
        "1",
        "--vllm.gpu_memory_utilization",  # of the machine's memory, which vLLM checks and does not take
        "0.1",
        *(
            part
            for role, count in places.items()
            for part in (f"--{role}.num_nodes", "1", f"--{role}.num_gpus_per_node", str(count))
        ),
    ]


def start_ray(folder: str | Path, ranks: int = 1) -> None:
    """A private Ray that believes in GPUs; after `prepare`.

    Args:
        folder: where it keeps its sockets and logs; a short path, see `LONGEST_RAY_FOLDER`.
        ranks: processes that train a model.
    """
    import ray

    if len(str(folder)) > LONGEST_RAY_FOLDER:
        raise ValueError(f"Ray needs a folder of at most {LONGEST_RAY_FOLDER} characters; {folder} is longer")
    ray.init(
        num_gpus=3 * ranks + 1,  # for policy, critic, reference model, and the engine
        num_cpus=32,  # of actors that mostly wait for one another
        include_dashboard=False,
        object_store_memory=200_000_000,
        _temp_dir=str(folder),
    )
