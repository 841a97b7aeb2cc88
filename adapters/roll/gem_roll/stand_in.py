"""A `gem` in memory, for where none is installed: what ROLL's agentic pipeline needs of it to be imported and to play.

ROLL imports `gem` always. Its own games, tools and questions need the real one.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

TERMINAL_STATE = "Terminal state."


class Env:
    """Base of environments."""

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        raise NotImplementedError

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one turn."""
        raise NotImplementedError


_entry_points: dict[str, Callable[..., Any]] = {}


def register(env_id: str, entry_point: Callable[..., Any], **kwargs: Any) -> None:
    """Make an environment known. Raises `ValueError` where its id is taken."""
    if env_id in _entry_points:
        raise ValueError(f"the environment {env_id!r} is registered already")
    _entry_points[env_id] = lambda **given: entry_point(**{**kwargs, **given})


def make(env_id: str, **kwargs: Any) -> Any:
    """Build an environment. Raises `ValueError` where there is none of that id."""
    if env_id not in _entry_points:
        raise ValueError(
            f"the stand-in for gem has no environment {env_id!r}; the real one may: pip install gem-llm==0.0.4"
        )
    return _entry_points[env_id](**kwargs)


def install_stand_in() -> bool:
    """Put the stand-in where `import gem` finds it, unless a real one is installed; returns whether it did.

    For this process only. ROLL's workers have it where `PYTHONPATH` or a `sitecustomize` calls this before ROLL.
    """
    if "gem" in sys.modules or importlib.util.find_spec("gem") is not None:
        return False
    for name, contents in _MODULES.items():
        module = ModuleType(name)
        module.__path__ = []  # a package, so that what lies below it can be imported
        module.__dict__.update(contents)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    return True


def _absent(name: str) -> type:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise ImportError(f"{name} is in the real gem only: pip install gem-llm==0.0.4")

    return type(name, (Env,), {"__init__": refuse})


def _absent_function(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ImportError(f"{name}() is in the real gem only: pip install gem-llm==0.0.4")

    return refuse


_MODULES: dict[str, dict[str, Any]] = {
    "gem": {"Env": Env, "make": make, "register": register},
    "gem.core": {"Env": Env},
    "gem.envs": {},
    "gem.envs.math_env": {"MathEnv": _absent("MathEnv")},
    "gem.envs.code_env": {"CodeEnv": _absent("CodeEnv")},
    "gem.envs.qa_env": {"QaEnv": _absent("QaEnv")},
    "gem.tools": {},
    "gem.tools.base_tool": {"BaseTool": _absent("BaseTool")},
    "gem.tools.python_code_tool": {"PythonCodeTool": _absent("PythonCodeTool")},
    "gem.tools.tool_env_wrapper": {"ToolEnvWrapper": _absent("ToolEnvWrapper")},
    "gem.utils": {},
    "gem.utils.constants": {"TERMINAL_STATE": TERMINAL_STATE},
    "gem.utils.parsing": {
        "extract_code_from_model": _absent_function("extract_code_from_model"),
        "extract_last_boxed_answer": _absent_function("extract_last_boxed_answer"),
    },
    "gem.utils.sandbox": {"run_python": _absent_function("run_python")},
}
"""The names that ROLL takes from `gem`, as `tests/adapters/roll/test_contract.py` finds them in ROLL's code."""
