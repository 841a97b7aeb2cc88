"""What this package registers: ids, classes and parameters, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("visual", "images")
_TASKS: Mapping[str, tuple[str, str, Mapping[str, Mapping[str, Any]]]] = {
    "Count-v0": (
        "counting:Count",
        "single-turn",
        {
            "-easy": {"side": 56, "most": 4, "kinds": 1},
            "-hard": {"side": 112, "most": 9, "kinds": 3},
        },
    ),
    "Compare-v0": (
        "comparing:Compare",
        "single-turn",
        {
            "-easy": {"side": 56, "shapes": 2, "least_difference": 6},
            "-hard": {"side": 112, "shapes": 4, "least_difference": 4},
        },
    ),
    "BarChart-v0": (
        "charts:BarChart",
        "single-turn",
        {
            "-easy": {"side": 56, "bars": 3, "highest": 5, "difference": False},
            "-hard": {"side": 112, "bars": 5, "highest": 9, "difference": True},
        },
    ),
    "Geometry-v0": (
        "geometry:Geometry",
        "single-turn",
        {
            "-easy": {"side": 56, "task": "corners"},
            "-hard": {"side": 112, "task": "area"},
        },
    ),
    "Maze-v0": (
        "maze:Maze",
        "multi-turn",
        {
            "-easy": {"cells": 3, "max_turns": 12},
            "-hard": {"cells": 6, "max_turns": 50},
        },
    ),
}


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Every task in two sizes."""
    for name, (entry_point, turns, variants) in _TASKS.items():
        for variant, kwargs in variants.items():
            tags = (*_TAGS, turns)
            yield EnvSpec(
                f"visual:{name}{variant}", f"gem_visual.{entry_point}", kwargs, tags, extra="visual", trusting=()
            )
