"""Imported by a run (`--gem.modules`): writes down the nodes of its engines and of the workers that train."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

SHARED = str(Path(__file__).parents[1])
from gem_support.babble import register  # noqa: E402
from gem_support.raylets import note_node  # noqa: E402


def _watch_updates() -> None:
    """In the process that starts training, because workers are pickled by value for Ray."""
    from gem_openrlhf._actors import plain_class
    from gem_openrlhf._workers import TurnPolicyActor

    actor: Any = plain_class(TurnPolicyActor)
    fit = actor.fit

    @functools.wraps(fit)
    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        from node_spy import note_node

        note_node()
        return fit(self, *args, **kwargs)

    actor.fit = noted


note_node()
register()
if "gem_openrlhf._workers" in sys.modules:
    _watch_updates()
