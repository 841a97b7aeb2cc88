"""Random changes of a file of records, whose checksums fit again.

    python adapters/train/tests/record_mutations.py 0 200000

reads the mutations of these numbers, and prints how many were refused and the largest memory of the process. It ends
with what reading raises other than `RecordsError`.
"""

from __future__ import annotations

import random
import resource
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gem_train.records import RecordsError, open_records

MAGIC = b"GEMREC4\n"
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 2**31, 2**63 - 1, 2**64 - 1, -(2**63), 0.5, float("nan"), float("inf"),
    "", "two", "\x1b[2J", "episode", b"", b"\xff", [], [2], [[]], [None], ["a", 1], {}, {"a": 1}, {"a": {"b": []}},
)  # fmt: skip

Frame = tuple[bytes, bytes]


def frames_of(data: bytes) -> list[Frame]:
    """The heads and bodies of a whole file."""
    frames: list[Frame] = []
    place = len(MAGIC)
    while place < len(data):
        head, _, body, _ = struct.unpack_from("<IIII", data, place)
        start = place + 16
        frames.append((data[start : start + head], data[start + head : start + head + body]))
        place = start + head + body
    return frames


def file_of(frames: list[Frame]) -> bytes:
    """A file of these frames."""
    parts = [MAGIC]
    for head, body in frames:
        parts += [struct.pack("<IIII", len(head), zlib.crc32(head), len(body), zlib.crc32(body)), head, body]
    return b"".join(parts)


def mutated(frames: list[Frame], seed: int) -> bytes:
    """The file with one to three changes."""
    chance, changed = random.Random(seed), [*frames]
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(changed))
        head, body = changed[at]
        change = chance.choice(_CHANGES)
        if chance.random() < 0.5:
            head = change(head, chance)
        else:
            body = change(body, chance)
        changed[at] = head, body
    if chance.random() < 0.1:
        changed.insert(chance.randrange(len(changed)), chance.choice(changed))
    data = file_of(changed)
    return data[: chance.randrange(len(data))] if chance.random() < 0.05 else data


def _flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8)) if data else 0):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _spliced(data: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[last:] if chance.random() < 0.5 else data[:last] + data[first:]


def _replaced(data: bytes, chance: random.Random) -> bytes:
    """One value in what the bytes say is another one."""
    for decode, encode in _CODES:
        try:
            value = decode(data)
        except (ValueError, msgspec.DecodeError, zlib.error):
            continue
        try:
            return encode(_with_odd(value, chance))
        except (TypeError, ValueError):  # JSON has no key that is a number
            return data
    return data


def _with_odd(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bytes) and value[:1] == b"\x78" and chance.random() < 0.8:
        with suppress(zlib.error):  # changed before
            return zlib.compress(_replaced(zlib.decompress(value), chance))
    if not (isinstance(value, dict | list) and value) or chance.random() < 0.15:
        return chance.choice(ODD)
    key = chance.choice([*value]) if isinstance(value, dict) else chance.randrange(len(value))
    changed: Any = value.copy()
    if chance.random() < 0.1:
        del changed[key]
    else:
        changed[key] = _with_odd(changed[key], chance)
    return changed


_CODES: tuple[tuple[Callable[[bytes], Any], Callable[[Any], bytes]], ...] = (
    (msgspec.json.decode, msgspec.json.encode),
    (msgspec.msgpack.decode, msgspec.msgpack.encode),
)
_CHANGES = (_flipped, _spliced, _replaced, _replaced, _replaced)


def read(path: Path) -> bool:
    """Read everything of a file. Returns whether something was refused."""
    try:
        records = open_records(path)
    except RecordsError:
        return True
    shown = (records.settings, records.versions, records.metrics, records.warnings, records.gaps)
    refused = bool(shown[-1])
    for index in range(len(records.summaries)):
        try:
            found = records.episode(index)
            records.token_texts(one for sequence in found.episode.sequences for one in sequence.ids)
        except (RecordsError, KeyError):
            refused = True
    return refused


def main(first: int, after: int) -> None:
    """Read the mutations of these numbers."""
    import test_records

    with tempfile.TemporaryDirectory() as folder:
        frames = frames_of(test_records.small_file(Path(folder) / "honest"))
        path, refused = Path(folder) / "a.gemrec", 0
        for seed in range(first, after):
            path.write_bytes(mutated(frames, seed))
            try:
                refused += read(path)
            except BaseException:
                print(f"mutation {seed}", file=sys.stderr)
                raise
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{after - first} read, {refused} refused; {memory} MiB at most")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
