"""The code of plugins/gym/README.md runs as it stands."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium")

from gem_testing import check_env

PAGE = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}|\n {4}))+")


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [textwrap.dedent(block) for block in BLOCK.findall(PAGE.read_text())]
    here, codec, use, there = blocks
    (tmp_path / "my_codecs.py").write_text(codec)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {}
    for block in (here, use, there):
        exec(block, names)
    assert names["vec"].reset(seed=0)[0][0].startswith("Guess my number")
    check_env("gym:CartPole-v1", codec="my_codecs:CartPole", max_episode_steps=50)
