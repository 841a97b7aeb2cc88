"""Our verdicts beside those that published results rest on, on the pairs of plugins/{math,qa}/tests/pairs.txt.

    python benchmarks/verdicts.py

It needs the extra `math`. Each pair has a verdict that is argued in the file; what is counted is how often another
verdict differs from it: math-verify alone, the published verdict of `gem_math` (texts, numbers and values first), and
the normal form of SQuAD.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support")]

from gem_support.pairs import Pair, read_pairs  # noqa: E402


def main() -> None:
    from gem_math import published, verdicts
    from gem_qa import verdicts as qa

    def compared_by_math_verify(pair: Pair) -> bool:
        from gem_grading import grade

        return grade("gem_math.verification:equal", pair.given, pair.reference, timeout=10.0).value is True

    def published_verdict(pair: Pair) -> bool:
        try:
            return published.is_right(pair.given, [pair.reference], 10.0)
        except published.Ungraded:
            return False

    tables: dict[str, dict[str, Callable[[Pair], bool]]] = {
        "math": {
            "ours": lambda pair: verdicts.is_right(pair.given, pair.reference, pair.question),
            "math-verify": compared_by_math_verify,
            "published": published_verdict,
        },
        "qa": {
            "ours": lambda pair: qa.is_right(pair.given, pair.reference),
            "SQuAD": lambda pair: qa.is_right_in_squad(pair.given, pair.reference),
        },
    }
    for folder, graders in tables.items():
        pairs = [_filled(pair) for pair in read_pairs(HERE.parent / "plugins" / folder / "tests" / "pairs.txt")]
        for line in _table(folder, pairs, graders):
            print(line)


def _filled(pair: Pair) -> Pair:
    return pair._replace(given="" if pair.given == "<nothing>" else pair.given)


def _table(folder: str, pairs: list[Pair], graders: dict[str, Callable[[Pair], bool]]) -> Iterator[str]:
    """Wrong answers that are accepted and right ones that are refused, by group."""
    accepted, refused = ({name: Counter[str]() for name in graders} for _ in range(2))
    for name, is_right in graders.items():
        for pair in pairs:
            if is_right(pair) != pair.right:
                (refused if pair.right else accepted)[name][pair.group] += 1
    sizes = Counter(pair.group for pair in pairs)
    yield f"\n| {folder}: wrong accepted, right refused | pairs | {' | '.join(graders)} |"
    yield f"| --- | --- |{' --- |' * len(graders)}"
    for group, size in sizes.items():
        yield (
            f"| {group} | {size} | " + " | ".join(f"{accepted[n][group]}, {refused[n][group]}" for n in graders) + " |"
        )
    sums = " | ".join(f"{accepted[name].total()}, {refused[name].total()}" for name in graders)
    yield f"| all | {len(pairs)} | {sums} |"


if __name__ == "__main__":
    main()
