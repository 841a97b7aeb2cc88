"""What reads the pictures of environments for the model of a training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gem_core.picture import Picture
from gem_core.rollout import PictureReader

PLACEHOLDER = "image_token_id"
"""Where a model's configuration has the id that stands for a picture."""
LEAST_BIAS = -100.0
"""Of a logit; vLLM allows no less. An id with it is all but never sampled."""
_RESERVED = ("video_token_id", "vision_start_token_id", "vision_end_token_id")


def picture_ids(config: Any) -> tuple[int, frozenset[int]] | None:
    """The id that stands for a picture, and the further ids that a model must not say; `None` for a model of text.

    Args:
        config: of the model, a configuration of transformers.
    """
    placeholder = getattr(config, PLACEHOLDER, None)
    if placeholder is None:
        return None
    reserved = (getattr(config, name, None) for name in _RESERVED)
    return placeholder, frozenset(one for one in reserved if one is not None)


def reader_of(config: Any, image_processor: Any) -> PictureReader | None:
    """What reads pictures for a model; `None` without an image processor, and for a model that reads text only.

    Args:
        config: of the model, a configuration of transformers.
        image_processor: of the model.

    Raises:
        TemplateError: an image processor of another kind than that of Qwen-VL models.
    """
    ids = picture_ids(config)
    return None if ids is None or image_processor is None else PictureReader(image_processor, *ids)


def image_processor_of(processor: Any) -> Any:
    """The image processor in a processor of transformers; `None` if it makes no patches as Qwen-VL models read them."""
    found = getattr(processor, "image_processor", None)
    return found if isinstance(getattr(found, "merge_size", None), int) else None


def images_of(uris: Iterable[str]) -> list[Any]:
    """Pictures as PIL images, as engines and image processors take them."""
    return [Picture(uri).image() for uri in uris]


def bias_against(ids: Iterable[int]) -> dict[int, float]:
    """The `logit_bias` of a request whose response must not have these ids."""
    return dict.fromkeys(sorted(ids), LEAST_BIAS)
