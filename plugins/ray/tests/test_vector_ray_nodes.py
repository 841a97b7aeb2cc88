"""Environments on several nodes of a Ray cluster: raylets of their own on this machine, one of which is killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import gem_core
from gem_core import make_vec
from gem_core.vector import VectorEnv
from gem_support.ray_envs import Travels

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

pytestmark = pytest.mark.uncertain("Ray has its own time limits")

SEED = 5
NODES = 3
LARGE = 200_000
"""Characters of an observation; Ray keeps results of more than 100 KB in the memory of the node that made them."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A node of its own for this process, and `NODES` with one CPU each for environments."""
    folder = tempfile.mkdtemp(prefix="gemray", dir="/tmp")  # short: Ray puts sockets in it
    settings: dict[str, Any] = {"object_store_memory": 100 << 20, "include_dashboard": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its default warns about a change to come
        # Ray names its newest cluster in this folder; in /tmp, other programs would connect to this one.
        patch.setenv("RAY_TMPDIR", folder)
        os.mkdir(f"{folder}/ray")
        one = cluster_utils.Cluster()
        try:
            one.add_node(num_cpus=0, **settings)
            for _ in range(NODES):
                one.add_node(num_cpus=1, **settings)
            one.wait_for_nodes()
            ray.init(address=one.address, log_to_driver=False)
            yield one
        finally:
            ray.shutdown()
            one.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


def vector(num_envs: int, backend: str = "ray", workers: int | None = NODES, **kwargs: Any) -> VectorEnv:
    gem_core.register("demo-nodes:Travels-v0", Travels)
    settings: dict[str, Any] = {} if backend == "sync" else {"workers": workers}
    return make_vec("demo-nodes:Travels-v0", num_envs, backend=backend, seed=SEED, env_kwargs=kwargs, **settings)


def turns_of(vec: VectorEnv, turns: Iterable[int]) -> list[Any]:
    """What turns of all environments show, but for the nodes."""
    shown: list[Any] = []
    for turn in turns:
        vec.send(dict.fromkeys(range(vec.num_envs), f"turn {turn}"))
        shown.append(received(vec))
    return shown


def received(vec: VectorEnv) -> list[Any]:
    steps = sorted(vec.recv(at_least=vec.num_envs).items())
    return [(slot, one.observation, one.reward, one.terminated, one.truncated) for slot, one in steps]


def nodes_of(infos: Any) -> list[str]:
    return [info["node"] for info in infos]


def test_actors_are_spread_over_the_nodes(cluster: Any) -> None:
    with vector(6) as vec:
        _, infos = vec.reset()
        assert len(set(nodes_of(infos))) == NODES


def test_large_observations_come_from_any_node(cluster: Any) -> None:
    with vector(NODES, "sync", characters=LARGE) as vec:
        vec.reset()
        expected = turns_of(vec, range(3))
    with vector(NODES, characters=LARGE) as vec:
        vec.reset()
        assert turns_of(vec, range(3)) == expected


def test_a_killed_node_costs_no_episode(cluster: Any) -> None:
    """It dies with 64 calls under way. Its environments continue elsewhere, also on a node that has just joined."""
    with vector(64, "sync") as vec:
        vec.reset()
        expected = turns_of(vec, range(12))
    with vector(64) as vec:
        _, infos = vec.reset()
        shown = turns_of(vec, range(3))
        lost = next(node for node in cluster.list_all_nodes() if node.node_id == infos[0]["node"])
        vec.send(dict.fromkeys(range(64), "turn 3"))
        cluster.remove_node(lost, allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
        shown += [received(vec), *turns_of(vec, range(4, 12))]
        assert shown == expected
        assert all(one.failed == 0 for one in vec.statistics.values())
        _, infos = vec.reset()
        assert lost.node_id not in nodes_of(infos)
