"""Images in observations.

An environment puts the images of an observation into `info["images"]`, a list of `PngImage`s, PIL images, PNG files as
bytes, or data URIs. Vectors make data URIs of them all. A data URI is a text, so it passes through worker processes,
connections, records and JSON lines like any other value of an info.
"""

from __future__ import annotations

import base64
import binascii
import io
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from gem_core.errors import EnvError

IMAGES = "images"
"""The key of an info with the images of its observation."""
MAX_PIXELS = 1 << 25
"""Of one image. A larger one is an attack or a mistake: no model reads it."""
_START = "data:image/png;base64,"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">8s4x4sII")
"""Signature, the name of the first chunk, width, height."""
_HEADER_TEXT = 32
"""Characters of base64 that hold the header of a PNG file."""
_LAST_CHUNK = b"IEND\xaeB`\x82"
_LAST_TEXT = 16
"""Characters of base64 that hold at least the last chunk."""


@dataclass(frozen=True)
class PngImage:
    """An image as a PNG file.

    Example:
        >>> from gem_core.image import PngImage
        >>> dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
        >>> PngImage.of(f"data:image/png;base64,{dot}").size
        (1, 1)
    """

    uri: str
    """The file as a data URI in base64."""

    @classmethod
    def of(cls, source: Any) -> PngImage:
        """The image that an environment gave.

        Args:
            source: a `PngImage`, a PIL image, a PNG file as bytes, or its data URI.

        Raises:
            EnvError: it is nothing of these, or too large.
        """
        if isinstance(source, PngImage):
            return source
        if isinstance(source, bytes | bytearray):
            source = _START + base64.b64encode(source).decode()
        elif not isinstance(source, str) and callable(getattr(source, "save", None)):
            source = _START + base64.b64encode(_saved(source)).decode()
        if not isinstance(source, str) or not _is_png(source):
            raise EnvError(
                f"{source!r:.80} is no image. Use a PIL image, a PNG file as bytes, or its data URI ({_START}...)"
            )
        image = cls(str.__str__(source))
        width, height = image.size
        if not 0 < width * height <= MAX_PIXELS:
            raise EnvError(f"an image of {width} x {height} pixels; give one of 1 to {MAX_PIXELS:,} pixels")
        return image

    @property
    def png(self) -> bytes:
        """The file."""
        return base64.b64decode(self.uri[len(_START) :])

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        _, _, width, height = _HEADER.unpack_from(_head(self.uri))
        return width, height

    def as_pil(self) -> Any:
        """The image as a PIL image of 3 colors; what was transparent is white. Needs pillow.

        Raises:
            EnvError: the file is damaged.
        """
        from PIL import Image  # only who looks at an image needs pillow

        try:
            image = Image.open(io.BytesIO(self.png))
            image.load()
        except (OSError, SyntaxError, ValueError) as error:
            raise EnvError(f"an image whose PNG file is damaged: {error}. Draw it again") from error
        if "A" in image.getbands() or "transparency" in image.info:
            layer = image.convert("RGBA")
            image = Image.new("RGBA", layer.size, "white")
            image.alpha_composite(layer)
        return image.convert("RGB")


def images_of(info: Mapping[str, Any]) -> list[PngImage]:
    """The images of the observation that an info belongs to.

    Raises:
        EnvError: one is no image.
    """
    return [PngImage.of(one) for one in info.get(IMAGES, ())]


def as_uris(images: Any) -> list[str]:
    """What an info has as `images`, as data URIs.

    Raises:
        EnvError: it is no list of images.
    """
    if not isinstance(images, list | tuple):
        raise EnvError(f"{images!r:.80} is no list of images. Set info[{IMAGES!r}] to a list, also for one image")
    return [PngImage.of(one).uri for one in cast("Iterable[Any]", images)]


def _saved(image: Any) -> bytes:
    file = io.BytesIO()
    try:
        image.save(file, format="PNG")
    except (OSError, TypeError, ValueError) as error:
        raise EnvError(f"{image!r:.80} cannot be saved as a PNG file: {error}. Convert it to RGB first") from error
    return file.getvalue()


def _is_png(uri: str) -> bool:
    if not uri.startswith(_START):
        return False
    try:
        signature, chunk, _, _ = _HEADER.unpack_from(_head(uri))
        end = base64.b64decode(uri[-_LAST_TEXT:], validate=True)
    except (binascii.Error, ValueError, struct.error):
        return False
    whole = len(uri) % 4 == len(_START) % 4
    return whole and signature == _SIGNATURE and chunk == b"IHDR" and end.endswith(_LAST_CHUNK)


def _head(uri: str) -> bytes:
    return base64.b64decode(uri[len(_START) : len(_START) + _HEADER_TEXT], validate=True)
