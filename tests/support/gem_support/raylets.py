"""Two nodes of a Ray cluster on this machine: raylets of their own, each with a part of the devices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray import cluster_utils

FOLDER = "GEM_SPY"


@contextmanager
def two_nodes(folder: str, devices: int = 1) -> Iterator[str]:
    """Start them. Their workers inherit the environment of this process.

    Args:
        folder: for sockets and logs; a short path.
        devices: of each node.

    Yields:
        The address of the cluster.
    """
    os.environ["RAY_TMPDIR"] = folder
    Path(folder, "ray").mkdir()
    cluster = cluster_utils.Cluster()
    settings: dict[str, Any] = {"num_cpus": 32, "num_gpus": devices, "object_store_memory": 200 << 20}
    try:
        for _ in range(2):
            cluster.add_node(**settings, include_dashboard=False)
        cluster.wait_for_nodes()
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def note_node() -> None:
    """Write down the node of this process, if it is one of Ray's, and the name of its actor, or else its class."""
    if ray.is_initialized():
        context = ray.get_runtime_context()
        # Ray makes the class the title of the process.
        name = context.get_actor_name() or Path("/proc/self/cmdline").read_text().strip("\0")
        Path(os.environ[FOLDER], f"node-{os.getpid()}").write_text(f"{context.get_node_id()} {name}")


def noted_nodes(folder: Path, actor: str) -> list[str]:
    """The node of each actor with this in its name."""
    notes = [path.read_text().split(" ", 1) for path in sorted(folder.glob("node-*"))]
    return [node for node, name in notes if actor in name]
