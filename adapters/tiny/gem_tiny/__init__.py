"""Tiny models built on the fly, so that every example and test trains on a CPU without a download.

A tiny model is a randomly initialized Qwen3 of about 100k parameters, with a tokenizer of the words that its
environments use. It is not a language model: without `warm_start` it cannot even write the action format.
"""

from gem_core.errors import MissingExtraError
from gem_core.installation import install_line

try:
    from gem_tiny._model import tiny_model
    from gem_tiny._play import MAX_PLAYED_TURNS
    from gem_tiny._policy import policy_folder, saved_tiny_policy, tiny_policy
    from gem_tiny._tokenizer import tiny_tokenizer
    from gem_tiny._vision import tiny_image_processor, tiny_vision_model, vision_start
    from gem_tiny.warm_start import warm_start
except ModuleNotFoundError as error:
    if error.name not in ("torch", "transformers"):
        raise
    raise MissingExtraError(
        f"a tiny model needs {error.name}, which comes with a training framework. Next: {install_line('trl')}"
    ) from error

__all__ = [
    "MAX_PLAYED_TURNS",
    "policy_folder",
    "saved_tiny_policy",
    "tiny_image_processor",
    "tiny_model",
    "tiny_policy",
    "tiny_tokenizer",
    "tiny_vision_model",
    "vision_start",
    "warm_start",
]
