"""A tracked training without a framework: the real report, collector and samples.

Run in a process of its own, because trackers keep settings for a whole process.
"""

from __future__ import annotations

import sys
from typing import Any

import gem_core
from gem_core import Env
from gem_support import real_tokenizers
from gem_train.playing import build_collector
from gem_train.rollout import Completion, RolloutSettings
from gem_train.settings import RunSettings

TRAINED = "test-trackers:Markup-v0"
SHOWN = "# not a title\n```\n<script>alert(1)</script> \\ud800"
"""What an episode of it shows first; half a character is escaped."""


class Markup(Env):
    """Shows what must not be taken for markup, and solves itself at seeds that are even."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        self.even = seed is not None and seed % 2 == 0
        return "# not a title\n```\n<script>alert(1)</script> \ud800", {}

    def step(self, action: str) -> Any:
        return "the end", float(self.even), True, False, {"success": self.even}

    def sample_random_action(self) -> str:
        return "go"


def train(track: str, folder: str, first: int, last: int) -> None:
    """Train updates `first` to `last`, with an evaluation of the first one, which comes late."""
    gem_core.register(TRAINED, Markup)
    words = real_tokenizers.word_tokenizer()
    [token] = words.encode("go", add_special_tokens=False)
    settings = RunSettings(env=[TRAINED], report=folder, track=[track], gamma=0.5)
    settings.import_modules()
    with settings.open_report(last, first - 1) as report:
        limits = RolloutSettings(max_response_tokens=4)
        collector = build_collector(
            settings, "train", words, limits, lambda prompts: [Completion([token]) for _ in prompts], width=2
        )
        for update in range(first, last + 1):
            collector.collect_round()
            report.update(update, {"loss": 1 / update, "episode/success": 0.5, "actor/odd": float("nan")})
        report.amend(first, {"eval_episode/success": 0.25})
        collector.close()
    report.save()


if __name__ == "__main__":
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
