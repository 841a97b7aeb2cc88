"""Ray's actors as classes."""

from __future__ import annotations

from typing import Any


def plain_class(actor: Any) -> Any:
    """The class under `@ray.remote`, to derive from."""
    return actor.__ray_metadata__.modified_class
