"""Keyword arguments that a function does not have, refused with what to use in their place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar, cast

from gem_core.errors import EnvKwargsError, hint_for

P = ParamSpec("P")
R = TypeVar("R")


def strict(instead_of: Mapping[str, str], otherwise: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have a function refuse keyword arguments that it does not name.

    Args:
        instead_of: what the error says about an argument, as `Env.instead_of`.
        otherwise: a sentence for arguments that resemble none.

    Returns:
        A decorator. The decorated function raises `EnvKwargsError`, which is a `TypeError`, before it is called.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        code = function.__code__
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        name = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for given, value in cast("dict[str, object]", kwargs).items():
                if given not in known:
                    hint = hint_for(given, known, instead_of) or (otherwise and f" {otherwise}")
                    raise EnvKwargsError(f"{name}() has no argument {given!r} (given {value!r:.200}).{hint}")
            return function(*args, **kwargs)

        return checked

    return decorate
