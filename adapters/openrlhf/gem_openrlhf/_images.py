"""Images through OpenRLHF: to its engines, and into its samples.

A row carries images, not patches, which are many times larger. The trainer cuts them as the engine did: the image
processor of the model gives equal patches for equal images.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import msgspec

from gem_core.env import Env
from gem_core.errors import SettingsError, TemplateError, described
from gem_core.image import PngImage
from gem_train import images as shared
from gem_train.rollout import ImageReader
from gem_train.rows import Row

FLAG = "--data.max_images_per_prompt"


class ImageIds(msgspec.Struct, frozen=True):
    """Token ids of a model that reads images."""

    placeholder: int
    """Stands for an image in a prompt."""
    reserved: tuple[int, ...]
    """Ids that the policy must not say: the placeholder, and those around images and of videos."""
    most: int = 0
    """Number of images that a prompt may show; 0 where the model is trained on text alone."""

    @classmethod
    def of(cls, model: str, most: int = 0) -> ImageIds | None:
        """The ids of a model; `None` for a model that reads text only.

        Args:
            model: its path.
            most: number of images that a prompt may show.

        Raises:
            SettingsError: the model's configuration cannot be loaded.
        """
        from transformers import AutoConfig  # the modules of engines load what they need

        try:
            config = AutoConfig.from_pretrained(model, trust_remote_code=True)
        except Exception as error:  # the code of a model may raise anything
            raise SettingsError(
                f"--actor.model_name_or_path {model}: the model's configuration cannot be read: {described(error)}. "
                "Give the path of a model's folder, or a name on the Hugging Face Hub that can be reached from here"
            ) from error
        found = shared.image_ids(config)
        if found is None:
            return None
        placeholder, others = found
        return cls(placeholder, tuple(sorted({placeholder, *others})), most)

    @classmethod
    def of_run(cls, args: SimpleNamespace) -> ImageIds | None:
        """The ids of the policy of a run; `None` for a model that reads text only."""
        return cls.of(args.actor.model_name_or_path, args.data.max_images_per_prompt)

    def reader(self, processor: Any) -> ImageReader | None:
        """What reads images for the model; `None` where prompts show none.

        Args:
            processor: of the model, instead of OpenRLHF's tokenizer.

        Raises:
            TemplateError: there is no image processor, or one of another kind than that of Qwen-VL models.
        """
        if not self.most:
            return None
        if not hasattr(processor, "image_processor"):
            raise TemplateError(f"{type(processor).__name__} has no image processor")
        return ImageReader(processor.image_processor, self.placeholder, self.reserved)

    def limit(self, history: int | None) -> Callable[[Env], Env]:
        """Wraps an environment, so that no prompt has more images than vLLM takes: it would end the run.

        Args:
            history: number of observations that a prompt shows; `None` for all.
        """
        return functools.partial(shared.ImageLimit, most=self.most, history=history, raised=FLAG)

    def check(self, model: str) -> None:
        """Read an image as the workers will.

        Args:
            model: its path.

        Raises:
            SettingsError: the model's image processor is missing, cannot be loaded, or is of another kind.
        """
        from PIL import Image
        from transformers import AutoProcessor

        try:
            reader = self.reader(AutoProcessor.from_pretrained(model, trust_remote_code=True))
            if reader is not None:
                reader.read(PngImage.of(Image.new("RGB", (56, 56))).uri)
        except Exception as error:  # the code of a model may raise anything
            raise SettingsError(
                f"{FLAG} {self.most}: the image processor of {model} cannot be used: {described(error)}. Use a model "
                "of the Qwen-VL kind, whose folder has its image processor (preprocessor_config.json)"
            ) from error


def plain_tokenizer(processor: Any) -> Any:
    """The tokenizer; for a vision-language model OpenRLHF has a processor that holds it."""
    return processor.tokenizer if hasattr(processor, "image_processor") else processor


def media(uris: Iterable[str]) -> dict[str, Any]:
    """The images of a prompt as an argument of OpenRLHF's engines; none for a prompt of text."""
    images = shared.pil_images(uris)
    return {"multi_modal_data": {"image": images}} if images else {}


def training_inputs(row: Row, reader: ImageReader | None) -> dict[str, Any] | None:
    """The patches of a row as OpenRLHF gives them to the model; `None` for a row without images."""
    if reader is None or not row.images:
        return None
    import torch  # as above

    seen = [reader.read(one.uri) for one in row.images]
    return {
        "pixel_values": torch.cat([torch.from_numpy(one.pixels) for one in seen]),
        "image_grid_thw": torch.tensor([one.grid for one in seen]),
    }
