"""Characters that take several tokens, whole among the tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from made_up import Plan, Vocabulary, episode
from showing import exported, served

from gem_core.episode import Run, as_token_ids
from gem_train.records import RunRecorder

SAID = ["<think>", " 漢", "</think>", "🙂", "e\u0301", "é"]


class Bytes(Vocabulary):
    """A vocabulary that ends with a token for each byte, named as SentencePiece names it."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._first = len(self.texts)

    def ids(self, text: str) -> list[int]:
        """The tokens of the bytes of a text."""
        return [self._first + one for one in text.encode()]

    def convert_ids_to_tokens(self, token: int) -> str:
        """The name of a token."""
        return self.texts[token] if token < self._first else f"<0x{token - self._first:02X}>"

    def decode(self, token_ids: Any, /, **_: Any) -> str:
        """Token ids to text."""
        parts = [self.texts[x].encode() if x < self._first else bytes([x - self._first]) for x in token_ids]
        return b"".join(parts).decode(errors="replace")


def write(folder: Path) -> None:
    """A run with one episode, in whose first response each byte is a token."""
    vocabulary = Bytes(200)
    plan = Plan(turns=(2, 2), tokens=(60, 60), vocabulary=vocabulary)
    made = episode("demo:A-v0", 0, 0, 0, run="run", plan=plan, chance=np.random.default_rng(0), solved=True)
    turn, text = made.turns[0], "".join(SAID)
    ids = vocabulary.ids(text)
    ids += vocabulary.ids("字")[:1] * (60 - len(ids))  # cut off within a character
    made.sequences[0].ids[turn.start : turn.end] = as_token_ids(ids)
    turn.response = vocabulary.decode(ids)
    recorder = RunRecorder(folder, tokenizer=vocabulary, detail="full")
    recorder.gem_rollout_start(Run("run", ["demo:A-v0"], {}, {}, "train"))
    recorder.gem_episode_end(made)
    recorder.close()


def check(tab: Any) -> None:
    """The tokens of the first response."""
    text = "".join(SAID)
    tab.wait(".chat", "🙂")
    assert "🙂e\u0301é" in tab.text("#turn-0 .message.policy")
    tab.press("t")
    tab.wait(".token-body")
    spans = tab.page.locator("#tokens-0 .sampled-tokens span")
    shown = spans.all_text_contents()
    assert len(shown) == 60
    assert "".join(shown).startswith(text)
    assert "".join(shown).replace("\ufffd", "") == text
    size = len("".join(SAID[:3]).encode())
    assert tab.page.locator("#tokens-0 [data-thought]").count() == size
    assert shown[size : size + 4] == ["", "", "", "🙂"]
    assert spans.nth(size).get_attribute("data-part") == ""
    spans.nth(size + 3).hover()
    assert "bytes 82" in tab.text(".readout")
    assert "🙂" in tab.text(".readout")
    tab.screenshot("token_parts")


def test_a_character_is_at_the_token_that_completes_it(open_page: Any, tmp_path: Path) -> None:
    write(tmp_path / "run")
    with open_page(exported(tmp_path / "run", tmp_path / "page.html"), "#episode") as tab:
        check(tab)
    with served(tmp_path / "run") as address, open_page(address, "#episode") as tab:
        check(tab)
