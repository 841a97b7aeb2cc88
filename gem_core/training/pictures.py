"""What reads the pictures of environments for the model of a training."""

from __future__ import annotations

from typing import Any

from gem_core.rollout import PictureReader

PLACEHOLDER = "image_token_id"
"""Where a model's configuration has the id that stands for a picture."""
_RESERVED = ("video_token_id", "vision_start_token_id", "vision_end_token_id")


def reader_of(config: Any, image_processor: Any) -> PictureReader | None:
    """What reads pictures for a model; `None` without an image processor, and for a model that reads text only.

    Args:
        config: of the model, a configuration of transformers.
        image_processor: of the model.

    Raises:
        TemplateError: an image processor of another kind than that of Qwen-VL models.
    """
    placeholder = getattr(config, PLACEHOLDER, None)
    if image_processor is None or placeholder is None:
        return None
    reserved = (getattr(config, name, None) for name in _RESERVED)
    return PictureReader(image_processor, placeholder, [one for one in reserved if one is not None])


def image_processor_of(processor: Any) -> Any:
    """The image processor in a processor of transformers; `None` if it makes no patches as Qwen-VL models read them."""
    found = getattr(processor, "image_processor", None)
    return found if isinstance(getattr(found, "merge_size", None), int) else None
