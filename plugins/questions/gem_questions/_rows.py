"""Reading data sets: files, hub data sets and bundled samples become rows.

Files of JSON lines, JSON and CSV are read as they are and need nothing installed. Everything else goes through the
`datasets` library, which is imported when it is first needed.
"""

from __future__ import annotations

import codecs
import csv
import importlib
import importlib.resources
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from gem_core.errors import EnvError, MissingExtraError, near_matches
from gem_core.installation import install_line
from gem_questions._given import Data, GivenRows, Row, given_rows
from gem_train.arguments import GIVEN

PACKAGE = "package:"
"""What the name of a bundled sample starts with: `package:gem_math/sample.jsonl`."""
_FILES = (".jsonl", ".json", ".csv", ".parquet")
_HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


@dataclass(frozen=True)
class Source:
    """Where questions come from, as plain data.

    Args:
        dataset: a hub id (`owner/name`), the path of a .jsonl, .json, .csv or .parquet file or of a folder that
            `datasets.load_dataset` reads, `package:<package>/<file>`, or the name of the rows given.
        split: of a data set that has several; a file is the split `train` and nothing else.
        subset: configuration of a hub data set.
        streaming: read rows as they are asked for instead of downloading all of them first.
        given: the rows themselves, where a program gave them.
    """

    dataset: str
    split: str | None = None
    subset: str | None = None
    streaming: bool = False
    given: GivenRows | None = None

    @classmethod
    def of(cls, data: Data, split: str | None, subset: str | None, streaming: bool) -> Source:
        """The source that these arguments of an environment name, checked as far as is possible without reading it.

        Raises:
            EnvError: there is no such file, folder or bundled sample, a file was given a split or a subset, or the data
                is none; see `given_rows`.
            MissingExtraError: `datasets` is needed and not installed.
        """
        given = given_rows(data, split, subset)
        if given is None:
            source = cls(str(os.fspath(cast("str", data))), split, subset, streaming)
            _check(source)
            return source
        if streaming:
            raise EnvError(f"{given.name} is in memory, so there is nothing to stream. Next: streaming=False")
        return cls(given.name, given=given)

    def __str__(self) -> str:
        parts = [self.dataset, *(f"{name} {value!r}" for name, value in self._parts() if value)]
        return ", ".join(parts)

    def _parts(self) -> list[tuple[str, str | None]]:
        return [("subset", self.subset), ("split", self.split)]

    @property
    def path(self) -> Path | None:
        """The file or folder, or `None` for a hub id and for rows that a program gave.

        Raises:
            EnvError: it is the name of a file that is not there, or nothing that names a data set.
        """
        if self.given is not None:
            return None
        if self.dataset.startswith(GIVEN):
            raise EnvError(
                f"{self.dataset!r} names rows that a program gave as an object, and only they are the data. Give them "
                "again as dataset=..., or write them to a file and give its path"
            )
        if self.dataset.startswith(PACKAGE):
            return _bundled(self.dataset)
        path = Path(os.path.expanduser(self.dataset))
        if self.dataset and os.path.exists(path):
            if path.is_file() and path.suffix not in _FILES:
                raise EnvError(f"{self.dataset}: a file of questions ends in one of {', '.join(_FILES)}. Convert it.")
            if path.is_dir() and path.suffix in _FILES:
                raise EnvError(f"{self.dataset} is a folder, and ends as a file of questions does. Rename it.")
            return path
        if path.suffix in _FILES or not _HUB_ID.fullmatch(self.dataset):
            raise EnvError(_no_file(path, self.dataset))
        return None


def _check(source: Source) -> None:
    path = source.path
    if path is not None and path.is_file() and (source.subset is not None or source.split not in (None, "train")):
        raise EnvError(f"{source}: a file has neither subsets nor splits. Next: split=None, subset=None")
    if source.streaming or not _is_text(path):
        _need_datasets(source)


def read(source: Source) -> Sequence[Row]:
    """All rows of a source; those of `datasets` stay on disk until they are looked at.

    Raises:
        EnvError: there is no such data set, it cannot be read, or it has no rows.
        MissingExtraError: `datasets` is needed and not installed.
    """
    path = source.path
    if source.given is not None:
        rows = source.given.rows
    elif path is not None and _is_text(path):
        rows = _from_file(path)
    else:
        rows = cast("Sequence[Row]", _through_datasets(source, path))
    if not len(rows):
        raise EnvError(f"{source} has no rows, so there is nothing to ask. Give a data set with at least one.")
    return rows


def as_table(rows: Any) -> Any:
    """Rows as a `datasets.Dataset`. Raises `MissingExtraError` if the library is not installed."""
    if not isinstance(rows, list):
        return rows
    _need_datasets("rows as a datasets.Dataset")
    return importlib.import_module("datasets").Dataset.from_list(cast("list[Row]", rows))


def streamed(source: Source) -> Any:
    """The `datasets.IterableDataset` of a source. Raises as `read`."""
    return _through_datasets(source, source.path)


def stream(source: Source, shuffle_seed: int | None, epoch: int, window: int) -> Iterator[Row]:
    """The rows of a source one after another, as they arrive.

    Args:
        source: the data set.
        shuffle_seed: shuffles through a window of rows, differently in each epoch; `None` keeps the order of the data.
        epoch: how often the rows were gone through before.
        window: number of rows that are shuffled at a time.

    Raises: as `read`.
    """
    rows = streamed(source)
    if shuffle_seed is not None:
        rows = rows.shuffle(seed=shuffle_seed, buffer_size=window)
        rows.set_epoch(epoch)
    yield from rows


