"""Images in TRL's trainer: patches where it samples, and the same ones where it computes log-probabilities.

TRL takes images from its data set and renders prompts anew; a `rollout_func` cannot return any. So the trainer adds
what the rows of a rollout show to each call of the model, from the same `ImageReader` that made their ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import ProcessorMixin

from gem_core.episode import TokenIds
from gem_core.errors import SettingsError
from gem_train import images as shared
from gem_train.rollout import ImageReader, Patches, images_in
from gem_train.rows import Row

_FIELDS = ("pixel_values", "image_grid_thw", "mm_token_type_ids")


def tokenizer_and_processor(processing_class: Any, image_processor: Any) -> tuple[Any, Any]:
    """The tokenizer and the image processor, which a processor of transformers holds both."""
    if not isinstance(processing_class, ProcessorMixin):
        return processing_class, image_processor
    parts: Any = processing_class
    return parts.tokenizer, image_processor or parts.image_processor


def reader_of(config: Any, image_processor: Any) -> ImageReader | None:
    """What reads images for a model; `None` if no image processor was given.

    Args:
        config: of the model.
        image_processor: of the model.

    Raises:
        SettingsError: a model that reads text only.
        TemplateError: an image processor of another kind.
    """
    reader = shared.reader_of(config, image_processor)
    if reader is None and image_processor is not None:
        raise SettingsError(
            f"{type(image_processor).__name__} was given, and a model of the type {config.model_type!r} reads text "
            f"only: its configuration has no {shared.PLACEHOLDER}. Use a vision-language model, or leave "
            "image_processor out"
        )
    return reader


def prompt_fields(reader: ImageReader, prompts: Sequence[TokenIds], placeholders: int) -> dict[str, Any]:
    """The images of prompts as TRL's generation takes them; empty if there are none.

    Args:
        reader: of the model.
        prompts: the prompts of a call.
        placeholders: how many prompts of one token and no image follow them.
    """
    fields = _fields([reader.read(uri) for prompt in prompts for uri in images_in(prompt)])
    if fields:
        types = [[int(one == reader.placeholder) for one in prompt] for prompt in prompts]
        fields["mm_token_type_ids"] = [*types, *[[0]] * placeholders]
    return fields


def row_fields(reader: ImageReader, rows: Sequence[Row], device: torch.device) -> dict[str, Any]:
    """The images of rows as TRL's loss takes them; empty if there are none."""
    fields = _fields([reader.read(one.uri) for row in rows for one in row.images])
    if not fields:
        return {}
    on_device = {name: tensor.to(device) for name, tensor in fields.items()}
    return {**on_device, "num_images": [len(row.images) for row in rows]}


def image_types(reader: ImageReader, ids: torch.Tensor) -> torch.Tensor:
    """1 for each id of an image, 0 for all others, in the shape of `ids`."""
    return (ids == reader.placeholder).int()


def without_empty_fields(_: torch.nn.Module, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A forward pre-hook: a vision tower cannot read no image at all, as in a micro-batch of texts."""
    pixels = kwargs.get("pixel_values")
    if pixels is None or len(pixels):
        return args, dict(kwargs)
    return args, {name: value for name, value in kwargs.items() if name not in _FIELDS}


def _fields(patches: Sequence[Patches]) -> dict[str, Any]:
    if not patches:
        return {}
    return {
        "pixel_values": torch.cat([torch.from_numpy(one.pixels) for one in patches]),
        "image_grid_thw": torch.tensor([one.grid for one in patches]),
    }
