"""The same few words for both sides: upstream's corpus has to be downloaded, and our packages may not be installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

from gem_games.crosswords import clues_of

WORDS = tuple(sorted({clue.word for hardcore in (False, True) for clue in clues_of(hardcore=hardcore)}))


def words_of(length: int, *, hardcore: bool = False) -> tuple[str, ...]:
    return tuple(word for word in WORDS if len(word) == length)


def word_list(*, hardcore: bool) -> tuple[str, ...]:
    return WORDS


def require(*, hardcore: bool) -> None:
    """Nothing is needed."""


@contextmanager
def stubbed(ours: ModuleType, theirs: ModuleType) -> Iterator[None]:
    """Both modules know these words only, and nothing is downloaded."""
    with ExitStack() as stack:
        for name, stub in {"words_of": words_of, "word_list": word_list, "require": require}.items():
            if hasattr(ours, name):
                stack.enter_context(patch.object(ours, name, stub))
        corpus = SimpleNamespace(words=lambda _: [word.lower() for word in WORDS])
        stack.enter_context(patch.object(theirs, "words", corpus))
        if hasattr(theirs, "nltk"):
            stack.enter_context(patch.object(theirs, "nltk", SimpleNamespace(download=lambda _: True)))
        yield
