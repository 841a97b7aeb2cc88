"""The processor of a Qwen2-VL model without torchvision, whose only build that pip finds here needs CUDA."""

from __future__ import annotations

from typing import Any

from transformers.utils import is_torchvision_available


def leave_out_videos(module: Any) -> None:
    """Make transformers build `Qwen2VLProcessor` without the part for videos, which is written in torchvision.

    The part for images has a form that works on PIL images, which transformers takes by itself.

    Args:
        module: `transformers.models.qwen2_vl.processing_qwen2_vl`.
    """
    if is_torchvision_available():
        return
    original = module.Qwen2VLProcessor.__init__

    # transformers reads the parts of a processor from the names of these arguments.
    def without_videos(self: Any, image_processor: Any = None, tokenizer: Any = None, **options: Any) -> None:
        original(self, image_processor, tokenizer, **options)

    module.Qwen2VLProcessor.__init__ = without_videos
