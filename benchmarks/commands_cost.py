"""CPU time of imports and commands in several environments, alternating.

python benchmarks/commands_cost.py OLD/bin/python NEW/bin/python
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

ROUNDS = 8
COMMANDS = {
    "import gem_core": ["-c", "import gem_core"],
    "make": ["-c", "import gem_core; gem_core.make('game:GuessTheNumber-v0-easy')"],
    "list": ["-m", "gem_core", "list"],
    "check": ["-m", "gem_core", "check", "game:Corridor-v0", "--seeds", "1"],
    "eval --help": ["-m", "gem_core", "eval", "--help"],
    "metadata": ["-c", "import importlib.metadata as m; m.entry_points(group='gem_core.plugins')"],
}


def cpu(command: list[str]) -> float:
    """Seconds of CPU that a command takes, with its own processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(pythons: list[str]) -> None:
    """Print the least and the median of each command in each environment, in ms."""
    for name, arguments in COMMANDS.items():
        times: dict[str, list[float]] = {python: [] for python in pythons}
        for _ in range(ROUNDS):
            for python, found in times.items():
                found.append(1000 * cpu([python, *arguments]))
        print(name, *(f"{min(one):.0f} / {statistics.median(one):.0f} ms" for one in times.values()), sep="  ")


if __name__ == "__main__":
    main(sys.argv[1:])