# -- files ---------------------------------------------------------------------------------------------------------


def _from_file(path: Path) -> Sequence[Row]:
    try:
        rows = _READERS[path.suffix](path)
    except (msgspec.DecodeError, UnicodeDecodeError, csv.Error, RecursionError, OSError) as error:
        raise EnvError(f"{path} cannot be read: {error}. A {path.suffix} file of questions has {_FORM}.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in cast("list[Any]", rows)):
        raise EnvError(f"{path} holds no rows. A {path.suffix} file of questions has {_FORM}.")
    return cast("list[Row]", rows)


_FORM = (
    'one JSON object per line (.jsonl, .json), a list of objects or {"data": [...]} (.json), '
    "or a line of column names first (.csv)"
)


_MAX_FIELD_LENGTH = (1 << 31) - 1


def _read_jsonl(path: Path) -> Any:
    with path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        return _lines(file)


def _lines(lines: Iterable[bytes]) -> list[Any]:
    rows: list[Any] = []
    decoder = msgspec.json.Decoder()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append(decoder.decode(line))
            except msgspec.DecodeError as error:
                raise msgspec.DecodeError(f"line {number}: {error}") from error
    return rows


def _read_json(path: Path) -> Any:
    text = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        rows = msgspec.json.decode(text)
    except msgspec.DecodeError:
        if not text.lstrip().startswith(b"{"):
            raise
        return _lines(text.splitlines())  # many name a file of JSON lines so
    return cast("dict[str, Any]", rows).get("data") if isinstance(rows, dict) else rows


def _read_csv(path: Path) -> Any:
    # Not through datasets, which would read 007 as 7 and an empty answer as nothing.
    csv.field_size_limit(_MAX_FIELD_LENGTH)  # of this process, whose other readers can do with longer fields
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


_READERS = {".jsonl": _read_jsonl, ".json": _read_json, ".csv": _read_csv}


def _is_text(path: Path | None) -> bool:
    return path is not None and path.suffix in _READERS


def _bundled(dataset: str) -> Path:
    package, _, name = dataset.removeprefix(PACKAGE).partition("/")
    try:
        path = Path(str(importlib.resources.files(package) / name))
    except Exception as error:  # importing a package runs what it likes
        raise EnvError(f"{dataset!r}: there is no package {package!r} ({error}). {_BUNDLED}") from error
    if not path.is_file():
        raise EnvError(f"{dataset!r}: the package {package!r} has no file {name!r}. {_BUNDLED}")
    return path


_BUNDLED = "A bundled file is named package:<package>/<file>, for example package:gem_math/sample.jsonl"


def _no_file(path: Path, given: str) -> str:
    siblings = os.listdir(path.parent) if os.access(path.parent, os.R_OK) and os.path.isdir(path.parent) else []
    return f"there is no file or folder {given!r} (looked for {path.absolute()}).{near_matches(path.name, siblings)}"


# -- the datasets library ------------------------------------------------------------------------------------------


def _through_datasets(source: Source, path: Path | None) -> Any:
    _need_datasets(source)
    library = importlib.import_module("datasets")
    kind: str | None = {".jsonl": "json", ".json": "json"}.get(path.suffix, path.suffix[1:]) if path else None
    options: dict[str, Any] = {"streaming": True} if source.streaming else {}
    try:
        if path is not None and path.is_file():
            return library.load_dataset(kind, data_files=str(path), split="train", **options)
        name = str(path) if path is not None else source.dataset
        parts = [name] if source.subset is None else [name, source.subset]
        return _one_split(source, library.load_dataset(*parts, **options))
    except EnvError:
        raise
    except Exception as error:
        raise EnvError(_not_loaded(source, path, error)) from error


def _one_split(source: Source, splits: Any) -> Any:
    if not hasattr(splits, "keys"):  # a data set that has none
        return splits
    names = list(splits)
    if source.split is not None:
        if source.split not in names:
            hint = near_matches(source.split, names)
            raise EnvError(f"{source.dataset} has no split {source.split!r}.{hint} It has: {', '.join(names)}")
        return splits[source.split]
    if len(names) == 1:
        return splits[names[0]]
    raise EnvError(f"{source.dataset} has the splits {', '.join(names)}. Name one: split={names[0]!r}")


def _need_datasets(what: object) -> None:
    if importlib.util.find_spec("datasets") is None:
        raise MissingExtraError(
            f"reading {what} needs the module 'datasets', which is not installed. "
            f"Next: {install_line('data')}, or give a .jsonl, .json or .csv file, which need nothing"
        )


def _not_loaded(source: Source, path: Path | None, error: Exception) -> str:
    reason = f"{type(error).__name__}: {str(error).strip()[:500]}"
    if path is not None:
        return f"{path} cannot be read: {reason}"
    return (
        f"the data set {source} could not be loaded from the Hugging Face hub or its cache on this machine: {reason}. "
        f"Next: check the name, and load it once on a machine with network (in Python: "
        f"`datasets.load_dataset({source.dataset!r})`; the cache is in HF_HOME), "
        "or give a file: dataset='my.jsonl'"
    )
