"""`python -m gem_cpu.openrlhf RANKS FLAGS...`: `python -m gem_openrlhf` without a GPU."""

from __future__ import annotations

import sys

from gem_cpu.openrlhf import on_cpu


def main() -> None:
    """Train as the command line says."""
    ranks, *own = sys.argv[1:]
    with on_cpu(int(ranks)) as flags:
        sys.argv[1:] = [*flags, *own]
        from gem_openrlhf.__main__ import main as train

        train()


if __name__ == "__main__":
    main()
