"""Runs a program that imports `gem`: `python -m gem_compat program.py arguments...`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from gem_compat.alias import install_alias

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m gem_compat program.py [arguments...]")
    if not Path(sys.argv[1]).is_file():
        sys.exit(f"there is no program {sys.argv[1]!r}. usage: python -m gem_compat program.py [arguments...]")
    install_alias("gem")
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
