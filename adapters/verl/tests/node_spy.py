"""Imported by agent workers (`gem.modules`) and workers that train (`external_lib`): writes down their nodes."""

from __future__ import annotations

from pathlib import Path

SHARED = str(Path(__file__).parents[1])
from gem_support.babble import register  # noqa: E402
from gem_support.raylets import note_node  # noqa: E402

note_node()
register()
