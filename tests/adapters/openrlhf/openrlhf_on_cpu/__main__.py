"""`python -m openrlhf_on_cpu RANKS FLAGS...`: `python -m gem_openrlhf` without a GPU."""

from __future__ import annotations

import sys
import tempfile

from openrlhf_on_cpu import settings


def main() -> None:
    settings.prepare()
    ranks, *flags = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        settings.start_ray(folder, int(ranks))
        sys.argv[1:] = [*settings.flags(int(ranks)), *flags]
        from gem_openrlhf.__main__ import main as train

        train()


if __name__ == "__main__":
    main()
