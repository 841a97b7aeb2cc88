"""Models as opponents and customers: the names `model:...` of `gem_core.partner`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gem_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from gem_core.partner import Partner

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_find_partner(name: str, options: Mapping[str, Any]) -> Partner:
    """The model whose name follows `model:`, as `gem-core eval` knows it."""
    from gem_evaluation._partner import ModelPartner

    return ModelPartner(name.removeprefix("model:"), options)
