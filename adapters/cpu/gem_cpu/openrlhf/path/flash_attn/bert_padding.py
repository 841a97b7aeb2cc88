"""As `flash_attn`."""

from __future__ import annotations

from typing import Any, NoReturn


def unavailable(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("there is no flash attention on a CPU: leave out --ds.packing_samples")


index_first_axis = pad_input = unpad_input = rearrange = unavailable
