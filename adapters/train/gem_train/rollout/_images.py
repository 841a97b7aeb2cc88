"""Images as vision-language models read them: patches for the model, and placeholder ids in its prompt."""

from __future__ import annotations

import math
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from gem_core.episode import TokenIds
from gem_core.errors import TemplateError
from gem_core.image import PngImage

if TYPE_CHECKING:
    import numpy as np

Pixels: TypeAlias = "np.ndarray[Any, np.dtype[np.float32]]"
MARK = "<image>"
"""Where an image stands in a text. A text without one mark for each image has them all before it."""
KEPT_BYTES = 256 << 20
"""Patches that a reader keeps: the members of a group see the same images, and a trainer reads what was sampled."""


if TYPE_CHECKING:
    _Array = array[int]
else:  # `array` cannot be subscripted before Python 3.12
    _Array = array


def texts_around(message: str, images: int) -> list[str]:
    """The texts before, between and after the images of a message: one more than there are images."""
    texts = message.split(MARK)
    return texts if len(texts) == images + 1 else [*[""] * images, message]


class Patches(NamedTuple):
    """An image as a model reads it."""

    pixels: Pixels
    """(patches, values per patch) in float32."""
    grid: tuple[int, int, int]
    """Frames, rows and columns of the patches; their product is the number of patches."""


class ImagePrompt(_Array):
    """Token ids of a prompt, with the images that stand where its placeholders are."""

    images: list[str]
    """Data URIs, in the order of their places."""

    def __new__(cls, ids: TokenIds, images: list[str]) -> ImagePrompt:
        made: Any = super()
        self = cast("ImagePrompt", made.__new__(cls, "i", ids))
        self.images = images
        return self


def images_in(prompt: Any) -> Sequence[str]:
    """The images of a prompt as data URIs; none for a prompt of text."""
    return getattr(prompt, "images", ())


class ImageReader:
    """Reads images with the image processor of a model of the Qwen-VL kind.

    Such a model cuts an image into patches and gives `merge_size` x `merge_size` of them one token. A chat template
    writes one placeholder for an image. It becomes as many as the image has tokens, here and nowhere else.

    Args:
        processor: an image processor of transformers that gives `pixel_values` and `image_grid_thw`.
        placeholder: the id that stands for an image in a prompt.
        reserved: further ids that a model must not say, such as that of a video.

    Raises:
        TemplateError: an image processor of another kind.
    """

    def __init__(self, processor: Any, placeholder: int, reserved: Iterable[int] = ()) -> None:
        merge = getattr(processor, "merge_size", None)
        if not isinstance(merge, int):
            raise TemplateError(
                f"{type(processor).__name__} has no merge_size, so it does not make patches as Qwen-VL models read "
                "them. Use the image processor of such a model"
            )
        self.placeholder = placeholder
        self.reserved = frozenset({placeholder, *reserved})
        self._processor = processor
        self._merged = merge**2
        self._kept: OrderedDict[str, Patches] = OrderedDict()
        self._kept_bytes = 0

    def read(self, uri: str) -> Patches:
        """The patches of an image. The same image always has the same ones.

        Raises:
            EnvError: the image is damaged.
            TemplateError: the image processor gave no grid.
        """
        if (known := self._kept.get(uri)) is not None:
            self._kept.move_to_end(uri)
            return known
        import numpy as np  # who shows no images needs no arrays here

        made = self._processor(images=[PngImage(uri).as_pil()], return_tensors="np")
        if "image_grid_thw" not in made:
            raise TemplateError(
                f"{type(self._processor).__name__} gave {', '.join(made)}, but no image_grid_thw. Use the image "
                "processor of a Qwen-VL model"
            )
        frames, rows, columns = (int(one) for one in made["image_grid_thw"][0])
        patches = Patches(np.asarray(made["pixel_values"], dtype=np.float32), (frames, rows, columns))
        self._keep(uri, patches)
        return patches

    def tokens(self, grid: tuple[int, int, int]) -> int:
        """How many ids an image has in a prompt."""
        return math.prod(grid) // self._merged

    def _keep(self, uri: str, patches: Patches) -> None:
        self._kept[uri] = patches
        self._kept_bytes += patches.pixels.nbytes
        while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= dropped.pixels.nbytes
