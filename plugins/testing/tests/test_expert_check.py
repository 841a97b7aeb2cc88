"""The check of an environment's expert."""

from __future__ import annotations

from typing import Any

import pytest

from gem_core.env import Env
from gem_testing._play import Subject
from gem_testing.checks import expert


class Coin(Env):
    """Say what lies there, heads or tails, three times."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        self.turn = 0
        self.side = self.rng.choice(["heads", "tails"])
        return self.side, {}

    def step(self, action: str) -> Any:
        self.turn += 1
        info = {"success": action == self.side, **({} if action in ("heads", "tails") else {"invalid_action": True})}
        return self.side, float(action == self.side), self.turn == 3, False, info

    def sample_random_action(self) -> str:
        return self.rng.choice(["heads", "tails"])


class Right(Coin):
    def expert_action(self) -> str:
        return self.side


class Wrong(Coin):
    def expert_action(self) -> str:
        return "tails" if self.side == "heads" else "heads"


class Invalid(Coin):
    def expert_action(self) -> str:
        return f"{self.side}!"


class NoText(Coin):
    def expert_action(self) -> Any:
        return 1


class Draws(Coin):
    def expert_action(self) -> str:
        return self.rng.choice(["heads", "tails", *map(str, range(1000))])


class Turns(Coin):
    """Its expert turns the coin over."""

    def expert_action(self) -> str:
        self.side, said = "heads", "heads"
        return said


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Coin, None),
        (Right, None),
        (Wrong, "the expert earned 0.000 an episode, and random play"),
        (Invalid, "which step() called invalid"),
        (NoText, "gave 1, which is no string"),
        (Draws, " and then "),
        (Turns, "changed the episode"),
    ],
)
def test_an_expert_is_checked(monkeypatch: pytest.MonkeyPatch, kind: type[Env], says: str | None) -> None:
    monkeypatch.setattr(Subject, "make", lambda *_: kind())
    found = [*expert(Subject("demo:Coin-v0"))]
    assert found == [] if says is None else says in found[0]
