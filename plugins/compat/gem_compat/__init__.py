"""The interface of gem-llm 0.1.0 on top of this project, for programs that were written for it.

    import gem_compat as gem

    env = gem.make("game:GuessTheNumber-v0-easy")

`python -m gem_compat program.py` runs a program whose imports still say `gem`. plugins/compat/README.md has a table of
all names, and what to use in new programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_compat.core import Env
from gem_compat.envs.registration import make, make_vec, print_envs, register
from gem_core.upstream import no_attribute

__all__ = ["Env", "make", "make_vec", "print_envs", "register"]


if not TYPE_CHECKING:  # a type checker finds the names that do not exist

    def __getattr__(name: str) -> Any:
        raise no_attribute(__name__, name)
