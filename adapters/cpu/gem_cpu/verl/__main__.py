"""`python -m gem_cpu.verl RANKS key=value ...`: `python -m gem_verl` without a GPU."""

from __future__ import annotations

import sys

from gem_cpu.verl import on_cpu


def main() -> None:
    """Train as the command line says."""
    ranks, *own = sys.argv[1:]
    with on_cpu(int(ranks)) as overrides:
        sys.argv[1:] = [*overrides, *own]
        from gem_verl.__main__ import main as train

        train()


if __name__ == "__main__":
    main()
