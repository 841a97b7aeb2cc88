"""Graders that a user writes: functions that say what an answer is worth."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, TypeAlias

from gem_core.errors import EnvError, described, located, near_matches
from gem_questions.verdict import RIGHT, WRONG, Verdict
from gem_train.arguments import name_of_object

Grader: TypeAlias = Callable[..., Verdict | float]
"""A function that names what it wants of `question`, `response`, `answer`, `reference` and `row`."""

ARGUMENTS = {
    "question": "the text of the question",
    "response": "all that the policy wrote",
    "answer": "what stands where an answer has to stand, in a box or in tags",
    "reference": "what the column of the answer holds",
    "row": "all columns of the row, by name",
}
"""What a grader is given, by the names of its parameters."""


class UserGrader:
    """A user's function, called with what it names, and its results and errors as the environment needs them.

    Args:
        grader: the function, or `"package.module:function"`.

    Raises:
        EnvError: there is no such function, it is asynchronous, or it has a parameter that nothing is known for.
    """

    def __init__(self, grader: Grader | str) -> None:
        self.function: Grader = _imported(grader) if isinstance(grader, str) else grader
        self.name = name_of_object(self.function)
        self.wants = _wanted(self.function, self.name)

    def __call__(self, known: Mapping[str, Any]) -> Verdict:
        """Grade an answer.

        Args:
            known: values by the names of `ARGUMENTS`.

        Raises:
            EnvError: the function raised, or returned neither a number nor a verdict.
        """
        try:
            found = self.function(**{name: known[name] for name in self.wants})
        except Exception as error:
            own = error.__traceback__ and error.__traceback__.tb_next  # without this call, to name the function's line
            where = located(error.with_traceback(own))
            raise EnvError(f"the grader {self.name} raised{where}. It was given {_shown(self, known)}") from error
        verdict = _as_verdict(found)
        if verdict is None:
            raise EnvError(
                f"the grader {self.name} returned {found!r:.200}; it has to return a finite number, True, False or a "
                f"gem_questions.Verdict. It was given {_shown(self, known)}"
            )
        return verdict


def _shown(grader: UserGrader, known: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={known[name]!r:.200}" for name in grader.wants)


def _as_verdict(found: Any) -> Verdict | None:
    value = found.item() if hasattr(found, "item") and not getattr(found, "shape", ()) else found  # a number of numpy
    if isinstance(value, bool):
        return RIGHT if value else WRONG
    if isinstance(value, Verdict):
        return value if math.isfinite(value.reward) else None
    if isinstance(value, Real) and math.isfinite(value):
        return Verdict(float(value), correct=float(value) >= 1)
    return None


def _imported(name: str) -> Grader:
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise EnvError(f"grader={name!r} is not of the form 'package.module:function'")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise EnvError(f"grader={name!r}: importing {module_name!r} failed{located(error)}") from error
    try:
        return functools.reduce(getattr, path.split("."), module)
    except AttributeError as error:
        hint = near_matches(path, dir(module))
        raise EnvError(f"grader={name!r}: {module_name!r} has no {path!r}.{hint}") from error


def _wanted(function: Any, name: str) -> tuple[str, ...]:
    """The names of the parameters to give. One that has a value may have any name."""
    if not callable(function):
        raise EnvError(f"grader must be a function or 'package.module:function', and is {function!r:.200}")
    if inspect.iscoroutinefunction(function):
        raise EnvError(f"the grader {name} is a coroutine function (async def); write a plain function")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise EnvError(f"the parameters of the grader {name} are not known ({described(error)}). {_TAKES}") from error
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return tuple(ARGUMENTS)
    given = function.keywords if isinstance(function, functools.partial) else {}
    named = [one for one in parameters if one.kind is not one.VAR_POSITIONAL and one.name not in given]
    for one in named:
        if one.kind is one.POSITIONAL_ONLY or (one.name not in ARGUMENTS and one.default is one.empty):
            hint = near_matches(one.name, ARGUMENTS) if one.kind is not one.POSITIONAL_ONLY else " It cannot be named."
            raise EnvError(
                f"the grader {name} has a parameter {one.name!r}, and nothing is known for it.{hint} {_TAKES}"
            )
    return tuple(one.name for one in named if one.name in ARGUMENTS)


_TAKES = "A grader names what it wants of " + ", ".join(f"{name} ({what})" for name, what in ARGUMENTS.items())
