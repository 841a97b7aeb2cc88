"""The cost of `import gem_core`: CPU time and memory over bare Python, alone and with 40 slow plugins installed.

    python benchmarks/import_cost.py [--upstream PYTHON] [--repeat 5] [--json out.json]

`--upstream` is a Python with gem-llm 0.1.0, whose `import gem` is measured in the same run. Each figure is the best of
`--repeat` fresh processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tyro

SLOW_PLUGINS = 40
# Imports in a separate process and reports its CPU seconds and its peak memory.
_PROBE = """
import time
start = time.process_time()
{statement}
used = time.process_time() - start
# Not ru_maxrss, which a child inherits from the process that forked it.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(used, int(peak) / 1024)
"""


@dataclass
class Options:
    upstream: str | None = None
    """A Python with gem-llm 0.1.0."""
    repeat: int = 5
    """Processes per row; the best counts."""
    json: Path | None = None
    """File for the figures."""


def main(options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _install_slow_plugins(Path(folder))
        slow = {"PYTHONPATH": folder}
        make = "import gem_core; gem_core.make('game:Corridor-v0')"
        rows = {
            "bare Python": _best(sys.executable, "pass", {}, options.repeat),
            "import gem_core": _best(sys.executable, "import gem_core", {}, options.repeat),
            f"  with {SLOW_PLUGINS} slow plugins": _best(sys.executable, "import gem_core", slow, options.repeat),
            "make('game:Corridor-v0')": _best(sys.executable, make, {}, options.repeat),
            f"  with {SLOW_PLUGINS} slow plugins ": _best(sys.executable, make, slow, options.repeat),
        }
    if options.upstream:
        rows["upstream: bare Python"] = _best(options.upstream, "pass", {}, options.repeat)
        rows["upstream: import gem"] = _best(options.upstream, "import gem", {}, options.repeat)
    print(f"{'':28} {'CPU ms':>8} {'peak MB over bare':>18}")
    for name, (seconds, memory) in rows.items():
        bare = rows["upstream: bare Python" if name.startswith("upstream") else "bare Python"][1]
        print(f"{name:28} {1000 * seconds:8.0f} {memory - bare:18.1f}")
    if options.upstream:
        ratio = rows["upstream: import gem"][0] / rows["import gem_core"][0]
        print(f"import gem takes {ratio:.0f} times the CPU of import gem_core")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def _best(python: str, statement: str, environment: dict[str, str], repeat: int) -> tuple[float, float]:
    command = [python, "-c", _PROBE.format(statement=statement)]
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("GEM_", "PYTHONPATH"))}
    results: list[tuple[float, float]] = []
    for _ in range(repeat):
        done = subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, check=True)
        seconds, memory = done.stdout.split()[-2:]
        results.append((float(seconds), float(memory)))
    return min(seconds for seconds, _ in results), min(memory for _, memory in results)


def _install_slow_plugins(site: Path) -> None:
    """Distributions whose registration module takes 50 ms of CPU to import."""
    for number in range(SLOW_PLUGINS):
        name = f"slow_plugin_{number}"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[gem_core.plugins]\nslow{number} = {name}\n")
        busy = "import time\nend = time.process_time() + 0.05\nwhile time.process_time() < end: pass\n"
        (site / f"{name}.py").write_text(busy)


if __name__ == "__main__":
    main(tyro.cli(Options))
