"""Flags of processors with and without bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gem_train import processor


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(processor, "_CPUINFO", tmp_path / "cpuinfo")
    processor.computes_bf16.cache_clear()
    yield tmp_path / "cpuinfo"
    processor.computes_bf16.cache_clear()


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16 amx_tile", True),
        ("flags\t\t: fpu amx_bf16", True),
        ("Features\t: fp asimd bf16", True),
        ("flags\t\t: fpu avx2 avx512f", False),
        ("model name\t: bf16", False),
    ],
)
def test_flags_of_the_first_processor_decide(cpuinfo: Path, line: str, known: bool) -> None:
    cpuinfo.write_text(f"processor\t: 0\n{line}\n\nprocessor\t: 1\n")
    assert processor.computes_bf16() == known


def test_a_machine_that_says_nothing_has_none(cpuinfo: Path) -> None:
    assert not processor.computes_bf16()
