"""Every view of the page, clicked through in chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up import Plan, write_run

from gem_train.records import RecordedEpisode, Records, open_records
from gem_viewer._page import write_page

NONE, MINUS = "\u2013", "\u2212"
"""What the page writes for no value, and before a negative one."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Records]:
    folder = tmp_path_factory.mktemp("runs")
    for name, skill, rate in (("first", 0.1, 1e-5), ("second", 0.4, 3e-5)):
        settings = {"lr": rate, "advantage": "grpo", "env_kwargs": {"max_turns": 8, "note": "it's"}}
        write_run(folder / name, Plan(updates=6, tasks=4, repeats=4, skill=skill, settings=settings))
    return [open_records(folder / name) for name in ("first", "second")]


@pytest.fixture(scope="module")
def page(runs: list[Records], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(runs, path, done=lambda _: None)
    return path


def chosen(records: Records, accept: Callable[[RecordedEpisode], bool]) -> RecordedEpisode:
    return next(one for one in map(records.episode, range(len(records.summaries))) if accept(one))


def test_curves_and_settings_of_two_runs(open_page: Any, page: Path) -> None:
    with open_page(page) as tab:
        assert "first, second" in tab.text("h1")
        titles = tab.texts(".chart figcaption")
        assert {"Success", "Return", "Turns", "How episodes ended, share", "loss"} <= set(titles)
        chart = tab.page.locator(".chart", has_text="Success").first
        assert chart.locator(".u-series").count() == 5  # update, and two environments of two runs
        tab.page.locator(".u-over").first.hover(position={"x": 150, "y": 40})
        assert NONE not in chart.locator(".u-series .u-value").nth(1).text_content()
        tab.screenshot("run")
        tab.page.locator(".smoother input").fill("3")
        assert tab.text(".smoother output") == "mean of 3"
        tab.page.locator(".chart-controls input[type=checkbox]").first.uncheck()
        assert tab.page.locator(".chart", has_text="Success").first.locator(".u-series:not(.each)").count() == 4
        differences = tab.texts(".settings tr.differs")
        assert len(differences) == 1
        assert "1e-05" in differences[0]
        tab.page.get_by_label("Only differences").uncheck()
        assert tab.page.locator(".settings th[scope=row]").count() == 5
        tab.screenshot("settings")
        field = tab.page.get_by_label("Names with")
        field.press_sequentially("KWARGS")
        assert tab.texts(".settings th[scope=row]") == ["env_kwargs"]
        assert tab.value("document.activeElement.getAttribute('aria-label')") == "Names with"
        field.fill("")
        tab.page.locator(".choice summary").click()
        tab.page.locator(".choice label", has_text="grad_norm").locator("input").uncheck()
        assert "grad_norm" not in tab.texts(".chart figcaption")
        tab.page.locator(".facts-table a").first.click()
        tab.wait(".count", "48 of 192 episodes")


def test_the_table_is_sorted_filtered_and_searched(open_page: Any, page: Path, runs: list[Records]) -> None:
    summaries = [one for records in runs for one in records.summaries]
    with open_page(page, "#episodes") as tab:
        assert tab.wait(".count", "192 episodes")
        tab.screenshot("episodes")
        column = tab.texts(".long-table th").index("Tokens")
        tokens = f".long-table tbody tr:not(.space) td:nth-child({column + 1})"
        tab.page.get_by_role("button", name="Tokens", exact=True).click()
        tab.page.get_by_role("button", name="Tokens", exact=True).click()
        assert int(tab.text(tokens)) == max(one.summary.response_tokens for one in summaries)
        assert tab.page.locator("th[aria-sort=descending]").text_content() == "Tokens"

        def counted(count: int) -> None:
            said = "192 episodes" if count == 192 else f"{count} of 192 episodes"
            tab.page.locator(".count", has_text=re.compile(f"^{said}")).wait_for()
            tab.page.locator(f'.long-table[aria-rowcount="{count + 1}"]').wait_for()

        cases = {
            "Outcome": ("solved", lambda one: one.summary.success),
            "Ended by": ("env_error", lambda one: one.summary.stop_reason == "env_error"),
            "With": ("invalid", lambda one: one.summary.invalid > 0),
            "Environment": ("math:GSM8K-v0", lambda one: one.summary.env_id.startswith("math")),
        }
        for label, (option, accept) in cases.items():
            tab.page.get_by_label(label, exact=True).select_option(option)
            counted(sum(map(accept, summaries)))
            tab.page.get_by_label(label, exact=True).select_option("")
        for label, text, accept in (
            ("Update", "2..3", lambda one: one.update in (2, 3)),
            ("Return", "1", lambda one: one.summary.total_reward == 1),
            ("Turns", "5..", lambda one: one.summary.turns >= 5),
            ("Tokens", "..40", lambda one: one.summary.response_tokens <= 40),
            ("Error has", "BOOM", lambda one: one.summary.error is not None),
        ):
            tab.page.get_by_label(label, exact=True).fill(text)
            counted(sum(map(accept, summaries)))
            tab.page.get_by_label(label, exact=True).fill("")
        counted(192)
        wanted = runs[1].episode(20)
        said = wanted.episode.turns[1].response[:18]
        has = [
            any(said in text for turn in one.episode.turns for text in (turn.observation, turn.response))
            for records in runs
            for one in map(records.episode, range(len(records.summaries)))
        ]
        field = tab.page.get_by_label("Observations and responses have")
        field.fill(said.upper())
        field.press("Enter")
        counted(sum(has))
        link = tab.value("location.href")
        tab.page.get_by_role("button", name="Clear").click()
        counted(192)
    with open_page(link) as tab:  # a link keeps the selection
        tab.wait(".count", f"{sum(has)} of 192 episodes")


def test_the_success_of_a_training_is_that_of_its_last_updates(open_page: Any, page: Path, runs: list[Records]) -> None:
    with open_page(page) as tab:
        shown = tab.texts(".facts-table tbody tr:first-child td")
    records = next(one for one in runs if one.name == shown[0])
    mine = [one for one in records.summaries if one.summary.env_id == shown[1] and one.split != "eval"]
    updates = sorted({one.update for one in mine if one.update is not None})
    last = updates[-max(1, len(updates) // 5) :]
    solved = [bool(one.summary.success) for one in mine if one.update in last]
    assert 0 < len(solved) < len(mine)
    assert f"{100 * sum(solved) / len(solved):.0f} %" in shown


def test_the_axis_ends_where_the_bars_do(open_page: Any, page: Path) -> None:
    with open_page(page, "#episodes") as tab:
        tab.wait(".count", "192 episodes")
        ends = tab.value(
            "[...document.querySelectorAll('.bars')].map((bars) =>"
            " [bars.lastChild, bars.nextSibling.lastChild].map((one) => Math.round(one.getBoundingClientRect().right)))"
        )
        assert len(ends) == 3
        for bar, label in ends:
            assert abs(bar - label) <= 2


def test_a_bar_narrows_the_selection(open_page: Any, page: Path, runs: list[Records]) -> None:
    with open_page(page, "#episodes") as tab:
        bar = tab.page.get_by_role("button", name="Turns 3: ")
        count = int(bar.get_attribute("aria-label").split()[-2])
        bar.click()
        tab.wait(".count", f"{count} of 192 episodes")
        assert tab.page.get_by_label("Turns", exact=True).input_value() == "3"


def test_the_table_by_keyboard(open_page: Any, page: Path, runs: list[Records]) -> None:
    with open_page(page, "#episodes") as tab:
        tab.wait(".count", "192 episodes")
        assert tab.page.locator(".long-table tbody tr").count() < 80  # only what can be seen
        tab.page.locator(".long-table").focus()
        tab.press("End", "ArrowUp", "Enter")
        tab.wait("h1", runs[1].summaries[-2].id)
        tab.press("u")
        tab.wait("tr[aria-selected]")
        tab.press("/")
        assert tab.value("document.activeElement.name") == "text"


def test_an_episode_as_a_conversation(open_page: Any, page: Path, runs: list[Records]) -> None:
    one = chosen(runs[0], lambda one: one.summary.summary.tool_calls and one.summary.data_index is not None)
    with open_page(page, f"#episode/first/{one.summary.id}") as tab:
        tab.wait("h1", one.summary.id)
        shown = tab.texts(".message .text")
        expected = [text for turn in one.episode.turns for text in (turn.observation, turn.response)]
        assert [text.strip() for text in shown] == [*expected, one.episode.final_observation]
        folded = tab.page.locator(".message details")
        assert folded.count() == 2  # the call, and what the tool answered
        assert tab.page.locator(".message details[open]").count() == 0
        tab.screenshot("episode")
        tab.press("x")
        assert tab.page.locator(".message details[open]").count() == 2
        assert one.trained is not None
        facts = tab.texts(".turn-head .facts")
        assert len(facts) == len(one.episode.turns)
        assert one.trained.advantages[0] is not None
        assert f"advantage {round(one.trained.advantages[0], 3):g}".replace("-", MINUS) in facts[0]
        assert tab.page.locator(".turn-chart canvas").count() == 1
        line = tab.text(".copy-line code")
        play = f"gem-core play {one.episode.env_id} --seed {one.episode.seed} --data-index {one.episode.data_index}"
        assert line == play + " --set max_turns=8 --set 'note=it'\\''s'"
        tab.press("n", "n")
        assert tab.value("location.hash").endswith("/2")
        assert tab.page.locator("#turn-1.current").count() == 1
        link = tab.value("location.href")
        tab.press("j")
        tab.page.locator("h1", has_not_text=one.summary.id).wait_for()
        tab.press("k")
        tab.wait("h1", one.summary.id)
    with open_page(link) as tab:  # a permanent link
        tab.wait("#turn-1.current")


def test_how_an_episode_ended_is_said(open_page: Any, page: Path, runs: list[Records]) -> None:
    failed = chosen(runs[0], lambda one: one.episode.error is not None)
    solved = chosen(runs[0], lambda one: one.episode.success)
    with open_page(page, f"#episode/first/{failed.summary.id}") as tab:
        tab.wait(".ending", f"The environment failed after {len(failed.episode.turns)} turns.")
        assert tab.text(".error") == failed.episode.error
        tab.go(f"#episode/first/{solved.summary.id}")
        tab.wait(".ending", "it was solved.")


def test_tokens_as_the_policy_saw_them(open_page: Any, page: Path, runs: list[Records]) -> None:
    one = runs[1].episode(7)
    texts = runs[1].texts
    (sequence,) = one.episode.sequences
    with open_page(page, f"#episode/second/{one.summary.id}") as tab:
        tab.wait("h1", one.summary.id)
        tab.press("t")
        tab.wait(".token-body")
        spans = tab.texts(".token-body span:not(.hidden-character)")
        assert [text.replace("↵", "") for text in spans] == [texts[token] for token in sequence.ids]
        turn = one.episode.turns[1]
        assert one.trained is not None
        logprobs, trainer, entropies = (
            one.episode.response_logprobs(turn),
            one.trained.logprobs[1],
            one.trained.entropies[1],
        )
        assert logprobs is not None
        assert trainer is not None
        assert entropies is not None
        tab.page.locator(".token-body").press("ArrowRight")
        tab.page.locator("#tokens-1 .sampled-tokens span").nth(2).click()
        read = tab.text(".readout").replace(MINUS, "-")
        told = {
            name: float(read.split(f"{name} ")[1].split()[0]) for name in ("sampler", "trainer", "ratio", "entropy")
        }
        assert told["sampler"] == pytest.approx(logprobs[2], abs=2e-6)
        assert told["trainer"] == pytest.approx(trainer[2], abs=2e-6)
        assert told["ratio"] == pytest.approx(2.718281828459045 ** (trainer[2] - logprobs[2]), abs=5e-6)
        assert told["entropy"] == pytest.approx(entropies[2], abs=2e-6)
        assert f"position {turn.start + 2}" in read
        assert json.dumps(texts[sequence.ids[turn.start + 2]]) in read
        classes = "[...document.querySelectorAll('.sampled-tokens span')].map((one) => one.className).join(' ')"
        seen: dict[str, str] = {}
        for measure in ("logprob", "trainer", "ratio", "entropy", "advantage", "mask"):
            tab.page.get_by_label("Colour").select_option(measure)
            seen[measure] = tab.value(classes)
            tab.screenshot(f"tokens_{measure}")
        del seen["trainer"]  # so close to the sampler's that the colours may be the same
        assert len(set(seen.values())) == len(seen)
        assert tab.page.locator(".prompt-token").count() > 20
        tab.press("n")
        tab.wait("#tokens-0.current")


def test_a_group_beside_each_other(open_page: Any, page: Path, runs: list[Records]) -> None:
    first = runs[0].summaries[0]
    with open_page(page, f"#episode/first/{first.id}") as tab:
        tab.wait("h1", first.id)
        tab.press("g")
        tab.wait(".side-by-side")
        assert tab.page.locator(".side-by-side thead th").count() == 1 + 8  # of both runs
        assert "They part in turn 2" in tab.text(".group p")
        tab.wait(".parting", "They part")
        letters = tab.texts(".side-by-side tbody tr:first-child .branch")
        assert set(letters) == {"A"}
        tab.screenshot("group")
        tab.press("j")
        tab.wait(".group h1", str(first.summary.seed + 1))
        tab.page.locator(".side-by-side tbody a").first.click()
        tab.wait(".turn.current")


def test_light_dark_and_keys(open_page: Any, page: Path) -> None:
    for scheme, other in (("light", "dark"), ("dark", "light")):
        with open_page(page, color_scheme=scheme) as tab:
            before = tab.value("getComputedStyle(document.body).backgroundColor")
            tab.page.get_by_role("button", name="Theme").click()
            assert tab.value("document.documentElement.dataset.theme") == other
            assert tab.value("getComputedStyle(document.body).backgroundColor") != before
            tab.press("?")
            tab.wait("dialog[open]", "next and previous turn")
            tab.screenshot(f"keys_{other}")
            tab.press("Escape", "2")
            tab.wait(".count", "192 episodes")
            tab.press("4")
            tab.wait(".episode-head")


def test_what_screen_readers_are_told(open_page: Any, page: Path) -> None:
    nameless = """[...document.querySelectorAll("button, input, select, a, [role=img], [role=region]")].filter((one) =>
      !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML)"""
    with open_page(page) as tab:
        for view in ("run", "episodes", "group", "episode"):
            tab.go(f"#{view}")
            tab.wait(f"main > .{view}")
            tab.wait("[aria-current=page]", view.capitalize())
            assert tab.value(nameless) == []
            assert tab.value("document.querySelectorAll('h1').length") == (0 if view == "episodes" else 1)


def test_a_table_that_shrinks_while_it_is_scrolled_down(open_page: Any, page: Path) -> None:
    with open_page(page, "#episodes") as tab:
        tab.wait(".count", "192 episodes")
        tab.page.locator(".long-table").focus()
        tab.press("End")
        tab.wait("tr[aria-rowindex='193']")
        tab.page.get_by_label("Update", exact=True).fill("2")
        tab.wait(".count", "32 of 192 episodes")
        assert tab.wait("tr[aria-rowindex='33'] td", "2")
        tab.page.get_by_label("Update", exact=True).fill("99")
        tab.wait(".count", "0 of 192 episodes")
        assert tab.page.locator(".long-table tbody tr:not(.space)").count() == 0


def test_agents_of_matches(open_page: Any, tmp_path: Path) -> None:
    plan = Plan(updates=2, tasks=2, repeats=2, envs=["match:KuhnPoker-v0"], agents=["player 0", "player 1"])
    write_run(tmp_path / "run", plan)
    write_page([records := open_records(tmp_path / "run")], tmp_path / "page.html", done=lambda _: None)
    first, second, *_ = records.summaries
    with open_page(tmp_path / "page.html", "#episodes") as tab:
        tab.wait(".count", "16 episodes")
        at = tab.texts(".long-table th").index("Agent") + 1
        cells = f".long-table tbody tr:not(.space) td:nth-child({at})"
        assert {*tab.texts(cells)} == {"player 0", "player 1"}
        tab.page.get_by_label("Agent", exact=True).select_option("player 1")
        tab.wait(".count", "8 of 16 episodes")
        tab.go(f"#episode/run/{first.id}")
        tab.wait("aside dd", "run")
        facts = dict(zip(tab.texts("aside dt"), tab.texts("aside dd"), strict=True))
        assert (facts["Agent"], facts["Same match"]) == ("player 0", "player 1")
        tab.page.locator("aside dd a").click()
        tab.wait("h1", second.id)
        tab.press("g")
        tab.wait(".group h1", "player 1")
        assert tab.page.locator(".side-by-side thead th").count() == 1 + 2, "those of this agent"
