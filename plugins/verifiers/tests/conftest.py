"""Environment modules of verifiers, installed from `package/` as from a wheel of their hub."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("verifiers")


@pytest.fixture(scope="session", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package, where this process and those that it starts find it."""
    target = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    source = Path(__file__).parent / "package"
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(target)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(target), *filter(None, [os.environ.get("PYTHONPATH")])]))
        patch.setenv("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
        yield
