"""The first tasks in every framework, on any number of processes. The tests of all adapters use these numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gem_core.seeding import derive_seed
from gem_train.rollout import Episode

SEED = 7
SETTINGS: dict[str, Any] = {"env": ["test:Babble-v0", "game:Corridor-v0"], "env_weights": [3.0, 1.0], "seed": SEED}
"""Settings of the run, by the core's names."""

LIMITED = {**SETTINGS, "env_limits": [2, 0]}
"""The same with places for two episodes of Babble at once. The tasks do not change."""

FIRST_BATCH = [
    ("test:Babble-v0", 214753494406455218),
    ("test:Babble-v0", 6803852808346754194),
    ("game:Corridor-v0", 6011251193406170009),
    ("test:Babble-v0", 242714157730051936),
    ("test:Babble-v0", 3239710103351688971),
    ("test:Babble-v0", 3183112120886239161),
    ("game:Corridor-v0", 6527498224197862292),
    ("test:Babble-v0", 6274839953022435304),
]
"""Environment and seed of each of the 8 tasks of the first batch. Literals, so that every change is noticed."""


def first_batch_of(seed: int) -> list[tuple[str, int]]:
    """The same tasks from the formula, for any seed: of four tasks, the third is Corridor's, the others Babble's."""
    run = derive_seed(seed, "train")
    names = [SETTINGS["env"][number % 4 == 2] for number in range(len(FIRST_BATCH))]
    return [(name, derive_seed(run, number)) for number, name in enumerate(names)]


def assert_first_batch(played: Iterable[tuple[str, int]]) -> None:
    """Assert that these episodes, as `(env_id, seed)` in any order, are exactly the tasks of the first batch."""
    assert first_batch_of(SEED) == FIRST_BATCH
    assert sorted(played) == sorted(FIRST_BATCH)


def assert_two_at_once_at_most(episodes: Iterable[Episode]) -> None:
    """Assert that no more than two episodes of Babble were under way at once."""
    at_once = {turn.info["at_once"] for one in episodes if one.env_id == "test:Babble-v0" for turn in one.turns}
    assert at_once <= {1, 2}
