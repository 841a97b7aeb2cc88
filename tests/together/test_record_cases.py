"""Records of others (`cases/README.md`): what is whole stays readable, and a few bytes take no gigabytes."""

from __future__ import annotations

import ctypes
import json
import math
import resource
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gem_core.episode import Episode, StopReason, TokenSequence, Turn, as_logprobs, as_token_ids
from gem_train.records import Records, RecordsError, RunRecorder, open_records
from gem_viewer._page import write_page
from gem_viewer._shards import BLOCK

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases" / "records.jsonl").read_text().splitlines()]
READ = [pytest.param(case, id=case["id"]) for case in CASES if "evaluation" not in case]
MAGIC = b"GEMREC4\n"
MEMORY = 128 << 20

Honest = tuple[dict[str, Any], dict[str, Any]]


def spelled_out(value: Any) -> Any:
    """A value of a case with what JSON has no short form for."""
    if isinstance(value, dict):
        match [*value.items()]:
            case [("repeat", [text, times])]:
                return text * times
            case [("concat", parts)]:
                return "".join(map(spelled_out, parts))
            case [("nan", _)]:
                return math.nan
            case [("zlib", [text, millions])]:
                return deflated(text.encode(), millions)
        return {key: spelled_out(one) for key, one in value.items()}
    return [spelled_out(one) for one in value] if isinstance(value, list) else value


