"""Texts of single tokens: joined, they are what the tokenizer decodes, also where a character takes several tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from gem_core.episode import Episode, TokenSequence, Turn, as_token_ids
from gem_support.chat_families import FAMILIES, OTHERS
from gem_support.example_counts import examples
from gem_train.records import RunRecorder, TokenText, open_records, token_pieces
from gem_train.records._token_texts import token_text

prop = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXTS = [
    "漢字",
    "naïve café",
    "مرحبا",
    "👩‍👩‍👧 🙂",
    "e\u0301 n\u0303",
    "\ufeff\ufffd",
    "go left\n  on",
    "¿é?",
    "a\u00a0b",
]


@pytest.fixture(scope="module", params=[*FAMILIES, *OTHERS])
def family(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    """The tokenizer of each family in turn."""
    return {**FAMILIES, **OTHERS}[request.param]()


def encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def texts_of(tokenizer: Any, ids: Sequence[int]) -> list[TokenText]:
    return [token_text(tokenizer, one) for one in ids]


def decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    """The text of tokens between others, as only the first of a text may lose a space."""
    mark = encode(tokenizer, "a")
    return str(tokenizer.decode([*mark, *ids])).removeprefix(str(tokenizer.decode(mark)))


@pytest.mark.parametrize("text", TEXTS)
def test_joined_texts_are_what_the_tokenizer_decodes(family: Any, text: str) -> None:
    ids = encode(family, text)
    pieces = token_pieces(texts_of(family, ids))
    assert len(pieces) == len(ids)
    assert "".join(pieces) == decoded(family, ids)
    # A character is at the token that completes it: no shorter beginning has it whole.
    for size in range(len(ids)):
        before = decoded(family, ids[:size]).rstrip("\ufffd")
        assert "".join(pieces[:size]).startswith(before), (size, pieces)


@prop
@given(st.lists(st.integers(0, 300), min_size=1, max_size=12))
def test_any_ids_have_the_text_that_the_tokenizer_decodes(chatml: PreTrainedTokenizerFast, ids: list[int]) -> None:
    pieces = token_pieces(texts_of(chatml, ids))
    assert len(pieces) == len(ids)
    assert "".join(pieces) == chatml.decode(ids)


def test_a_byte_is_named_as_the_vocabulary_names_it(chatml: PreTrainedTokenizerFast) -> None:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bare = [one for one in alphabet if chatml.convert_tokens_to_ids(one) is not None]
    assert len(bare) == 256
    found = [token_text(chatml, chatml.convert_tokens_to_ids(one)) for one in bare]
    as_bytes = [one if isinstance(one, bytes) else one.encode() for one in found]
    assert sorted(as_bytes) == [bytes([one]) for one in range(256)]
    assert all(isinstance(text, bytes) == (one[0] > 127) for text, one in zip(found, as_bytes, strict=True))


def test_a_character_stands_at_the_token_that_completes_it(chatml: PreTrainedTokenizerFast) -> None:
    ids = encode(chatml, "a漢b")
    assert [token_text(chatml, one) for one in ids] == ["a", b"\xe6", b"\xbc", b"\xa2", "b"]
    assert token_pieces(texts_of(chatml, ids)) == ["a", "", "", "漢", "b"]
    assert token_pieces(texts_of(chatml, ids[:3])) == ["a", "", "\ufffd"]
    assert token_pieces(texts_of(chatml, ids[:2] + ids[-1:])) == ["a", "\ufffd", "b"]


def test_a_space_that_only_a_beginning_lacks_is_kept() -> None:
    """As tokenizers of the kind of Llama 2 decode."""
    tokenizer = FAMILIES["mistral"]()
    core: Tokenizer = tokenizer.backend_tokenizer
    stripped = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    core.decoder = decoders.Sequence(stripped)
    ids = encode(tokenizer, "the goal is left")
    assert tokenizer.decode(ids) == "the goal is left"
    assert "".join(token_pieces(texts_of(tokenizer, ids))) == " the goal is left"


class Nameless:
    """A tokenizer that can only decode, and refuses an id."""

    def decode(self, token_ids: Any, /, **_: Any) -> str:
        if 9 in token_ids:
            raise ValueError("no such id")
        return b"".join(b"\xe6\xbc\xa2"[one : one + 1] if one < 3 else b"go" for one in token_ids).decode(
            errors="replace"
        )


def test_without_names_of_bytes_a_sign_stands_for_each() -> None:
    assert texts_of(Nameless(), [0, 3, 9]) == ["\ufffd", "go", ""]


def test_records_have_whole_characters(chatml: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    recorder = RunRecorder(tmp_path, tokenizer=chatml)
    sequence = TokenSequence.starting(as_token_ids(encode(chatml, "漢")))
    said = encode(chatml, "go 🙂 字")
    sequence.add_response(as_token_ids(said), None)
    turn = Turn(0, len(sequence.ids) - len(said), len(sequence.ids), "漢", "go 🙂 字", "go 🙂 字", False, 0.0, {})
    recorder.gem_episode_end(Episode("demo:A", 1, turns=[turn], sequences=[sequence]))
    recorder.close()
    records = open_records(tmp_path)
    found = records.episode(0).episode
    assert "".join(records.token_texts(found.response_ids(turn))) == turn.response
    assert "".join(records.token_texts(found.prompt_ids(turn))) == turn.observation
    with pytest.raises(KeyError):
        records.token_texts([299])
