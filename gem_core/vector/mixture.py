"""Which environment takes which place of a vector."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence


def weights_of(env_ids: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """The weight of each id; an id that a list names twice counts twice.

    Raises:
        ValueError: no id, or a weight that is not above 0.
    """
    weights: dict[str, float] = {}
    weights.update(
        env_ids if isinstance(env_ids, Mapping) else Counter([env_ids] if isinstance(env_ids, str) else env_ids)
    )
    wrong = {env_id: weight for env_id, weight in weights.items() if not _is_weight(weight)}
    if wrong or not weights:
        raise ValueError(f"environment weights must be above 0, got {wrong or 'no environment id'}")
    if not all(isinstance(env_id, str) for env_id in weights):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"environment ids must be texts such as 'game:Corridor-v0', not {list(weights)}")
    return weights


def fewest_places(weights: Mapping[str, float]) -> int:
    """So many places give each id exactly its share, where the weights are whole numbers.

    Raises:
        ValueError: they are not.
    """
    total = sum(weights.values())
    if not all(float(weight).is_integer() for weight in weights.values()):
        raise ValueError(f"the weights {dict(weights)} are no whole numbers: say how many environments, as num_envs")
    return int(total)


def _is_weight(weight: object) -> bool:
    return isinstance(weight, int | float) and not isinstance(weight, bool) and weight > 0 and math.isfinite(weight)


def share_places(weights: Mapping[str, float], count: int) -> list[str]:
    """One id per place, each as often as its weight says, evenly interleaved.

    Place `i` has the same id however many places there are: each goes to the id that is furthest behind its share
    (smooth weighted round-robin).

    Raises:
        ValueError: an id would have no place.
    """
    total = sum(weights.values())
    credit = dict.fromkeys(weights, 0.0)
    places: list[str] = []
    for _ in range(count):
        for env_id, weight in weights.items():
            credit[env_id] += weight
        # Rounding must not decide between equals; the first named does.
        chosen = max(credit, key=lambda env_id: round(credit[env_id] / total, 9))
        credit[chosen] -= total
        places.append(chosen)
    missing = [env_id for env_id in weights if env_id not in places]
    if missing:
        raise ValueError(
            f"{len(weights)} environment ids for {count} places: {missing[:3]} would never be played. Make the vector "
            "wider, or the weights more equal."
        )
    return places
