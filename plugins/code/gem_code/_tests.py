"""The tests of a problem, in the forms that data sets have them in."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from gem_code._asserts import THROUGH, assertions
from gem_code._comparison import Comparison, as_json, same_output, same_value
from gem_code._driver import decoded, encoded

_ROOM = 1 << 16
"""Characters of a result that are always read."""
_NAMES = ("fn_name", "func_name", "entry_point")
_METHOD = re.compile(r"\bdef\s+(\w+)\s*\(")
_INTEGER = re.compile(r"-?\d+", re.ASCII)


class UnreadableTests(ValueError):
    """Tests that cannot be run, and why."""


class Test(ABC):
    """What a program is given, and what it has to do."""

    __test__ = False  # no test for pytest
    given: str
    """Its standard input."""

    @property
    @abstractmethod
    def size(self) -> int:
        """About how many bytes the right output has."""

    @abstractmethod
    def passes(self, printed: str, by: Comparison) -> bool:
        """Whether this output is right."""


@dataclass(frozen=True)
class Printed(Test):
    """A program reads standard input and prints."""

    given: str
    wanted: str

    @property
    def size(self) -> int:
        return len(self.wanted.encode(errors="replace"))

    def passes(self, printed: str, by: Comparison) -> bool:
        return same_output(printed, self.wanted, by)


@dataclass(frozen=True)
class Called(Test):
    """A function of a program is called."""

    function: str
    given: str
    """The call, as `gem_code._driver` reads it."""
    accepted: tuple[Any, ...]
    """What it may return."""
    through: str | None = None
    """A function of `THROUGH` that is applied to it first."""
    exact: bool = False
    """Tuples are no lists, and keys have types: what is wanted is Python, and not JSON."""

    @property
    def size(self) -> int:
        return 2 * max(len(repr(each)) for each in self.accepted)

    def passes(self, printed: str, by: Comparison) -> bool:
        # What a program printed here may be anything: deep, with keys that are none, or with so many keys of one hash
        # that reading them takes hours.
        if len(printed) > _ROOM + 16 * self.size:
            return False
        try:
            value = decoded(json.loads(printed))
            value = THROUGH[self.through](value) if self.through else value if self.exact else as_json(value)
            return any(same_value(value, each, by.tolerance, is_python=self.exact) for each in self.accepted)
        except (ValueError, TypeError, LookupError, RecursionError):
            return False


def read_tests(column: Any, function: str | None = None) -> list[Test]:
    """The tests in a column.

    Args:
        column: see `CodeEnv`.
        function: what to call where tests call a function and do not name it.

    Raises:
        UnreadableTests: they have no such form, or name no function.
    """
    if isinstance(column, str) and column.lstrip().startswith("assert"):
        return [*_of_assertions(column)]
    try:
        tests = [*_read(json.loads(column) if isinstance(column, str) else column, function)]
    except UnreadableTests:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise UnreadableTests(f"they have another form ({error!r:.80})") from error
    if not tests:
        raise UnreadableTests("there is none")
    return tests


def function_named_in(row: Mapping[str, Any]) -> str | None:
    """The function that a row names outside of its tests: in a column of its own, `metadata` or `starter_code`."""
    metadata: Any = row.get("metadata")
    try:
        metadata = json.loads(metadata) if isinstance(metadata, str) else metadata
    except ValueError:
        metadata = None
    for fields in (row, metadata):
        if isinstance(fields, Mapping) and (name := _named(cast("Mapping[str, Any]", fields))):
            return name
    starter = row.get("starter_code")
    found = _METHOD.search(starter) if isinstance(starter, str) else None
    return found[1] if found else None


def _read(tests: Any, function: str | None) -> Iterator[Test]:
    if isinstance(tests, dict):
        yield from _of_columns(cast("dict[str, Any]", tests), function)
    elif all(isinstance(each, str) for each in tests):
        for text in cast("list[str]", tests):
            yield from _of_assertions(text)
    else:
        kinds = {each.get("testtype", "") == "functional" or bool(_named(each)) for each in tests}
        if len(kinds) > 1:
            raise UnreadableTests("some of them call a function, and some read standard input")
        for each in cast("list[dict[str, Any]]", tests):
            if kinds == {True}:
                yield _call(_named(each) or function, each["input"], [_parsed(each["output"])])
            else:
                yield Printed(_text(each["input"]), _text(each["output"]))


def _of_columns(tests: dict[str, Any], function: str | None) -> Iterator[Test]:
    if "assert_case" in tests:
        for text in tests["assert_case"]:
            yield from _of_assertions(text)
        return
    if isinstance(tests["inputs"], str) or isinstance(tests["outputs"], str):
        raise UnreadableTests("inputs and outputs are lists, with an entry for each test, and here is a text")
    pairs = [*zip(tests["inputs"], tests["outputs"], strict=True)]
    if (name := _named(tests)) is None and tests.get("testtype") != "functional":
        yield from (Printed(_text(given), _text(wanted)) for given, wanted in pairs)
        return
    values = [_parsed(wanted) if isinstance(given, str) else wanted for given, wanted in pairs]
    # Some sets wrap each output in a list. If several are given, all as lists of one value, either may be meant.
    are_lists = all(isinstance(wanted, list) and len(cast("list[Any]", wanted)) == 1 for _, wanted in pairs)
    wrapped = are_lists and len(pairs) > 1
    for (given, _), value in zip(pairs, values, strict=True):
        yield _call(name or function, given, [value, value[0]] if wrapped else [value])


def _call(function: str | None, given: Any, accepted: list[Any]) -> Called:
    if function is None:
        raise UnreadableTests(
            'they call a function, and nothing names it. Give the tests "fn_name", or the row a column fn_name, '
            "func_name, entry_point, metadata or starter_code"
        )
    arguments = [_with_numbers_as_keys(each) for each in _arguments(given)]
    return Called(function, _asked(function, arguments, {}), tuple(map(as_json, accepted)))


def _of_assertions(text: str) -> Iterator[Called]:
    try:
        for each in assertions(text):
            for value in (each.arguments, each.keywords, each.wanted):
                if decoded(encoded(value)) != value:
                    raise UnreadableTests(f"{value!r:.80} cannot be handed to a program")
            given = _asked(each.function, each.arguments, each.keywords)
            yield Called(each.function, given, (each.wanted,), each.through, exact=True)
    except ValueError as error:
        raise UnreadableTests(str(error)) from error


def _asked(function: str, arguments: list[Any], keywords: dict[str, Any]) -> str:
    return json.dumps({"function": function, "arguments": encoded(arguments), "keywords": encoded(keywords)})


def _arguments(given: Any) -> list[Any]:
    """A list as it is; of a text each line as JSON."""
    if isinstance(given, str):
        return [_parsed(line) for line in given.split("\n") if line.strip()]
    return cast("list[Any]", given) if isinstance(given, list) else [given]


def _parsed(text: Any) -> Any:
    """A text as JSON, if it is that."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _with_numbers_as_keys(value: Any) -> Any:
    """An object whose keys are all whole numbers has lost their type on its way through JSON."""
    if isinstance(value, list):
        return [_with_numbers_as_keys(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    whole = all(_INTEGER.fullmatch(key) for key in fields)
    return {int(key) if whole else key: _with_numbers_as_keys(each) for key, each in fields.items()}


def _named(fields: Mapping[str, Any]) -> str | None:
    names = (fields.get(name) for name in _NAMES)
    return next((name for name in names if isinstance(name, str) and name), None)


def _text(value: Any) -> str:
    """A text as it is, a list as lines."""
    return "\n".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)
