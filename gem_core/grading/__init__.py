"""Grading answers outside of the process that trains: `grade("package.module:function", *arguments)`.

Some graders evaluate what they grade, and any of them can hang or eat memory on what a policy writes. A call of `grade`
runs in a process of its own that is killed at its time limit; what it does to itself ends with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_core.grading.pool import Grade as Grade
    from gem_core.grading.pool import close_pool as close_pool
    from gem_core.grading.pool import grade as grade

__all__ = ["Grade", "close_pool", "grade"]


def __getattr__(name: str) -> Any:
    # On first use, because the template is better off without: each of its forks copies what it has.
    if name not in __all__:
        raise AttributeError(f"module 'gem_core.grading' has no attribute {name!r}")
    from gem_core.grading import pool

    return getattr(pool, name)