def deflated(text: bytes, millions: int) -> bytes:
    """Bytes that inflate to many million times the text. Only a reader without a limit finds the checksum wrong."""
    deflate, block = zlib.compressobj(), text * 1_000_000
    first, next_ = (deflate.compress(block) + deflate.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + next_ * (millions - 1) + deflate.flush()


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Honest:
    """The head and the columns of an episode that was played."""
    recorder = RunRecorder(tmp_path_factory.mktemp("honest"))
    sequence = TokenSequence.starting(as_token_ids([1, 2, 3]))
    sequence.add_response(as_token_ids([4, 5]), as_logprobs([-0.5, -1.0]))
    turn = Turn(0, 3, 5, "seen", "said", "said", False, 1.0, {"a": [1]})
    ended = {"stop_reason": StopReason.TERMINATED, "run": "r"}
    recorder.gem_episode_end(Episode("demo:A-v0", 1, turns=[turn], sequences=[sequence], **ended))
    recorder.close()
    data, place = recorder.path.read_bytes(), len(MAGIC)
    while place < len(data):
        head_size, _, body_size, _ = struct.unpack_from("<IIII", data, place)
        head = msgspec.msgpack.decode(data[place + 16 : place + 16 + head_size])
        place += 16 + head_size + body_size
    return head, msgspec.msgpack.decode(data[place - body_size :])


def frame(made: dict[str, Any], honest: Honest) -> bytes:
    body = b""
    if "episode" in made:
        changes = spelled_out(made["episode"])
        head, columns = (
            {**one, **changes.get(name, {})} for one, name in zip(honest, ("head", "columns"), strict=True)
        )
        for name in changes.get("without", ()):
            head.pop(name, None)
        encoded, body = msgspec.msgpack.encode(head), msgspec.msgpack.encode(columns)
    elif "head_hex" in made:
        encoded = bytes.fromhex(made["head_hex"]) * made.get("head_times", 1)
        encoded += bytes.fromhex(made.get("head_tail_hex", ""))
    else:
        encoded = msgspec.msgpack.encode(spelled_out(made["head"]))
    if "body" in made:
        body = spelled_out(made["body"]).encode()
    elif "body_json" in made:
        body = json.dumps(spelled_out(made["body_json"])).encode()
    elif "body_msgpack" in made:
        body = msgspec.msgpack.encode(spelled_out(made["body_msgpack"]))
    sizes = struct.pack("<IIII", len(encoded), zlib.crc32(encoded), len(body), zlib.crc32(body))
    whole = sizes + encoded + body
    return whole[: len(whole) - made.get("cut", 0)]


def written(case: dict[str, Any], folder: Path, honest: Honest) -> Path:
    """The file, or the folder that is to be opened."""
    for name, text in case.get("files", {}).items():
        (folder / name).write_text(spelled_out(text))
    if "lines" in case:
        path = folder / "episodes.jsonl"
        path.write_text("".join(f"{spelled_out(line)}\n" for line in case["lines"]))
    else:
        path = folder / "a.gemrec"
        path.write_bytes(MAGIC + b"".join(frame(one, honest) for one in case["frames"]))
    return folder if case.get("folder") else path


@contextmanager
def little_memory() -> Iterator[None]:
    """This process gets `MEMORY` more than it has; further memory is a `MemoryError`."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier tests have freed
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def everything(records: Records) -> dict[str, Any]:
    """All that a reader shows."""
    assert isinstance(records.gaps, list)
    assert isinstance(records.versions, dict)
    assert isinstance(records.warnings, list)
    read = 0
    for index in range(len(records.summaries)):
        try:
            records.episode(index)
        except RecordsError:
            continue
        read += 1
    return {"settings": records.settings, "metrics": records.metrics, "episodes": read}


@pytest.mark.parametrize("case", READ)
def test_reading(case: dict[str, Any], tmp_path: Path, honest: Honest) -> None:
    path = written(case, tmp_path, honest)
    with little_memory():
        try:
            records = open_records(path)
        except RecordsError:
            assert "keeps" not in case, case["reason"]
            return
        found = everything(records)
        write_page([records], tmp_path / "page.html", done=lambda _: None)
    kept = case.get("keeps", {})
    assert {name: found[name] for name in kept} == kept, case["reason"]


PART = {"position": [], "advantage": [], "return": [], "logprobs": None, "entropies": None}
TURN = b'{"sequence":0,"start":0,"end":0,"observation":"","response":"","action":"","truncated":false,"info":{"a":%s}}'
MANY = 260_000  # numbers, or brackets in JSON: about as many as a kilobyte may become


def raw(head: dict[str, Any], body: bytes = b"") -> bytes:
    encoded = msgspec.msgpack.encode(head)
    return struct.pack("<IIII", len(encoded), zlib.crc32(encoded), len(body), zlib.crc32(body)) + encoded + body


def updates(count: int, part: dict[str, Any]) -> bytes:
    """Updates of the episode of `honest`."""
    body = msgspec.msgpack.encode(part)
    head = {"kind": "update", "rank": 0, "ranks": 1, "episodes": ["r-0-0"], "sizes": [len(body)]}
    return b"".join(raw(head | {"number": number}, body) for number in range(1, count + 1))


def episode_of(honest: Honest, turns: list[bytes], **columns: Any) -> bytes:
    """An episode of these turns."""
    text = b'{"env_id":"a","seed":1,"run":"r","turns":[' + b",".join(turns) + b"]}"
    body = {"episode": zlib.compress(text), "lengths": [], "ids": b"", "logprobs": b"", **columns}
    head = honest[0] | {"turns": len(turns), "response_tokens": columns.get("lengths", [0])[0]}
    return raw(head, msgspec.msgpack.encode(body))


def bombs(honest: Honest) -> dict[str, bytes]:
    """Frames of some kilobytes that would take all memory."""
    zeros = zlib.compress(bytes(4 * MANY))
    said = msgspec.json.encode(Turn(0, 0, MANY, "seen", "said", "said", False))
    long = episode_of(honest, [said], lengths=[MANY], ids=zeros, logprobs=zeros)
    column = {"sizes": [MANY], "numbers": zeros}
    trained = PART | {"position": [0], "advantage": [0.0], "return": [0.0], "logprobs": column, "entropies": column}
    none = {"kind": "update", "number": 1, "rank": 0, "ranks": 1, "episodes": [""] * 10**6, "sizes": [0] * 10**6}
    return {
        "lists": episode_of(honest, [TURN % (b"[" + b"[]," * MANY + b"0]")]) * 5,
        "lists in lists": episode_of(honest, [TURN % (b"[" * 90 + b"[]," * MANY + b"0" + b"]" * 90)]) * 3,
        "tokens": long * BLOCK,
        "sequences": episode_of(honest, [TURN % b"0"], lengths=[0] * 10**6, ids=zlib.compress(b"")),
        "updates of many turns": episode_of(honest, [TURN % b"0"] * 9000) + updates(2000, PART),
        "updates of many tokens": long + updates(400, trained),
        "parts of nothing": raw(none),
        "a long text of a token": raw({"kind": "texts"}, msgspec.msgpack.encode({"ids": [0], "texts": ["x" * 100_000]}))
        + long,
        "metrics": b"".join(
            raw({"kind": "metrics", "step": number, "metrics": {f"m{number}": 0.5}}) for number in range(20_000)
        ),
    }  # fmt: skip


BOMBS = {
    "lists": 5,
    "lists in lists": 3,
    "tokens": BLOCK,
    "sequences": 0,
    "updates of many turns": 0,
    "updates of many tokens": 0,
    "parts of nothing": 0,
    "a long text of a token": 1,
    "metrics": 0,
}
"""Each with the number of episodes that can be read."""


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_little_memory(name: str, tmp_path: Path, honest: Honest) -> None:
    path = tmp_path / "a.gemrec"
    path.write_bytes(MAGIC + raw({"kind": "start"}, b"{}") + bombs(honest)[name])
    assert path.stat().st_size < 2_100_000
    with little_memory():
        records = open_records(path)
        assert everything(records)["episodes"] == BOMBS[name]
        write_page([records], tmp_path / "page.html", done=lambda _: None)


def test_honest_episodes_that_compress_well_are_read(tmp_path: Path) -> None:
    """A policy that repeats itself: deflate alone would make a thousandth of it."""
    said = "[{" * 2_000_000
    sequence = TokenSequence.starting(as_token_ids([1]))
    sequence.add_response(as_token_ids([7] * 1_000_000), as_logprobs([0.0] * 1_000_000))
    turn = Turn(0, 1, 1_000_001, "seen", said, said, False)
    recorder = RunRecorder(tmp_path)
    played = Episode("demo:A-v0", 1, turns=[turn], sequences=[sequence], stop_reason=StopReason.TERMINATED, run="r")
    recorder.gem_episode_end(played)
    recorder.close()
    assert recorder.path.stat().st_size < 3_000_000
    assert open_records(tmp_path).episode(0).episode == played
