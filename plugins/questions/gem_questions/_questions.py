"""The questions of an environment: loaded once per process, and asked in an order without repeats."""

from __future__ import annotations

import functools
import random
import threading
import warnings
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gem_core.errors import EnvError
from gem_questions._given import Row
from gem_questions._rows import Source, read, stream, streamed

WINDOW = 1024
"""Rows of a stream that are kept, and that are shuffled at a time."""
_SAMPLE = 200
"""Rows on disk that are looked over."""


@dataclass
class Questions:
    """A handle on the questions of a source; the rows are loaded at the first use, and shared in this process.

    Copies and pickles hold the handle only, so that neither a snapshot nor another process is sent the data.

    Args:
        source: the data set.
        shuffle_seed: one order of the questions per seed, a new one each time all were asked; `None` is that of the
            data.

    `len` of it is the number of questions, and loads them. Raises `EnvError` for a stream, which does not know it.
    """

    source: Source
    shuffle_seed: int | None = 0
    _rows: Table | Stream | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def rows(self) -> Table | Stream:
        """What was loaded. Raises as `gem_questions._rows.read`."""
        if self._rows is None:
            self._rows = _stream(self.source, self.shuffle_seed) if self.source.streaming else _table(self.source)
        return self._rows

    @property
    def data(self) -> Any:
        """The data as it was read or given, in its own order: a list of rows, a `datasets.Dataset`, or the
        `datasets.IterableDataset` of a stream."""
        return streamed(self.source) if self.source.streaming else _table(self.source).rows

    def __len__(self) -> int:
        return len(self.rows)

    def checked(self, key: Hashable, fault: Callable[[Row], str | None]) -> bool:
        """Were all rows found to be without fault? Those in memory are looked at once for each key.

        Args:
            key: what the faults depend on.
            fault: what is wrong with a row.

        Raises:
            EnvError: a row has a fault.
        """
        return self.rows.checked(key, fault)

    def look_over(self, key: Hashable, doubt: Callable[[Row], str | None]) -> None:
        """Warn of rows that are in doubt, once for each key; a stream is not looked over.

        Args:
            key: what the doubts depend on.
            doubt: what is doubtful about a row.

        Raises:
            EnvError: all rows are in doubt, and there are several.
        """
        self.rows.look_over(key, doubt)

    def ask(self, place: int) -> Row:
        """The question at a place of the endless order, from 0. None comes twice before all came once."""
        return self.rows.ask(place, self.shuffle_seed)

    def draw(self, rng: random.Random) -> Row:
        """A question drawn from all of them, or from the first `WINDOW` of a stream."""
        return self.rows.draw(rng)

    def at(self, index: int) -> Row:
        """The row at an index of the data as it is, from 0. Raises `EnvError` where there is none."""
        return self.rows.at(index)

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source, "shuffle_seed": self.shuffle_seed, "_rows": None}


