"""What a model wrote is text, whatever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import Plan, Vocabulary, episode, update_of

from gem_core.episode import Episode, Run
from gem_train.records import RunRecorder, open_records
from gem_viewer._page import write_page

ALERT = "window.ran = true; alert(1)"
HOSTILE = [
    f"<script>{ALERT}</script>",
    f"</script><script>{ALERT}</script><!--",
    f"<img src=x onerror='{ALERT}'><svg onload='{ALERT}'></style><style>*{{display:none}}</style>",
    "x" * 1_000_000,
    "half \ud83d and \udc00 characters",
    "right \u202eto left\u2066 \u200f marks",
    "\x1b[31mred\x1b[0m \x00\x07\x08\r",
    f"data:text/html,<script>{ALERT}</script> javascript:{ALERT}",
    "&lt;b&gt; &amp; {{ data }} ${data} {script} {data}",
    "🙂 e\u0301 עברית العربية 日本語",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A page of an episode that says all of these, and whose tokens, names, settings and error are like them."""
    folder = tmp_path_factory.mktemp("hostile")
    plan = Plan(vocabulary=Vocabulary(30, extra=[text[:200] for text in HOSTILE]))
    name = f"<b>{HOSTILE[0]}"
    recorder = RunRecorder(folder / "run", settings={"<i>": HOSTILE[1], "all": HOSTILE}, tokenizer=plan.vocabulary)
    recorder.gem_rollout_start(Run("run", [name], {}, {}, "<u>"))
    chance = np.random.default_rng(0)
    one: Episode = episode(name, 0, 0, 0, run="run", plan=plan, chance=chance, solved=False, said=HOSTILE)
    for number, turn in enumerate(one.turns):
        one.sequences[0].ids[turn.start] = 30 + number
        turn.observation = turn.response
        turn.info = {HOSTILE[0]: HOSTILE[number]} if number != 3 else {}
    one.error = one.final_observation = "\n".join(HOSTILE[:3])
    recorder.gem_episode_end(one)
    recorder.gem_update(update_of(1, [one], chance))
    recorder.close()
    page = folder / "page.html"
    records = open_records(folder / "run")
    write_page([records], page, done=lambda _: None)
    return page, [turn.response for turn in records.episode(0).episode.turns]


def test_hostile_text_is_shown_and_runs_nowhere(open_page: Any, hostile: tuple[Path, list[str]]) -> None:
    page, said = hostile
    with open_page(page) as tab:
        for view in ("run", "episodes", "group", "episode"):
            tab.go(f"#{view}")
            tab.wait(f"main > .{view}")
            tab.screenshot(f"hostile_{view}")
        tab.page.get_by_role("button", name="Unfold all").click()
        shown = tab.texts(".message.policy .text")
        for number in (0, 1, 2, 7, 8, 9):
            assert shown[number] == said[number]
        assert "Show more: 980,000 of 1,000,000 characters are left" in shown[3]
        assert "\\u202eto left\\u2066 \\u200f" in shown[5]
        assert shown[6].startswith("\\x1b[31mred\\x1b[0m \\x00\\x07\\x08")
        tab.press("t")
        tab.wait(".token-body")
        assert f"<script>{ALERT}</script>" in tab.texts(".sampled-tokens span")
        tab.go("#episodes?text=%3Cscript%3E")
        tab.wait(".count", "1 episodes")
        assert tab.value("window.ran") is None
        assert tab.value("document.querySelectorAll('main script, main img, main style, main svg').length") == 0


def test_a_long_line_is_shown_piece_by_piece(open_page: Any, hostile: tuple[Path, list[str]]) -> None:
    page, _ = hostile
    with open_page(page, "#episode") as tab:
        more = tab.wait("#turn-3 .policy button.more")
        more.click()
        tab.wait("#turn-3 .policy button.more", "880,000 of 1,000,000")
        assert tab.value("document.documentElement.scrollWidth <= window.innerWidth")


def test_policy_stops_what_would_get_through(open_page: Any, hostile: tuple[Path, list[str]]) -> None:
    page, _ = hostile
    with open_page(page) as tab:
        inject = """() => { const one = document.createElement("div");
          one.innerHTML = "<img src='x' onerror='window.ran = true'>"; document.body.append(one); }"""
        with tab.page.expect_event("console"):
            tab.page.evaluate(inject)
        assert tab.value("window.ran") is None
        assert all("Content Security Policy" in one for one in tab.said)
        tab.said.clear()
