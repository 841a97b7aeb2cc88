"""The interface of gem-llm 0.1.0 on top of this project, for programs that were written for it.

    import gem_core.compat as gem

    env = gem.make("game:GuessTheNumber-v0-easy")

`python -m gem_core.compat program.py` runs a program whose imports still say `gem`. docs/migration.md has a table of
all names, and what to use in new programs.
"""

from gem_core.compat.core import Env
from gem_core.compat.envs.registration import make, make_vec, print_envs, register

__all__ = ["Env", "make", "make_vec", "print_envs", "register"]
