"""What a step costs through an exported OpenEnv package: CPU of client and server, and time.

    python benchmarks/openenv_steps.py [--episodes 400]

The package of a game whose own step takes microseconds is written, served by OpenEnv's server, and played as an
`openenv:` id. Needs the extra `openenv`, for example the Python of `nox -s openenv`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from remote import GAME, measure, play

from gem_core import make
from gem_openenv._exporting import write_package


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=400, help="per measurement")
    episodes: int = parser.parse_args().episodes
    with tempfile.TemporaryDirectory() as folder:
        package = write_package(GAME, {}, Path(folder) / "guess", (-1.0, 1.0))
        with make(f"openenv:{package}", start_seconds=240.0) as env:
            env.reset(seed=0)
            measure("exported, one session", lambda: play(env, episodes), _server(package))


def _server(package: Path) -> int:
    """The process that serves the package."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(package).encode() in (entry / "cmdline").read_bytes():
                return int(entry.name)
        except OSError:  # it has ended
            continue
    raise SystemExit(f"no process serves {package}")


if __name__ == "__main__":
    main()
