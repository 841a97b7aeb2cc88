"""Whether an extra is usable in the environment of this Python: `nox -s extras`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from importlib.metadata import distributions

import gem_core
from gem_core.errors import EnvKwargsError
from gem_core.installation import missing_from
from gem_core.plugins import manager


def play(extra: str) -> str | None:
    """Play the first id that needs the extra, of the package with its name; `None` if all want data from elsewhere."""
    package = f"gem_{extra.replace('-', '_')}."
    for spec in (one.spec for one in manager.all_registrations("gem_envs")):
        dataset = str(spec.kwargs.get("dataset", ""))
        is_elsewhere = "/" in dataset and not dataset.startswith("package:")
        if spec.extra == extra and str(spec.entry_point).startswith(package) and not is_elsewhere:
            with contextlib.suppress(EnvKwargsError), gem_core.make(spec.id) as env:  # it has to be told what to read
                env.reset(seed=0)
                env.step(env.sample_random_action())
                return spec.id
    return None


def main(extra: str) -> None:
    """Print what is installed; raises where something is missing, in conflict or does not start."""
    began = time.monotonic()
    missing = missing_from(extra)
    assert not missing, f"{extra}: {missing} not installed"
    subprocess.run([sys.executable, "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)
    listed = subprocess.run([sys.executable, "-m", "gem_core", "list"], check=True, capture_output=True, text=True)
    assert f"needs [{extra}]" not in listed.stdout, f"{extra}: gem-core list still asks for it"
    played = play(extra)
    count, seconds = len([*distributions()]), time.monotonic() - began
    print(f"[{extra}] works: {count} distributions, {played or 'nothing'} was played, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
