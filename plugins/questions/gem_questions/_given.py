"""Data that a program gives as an object: a list of rows, or a data set of the `datasets` library."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast
from weakref import WeakValueDictionary

from gem_core.errors import EnvError, near_matches
from gem_train.arguments import name_of_object, name_of_rows

Row: TypeAlias = Mapping[str, Any]
"""One question: its columns by name."""


class RowTable(Protocol):
    """What is used of a `datasets.Dataset`."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...


Data: TypeAlias = str | os.PathLike[str] | Sequence[Row] | RowTable | Mapping[str, RowTable]
"""The name or path of data, rows, a `datasets.Dataset`, or a `datasets.DatasetDict` with its splits."""


class GivenRows:
    """Rows in memory under a name that says what they hold, so that equal rows count as the same data.

    A copy is the object itself, so a snapshot of an environment has no rows of its own. A pickle has the rows, and is
    read as the rows that its process has under this name already.
    """

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.name, self.rows = name, rows
        self.table: Any = None
        """The `Table` of these rows, once they were asked for; it goes when they go."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenRows) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __copy__(self) -> GivenRows:
        return self

    def __deepcopy__(self, memo: Any) -> GivenRows:
        return self

    def __reduce__(self) -> Any:
        return _shared, (self.name, self.rows)


def given_rows(data: Any, split: str | None, subset: str | None) -> GivenRows | None:
    """The rows of an object, or `None` for the name of data.

    Args:
        data: what the argument `dataset` holds.
        split: of an object with several splits.
        subset: there is none.

    Raises:
        EnvError: it is no data; it has no such split, or several and none was named; it is a part already and a part
            of it is named; a row is no row, or cannot be sent to another process.
    """
    if isinstance(data, (str, os.PathLike)):
        return None
    given: Any = data
    if isinstance(data, Mapping):
        given, split = _one_split(cast("Mapping[str, Any]", data), split), None
    if not _is_table(given) and type(given) not in (list, tuple):
        raise EnvError(
            "dataset must be the name of a data set, the path of a file, a list of rows or a datasets.Dataset, and is "
            f"{name_of_object(given)}.{_REMEDIES.get(type(given).__name__, '')}"
        )
    if subset is not None or split not in (None, "train", str(getattr(given, "split", None))):
        raise EnvError(
            f"dataset is a {type(given).__name__} and no name of a data set, so it has neither the split {split!r} nor "
            f"the subset {subset!r}. Next: split=None, subset=None"
        )
    rows = cast("Sequence[Row]", given if _is_table(given) else _copied(given))
    try:
        return _shared(name_of_rows(rows), rows)
    except TypeError as error:
        raise EnvError(f"the rows of dataset hold what cannot be sent to another process: {error}") from error


_REMEDIES = {
    "IterableDataset": " Give its name with streaming=True, or a Dataset.",
    "DataFrame": " Next: dataset.to_dict('records')",
}


def _is_table(data: Any) -> bool:
    """Whether it is a `datasets.Dataset`, which is not imported for this question."""
    return any(name_of_object(kind) == "datasets.arrow_dataset:Dataset" for kind in type(data).__mro__)


def _one_split(splits: Mapping[str, Any], split: str | None) -> Any:
    if not splits or not all(map(_is_table, splits.values())):
        raise EnvError("dataset is a mapping, and not one of splits. Give rows as a list: [{...}, ...]")
    names = list(splits)
    if split is None and len(names) == 1:
        return splits[names[0]]
    if split is None:
        raise EnvError(f"the data set has the splits {', '.join(names)}. Name one: split={names[0]!r}")
    if split not in splits:
        raise EnvError(f"the data set has no split {split!r}.{near_matches(split, names)} It has: {', '.join(names)}")
    return splits[split]


def _copied(rows: Sequence[Any]) -> Sequence[Row]:
    """Rows of our own, which do not change when the caller's do."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise EnvError(f"row {number} of dataset (the first is 0) must be a dict of columns, and is {row!r:.80}")
    return [dict(row) for row in rows]


_kept: WeakValueDictionary[str, GivenRows] = WeakValueDictionary()
_keeping = threading.Lock()


def _shared(name: str, rows: Sequence[Row]) -> GivenRows:
    with _keeping:
        return _kept.setdefault(name, GivenRows(name, rows))
