"""What OpenRLHF's engines load imports nothing of training."""

from __future__ import annotations

from pathlib import Path

import pytest

import gem_openrlhf
from gem_support.imports import chain, graph_of, imports_of, modules_of

PACKAGE = Path(gem_openrlhf.__file__).parent
TRAINING = {
    "deepspeed",
    *(f"gem_openrlhf._{name}" for name in ("launcher", "trainer", "experience", "samples", "workers")),
}


@pytest.mark.parametrize("module", ["gem_openrlhf._agent", "gem_openrlhf._default_agent"])
def test_what_engines_load_imports_nothing_of_training(module: str) -> None:
    files, graph = modules_of(PACKAGE), graph_of([PACKAGE])
    assert TRAINING - {"deepspeed"} <= {*files}
    reached = [module, *(other for other in files if chain(graph, module, other))]
    external = {one.package for other in reached for one in imports_of(other, files[other]) if not one.is_text}
    assert not TRAINING & {*reached, *external}
