"""Folders that have a LoRA adapter in place of whole weights, as PEFT saves them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem_evaluation._errors import ModelSetupError

_CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class Adapter:
    """An adapter, and the model that it was trained on."""

    folder: Path
    base: str
    """A folder, or a name on the hub."""
    kind: str
    """PEFT's name of the method, for example `LORA`."""
    rank: int
    """The largest rank of a layer; 0 for a method without ranks."""


def adapter_in(folder: Path) -> Adapter | None:
    """The adapter of a folder, or `None` if it has none or whole weights as well.

    Raises:
        ModelSetupError: the adapter names no base model, or one that is not there.
    """
    path = folder / _CONFIG
    if not path.is_file() or (folder / "config.json").is_file():
        return None
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    base = config.get("base_model_name_or_path") or ""
    if not base or (Path(base).is_absolute() and not Path(base).is_dir()):
        raise ModelSetupError(
            f"{path} names {base or 'nothing'!r} as the model that the adapter was trained on, and there is no such "
            "folder. Next: write the folder or the hub's name of that model into base_model_name_or_path"
        )
    return Adapter(folder, base, str(config.get("peft_type")), _rank(config))


def _rank(config: Mapping[str, Any]) -> int:
    of_layers: Mapping[str, int] = config.get("rank_pattern") or {}
    return max([config.get("r") or 0, *of_layers.values()])
