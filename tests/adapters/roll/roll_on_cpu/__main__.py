"""`python -m roll_on_cpu RANKS CONFIG.yaml [key=value ...]`: `python -m gem_roll` without a GPU."""

from __future__ import annotations

import sys
import tempfile

from roll_on_cpu import settings


def main() -> None:
    ranks, path, *rest = sys.argv[1:]
    settings.prepare(int(ranks))
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        settings.start_ray(folder, int(ranks))
        from gem_roll.launch import command

        command([path, *settings.overrides(int(ranks)), *rest])


if __name__ == "__main__":
    main()
