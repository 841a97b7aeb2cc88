"""The effect of a training framework's settings under its adapter: a table in each adapter's package.

`defaults.csv` has a line for each setting of the framework that touches rewards, advantages, the loss, lengths,
sampling, the age of tokens or the number of updates. Tests read the installed framework and fail where a setting is new
or has another default. docs/defaults.md has the tables.
"""

from __future__ import annotations

import ast
import csv
import functools
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Literal, NamedTuple, cast

Here = Literal["neutral", "refused", "shown", "users"]
"""`neutral`: it has no effect here. `refused`: other values are refused. `shown`: it acts, and stands in the first line
of a run unless its value is neutral. `users`: the user's choice, such as a batch size, or read with another setting."""


class FrameworkSetting(NamedTuple):
    """A line of `defaults.csv`; values as Python writes them."""

    setting: str
    default: str
    """The framework's."""
    here: Here
    neutral: str
    """The value with no effect, and the only one of a refused setting. Empty: any value acts."""
    other: str
    """A value that is refused."""
    why: str


@functools.cache
def framework_settings(package: str) -> tuple[FrameworkSetting, ...]:
    """The table of an adapter's package, for example `gem_trl`."""
    with files(package).joinpath("defaults.csv").open(encoding="utf-8") as file:
        return tuple(FrameworkSetting(**cast("dict[str, Any]", line)) for line in csv.DictReader(file))


def acting(package: str, read: Callable[[str], Any]) -> str:
    """The settings of the framework that change what is trained in this run, with their values.

    Args:
        package: the adapter's.
        read: returns the value of a setting.
    """
    shown = {one.setting: one for one in framework_settings(package) if one.here == "shown"}
    values = {name: read(name) for name in shown}
    silent = {name for name, one in shown.items() if one.neutral and equals(values[name], one.neutral)}
    return ", ".join(f"{name}={value}" for name, value in values.items() if name not in silent)


def equals(value: Any, written: str) -> bool:
    """Whether a value is the one in the table; a list equals a tuple, as command lines make either."""
    try:
        wanted = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return str(value) == written
    return value == wanted or (isinstance(value, list | tuple) and [*cast("list[Any]", value)] == _listed(wanted))


def _listed(value: Any) -> Any:
    return [*cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value
