"""Grading answers outside of the process that trains: `grade("package.module:function", *arguments)`.

Some graders evaluate what they grade, and any of them can hang or eat memory on what a policy writes. A call of `grade`
runs in a process of its own, which the kernel confines to computing and kills at its time limit.

The names below are loaded on first use: this package is imported in the server process, which needs few of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_grading._grading import Evaluated as Evaluated
    from gem_grading._grading import Grade as Grade
    from gem_grading._grading import GradingError as GradingError
    from gem_grading._grading import close_server as close_server
    from gem_grading._grading import grade as grade
    from gem_grading._isolation import isolation as isolation

_HOME = {
    "Evaluated": "_grading",
    "Grade": "_grading",
    "GradingError": "_grading",
    "close_server": "_grading",
    "grade": "_grading",
    "isolation": "_isolation",
}

__all__ = [
    "Evaluated",
    "Grade",
    "GradingError",
    "close_server",
    "grade",
    "isolation",
]


# Not `gem_core.lazy`: the server process may have no more than this package.
def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
