"""What this package adds: `gem-core eval`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gem_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from gem_core.specs import RecordSource

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_record_sources(path: Path, sources: list[RecordSource]) -> None:
    """The folder of an evaluation."""
    from gem_evaluation._store import record_source

    if (found := record_source(path)) is not None:
        sources.append(found)
