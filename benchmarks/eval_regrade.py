"""Whether grading again gives the same: random players in every shipped id that needs no network, replayed.

    python benchmarks/eval_regrade.py
    python benchmarks/eval_regrade.py 'rg:*' --tasks 10

It needs the extras of all environments. Playing and replaying are processes of their own, as they are for a user, so
the order of sets of texts differs between them. Prints a line for each id, and fails where an episode is not the same.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "plugins" / "testing")]

from gem_evaluation._regraded import REGRADED  # noqa: E402
from hacking_audit import GRADED, shipped  # noqa: E402

WITH_TOOLS = ("game:GuessTheNumber-v0-easy", "math:Sample", "qa:Sample", "code:Sample")
PYTHON_TOOL = ("--tools", "python:Interpreter")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"], help="ids")
    parser.add_argument("--tasks", type=int, default=4, help="tasks of each id, each played twice")
    given = parser.parse_args()
    ids = [
        env_id
        for env_id, playable in shipped(GRADED)
        if playable and any(fnmatch.fnmatchcase(env_id, pattern) for pattern in given.patterns)
    ]
    same = episodes = 0
    for title, chosen, options in (
        ("no tools", ids, ()),
        ("with the Python tool", [one for one in WITH_TOOLS if one in ids], PYTHON_TOOL),
    ):
        if not chosen:
            continue
        found = regraded(chosen, given.tasks, options)
        print(title, *lines(found), sep="\n", flush=True)
        same += sum(one["same"] for one in found["environments"])
        episodes += sum(one["episodes"] for one in found["environments"])
    print(f"{same} of {episodes} episodes are the same")
    sys.exit(same < episodes)


def regraded(ids: Sequence[str], tasks: int, options: Sequence[str]) -> dict[str, Any]:
    """What `regraded.json` says after playing and replaying these ids."""
    with tempfile.TemporaryDirectory() as folder:
        command("run", *ids, "--model", "random", f"--tasks={tasks}", "--repeats=2", f"--output={folder}", *options)
        command("regrade", folder)
        return json.loads((Path(folder) / REGRADED).read_bytes())


def command(*arguments: str) -> None:
    """Run `gem-core eval`. Status 1 of `regrade` says that something differs, which the report shows."""
    done = subprocess.run([sys.executable, "-m", "gem_core", "eval", *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The share of each id, and why the others differ."""
    for one in found["environments"]:
        yield f"  {one['label']:45} {one['same'] / one['episodes']:6.1%} of {one['episodes']}"
        episodes = (e for e in found["episodes"] if e["key"]["entry"] == one["label"] and e["outcome"] != "same")
        yield from sorted({f"    {e['outcome']}: {e['reason'][:300]}" for e in episodes})


if __name__ == "__main__":
    main()
