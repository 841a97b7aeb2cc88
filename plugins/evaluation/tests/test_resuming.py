"""An interrupted evaluation continues where it stopped."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gem_evaluation import Entry, EvaluationError, FunctionModel, Results, evaluate, load_model, read_saved
from gem_evaluation._progress import Progress
from gem_evaluation._store import EPISODES, Store, read_episodes, read_identity, read_results
from gem_support.chat_server import ChatServer, guess
from gem_support.waiting import wait_until

pytestmark = pytest.mark.long

GAME = "game:GuessTheNumber-v0-easy"
COMMAND = [sys.executable, "-c", "from gem_core.cli import main; main()", "eval"]
FORKS = """
import contextlib, os, sys
import openai, gem_evaluation._evaluation
from gem_core.cli import main
from gem_core.cli._app import app
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(None):
    app(["eval", "run", "-h"])
while os.read(0, 1):
    if pid := os.fork():
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("ended", flush=True)
    else:
        for file in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), file)
        main()
"""


class Forks:
    """Runs `gem-core eval` with these arguments again and again, each time in a fork.

    Otherwise imports would take most of the time of a short run.
    """

    def __init__(self, arguments: list[str]) -> None:
        pipe, command = subprocess.PIPE, [sys.executable, "-c", FORKS, "eval", *arguments]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self._run: Path | None = None

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        if self._run is not None:  # the test has failed
            self.kill(self._run)
        self._process.communicate()

    def start(self) -> Path:
        """Start a run; returns its folder in /proc."""
        assert self._process.stdin is not None
        self._process.stdin.write("r")
        self._process.stdin.flush()
        self._run = Path("/proc") / self._line()
        return self._run

    def kill(self, run: Path) -> None:
        """End the run, if it has not ended, and wait for its end."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(run.name), signal.SIGKILL)
        self._run = None
        assert self._line() == "ended"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def statistics(results: Results) -> Any:
    """What does not depend on time."""
    fields = msgspec.to_builtins([*results.environments, results.together], str_keys=True)
    for one in fields:
        del one["seconds"]
    return fields


@pytest.mark.timeout(600)
def test_killed_at_twenty_moments_nothing_is_lost_and_nothing_is_asked_again(tmp_path: Path) -> None:
    rng = random.Random(20)
    tasks, repeats = 12, 3
    arguments = [GAME, "math:Sample", "--model", "stub", "--tasks", str(tasks), "--repeats", str(repeats)]
    arguments += ["--concurrency", "4", "--output", str(tmp_path / "killed")]
    planned = 2 * tasks * repeats
    with ChatServer(guess).running() as server, Forks([*arguments, "--base-url", server.url]) as forks:
        for _ in range(20):
            finished = Counter(one.key.entry for one in read_results(tmp_path / "killed"))
            before, moment = len(server.requests), len(server.requests) + rng.randint(5, 9)
            server.gate = lambda moment=moment: len(server.requests) < moment
            run = forks.start()
            wait_until(lambda m=moment, r=run: len(server.requests) >= m or not r.exists(), "no request came")
            forks.kill(run)
            openings = [body for body in server.requests[before:] if len(body["messages"]) == 1]
            assert len(openings) <= planned - finished.total()
            assert max(_asked_of_sample(openings).values(), default=0) <= repeats
        finished = Counter(one.key.entry for one in read_results(tmp_path / "killed"))
        assert 0 < finished.total() < planned
        before, server.gate = len(server.requests), lambda: True
        command = [*COMMAND, *arguments, "--base-url", server.url]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        openings = [body for body in server.requests[before:] if len(body["messages"]) == 1]
        assert len(openings) == planned - finished.total()
        assert _asked_of_sample(openings).total() == tasks * repeats - finished["math:Sample"]
        keys = [one.key for one in read_results(tmp_path / "killed")]
        assert len(keys) == len({*keys}) == planned
        model = load_model("stub", base_url=server.url)
        whole = evaluate([GAME, "math:Sample"], model, tasks=tasks, repeats=repeats, output=tmp_path / "whole")
    assert statistics(read_saved(tmp_path / "killed")) == statistics(whole)


def _asked_of_sample(openings: list[dict[str, Any]]) -> Counter[str]:
    """How often each question was asked; the game has the same opening in all tasks."""
    contents = Counter(body["messages"][0]["content"] for body in openings)
    return Counter({text: count for text, count in contents.items() if "from 1 to 10" not in text})


class Player:
    """Plays like `guess`, and counts the episodes that it begins."""

    def __init__(self) -> None:
        self.openings = 0

    def __call__(self, messages: Any) -> str:
        self.openings += len(messages) == 1
        return guess({"messages": messages})


def play(folder: Path, **settings: Any) -> tuple[Results, int]:
    """An evaluation, and how many episodes it began."""
    player = Player()
    results = evaluate(settings.pop("entries", GAME), FunctionModel(player, "player"), output=folder, **settings)
    return results, player.openings


def test_more_tasks_and_repeats_are_added(tmp_path: Path) -> None:
    assert play(tmp_path / "a", tasks=4)[1] == 4
    assert play(tmp_path / "a", tasks=4)[1] == 0
    assert play(tmp_path / "a", tasks=6)[1] == 2
    results, openings = play(tmp_path / "a", tasks=6, repeats=3)
    assert openings == 12
    assert statistics(results) == statistics(play(tmp_path / "b", tasks=6, repeats=3)[0])


