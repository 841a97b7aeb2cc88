"""The command lines of the documentation, and what kind of check each of them has.

A command is a line of a fenced block of `bash` in README.md, CONTRIBUTING.md, a page of docs/ or the page of a package.
Each belongs to a kind. `tests/docs/test_commands.py` checks the kinds that need no framework, and a test of each
adapter those of its framework.
A block with commands that none of them can check says why, in a comment right above it:

    <!-- not run: needs a machine with GPUs -->
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("adapters/*/*.md")),
    *sorted(ROOT.glob("plugins/*/*.md")),
]
FRAMEWORKS = tuple(sorted(plugin.parts[-3] for plugin in ROOT.glob("adapters/*/gem_*/plugin.py")))
"""The training frameworks: folders of adapters that register one."""
PLAIN_KINDS = ("gem-core", "nox", "pip", "pytest", "shell", "file", "module")
"""Kinds that need no framework."""

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n\n?)?^```(?:bash|sh|shell|console)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_INLINE = re.compile(r"`((?:gem-core|nox|python|pip) [^`\n]+)`")
_INDENTED = re.compile(r"(?:\A|\n)\n {4}(?P<text>(?:gem-core|nox|pip|python|export|cd|ray|curl|docker|git) [^\n]*)")
_SEPARATORS = {"&&", "||", ";", "|", "&"}
_LAUNCHERS = ("python", "python3", "torchrun", "accelerate")
_ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True)
class Command:
    """A command of a page.

    Attributes:
        page: its path from the root of the repository.
        words: the command and its arguments, without assignments in front and without `...`.
        reason: why the block is not run, if it says so.
        block: all words of its block.
    """

    page: str
    words: tuple[str, ...]
    reason: str | None = None
    block: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For the name of a test."""
        return f"{self.page}: {' '.join(self.words)[:60]}"

    @property
    def kind(self) -> str | None:
        """One of `PLAIN_KINDS` or of `FRAMEWORKS`; `None` if no test knows this kind of command."""
        first = self.words[0]
        if first in ("gem-core", "nox"):
            return first
        if first in ("cd", "export"):
            return "shell"
        if first == "pip" and "-r" not in self.words:
            return "pip"
        if first == "pytest" and not any(word.startswith("-") for word in self.words):
            return "pytest"
        return self._kind_of_program() if first in _LAUNCHERS else None

    @property
    def arguments(self) -> tuple[str, ...]:
        """What comes after the program, for a command that runs a Python program."""
        return self.words[self._program() + 1 :]

    @property
    def program(self) -> str:
        """The file or module that a Python command runs."""
        return self.words[self._program()]

    def _program(self) -> int:
        for place, word in enumerate(self.words[1:], 1):
            if word.endswith(".py") or self.words[place - 1] == "-m":
                return place
        return 0

    def _kind_of_program(self) -> str | None:
        if self._program() == 0:
            return None
        folder, _, file = self.program.rpartition("/")
        name = file.split("_")[0] if folder == "examples" else self.program.removeprefix("gem_")
        if name in FRAMEWORKS:
            return name
        if not folder and self.program.endswith(".py"):  # the reader's own program, on the page of a framework
            adapter = Path(self.page).parent.name
            return adapter if adapter in FRAMEWORKS else None
        return "module" if "-m" in self.words[: self._program()] else "file"


def commands(*kinds: str) -> list[Command]:
    """All commands of fenced blocks, or those of some kinds."""
    found = [command for page in PAGES for command in _of_page(page)]
    return [command for command in found if not kinds or command.kind in kinds]


def inline_commands() -> list[Command]:
    """Commands within sentences, which may leave out arguments."""
    found: list[Command] = []
    for page in PAGES:
        for text in _INLINE.findall(_without_blocks(page)):
            found += _split(str(page.relative_to(ROOT)), text, None)
    return found


def unfenced_commands() -> list[str]:
    """Commands in indented blocks, where no test looks for them."""
    return [
        f"{page.relative_to(ROOT)}: {match['text']}"
        for page in PAGES
        for match in _INDENTED.finditer(_without_blocks(page))
    ]


def _without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def _of_page(page: Path) -> Iterator[Command]:
    for match in _BLOCK.finditer(page.read_text()):
        yield from _split(str(page.relative_to(ROOT)), match["text"], match["reason"])


def _split(page: str, text: str, reason: str | None) -> list[Command]:
    lines = text.replace("\\\n", " ").splitlines()
    words = [_words(line) for line in lines]
    block = tuple(word for line in words for word in line)
    return [Command(page, part, reason, block) for line in words for part in _parts(line)]


def _words(line: str) -> list[str]:
    # Placeholders such as <first> are one word, not redirections.
    lexer = shlex.shlex(re.sub(r"<([\w-]+)>", r"\1", line), posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    return [word for word in lexer if word != "..."]


def _parts(words: list[str]) -> Iterator[tuple[str, ...]]:
    part: list[str] = []
    for word in [*words, ";"]:
        if word not in _SEPARATORS:
            if part or not _ASSIGNMENT.match(word):
                part.append(word)
        elif part:
            yield tuple(part)
            part = []
