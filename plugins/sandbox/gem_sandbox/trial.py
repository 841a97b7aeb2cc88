"""A backend is tried by running a program in it."""

from __future__ import annotations

import contextlib

from gem_core.errors import SandboxError
from gem_sandbox.call import Call
from gem_sandbox.limits import Limits
from gem_sandbox.pool import Settings, Template, TemplateLost
from gem_sandbox.source import sealed

_SECONDS = 30.0


def trial(backend: str) -> str | None:
    """Why it does not work here; `None` where it does."""
    try:
        template = Template(Settings(backend, (), 1))
    except (SandboxError, OSError) as error:
        return str(error)
    try:
        with sealed("") as nothing, contextlib.closing(Call(template, Limits(wall=_SECONDS), session=False)) as call:
            call.give(nothing, nothing)
            turn = call.wait()
            return turn.problem or (None if turn.ended and turn.ended.status == 0 else call.stderr.take())
    except TemplateLost:
        return "its template died"
    finally:
        template.end()
