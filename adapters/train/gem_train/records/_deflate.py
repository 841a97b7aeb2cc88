"""Deflate with a limit: a few deflated bytes can become gigabytes, so readers refuse what writers never make."""

from __future__ import annotations

import zlib

_SPARE = 1 << 20


def deflated(data: bytes, ratio: int, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    """Bytes that `inflated` takes: if it would refuse them, Huffman codes alone, which shrink data at most 8 times.

    Args:
        data: any bytes.
        ratio: at least 8.
        strategy: of zlib.
    """
    packed = _deflated(data, strategy)
    return packed if len(data) <= _limit(packed, ratio) else _deflated(data, zlib.Z_HUFFMAN_ONLY)


def inflated(packed: bytes, ratio: int, size: int | None = None) -> bytes:
    """The bytes that were deflated.

    Args:
        packed: from `deflated`.
        ratio: how many times as many they may become, beside 1 MiB.
        size: the most that they may become, if that is known.

    Raises:
        ValueError, zlib.error: they are not whole, or become more.
    """
    inflate, limit = zlib.decompressobj(), _limit(packed, ratio)
    limit = limit if size is None else min(size, limit)
    found = inflate.decompress(packed, limit + 1)
    if len(found) > limit:
        raise ValueError(f"{len(packed)} bytes inflate to more than {limit}")
    if not inflate.eof:
        raise ValueError("the deflated bytes are cut off")
    return found


def _deflated(data: bytes, strategy: int) -> bytes:
    deflate = zlib.compressobj(strategy=strategy)
    return deflate.compress(data) + deflate.flush()


def _limit(packed: bytes, ratio: int) -> int:
    return _SPARE + ratio * len(packed)
