"""Where a page's data comes from: a folder beside it, a server; and runs that are damaged, old, empty or growing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from made_up import Plan, update_of, write_run
from showing import exported, played, served

from gem_core.episode import Run
from gem_support.waiting import wait_until
from gem_train.records import RunRecorder
from gem_train.rollout._recorder import encoded
from gem_train.rollout.records import recorded


def test_all_sources_show_the_same(open_page: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=5))
    beside = exported(tmp_path / "run", tmp_path / "beside.html", split=True)
    inside = exported(tmp_path / "run", tmp_path / "inside.html")
    shown: list[Any] = []
    with served(tmp_path / "run") as url:
        for target in (beside, inside, url):
            with open_page(target) as tab:
                tab.press("2")
                tab.wait(".count", "80 episodes")
                tab.page.locator(".long-table").focus()
                tab.press("End", "Enter")
                tab.wait(".chat")
                chat = tab.texts(".message .text")
                tab.press("t")
                tab.wait(".token-body")
                shown.append((chat, tab.texts(".token-body"), tab.text("aside dl")))
    assert shown[0] == shown[1] == shown[2]
    assert len(shown[0][0]) > 3


def test_a_folder_that_was_left_behind_is_said(open_page: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=1))
    page = exported(tmp_path / "run", tmp_path / "page.html", split=True)
    for one in (tmp_path / "page_data").iterdir():
        one.unlink()
    with open_page(page, "#episode") as tab:
        tab.wait(".failure", "page_data/0-0.js is missing: keep the folder beside the page")
        tab.said.clear()  # the browser's own line about the missing file


def test_a_run_is_followed_while_it_trains(open_page: Any, tmp_path: Path) -> None:
    recorder = RunRecorder(tmp_path / "run", tokenizer=Plan().vocabulary)
    recorder.gem_rollout_start(Run("run", ["demo:A-v0"], {}, {}, "train"))
    with served(tmp_path / "run") as url, open_page(url) as tab:
        tab.wait(".run", "No episode has ended yet")
        episodes = [played(slot) for slot in range(4)]
        for one in episodes:
            recorder.gem_episode_end(one)
        tab.wait("h1", "4 episodes")
        recorder.gem_update(update_of(1, episodes, np.random.default_rng(0)))
        tab.wait(".chart", "Success")
        tab.press("2")
        tab.wait(".count", "4 episodes, 50 % solved")
        recorder.gem_episode_end(played(4))
        tab.wait(".count", "5 episodes")
        tab.press("1")
        for steps in ((2,), (3, 1)):  # a line may belong between those that the page has
            with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
                file.writelines(f'{{"step": {step}, "loss": {step / 8}}}\n' for step in steps)
            chart = tab.wait(".chart", "loss")

        def at_the_left() -> list[str]:
            chart.locator(".u-over").hover(position={"x": 3, "y": 40})
            return chart.locator(".u-value").all_text_contents()

        assert wait_until(lambda: at_the_left() == ["1", "0.125"])
        tab.screenshot("following")
        recorder.close()


def test_a_long_run_arrives_in_several_answers(open_page: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=2))
    few = "import gem_viewer._library; gem_viewer._library._MAX_NEW = 7"
    with served(tmp_path / "run", first=few) as url, open_page(url) as tab:
        tab.wait("h1", "32 episodes")


def test_nobody_else_gets_the_page(open_page: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=1))
    with served(tmp_path / "run") as url:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S{20,}", url)


_BROWSER = """#!/bin/sh
echo "$@" > "$0.new"
mv "$0.new" "$0.given"
while [ ! -e "$0.end" ]; do sleep 0.1; done
"""


def test_a_browser_of_the_terminal_gets_no_token_and_keeps_nobody_waiting(open_page: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=1))
    script = tmp_path / "browser"
    script.write_text(_BROWSER)
    script.chmod(0o700)
    with served(tmp_path / "run", browser=script) as url:
        with open_page(url) as tab:
            tab.wait("h1", "16 episodes")
        given = wait_until(lambda: Path(f"{script}.given").exists() and Path(f"{script}.given").read_text().strip())
        file = Path(given.removeprefix("file://"))
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert url in file.read_text()
        Path(f"{script}.end").touch()
    assert not file.parent.exists()


def test_a_run_killed_while_writing(open_page: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=2))
    (file,) = (tmp_path / "run" / "records").iterdir()
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 3 // 4])
    with open_page(exported(tmp_path / "run", tmp_path / "page.html")) as tab:
        tab.wait(".gaps", "ends within a record")
        tab.screenshot("killed")
        tab.press("4")
        tab.wait(".chat .message")


def test_a_missing_rank(open_page: Any, tmp_path: Path) -> None:
    recorder = RunRecorder(tmp_path / "run", tokenizer=Plan().vocabulary)
    one = played(0)
    recorder.gem_episode_end(one)
    update = update_of(1, [one], np.random.default_rng(0))
    recorder.gem_update(type(update)(**{**vars(update), "ranks": 2}))
    recorder.close()
    with open_page(exported(tmp_path / "run", tmp_path / "page.html")) as tab:
        tab.wait(".gaps", "Not all training processes left a record of update 1")


def test_an_empty_run(open_page: Any, tmp_path: Path) -> None:
    RunRecorder(tmp_path / "run").close()
    with open_page(exported(tmp_path / "run", tmp_path / "page.html")) as tab:
        tab.wait(".run", "No episode has ended yet")
        for key, said in (("2", "0 episodes"), ("1", "No episode has ended yet")):
            tab.press(key)
            tab.wait("main", said)
        tab.go("#episode")
        tab.wait(".failure", "There are no episodes.")


def test_episodes_as_json_lines(open_page: Any, tmp_path: Path) -> None:
    one = played(1)
    (tmp_path / "lines.jsonl").write_bytes(encoded(recorded(one), one) + b"\n")
    with open_page(exported(tmp_path / "lines.jsonl", tmp_path / "lines.html")) as tab:
        tab.press("4")
        tab.wait(".message.policy .text", one.turns[0].response)


def test_summaries_alone(open_page: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run", Plan(updates=2), detail="summary")
    with open_page(exported(tmp_path / "run", tmp_path / "page.html")) as tab:
        tab.wait(".chart", "Success")
        tab.press("4")
        tab.wait(".chat", "This run recorded no texts")
        assert tab.page.get_by_role("button", name="Tokens").is_disabled()


def test_entries_of_an_evaluation_with_the_same_environment(open_page: Any, tmp_path: Path) -> None:
    entry = '[[entries]]\nid = "game:Corridor-v0"\nname = "length {0}"\nenv_kwargs = {{ length = {0} }}\n'
    suite = tmp_path / "suite.toml"
    suite.write_text("".join(entry.format(length) for length in (3, 5)))
    folder = tmp_path / "evaluation"
    options = ["--suite", str(suite), "--model", "random", "--tasks", "2", "--output", str(folder)]
    subprocess.run([sys.executable, "-m", "gem_core", "eval", *options], check=True, capture_output=True, timeout=240)
    with open_page(exported(folder, tmp_path / "page.html")) as tab:
        assert sorted(tab.texts(".facts-table a")) == ["length 3", "length 5"]
        tab.page.locator(".facts-table a", has_text="length 5").click()
        tab.wait(".count", "2 of 4 episodes")
        tab.page.locator(".long-table tr:not(.space) td").first.click()
        tab.wait(".copy-line code", "gem-core play game:Corridor-v0")
        assert tab.text(".copy-line code").endswith("--set length=5")
        tab.press("g")
        tab.wait(".group h1", "length 5")
        assert tab.page.locator(".side-by-side thead th").count() == 1 + 1


def test_the_folder_of_an_evaluation(open_page: Any, tmp_path: Path) -> None:
    folder = tmp_path / "evaluation"
    options = ["--model", "random", "--tasks", "3", "--repeats", "2", "--env-kwargs", '{"length": 4}']
    command = [sys.executable, "-m", "gem_core", "eval", "game:Corridor-v0", *options, "--output", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    with open_page(exported(folder, tmp_path / "page.html")) as tab:
        assert "evaluation, 6 episodes" in tab.text("h1")
        tab.press("4")
        tab.wait(".chat .message.policy")
        assert "--set length=4" in tab.text(".copy-line code")
        tab.press("1")
        tab.wait(".settings h2", "Versions")
        assert "versions" not in tab.texts(".settings th[scope=row]")
        tab.press("4")
        tab.wait(".chat")
        tab.press("g")
        tab.wait(".side-by-side")
        assert tab.page.locator(".side-by-side thead th").count() == 1 + 2
