"""Environments of every kind in one run of any framework, with limits on how many of each a process plays at once."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

import gem_core
from gem_core import Wrapper
from gem_core.wrappers import TurnLimit
from gem_sandbox._backends import SAFE
from gem_sandbox._choice import problems
from gem_support.byte_level import byte_level_bpe
from gem_tiny import tiny_model
from gem_train.rollout import Episode, StopReason

WRAPPERS = ["gem_support.kinds:brief", "gem_support.kinds:AtOnce"]
BRIEFER_WRAPPERS = ["gem_support.kinds:briefer", "gem_support.kinds:AtOnce"]
"""As the setting `wrappers`."""
PROMPT, REST = 1300, 300
"""Tokens of the longest first prompt, which is a desk's, and of the rest of an episode."""
SHORT = 1024
"""Tokens of the two longest turns of all others, which are WikiGame's."""

UNDER_WAY: defaultdict[str, WeakSet[Any]] = defaultdict(WeakSet)
"""The environments of this process whose episode is under way, by id."""

brief = functools.partial(TurnLimit, max_turns=4)
"""Ends an episode before its context is full, after which an environment would still count as under way."""
briefer = functools.partial(TurnLimit, max_turns=2)
"""The same for contexts of `SHORT`."""


@functools.cache
def limits(*, desk: bool = True) -> Mapping[str, int]:
    """The ids that this machine can play, each with its limit; 0: none."""
    found = {"match:KuhnPoker-v0": 2, "game:WikiGame-v0-easy": 0}
    if not all(problems(backend) for backend in SAFE):
        found["terminal:Text-v0"] = 1
    return {**found, "desk:Retail-v0": 1} if desk else found


class AtOnce(Wrapper):
    """`info["at_once"]`: how many episodes of this id are under way in this process, with this one."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        self._all().add(self)
        return self.env.reset(seed=seed, **options)

    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        info = {**info, "at_once": len(self._all())}
        if terminated or truncated:
            self._all().discard(self)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        self._all().discard(self)
        super().close()

    def _all(self) -> WeakSet[Any]:
        assert self.spec
        return UNDER_WAY[self.spec.id]


def saved_model(folder: Path) -> Path:
    """A tiny model, with a tokenizer of the kinds' texts for which decoding and encoding again gives other ids."""
    texts: list[str] = []
    for env_id in limits():
        env = gem_core.make(env_id)
        texts.append(env.reset(seed=0)[0])
        env.close()
    tokenizer = byte_level_bpe(texts, size=1000)
    tokenizer.save_pretrained(folder)
    tiny_model(tokenizer, context=PROMPT + REST, seed=0).save_pretrained(folder)
    return folder


UNREAD = "game:WikiGame-v0-easy"
"""Random tokens are never a link of a page, so no response of this environment is of use."""


def assert_warned(said: str, limit: str) -> None:
    """Assert that the run said once what is wrong with the responses of `UNREAD`, in the framework's words."""
    warnings = [line for line in said.splitlines() if f"Warning: {UNREAD}: " in line]
    assert len(warnings) == 1, said[-3000:]
    cut_off, unread = f"were cut off at {limit}; the first was '", "had the form that the environment reads"
    assert cut_off in warnings[0] or unread in warnings[0]


def assert_played(episodes: Sequence[Episode], *, desk: bool = True) -> None:
    """Assert that every kind was played without errors, and none more often at once than its limit allows."""
    assert {one.env_id for one in episodes} == {*limits(desk=desk)}
    for env_id, limit in limits(desk=desk).items():
        own = [one for one in episodes if one.env_id == env_id]
        assert [one.error for one in own if one.error] == []
        assert all(one.turns for one in own if not one.agent)
        assert StopReason.CONTEXT_FULL not in {one.stop_reason for one in own}
        at_once = {turn.info["at_once"] for one in own for turn in one.turns}
        assert at_once
        assert max(at_once) <= (limit or len(own)), env_id
