"""Every data set of the installed reasoning-gym as `rg:<name>`: https://github.com/open-thought/reasoning-gym."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_reasoning_gym._entries import settings_of as settings_of

__all__ = ["settings_of"]

__getattr__, __dir__ = lazy_exports(__name__, {"settings_of": "_entries"})