@dataclass(frozen=True)
class Table:
    """Rows that can be looked up by number."""

    source: Source
    rows: Sequence[Row]
    _sound: set[Hashable] = field(default_factory=lambda: set[Hashable](), init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def checked(self, key: Hashable, fault: Callable[[Row], str | None]) -> bool:
        """See `Questions.checked`. What `datasets` keeps on disk is not gone through."""
        if not isinstance(self.rows, list):
            return False
        if key not in self._sound:
            for number, row in enumerate(self.rows):
                if (found := fault(row)) is not None:
                    raise EnvError(f"{self.source}, row {number} (the first is 0): {found}")
            self._sound.add(key)
        return True

    def look_over(self, key: Hashable, doubt: Callable[[Row], str | None]) -> None:
        """See `Questions.look_over`. Of many rows that are not in memory, some from all parts are."""
        key = ("doubt", key)
        if key in self._sound:
            return
        self._sound.add(key)
        step = 1 if isinstance(self.rows, list) else len(self.rows) // _SAMPLE + 1
        numbers = range(0, len(self.rows), step)
        doubts = {number: found for number in numbers if (found := doubt(self.rows[number])) is not None}
        if not doubts:
            return
        first = next(iter(doubts))
        what = f"{self.source}, row {first} (the first is 0): {doubts[first]}"
        share = f"{len(doubts)} of {len(numbers)} rows that were looked at are so."
        if len(doubts) == len(numbers) > 1:  # a single row may be meant so
            self._sound.discard(key)
            raise EnvError(f"{what}. {share}")
        warnings.warn(f"{what}. {share}", stacklevel=2)

    def ask(self, place: int, shuffle_seed: int | None) -> Row:
        """See `Questions.ask`."""
        count = len(self.rows)
        epoch, rest = divmod(place, count)
        return self.rows[rest if shuffle_seed is None else order(count, shuffle_seed, epoch)[rest]]

    def draw(self, rng: random.Random) -> Row:
        """See `Questions.draw`."""
        return self.rows[rng.randrange(len(self.rows))]

    def at(self, index: int) -> Row:
        """See `Questions.at`."""
        if not 0 <= index < len(self.rows):
            raise EnvError(f"{self.source} has {len(self.rows)} rows, so there is no index {index}: 0 is the first")
        return self.rows[index]


class Stream:
    """Rows that arrive one after another, again and again; the last `WINDOW` of them are kept.

    Environments ask in about the order of arrival. One that asks for an older row has the stream start anew, which
    is slow and right.
    """

    def __init__(self, source: Source, shuffle_seed: int | None) -> None:
        self.source = source
        self._shuffle_seed = shuffle_seed
        self._lock = threading.Lock()
        self._restart()

    def __len__(self) -> int:
        raise EnvError(f"{self.source} is streamed, so the number of its questions is unknown. Use streaming=False")

    def checked(self, key: Hashable, fault: Callable[[Row], str | None]) -> bool:
        """See `Questions.checked`: most rows have not arrived."""
        return False

    def look_over(self, key: Hashable, doubt: Callable[[Row], str | None]) -> None:
        """See `Questions.look_over`."""

    def ask(self, place: int, shuffle_seed: int | None) -> Row:
        """See `Questions.ask`."""
        with self._lock:
            if place < self._arrived - len(self._kept):
                self._restart()
            try:
                while place >= self._arrived:
                    self._kept.append(self._next())
                    self._arrived += 1
            except Exception:
                self._restart()  # a generator that raised, because the network was gone, looks like one at its end
                raise
            return self._kept[place - self._arrived]

    def draw(self, rng: random.Random) -> Row:
        """See `Questions.draw`."""
        return self.ask(rng.randrange(WINDOW), self._shuffle_seed)

    def at(self, index: int) -> Row:
        """Refused: a stream has no numbers."""
        raise EnvError(f"{self.source} is streamed, so row {index} cannot be looked up. Use streaming=False")

    def _restart(self) -> None:
        self._kept: deque[Row] = deque(maxlen=WINDOW)
        self._arrived = 0
        self._epoch = 0
        self._open = self._rows_of_epoch()

    def _next(self) -> Row:
        try:
            return next(self._open)
        except StopIteration:
            if not self._arrived:
                raise EnvError(f"{self.source} has no rows, so there is nothing to ask.") from None
            self._epoch += 1
            self._open = self._rows_of_epoch()
            return next(self._open)

    def _rows_of_epoch(self) -> Iterator[Row]:
        return stream(self.source, self._shuffle_seed, self._epoch, WINDOW)


@functools.lru_cache(maxsize=64)
def order(count: int, shuffle_seed: int, epoch: int) -> Sequence[int]:
    """The numbers below `count`, shuffled: the same in every process and on every machine."""
    numbers = array("I", range(count))
    random.Random(f"{shuffle_seed} {epoch}").shuffle(numbers)  # pyright: ignore[reportArgumentType]
    return numbers


_loading = threading.Lock()


def _table(source: Source) -> Table:
    if (given := source.given) is not None:  # kept with the rows, so that they are not kept beyond their use
        if given.table is None:
            given.table = Table(source, read(source))
        return given.table
    with _loading:
        lock = _lock_of(source)
    with lock:  # others that need the same rows wait for them; those that need other rows do not
        return _loaded_table(source, _changed(source))


def _changed(source: Source) -> int | None:
    """When a file was last written, so that one that was edited is read again."""
    path = source.path
    return path.stat().st_mtime_ns if path is not None else None


@functools.cache
def _lock_of(source: Source) -> threading.Lock:
    return threading.Lock()


@functools.lru_cache(maxsize=64)
def _loaded_table(source: Source, changed: int | None) -> Table:
    return Table(source, read(source))


def _stream(source: Source, shuffle_seed: int | None) -> Stream:
    with _loading:
        return _opened_stream(source, shuffle_seed)


@functools.cache
def _opened_stream(source: Source, shuffle_seed: int | None) -> Stream:
    return Stream(source, shuffle_seed)
