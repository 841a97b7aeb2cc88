"""Pictures through OpenRLHF: to its engines, and into its samples.

A row carries pictures, not patches, which are many times larger. The trainer cuts them as the engine did: the image
processor of the model gives equal patches for equal pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import msgspec

from gem_core.rollout import PictureReader
from gem_core.training import pictures
from gem_core.training.rows import Row


class PictureIds(msgspec.Struct, frozen=True):
    """Token ids of a model that reads pictures."""

    placeholder: int
    """Stands for a picture in a prompt."""
    reserved: tuple[int, ...]
    """Ids that the policy must not say: the placeholder, and those around pictures and of videos."""

    @classmethod
    def of(cls, model: str) -> PictureIds | None:
        """The ids of a model; `None` for a model that reads text only.

        Args:
            model: its path.
        """
        from transformers import AutoConfig  # the modules of engines load what they need

        found = pictures.picture_ids(AutoConfig.from_pretrained(model, trust_remote_code=True))
        if found is None:
            return None
        placeholder, others = found
        return cls(placeholder, tuple(sorted({placeholder, *others})))

    @classmethod
    def wanted(cls, args: SimpleNamespace) -> PictureIds | None:
        """The ids of the policy of a run; `None` where prompts show no pictures."""
        return cls.of(args.actor.model_name_or_path) if args.data.max_images_per_prompt else None

    def reader(self, processor: Any) -> PictureReader:
        """What reads pictures for the model.

        Args:
            processor: of the model, instead of OpenRLHF's tokenizer.

        Raises:
            TemplateError: an image processor of another kind than that of Qwen-VL models.
        """
        return PictureReader(processor.image_processor, self.placeholder, self.reserved)


def plain_tokenizer(processor: Any) -> Any:
    """The tokenizer; for a vision-language model OpenRLHF has a processor that holds it."""
    return processor.tokenizer if hasattr(processor, "image_processor") else processor


def media(uris: Iterable[str]) -> dict[str, Any]:
    """The pictures of a prompt as an argument of OpenRLHF's engines; none for a prompt of text."""
    images = pictures.images_of(uris)
    return {"multi_modal_data": {"image": images}} if images else {}


def training_inputs(row: Row, reader: PictureReader | None) -> dict[str, Any] | None:
    """The patches of a row as OpenRLHF gives them to the model; `None` for a row without pictures."""
    if reader is None or not row.pictures:
        return None
    import torch  # as above

    seen = [reader.read(one.uri) for one in row.pictures]
    return {
        "pixel_values": torch.cat([torch.from_numpy(one.pixels) for one in seen]),
        "image_grid_thw": torch.tensor([one.grid for one in seen]),
    }
