"""A program that makes the warm-started weights of a run, and prints their folder and the success of random play."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from recipes.policies import saved
from recipes.study import WarmStart


def main(told: str) -> None:
    """Make the weights, or find them.

    Args:
        told: JSON: a `WarmStart`, modules to import, a seed, and the folder of all weights.
    """
    settings, modules, seed, cache = json.loads(told)
    for module in modules:
        importlib.import_module(module)
    lists = {name: tuple(value) for name, value in settings.items() if isinstance(value, list)}
    folder, success = saved(WarmStart(**{**settings, **lists}), seed, Path(cache))
    print(json.dumps({"folder": str(folder), "success": success}))


if __name__ == "__main__":
    main(sys.argv[1])
