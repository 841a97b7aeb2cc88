"""Runs a program that imports `gem`: `python -m gem_core.compat program.py arguments...`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from gem_core.compat.alias import answer_to

if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        sys.exit(f"usage: python -m gem_core.compat program.py [arguments...]; no such program: {sys.argv[1:2]}")
    answer_to("gem")
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
