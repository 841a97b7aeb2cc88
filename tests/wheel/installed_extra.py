"""Whether an extra is usable in the environment of this Python: `nox -s extras`."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib.metadata import distributions

import gem_core
from gem_core.installation import missing_from

GAMES = {
    "games": "game:Wordle-v0-easy",
    "visual": "visual:BarChart-v0-easy",
    "reasoning-gym": "rg:word_sorting",
    "gym": "gym:FrozenLake-v1",
    "textarena": "textarena:Nim-v0",
    "scienceworld": "scienceworld:boil-v0",
}
"""An id that needs the extra."""


def main(extra: str) -> None:
    """Print what is installed; raises where something is missing, in conflict or does not start."""
    began = time.monotonic()
    missing = missing_from(extra)
    assert not missing, f"{extra}: {missing} not installed"
    subprocess.run([sys.executable, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)
    listed = subprocess.run([sys.executable, "-m", "gem_core", "list"], check=True, capture_output=True, text=True)
    assert f"needs [{extra}]" not in listed.stdout, f"{extra}: gem-core list still asks for it"
    if extra in GAMES:
        with gem_core.make(GAMES[extra]) as env:
            env.reset(seed=0)
            env.step(env.sample_random_action())
    count, seconds = len([*distributions()]), time.monotonic() - began
    print(f"[{extra}] works: {count} distributions, {len(listed.stdout.splitlines())} lines listed, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
