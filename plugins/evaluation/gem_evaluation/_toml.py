"""TOML files, on all Pythons."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises `OSError` or `ValueError` where it cannot be read."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return toml.loads(path.read_text(encoding="utf-8"))
