"""The converted model in the cache."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from gem_core.errors import MissingExtraError
from gem_core.installation import install_line
from gem_smollm2._conversion import convert
from gem_smollm2._package import find_gguf

_FOLDER = "SmolLM2-135M-Instruct-2"
"""The number changes with what `convert` writes."""


def cache_folder() -> Path:
    """Where the model is kept: `GEM_CACHE`, or the user's cache folder."""
    return Path(os.environ.get("GEM_CACHE") or user_cache_path("gem-core"))


def smollm2_folder() -> Path:
    """The folder with the model and its tokenizer, as `save_pretrained` writes them: 269 MB, in bfloat16.

    The first call makes it, in about a minute. Other processes that ask meanwhile wait for it.

    Raises:
        EnvError: the weights cannot be had, or are not the expected ones.
        MissingExtraError: the extra `smollm2` is not installed.
    """
    folder = cache_folder() / _FOLDER
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                _make(folder)
    return folder


def _make(folder: Path) -> None:
    if importlib.util.find_spec("gguf") is None:  # transformers notices it late, and cannot name the extra
        raise MissingExtraError(f"SmolLM2 needs gguf. Next: {install_line('smollm2')}")
    # To stderr, as a program may print something for other programs.
    print(f"Converting SmolLM2-135M-Instruct into {folder}: once, about a minute.", file=sys.stderr, flush=True)
    # Renamed when complete, so that an interrupted conversion leaves no half of a model.
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as working:
        target = Path(working) / "model"
        convert(find_gguf(Path(working)), target)
        shutil.move(target, folder)