def test_fewer_tasks_are_a_part_of_what_was_played(tmp_path: Path) -> None:
    play(tmp_path / "a", tasks=6)
    results, openings = play(tmp_path / "a", tasks=4)
    assert openings == 0
    assert statistics(results) == statistics(play(tmp_path / "b", tasks=4)[0])


def test_failures_of_other_tasks_are_not_shown(tmp_path: Path) -> None:
    def answer(messages: Any) -> str:
        raise ConnectionError("gone")

    for tasks in (6, 2):
        evaluate(GAME, FunctionModel(answer, "deaf"), tasks=tasks, output=tmp_path)
    assert (tmp_path / "report.md").read_text().count("gone") == 2
    with Store(tmp_path, read_identity(tmp_path)) as store:
        assert Progress(store, load_model("random"), {GAME: (2, 1)}).line() == "0 of 2 episodes, 2 failed"


def test_a_process_killed_before_its_first_file_was_whole_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "run.json.partial").write_bytes(b"{")
    assert play(tmp_path, tasks=1)[1] == 1


def test_a_disk_that_takes_a_part_of_an_episode_keeps_the_file_whole(tmp_path: Path) -> None:
    """A nearly full disk writes some bytes without an error; the next write has none left, and a later one may."""

    class NearlyFull:
        def __init__(self, file: Any) -> None:
            self.file, self.writes = file, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, data: Any) -> int:
            self.writes += 1
            if self.writes == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(data[: len(data) // 2] if self.writes == 1 else data)

    play(tmp_path / "a", tasks=2)
    first, second = read_episodes(tmp_path / "a")
    with Store(tmp_path / "b", read_identity(tmp_path / "a")) as store:
        store._episodes = NearlyFull(store._episodes)
        with pytest.raises(EvaluationError, match="No space left on device"):
            store.add(first)
        store.add(second)
    assert [one.key for one in read_episodes(tmp_path / "b")] == [second.key]


def test_results_that_cannot_be_written_are_said_in_a_line(tmp_path: Path) -> None:
    play(tmp_path, tasks=1)
    (tmp_path / "results.json.partial").mkdir()
    with pytest.raises(EvaluationError, match=r"cannot be written.*Its episodes are kept"):
        play(tmp_path, tasks=2)


def test_another_experiment_is_refused_with_the_difference(tmp_path: Path) -> None:
    play(tmp_path, tasks=2)
    with pytest.raises(EvaluationError, match=r"another experiment:\n  seed: 0 before, 1 now\n"):
        play(tmp_path, tasks=2, seed=1)
    with pytest.raises(EvaluationError, match=r"system_prompt: None before, 'Be brief.' now"):
        play(tmp_path, entries=Entry(id=GAME, tasks=2, system_prompt="Be brief."))
    with pytest.raises(EvaluationError, match=r"model.name: 'player' before, 'other' now"):
        evaluate(GAME, FunctionModel(Player(), "other"), tasks=2, output=tmp_path)


@pytest.mark.parametrize("left", [b'{"version":2,"key"', b"x", b"\x00\xff"])
def test_a_line_that_was_cut_off_is_played_again(tmp_path: Path, left: bytes) -> None:
    play(tmp_path, tasks=3)
    with (tmp_path / EPISODES).open("ab") as file:
        file.write(left)
    results, openings = play(tmp_path, tasks=4)
    assert (openings, results.together.episodes.finished) == (1, 4)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    play(tmp_path, tasks=3)
    (tmp_path / EPISODES).write_bytes(b"{}\n" + (tmp_path / EPISODES).read_bytes())
    with pytest.raises(EvaluationError, match=r"episodes.jsonl, line 1, is damaged"):
        play(tmp_path, tasks=3)


def test_a_full_disk_stops_and_keeps_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Store._append
    room = [3]

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, data: bytes) -> int:
            self.file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def append(self: Store, file: Any, line: bytes) -> None:
        room[0] -= 1
        real(self, file if room[0] >= 0 else Full(file), line)

    monkeypatch.setattr(Store, "_append", append)
    with pytest.raises(EvaluationError, match="No space left on device"):
        play(tmp_path, tasks=8)
    monkeypatch.undo()
    assert len([*read_episodes(tmp_path)]) == 3
    results, openings = play(tmp_path, tasks=8)
    assert (openings, results.together.episodes.finished) == (5, 8)


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    inside: list[str] = []

    def answer(messages: Any) -> str:
        with pytest.raises(EvaluationError, match="another process is at work in"):
            play(folder, tasks=1)
        inside.append("asked")
        return "1"

    evaluate("qa:Sample", FunctionModel(answer, "player"), tasks=1, output=folder)
    assert inside


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(EvaluationError, match=r"is not empty and has no run\.json"):
        play(tmp_path, tasks=1)


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    with ChatServer(guess).running() as server:
        server.gate = lambda: len(server.requests) < 12
        command = [*COMMAND, "math:Sample", "--model", "stub", "--base-url", server.url, "--concurrency", "2"]
        process = subprocess.Popen([*command, "--output", str(tmp_path / "run")], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(server.requests) >= 12 or process.poll() is not None, "no request came")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=240)
        assert process.returncode == 130, said
        assert "Interrupted." in said
        finished = len([*read_results(tmp_path / "run")])
        assert finished >= 10
        assert read_saved(tmp_path / "run").together.episodes.finished == finished
