"""Arguments of environments as records name them."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gem_train.arguments import name_of_rows, recorded
from gem_train.settings import RunSettings


class Thing:
    def method(self) -> None: ...


def function() -> None: ...


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"size": 3, "share": 0.5, "name": "x", "none": None, "on": True}, None),
        ([1, (2, [3])], [1, [2, [3]]]),
        (OrderedDict(a=1), {"a": 1}),
        ({1: "one"}, {"1": "one"}),
        (Path("a") / "b", str(Path("a") / "b")),
        (function, f"{__name__}:function"),
        (Thing, f"{__name__}:Thing"),
        (Thing.method, f"{__name__}:Thing.method"),
        (Thing(), f"{__name__}:Thing"),
        (len, "builtins:len"),
        (partial(function), "functools:partial"),
    ],
)
def test_an_argument_is_plain_or_named(value: Any, name: Any) -> None:
    assert recorded(value) == (value if name is None else name)


def test_few_rows_are_kept_and_many_are_named() -> None:
    rows = [{"n": number} for number in range(64)]
    assert recorded(rows) == rows
    many = [*rows, {"n": 64}]
    assert recorded(many) == name_of_rows(many)
    assert name_of_rows(many).startswith("given:65 rows, ")
    assert name_of_rows(many) == name_of_rows([dict(row) for row in many])
    assert name_of_rows(many) != name_of_rows(many[::-1])


def test_rows_may_hold_what_json_has_not_but_nothing_open() -> None:
    assert name_of_rows([{"a": {1, 2}, "b": b"x", "c": 1j}]) == name_of_rows([{"a": {1, 2}, "b": b"x", "c": 1j}])
    with pytest.raises(TypeError, match="pickle"):
        name_of_rows([{"a": lambda: 1}])


def test_settings_describe_arguments_so() -> None:
    settings = RunSettings(env=["demo:Maze-v0"], env_kwargs={"grader": function, "size": 3})
    assert settings.described()["env_kwargs"] == {"grader": f"{__name__}:function", "size": 3}
    assert settings.env_kwargs["grader"] is function
