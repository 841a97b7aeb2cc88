"""`python -m gem_openrlhf`: OpenRLHF's `train_ppo_ray` with environments; every OpenRLHF flag keeps its meaning."""

from __future__ import annotations

import sys

from gem_core.errors import GemError
from gem_openrlhf._checks import check_flags
from gem_openrlhf.settings import parse


def main() -> None:
    """Train as the command line says."""
    flags = sys.argv[1:]
    try:
        if not {"-h", "--help"} & {*flags}:
            check_flags(parse(flags)[1])  # a wrong flag is answered before OpenRLHF is imported, which takes seconds
        from gem_openrlhf import launch

        launch()
    except GemError as error:
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()  # otherwise the workers' last output would hide the reason
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
