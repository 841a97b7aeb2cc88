"""`python -m gem_roll`: ROLL's agentic pipeline with environments; every setting of ROLL keeps its meaning."""

from __future__ import annotations

import sys

from gem_core.errors import AdapterError
from gem_roll.plugin import ROLL
from gem_train import require


def main() -> None:
    """Compose the configuration from a yaml and the command line, and train."""
    try:
        require(ROLL)
    except AdapterError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    from gem_roll.launch import command

    command(sys.argv[1:])


if __name__ == "__main__":
    main()
