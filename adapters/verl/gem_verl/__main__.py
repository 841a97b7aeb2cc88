"""`python -m gem_verl`: verl's `main_ppo` with environments; every flag of verl keeps its meaning."""

from __future__ import annotations

import sys

from gem_core.errors import AdapterError
from gem_train import require
from gem_verl.plugin import VERL


def main() -> None:
    """Compose the configuration from the command line, and train."""
    try:
        require(VERL)
    except AdapterError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    from gem_verl._launch import command

    command()


if __name__ == "__main__":
    main()
