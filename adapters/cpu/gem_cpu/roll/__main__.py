"""`python -m gem_cpu.roll RANKS CONFIG.yaml [key=value ...]`: `python -m gem_roll` without a GPU."""

from __future__ import annotations

import sys

from gem_cpu.roll import on_cpu


def main() -> None:
    """Train as the command line says."""
    ranks, path, *own = sys.argv[1:]
    with on_cpu(int(ranks)) as overrides:
        from gem_roll.launch import command

        command([path, *overrides, *own])


if __name__ == "__main__":
    main()
