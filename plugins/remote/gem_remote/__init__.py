"""Environments over WebSockets: `gem-core serve`, and `remote:` ids that play what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_remote._elsewhere import EnvElsewhere as EnvElsewhere
    from gem_remote._errors import error_of as error_of
    from gem_remote._listening import bound_socket as bound_socket
    from gem_remote._messages import Failed as Failed
    from gem_remote._messages import Reset as Reset
    from gem_remote._messages import Step as Step
    from gem_remote._sockets import Lost as Lost
    from gem_remote._sockets import NotNow as NotNow
    from gem_remote._sockets import Socket as Socket
    from gem_remote._sockets import patiently as patiently

_HOME = {
    "EnvElsewhere": "_elsewhere",
    "Failed": "_messages",
    "Lost": "_sockets",
    "NotNow": "_sockets",
    "Reset": "_messages",
    "Socket": "_sockets",
    "Step": "_messages",
    "bound_socket": "_listening",
    "error_of": "_errors",
    "patiently": "_sockets",
}

__all__ = [
    "EnvElsewhere",
    "Failed",
    "Lost",
    "NotNow",
    "Reset",
    "Socket",
    "Step",
    "bound_socket",
    "error_of",
    "patiently",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
