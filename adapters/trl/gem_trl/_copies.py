"""Copies of a model that is trained."""

from __future__ import annotations

import copy
from typing import Any


def copy_of(model: Any) -> Any:
    """A copy of a model, or of a part of one, that shares frozen weights with it and nothing else."""
    frozen = {id(weight): weight for weight in model.parameters() if not weight.requires_grad}
    copied = copy.deepcopy(model, frozen)
    for module in copied.modules():
        # TRL and Accelerate replace `forward` by functions that call the original model, which deepcopy keeps.
        module.__dict__.pop("forward", None)
    return copied
