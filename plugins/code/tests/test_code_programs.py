"""The program in an answer."""

from __future__ import annotations

import time

import pytest

from gem_code._comparison import Comparison, same_output
from gem_code._programs import last_program

PROGRAM = "n = int(input())\nprint(n + 1)"
FUNCTION = "def half(n):\n    return n / 2"


def fenced(inside: str, language: str = "") -> str:
    return f"```{language}\n{inside}\n```\n"


@pytest.mark.parametrize("language", ["python", "py", "python3", "Python", 'python title="a.py"', ""])
@pytest.mark.parametrize(
    "after",
    [
        "",
        "It prints\n" + fenced("4"),
        "It prints\n" + fenced("4 5\nfrom A to B", "text"),
        "Run it:\n" + fenced("echo 3 | python a.py", "bash"),
        "Run it:\n" + fenced("$ python print.py\n4"),
        "Try it:\n" + fenced(">>> print(3 + 1)\n4", "python"),
        "It fails:\n" + fenced("Traceback (most recent call last):\n  print(1 / 0)\nZeroDivisionError"),
        "It says\n" + fenced("# nothing", "python"),
        "It says\n" + fenced("4", "python"),
        "It says\n" + fenced("Yes: [4, 5.5]\nTrue 'x'", "python"),
        "It fails\n" + fenced("Traceback (most recent call last):\n  print(4)\nNameError: x"),
        "That is\n" + fenced("read n\nprint n + 1\nwrite nothing else"),
        "In C:\n" + fenced("int print() { }", "c"),
        "Empty:\n" + fenced("", "python"),
        "It prints `4`.\n```",
    ],
)
def test_what_follows_a_program(language: str, after: str) -> None:
    assert last_program(f"Here:\n{fenced(PROGRAM, language)}{after}") == PROGRAM


@pytest.mark.parametrize("language", ["python", ""])
@pytest.mark.parametrize(
    "program",
    ["print(4)", "import this", "sys.stdout.write('4')", "class A:\n    pass", "[*map(print, a)]", "from a import b",
     "def f(): 4"],
)  # fmt: skip
def test_the_last_program_counts(language: str, program: str) -> None:
    assert last_program(fenced(PROGRAM, "python") + "Better:\n" + fenced(program, language)) == program


@pytest.mark.parametrize("program", ["while True: pass", "del __builtins__", "9**9**9**9", "if a:\n  b", "raise a"])
def test_a_program_that_prints_nothing_is_one(program: str) -> None:
    assert last_program(fenced(PROGRAM) + fenced(program, "python")) == program


def test_a_program_may_be_indented() -> None:
    assert last_program(fenced("\n    if a:\n      print(a)\n    b = 4")) == "\nif a:\n  print(a)\nb = 4"
    assert last_program(fenced("s = '''\n  \n'''\nprint(s)")) == "s = '''\n  \n'''\nprint(s)"


def test_a_block_that_says_so_is_a_program() -> None:
    assert last_program(fenced(PROGRAM) + fenced("x = 4", "python")) == "x = 4"


@pytest.mark.parametrize("text", ["", PROGRAM, fenced("4"), fenced("x = 4"), fenced(PROGRAM, "cpp"), f"`{PROGRAM}`"])
def test_no_program(text: str) -> None:
    assert last_program(text) is None


PIECES = [
    "1",
    "1.",
    ".",
    "e1",
    " ",
    "\n",
    "a",
    "1 ",
    "1.0\n",
    " \n",
    "=",
    "```\n",
    "```python\n1\n```\n",
    "def ",
    "from a ",
    "print",
]


@pytest.mark.parametrize("piece", PIECES)
def test_the_time_grows_with_the_length_and_no_faster(piece: str) -> None:
    def seconds(characters: int) -> float:
        text = piece * (characters // len(piece))
        began = time.process_time()
        last_program(f"```\n{text}", "half")
        last_program(f"```python\n({text}")
        for by in (Comparison(), Comparison(1e-6)):
            same_output(f"1.0{text}x", f"1.0{text}y", by)
        return time.process_time() - began

    assert seconds(200_000) < 6 * seconds(50_000) + 0.2


def test_of_programs_the_one_that_defines_the_function_counts() -> None:
    call = fenced("print(half(6))", "python")
    assert last_program(fenced(FUNCTION, "python") + call, "half") == FUNCTION
    assert last_program(fenced("half = lambda n: n / 2", "python") + call, "half") == "half = lambda n: n / 2"
    assert last_program(fenced(FUNCTION, "python") + call) == "print(half(6))"
    assert last_program(fenced(FUNCTION, "python") + call, "third") == "print(half(6))"
