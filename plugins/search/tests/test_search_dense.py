"""Retrieval by meaning, with a real model of two random layers that is made here; its downloads would need the network.

Needs `pip install torch==2.13.0` (a CPU build) and then `sentence-transformers faiss-cpu`.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from search_servers import asking, serving

from gem_core.errors import ToolError
from gem_search._corpus import BUNDLED
from gem_search._index import open_index
from gem_search.tool import SearchTool

pytest.importorskip("faiss", reason="needs faiss-cpu")
pytest.importorskip("sentence_transformers", reason="needs torch and sentence-transformers")

TEXTS = [json.loads(line)["contents"] for line in BUNDLED.read_text().splitlines()]
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


def dense(model: Path, **options: Any) -> Any:
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
