"""The probes are upstream's interface, and its own README runs through gem_compat as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from gem_compat.envs.registration import ENV_REGISTRY
from gem_support.upstream_probes import PROBES

gem = pytest.importorskip("gem")


@pytest.mark.parametrize("name", PROBES)
def test_upstream_does_what_the_probes_ask_for(name: str) -> None:
    PROBES[name](gem)


def test_every_id_of_upstream_is_here_but_one() -> None:
    theirs = pytest.importorskip("gem.envs.registration").ENV_REGISTRY
    missing = {env_id for env_id in theirs if env_id not in ENV_REGISTRY and not env_id.startswith("probe:")}
    assert missing == {"rg:composite"}


def test_the_readme_of_upstream_runs_unchanged(tmp_path: Path) -> None:
    description = metadata("gem-llm").get_payload()
    assert isinstance(description, str)
    [script] = [block for block in re.findall(r"```python *\n(.*?)```", description, re.DOTALL) if "gem.make(" in block]
    program = tmp_path / "readme.py"
    program.write_text(script)
    done = subprocess.run(
        [sys.executable, "-m", "gem_compat", str(program)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "ACT \\boxed{" in done.stdout
