"""`python -m gem_openrlhf`: OpenRLHF's `train_ppo_ray` with environments; every flag of OpenRLHF's stays what it is."""

from __future__ import annotations

import sys

from gem_core.errors import GemError


def main() -> None:
    """Train as the command line says."""
    try:
        from gem_openrlhf import launch

        launch()
    except GemError as error:
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()  # its workers' last words would bury the reason
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
