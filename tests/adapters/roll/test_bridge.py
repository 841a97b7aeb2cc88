"""Our environments behind `gem.make`: the installed `gem`'s, and the stand-in's where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from gem_core.errors import EnvFailure, EnvKwargsError, NotFoundError
from gem_roll.bridge import BRIDGE, register_bridge


def test_our_ids_are_made_by_gem():
    import gem

    register_bridge()
    register_bridge()  # a second time changes nothing
    env = gem.make(BRIDGE, env="game:Corridor-v0")
    assert isinstance(env, gem.Env)
    observation, info = env.reset(seed=7)
    again, _ = gem.make(env_id=BRIDGE, env="game:Corridor-v0").reset(seed=7)
    assert observation == again
    # What ROLL's managers read without asking whether it is there.
    assert {"env_instruction", "suffix", "metrics"} <= {*info}
    for _ in range(50):
        _, reward, terminated, truncated, info = env.step("right")
        assert isinstance(reward, float)
        if terminated or truncated:
            break
    assert terminated or truncated
    env.close()


def test_mistakes_show_when_it_is_made():
    import gem

    register_bridge()
    with pytest.raises(NotFoundError, match="Did you mean"):
        gem.make(BRIDGE, env="game:Corrido-v0")
    with pytest.raises(EnvKwargsError):
        gem.make(BRIDGE, env="game:Corridor-v0", lenght=3)


def test_an_environment_that_raises_or_hangs_ends_its_episode(monkeypatch: pytest.MonkeyPatch):
    import time

    import gem
    from babble import Babble

    def sleep(self: Any, action: str) -> Any:
        time.sleep(3600)

    register_bridge()
    for failing, error in ((lambda self, action: 1 / 0, "ZeroDivisionError"), (sleep, "TimeoutError")):
        monkeypatch.setattr(Babble, "step", failing)
        env = gem.make(BRIDGE, env="test:Babble-v0", timeout=1.0)
        env.reset(seed=1)
        _, reward, terminated, truncated, info = env.step("north")
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert error in info["error"]


def test_an_environment_that_does_nothing_but_fail_is_reported(monkeypatch: pytest.MonkeyPatch):
    import gem
    from babble import Babble

    register_bridge()
    monkeypatch.setattr(Babble, "step", lambda self, action: 1 / 0)
    env = gem.make(BRIDGE, env="test:Babble-v0")

    def play_on() -> None:
        for seed in range(100):
            env.reset(seed=seed)
            env.step("north")

    with pytest.raises(EnvFailure):
        play_on()


def run(code: str) -> subprocess.CompletedProcess[str]:
    folders = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def test_the_stand_in_makes_our_environments():
    done = run("""
        import sys
        from no_gem import stand_in_for_gem
        from gem_roll.stand_in import install_stand_in

        stand_in_for_gem()
        assert not install_stand_in()  # it is there
        import gem
        from gem.envs.math_env import MathEnv
        from gem.utils.constants import TERMINAL_STATE
        from gem_roll.bridge import BRIDGE, register_bridge

        register_bridge()
        env = gem.make(env_id=BRIDGE, env="game:Corridor-v0")
        assert isinstance(env, gem.Env)
        assert env.reset(seed=0)[0]
        files = [str(getattr(one, "__file__", "")) for one in sys.modules.values()]
        assert not any("site-packages/gem/" in file for file in files)
        try:
            MathEnv()
        except ImportError as error:
            print(error)
        """)
    assert done.returncode == 0, done.stderr
    assert "pip install gem-llm" in done.stdout


@pytest.mark.needs_roll
def test_roll_plays_with_the_stand_in_in_its_workers_too():
    done = run("""
        import tempfile
        from no_gem import stand_in_for_gem

        stand_in_for_gem()
        import ray
        import roll.pipeline.agentic.agentic_pipeline

        @ray.remote
        def play():
            import gem
            import gem_roll.stock
            import roll.pipeline.agentic.environment_worker

            env = gem.make("gem-core", env="game:Corridor-v0")
            return hasattr(gem, "__file__"), env.reset(seed=0)[0]

        with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
            hook = {"worker_process_setup_hook": "no_gem.stand_in_for_gem"}
            ray.init(num_cpus=2, include_dashboard=False, _temp_dir=folder, runtime_env=hook)
            print(ray.get(play.remote()))
            ray.shutdown()
        """)
    assert done.returncode == 0, done.stderr
    assert "(False, '" in done.stdout


def test_a_gem_that_is_installed_is_left_alone():
    done = run(
        "from gem_roll.stand_in import install_stand_in\nassert not install_stand_in()\nimport gem\nprint(gem.__file__)"
    )
    assert done.returncode == 0, done.stderr
    assert "site-packages" in done.stdout
