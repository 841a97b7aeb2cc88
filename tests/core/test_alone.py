"""The core by itself: copied into an empty environment, with what it depends on and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import gem_core

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

import gem_core
from gem_core import Env, make, make_vec
from gem_core.advantages import TurnBatch, compute_advantages
from gem_core.plugins import manager
from gem_core.tools import FunctionTool, ToolEnv
from gem_core.wrappers import EpisodeStatistics, TurnLimit

assert Path(gem_core.__file__).is_relative_to(sys.prefix), gem_core.__file__
assert not entry_points(group="gem_core.plugins")
assert not manager.plugins()


class Climb(Env):
    "Say `up` until the top."

    def __init__(self, height: int = 3) -> None:
        self.height = height

    def reset(self, seed=None, **options):
        super().reset(seed=seed)
        self.place = self.rng.randrange(2)
        return f"You are at {self.place} of {self.height}.", {}

    def step(self, action):
        self.place += action == "up"
        return f"Now at {self.place}.", float(action == "up"), self.place == self.height, False, {}

    def sample_random_action(self):
        return self.rng.choice(["up", "wait"])


def height(mountain: str) -> int:
    "The height of a mountain in meters."
    return {"Fuji": 3776}[mountain]


def play(env: Env) -> list[float]:
    env.reset(seed=0)
    rewards, over = [], False
    while not over:
        _, reward, terminated, truncated, info = env.step("up")
        rewards.append(reward)
        over = terminated or truncated
    return rewards


def main() -> None:
    gem_core.register("alone:Climb-v0", Climb, kwargs={"height": 4})
    with make("alone:Climb-v0") as env:
        rewards = play(env)
    assert len(rewards) in (3, 4)
    with TurnLimit(EpisodeStatistics(make("alone:Climb-v0")), 2) as env:
        assert play(env) == [1.0, 1.0]

    seen = set()
    for backend in ("sync", "thread", "process"):
        with make_vec("alone:Climb-v0", 3, backend=backend, seed=7) as vec:
            observations, _ = vec.reset()
            seen.add((*observations, *vec.step(["up", "wait", "up"])[0]))
    assert len(seen) == 1, seen

    with ToolEnv(make("alone:Climb-v0"), [FunctionTool(height)], max_tool_uses=2) as env:
        env.reset(seed=0)
        call = '<tool_call>{"name": "height", "arguments": {"mountain": "Fuji"}}</tool_call>'
        assert env.step(call)[0] == "3776"

    batch = TurnBatch(rewards=[0.0, 1.0, 1.0], episode=[0, 0, 1], turn=[0, 1, 0])
    advantages, _ = compute_advantages("rebn", batch, gamma=0.5)
    returns = np.array([0.5, 1.0, 1.0])
    np.testing.assert_allclose(advantages, (returns - returns.mean()) / returns.std(), rtol=1e-3)

    foreign = {name.partition(".")[0] for name in sys.modules if name.startswith("gem_")} - {"gem_core"}
    assert not foreign, foreign
    print("alone and well")


if __name__ == "__main__":
    main()
"""


def needed(name: str) -> dict[str, Distribution]:
    """What a distribution depends on without its extras, directly or not."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    for one in waiting:
        for requirement in map(Requirement, distribution(one).requires or ()):
            if requirement.name not in found and (
                requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            ):
                found[requirement.name] = distribution(requirement.name)
                waiting.append(requirement.name)
    return found


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with the core in it, and links to the files of what it depends on."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for one in needed("gem-core").values():
        for top in {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (site / top).symlink_to(Path(str(one.locate_file(top))))
    shutil.copytree(Path(gem_core.__file__).parent, site / "gem_core", ignore=shutil.ignore_patterns("__pycache__"))
    info = site / "gem_core-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: gem-core\nVersion: {gem_core.__version__}\n")
    return folder / "bin" / "python"


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("GEM_", "PYTHON"))}
    return subprocess.run([*map(str, command)], cwd=folder, env=clean, capture_output=True, text=True, timeout=250)


def test_it_plays_wraps_vectorises_calls_tools_and_computes_advantages(python: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(python, "program.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "alone and well\n"


def test_its_command_runs(python: Path, tmp_path: Path) -> None:
    done = run(python, "-m", "gem_core", "--version", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gem-core ")


def test_nothing_else_is_there(python: Path, tmp_path: Path) -> None:
    code = "import importlib.util as u, sys; sys.exit(any(u.find_spec(one) for one in sys.argv[1:]))"
    packages = [path.name for glob in ("adapters/*/gem_*", "plugins/*/gem_*") for path in ROOT.glob(glob)]
    done = run(python, "-c", code, *packages, "torch", "pytest", folder=tmp_path)
    assert done.returncode == 0
    assert len(packages) > 30
