"""Environments over WebSockets: `gem-core serve`, and `remote:` ids that play what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_remote.elsewhere import EnvElsewhere as EnvElsewhere
    from gem_remote.errors import error_of as error_of
    from gem_remote.messages import Failed as Failed
    from gem_remote.messages import Reset as Reset
    from gem_remote.messages import Step as Step
    from gem_remote.sockets import Lost as Lost
    from gem_remote.sockets import NotNow as NotNow
    from gem_remote.sockets import Socket as Socket
    from gem_remote.sockets import patiently as patiently

_HOME = {
    "EnvElsewhere": "elsewhere",
    "Failed": "messages",
    "Lost": "sockets",
    "NotNow": "sockets",
    "Reset": "messages",
    "Socket": "sockets",
    "Step": "messages",
    "error_of": "errors",
    "patiently": "sockets",
}

__all__ = [
    "EnvElsewhere",
    "Failed",
    "Lost",
    "NotNow",
    "Reset",
    "Socket",
    "Step",
    "error_of",
    "patiently",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
