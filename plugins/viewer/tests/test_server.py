"""The local server: who gets an answer, and following a run that is being written."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import Plan, damage_episode, episode, update_of, write_run
from starlette.requests import HTTPConnection
from starlette.testclient import TestClient

from gem_core.episode import Run
from gem_train.records import RunRecorder, open_records
from gem_viewer import _library
from gem_viewer._library import Library
from gem_viewer._server import application, border, redirect


def client(*folders: Path) -> TestClient:
    app = application(Library([open_records(one) for one in folders]))
    return TestClient(app, base_url="http://127.0.0.1:1234", raise_server_exceptions=False)


def asked(server: TestClient, path: str, **query: Any) -> Any:
    return server.get(path, params=query)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[RunRecorder]:
    made = RunRecorder(tmp_path / "run", tokenizer=Plan().vocabulary)
    made.gem_rollout_start(Run("run", ["demo:A-v0"], {}, {}, "train"))
    yield made
    made.close()


def played(slot: int) -> Any:
    chance = np.random.default_rng(slot)
    return episode("demo:A-v0", slot // 2, slot, 0, run="run", plan=Plan(), chance=chance, solved=slot % 2 == 0)


def test_only_who_knows_the_token_gets_an_answer() -> None:
    rules = border("a token")
    for path in ("/", "/api/news", "/nothing"):
        for query in ("", "token=", "token=another", "token=a+toke%C5%84", "token=%ED%A0%80", "token=%FF"):
            refusal = rules.refusal(request(path, query))
            assert refusal is not None
            assert refusal.status_code == 403
            assert refusal.headers["cache-control"] == "no-store"
        assert rules.refusal(request(path, "token=a+token")) is None


def request(path: str, query: str) -> HTTPConnection:
    """A request of a page on this machine."""
    headers = [(b"host", b"127.0.0.1:1234")]
    return HTTPConnection({"type": "http", "path": path, "query_string": query.encode(), "headers": headers})


def test_the_page_may_ask_this_server_only_and_nobody_frames_it(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=1, tasks=1, repeats=1))
    page = asked(client(tmp_path / "run"), "/")
    assert page.status_code == 200
    assert page.headers["cache-control"] == "no-store"
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_wrong_questions_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=1, tasks=1, repeats=1))
    server = client(tmp_path / "run")
    for query in (
        {},
        {"run": 7, "block": 0, "part": 0},
        {"run": 0, "block": -1, "part": 0},
        {"run": 0, "block": 0, "part": 9},
        {"run": 0, "block": 1, "part": 0},
    ):
        assert asked(server, "/api/part", **query).status_code == 404
    for seen in ("{", "[3]", "[[1e999,0,0]]", "[[-1,0,0]]", "[[0.5,0,0]]", "[[0,0]]", "[" * 5000):
        assert asked(server, "/api/news", seen=seen).status_code == 404
    assert asked(server, "/api/nothing").status_code == 404


def test_a_run_is_followed_while_it_is_written(recorder: RunRecorder, tmp_path: Path) -> None:
    server = client(tmp_path / "run")
    (empty,) = asked(server, "/api/news").json()
    assert empty["columns"]["id"] == []
    episodes = [played(slot) for slot in range(4)]
    for one in episodes[:2]:
        recorder.gem_episode_end(one)
    (first,) = asked(server, "/api/news", seen=json.dumps([empty["seen"]])).json()
    assert first["columns"]["id"] == [one.id for one in episodes[:2]]
    assert first["columns"]["update"] == [None, None]
    recorder.gem_update(update_of(1, episodes[:2], np.random.default_rng(0)))
    for one in episodes[2:]:
        recorder.gem_episode_end(one)
    (second,) = asked(server, "/api/news", seen=json.dumps([first["seen"]])).json()
    assert second["columns"]["id"] == [one.id for one in episodes[2:]]
    assert second["changes"] == [[0, 1], [1, 1]]
    (third,) = asked(server, "/api/news", seen=json.dumps([second["seen"]])).json()
    assert (third["columns"]["id"], third["changes"]) == ([], [])
    (everything,) = asked(server, "/api/news").json()
    assert everything["columns"]["update"] == [1, 1, None, None]


def test_a_long_run_arrives_in_several_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_library, "_MAX_NEW", 5)
    write_run(tmp_path / "run", Plan(updates=3, tasks=2, repeats=2))
    server = client(tmp_path / "run")
    seen, episodes, steps = [0, 0, 0], [], []
    for more in (True, True, False):
        (news,) = asked(server, "/api/news", seen=json.dumps([seen])).json()
        assert news["more"] == more
        seen = news["seen"]
        episodes += news["columns"]["id"]
        steps += news["metrics"].get("step", [])
    assert len({*episodes}) == len(episodes) == 12
    assert steps == [1, 2, 3]


def test_only_new_metrics_are_sent(recorder: RunRecorder, tmp_path: Path) -> None:
    server = client(tmp_path / "run")
    (empty,) = asked(server, "/api/news").json()
    assert empty["metrics"] == {}
    lines = [{"step": step, "loss": 1 / step} for step in (1, 2)]
    file = tmp_path / "run" / "metrics.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (first,) = asked(server, "/api/news", seen=json.dumps([empty["seen"]])).json()
    assert first["metrics"] == {"step": [1, 2], "loss": [1, 0.5]}
    with file.open("a") as appended:
        appended.write('{"step": 1, "eval": 0.5}\n{"step": 3, "loss": NaN}\n')
    (second,) = asked(server, "/api/news", seen=json.dumps([first["seen"]])).json()
    assert second["metrics"] == {"step": [1, 3], "loss": [1, None], "eval": [0.5, None]}
    (third,) = asked(server, "/api/news", seen=json.dumps([second["seen"]])).json()
    assert third["metrics"] == {}
    (everything,) = asked(server, "/api/news").json()
    assert everything["metrics"]["loss"] == [1, 0.5, None]


def test_an_episode_keeps_its_place_when_another_process_writes(recorder: RunRecorder, tmp_path: Path) -> None:
    episodes = [played(slot) for slot in range(4)]
    recorder.gem_episode_end(episodes[0])
    other = RunRecorder(tmp_path / "run", tokenizer=Plan().vocabulary)
    other.gem_episode_end(episodes[1])
    server = client(tmp_path / "run")
    before = asked(server, "/api/news").json()[0]["columns"]["id"]
    recorder.gem_episode_end(episodes[2])
    other.gem_episode_end(episodes[3])
    other.close()
    after = asked(server, "/api/news").json()[0]["columns"]["id"]
    assert after[:2] == before
    assert set(after) == {one.id for one in episodes}


def test_parts_are_those_of_the_page(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=1, tasks=1, repeats=2))
    library = Library([open_records(tmp_path / "run")])
    server = client(tmp_path / "run")
    for part in range(4):
        assert asked(server, "/api/part", run=0, block=0, part=part).content == library.part(0, 0, part)
    table = asked(server, "/api/table", run=0, start=0).json()
    assert table == library.table(0, 0)
    assert asked(server, "/api/table", run=0, start=3).json()["ids"] == table["ids"][3:]


def test_a_damaged_episode_leaves_the_others(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=1, tasks=1, repeats=3))
    damage_episode(tmp_path / "run", 1)
    server = client(tmp_path / "run")
    details = json.loads(zlib.decompress(asked(server, "/api/part", run=0, block=0, part=0).content, -15))["episodes"]
    assert ["unreadable" in one for one in details] == [False, True, False]
    assert "is damaged" in details[1]["unreadable"]
    assert any("1 episode cannot be read" in gap for gap in asked(server, "/api/news").json()[0]["gaps"])


def test_the_browser_s_file_is_private(tmp_path: Path) -> None:
    file = redirect(tmp_path, "http://127.0.0.1:1/?token=a&b")
    assert file.stat().st_mode & 0o777 == 0o600
    assert 'content="0; url=http://127.0.0.1:1/?token=a&amp;b"' in file.read_text()
