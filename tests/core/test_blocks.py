"""Fenced blocks: where one begins and ends, what stands in it, and that finding them takes one pass."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem_core.responses import Block, blocks

DOCSTRING = "def half(n):\n{0}'''Halves.\n{0}{1}\n{0}half(8)\n{0}```\n{0}'''\n{0}return n / 2\nprint(half(6))"


def found(text: str) -> list[tuple[str, str]]:
    return [(block.language, block.text) for block in blocks(text)]


@pytest.mark.parametrize(
    "fence",
    ["```python", "```python ", "```Python", "``` python", '```python title="half.py"', "```{.python .wide}",
     "~~~python", "````python", "```python:half.py", "```python,linenos"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_fence_and_its_language(fence: str, end: str) -> None:
    run = fence[: 4 if fence[3] == "`" else 3]
    for before, after in (("", ""), ("So:\n", "\nDone."), ("I say\n\n", "\n\n")):
        text = f"{before}{fence}\nif a:\n    b\n{run}{after}".replace("\n", end)
        [block] = blocks(text)
        assert (block.language, block.text, block.closed) == ("python", "if a:\n    b", True)
        assert text[block.start : block.end].startswith(fence)
        assert text[block.start : block.end].endswith(run)


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("```\nx\n```", ("", "x")),
        ("```\n\n  x\n\n```", ("", "\n  x\n")),
        ("```python\n```", ("python", "")),
        ("```c++\nx\n```", ("c++", "x")),
        # A longer fence closes it, a shorter or another one does not.
        ("````text\n```\nx\n```\n````", ("text", "```\nx\n```")),
        ("```\nx\n`````", ("", "x")),
        ("~~~\n```\nx\n```\n~~~", ("", "```\nx\n```")),
        ("```\n~~~\n```", ("", "~~~")),
        # Behind words.
        ("Perhaps ```python\nx\n```", ("python", "x")),
        ("The `x` is ```\nx\n```", ("", "x")),
        ("```python\nx\n``` and `more`", ("python", "x")),
        ("```python\nx\n``` and more", ("python", "x")),
        ("```python\nx\n```</python>", ("python", "x")),
        ("```python\nx\n```<|eot|>", ("python", "x")),
        # Indented, as in a list: its lines lose what the first one has.
        ("1. So:\n   ```python\n   if a:\n     b\n   ```\n2. Then", ("python", "if a:\n  b")),
        ("- ```python\n  if a:\n    b\n  ```", ("python", "if a:\n  b")),
        ("10. Then ```python\n    if a:\n      b\n    ```", ("python", "if a:\n  b")),
        ("\t```python\n\tif a:\n\t\tb\n\t```", ("python", "if a:\n\tb")),
        ("  ```python\nif a:\n  b\n  ```", ("python", "if a:\n  b")),
        ("   ```python\n   s = '''\nx\n'''\n   ```", ("python", "s = '''\nx\n'''")),
        ("      ```\n      x\n   ```", ("", "x")),
        ("> ```python\n> if a:\n>   b\n>\n> c\n> ```", ("python", "if a:\n  b\n\nc")),
        ("- > ```\n  > x > y\n  > ```", ("", "x > y")),
        ("```\n  x\n```", ("", "  x")),
        # A fence in the program.
        ("```python\nprint('```')\n```", ("python", "print('```')")),
        ("```python\nx = '```' * 2  # ``` and ```\n```", ("python", "x = '```' * 2  # ``` and ```")),
        ("```python\ns = '''```\nx\n```'''\n```", ("python", "s = '''```\nx\n```'''")),
        *(
            (f"```python\n{DOCSTRING.format(indent, fence)}\n```{after}", ("python", DOCSTRING.format(indent, fence)))
            for indent in ("  ", "    ", "\t")
            for fence in ("```", "```python")
            for after in ("", "\nand more")
        ),
        # Closed at the end of a line, or deeper than it was opened.
        ("```python\nx```", ("python", "x")),
        ("```python\nx\n  ```", ("python", "x")),
        # On one line.
        ("```python print(1)```", ("python", "print(1)")),
    ],
)  # fmt: skip
def test_what_stands_in_a_block(text: str, block: tuple[str, str]) -> None:
    assert found(text) == [block]
    assert blocks(text)[0].closed


@pytest.mark.parametrize(
    "text",
    ["", "x", "``x``", "a ``` b", "I use ``` for it.", "```x```", "```a b``` c", "a ```python x```", "``\nx\n``", 
     "~~\nx\n~~", "a ~~~\nx\n~~~", "```", "x\n```python\n", "`` `\nx"],
)  # fmt: skip
def test_no_block(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("```a\nx\n```\n```b\ny\n```", [("a", "x"), ("b", "y")]),
        ("1. ```a\n   x\n   ```\n2. ```b\n   y\n   ```", [("a", "x"), ("b", "y")]),
        ("```a\nx\n```\nIt shows\n```\n5\n```", [("a", "x"), ("", "5")]),
        # One that is forgotten to be closed ends where the next one begins.
        ("```a\nx\n\n```b\ny\n```", [("a", "x\n"), ("b", "y")]),
        ("```a\nx```\nthen\n```b\ny\n```", [("a", "x"), ("b", "y")]),
        ("```a\nx\n  ```\nthen\n```b\ny\n```", [("a", "x"), ("b", "y")]),
        ("```a\nx\n  ```\nIt shows\n```\n5\n```", [("a", "x"), ("", "5")]),
        ("x\n```\nFinal:\n```b\ny\n```", [("", "Final:"), ("b", "y")]),
        (f"```python\n{DOCSTRING.format('  ', '```')}\n```\nIt shows\n```\n3.0\n```",
         [("python", DOCSTRING.format("  ", "```")), ("", "3.0")]),
    ],
)  # fmt: skip
def test_several_blocks(text: str, several: list[tuple[str, str]]) -> None:
    assert found(text) == several


@pytest.mark.parametrize(
    ("text", "inside"),
    [("```python\nx\n", "x"), ("```python\nx\ny", "x\ny"), (f"```python\n{DOCSTRING.format('    ', '```')}", None)],
)
def test_the_last_block_need_not_be_closed(text: str, inside: str | None) -> None:
    [block] = blocks(text)
    assert (block.closed, block.end) == (False, len(text))
    assert block.text == (inside or DOCSTRING.format("    ", "```"))


@pytest.mark.parametrize(
    ("word", "language", "fits"),
    [
        ("python", "python", True),
        ("Python3", "python", True),
        ("python3.11", "python", True),
        ("py", "python", True),
        ("py3", "python", True),
        ("pythonic", "python", False),
        ("pycon", "python", False),
        ("", "python", False),
        ("bash", "bash", True),
        ("py", "bash", False),
        ("reverse", "Reverse", True),
    ],
)
def test_languages(word: str, language: str, fits: bool) -> None:
    assert Block(word.lower(), "", 0, 0).is_in(language) is fits


PIECES = ["```", "~~~", "````", "`", "\n", "\n", "\r\n", " ", "    ", "\t", "python", "x", "- ", "1. ", "<"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_blocks_stand_one_after_another_and_what_follows_one_changes_nothing(text: str) -> None:
    at = 0
    for number, block in enumerate(blocks(text)):
        assert at <= block.start < block.end <= len(text)
        at = block.end
        if block.closed:
            assert blocks(text[:at]) == blocks(text)[: number + 1]


@pytest.mark.parametrize(
    "piece",
    ["```", "```\n", "```a\n", " ```\n", "``` a\n", "a```\n", "a ```b\n", "`", "`\n", "~~~\n", "\n", " ", "\t", "- ",
     "1. ", "1. ```\n", "```a `\n", "x", "\r\n"],
)  # fmt: skip
def test_finding_blocks_takes_one_pass(piece: str) -> None:
    def seconds(characters: int) -> float:
        text = f"````\n{piece * (characters // len(piece))}x ```"
        began = time.process_time()
        blocks(text)
        return time.process_time() - began

    # If it were quadratic, four times the length would take sixteen times as long, and that is seconds here.
    assert seconds(400_000) < 6 * seconds(100_000) + 0.2
