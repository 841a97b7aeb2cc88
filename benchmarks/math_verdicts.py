"""How often our verdict on mathematics is wrong, on answers made by rule, and what it takes.

    python benchmarks/math_verdicts.py [--before 97346d4] [--each 8] [--seed 0] [--show]

The answers are those of tests/support/gem_support/math_kinds.py: right spellings of a value, and spellings of values
that are certified to be others. `--before` also judges them by the verdict of a git revision, and takes the time of
both in turn, answer by answer. The answers and verdicts are the same in each run; times are not.
"""

from __future__ import annotations

import argparse
import importlib
import io
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support")]

from gem_support.math_answers import Case  # noqa: E402
from gem_support.math_kinds import right, wrong  # noqa: E402

Verdict = Callable[[Case], bool]
TIMED = 10
"""Each of so many answers is timed."""
ROUNDS = 5


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--before", help="a git revision to compare with")
    arguments.add_argument("--each", type=int, default=8, help="questions of each kind")
    arguments.add_argument("--seed", type=int, default=0, help="of what is drawn")
    arguments.add_argument("--show", action="store_true", help="print each wrong verdict")
    options = arguments.parse_args()
    cases = [*right(options.each, options.seed)], [*wrong(options.each, options.seed)]
    print(f"{len({case.kind for case in cases[0]})} kinds: {len(cases[0])} right answers, {len(cases[1])} wrong ones")
    verdicts = {"now": _verdict("gem_math")}
    with tempfile.TemporaryDirectory() as folder:
        if options.before:
            _copy(options.before, Path(folder))
            sys.path.insert(0, folder)
            verdicts[options.before] = _verdict("gem_math_before")
        for name, verdict in verdicts.items():
            _report(name, verdict, *cases, show=options.show)
        for line in _times(verdicts, [*cases[0][::TIMED], *cases[1][::TIMED]]):
            print(line)


def _verdict(package: str) -> Verdict:
    is_right = importlib.import_module(f"{package}.verdicts").is_right
    try:
        answer_of = importlib.import_module(f"{package}.references").answer_of
    except ModuleNotFoundError:
        answer_of = importlib.import_module(f"{package}.env")._unboxed
    return lambda case: is_right(case.answer, answer_of(case.reference), case.question)


def _copy(revision: str, folder: Path) -> None:
    """The package as it was, under another name."""
    command = ["git", "-C", str(HERE.parent), "archive", revision, "plugins/math/gem_math"]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    package = folder / "gem_math_before"
    package.mkdir()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.name.endswith(".py") and (file := archive.extractfile(member)) is not None:
                text = re.sub(r"\bgem_math\b", "gem_math_before", file.read().decode())
                (package / Path(member.name).name).write_text(text)


def _report(name: str, verdict: Verdict, given: Sequence[Case], mutants: Sequence[Case], *, show: bool) -> None:
    refused = [case for case in given if not verdict(case)]
    paid = [case for case in mutants if verdict(case)]
    print(
        f"{name}: refuses {len(refused)} right answers ({len(refused) / len(given):.2%}), pays {len(paid)} wrong ones"
    )
    for word, cases in (("refused", refused), ("paid", paid)):
        if cases:
            kinds = Counter(case.kind for case in cases).most_common()
            print(f"  {word}: {', '.join(f'{kind} {count}' for kind, count in kinds)}")
        for case in cases if show else ():
            print(f"    {case.answer!r} for {case.reference!r}: {case.question}")


def _times(verdicts: dict[str, Verdict], cases: Sequence[Case]) -> list[str]:
    """Microseconds of a verdict on an answer that was not seen before: for each answer the best of several rounds."""
    best: dict[str, list[float]] = {name: [] for name in verdicts}
    for case in cases:
        taken: dict[str, list[float]] = {name: [] for name in verdicts}
        for turn in range(ROUNDS):
            for name in list(verdicts)[:: 1 if turn % 2 else -1]:
                _forget()
                begin = time.process_time_ns()
                verdicts[name](case)
                taken[name].append((time.process_time_ns() - begin) / 1000)
        for name, times in taken.items():
            best[name].append(min(times))
    lines = [
        f"{name}: median {statistics.median(times):.0f} us, mean {statistics.fmean(times):.0f} us, {len(times)} answers"
        for name, times in best.items()
    ]
    if len(best) > 1:
        now, before = best.values()
        ratios = [one / other for one, other in zip(now, before, strict=True)]
        medians = statistics.median(now) / statistics.median(before)
        lines.append(f"now / before: {medians:.2f} of the medians, {statistics.median(ratios):.2f} in the median")
    return lines


def _forget() -> None:
    """Empty what the packages keep of answers and questions."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("gem_math.", "gem_math_before.")):
            values: list[Any] = list(vars(module).values())
            for value in values:
                if hasattr(value, "cache_clear") and "evaluation" not in name and "residues" not in name:
                    value.cache_clear()


if __name__ == "__main__":
    main()
