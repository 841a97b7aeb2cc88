"""Imported by agent workers (`gem.modules`) and workers that train (`external_lib`): writes down their nodes."""

from __future__ import annotations

import sys
from pathlib import Path

SHARED = str(Path(__file__).parents[1])
sys.path.append(SHARED)
from babble import register  # noqa: E402
from raylets import note_node  # noqa: E402

sys.path.remove(SHARED)  # a worker looks for the package `trl`, and the folder has a folder of that name

note_node()
register()
