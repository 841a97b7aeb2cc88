"""Images through verl: to its servers, and into its rows.

verl cuts the images of a row into patches itself, with the image processor that made their ids here. It takes no ids
from its processor, so those of a row stay as they were sampled.
"""

from __future__ import annotations

import functools
from typing import Any

from gem_train import images as shared
from gem_train.rollout import ImageReader
from gem_verl.settings import VerlSettings

NO_TEXT: dict[str, Any] = {"text": [""]}
"""Arguments for verl's processor, which would get the decoded row. A text with the name of a placeholder would ask for
one more image, and verl would drop the episode."""


@functools.cache
def reader_of(processor: Any) -> ImageReader | None:
    """What reads images for a model; `None` for a model that reads text only, or images in another way.

    Args:
        processor: verl's, which knows the model's configuration; `None` for a model without one.
    """
    return shared.reader_of(getattr(processor, "config", None), shared.image_processor_of(processor))


def check_images(settings: VerlSettings, processor: Any, model: str) -> None:
    """Refuse environments that show images to a model that cannot read them.

    Args:
        settings: the section `gem`.
        processor: verl's.
        model: its path.

    Raises:
        SettingsError: an environment has the tag `images`, and verl found no image processor of the Qwen-VL kind.
    """
    if reader_of(processor) is None:
        settings.check_images(
            f"and verl found no image processor for {model} that cuts them into patches as Qwen-VL models read them. "
            "Use a model with one; transformers loads it only where torchvision is installed"
        )
