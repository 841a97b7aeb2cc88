"""The cost of a turn in episodes of 10 to 160 turns: CPU in the collector and in making rows, record, and memory.

    python benchmarks/long_episodes.py [--history K] [--json FILE]

Each turn has 256 sampled tokens and an observation of 200 tokens. The environment and the policy cost almost nothing,
and the tokenizer caches its results, so only the rollout is measured. Each length runs in a separate process; CPU is
the minimum of several rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import gem_core
from gem_core import Env
from gem_train.rollout import BatchCollector, Completion, RolloutSettings
from gem_train.rollout.records import recorded
from gem_train.rows import rows_of

LENGTHS = (10, 20, 40, 80, 160)
SAMPLED, OBSERVED = 256, 200
WORDS = 512
TEMPLATE = (
    "{% for m in messages %}{{ '<' + m.role + '> ' + m.content + ' <end> ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant> ' }}{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer whose tokens are words."""
    special = ["<end>", "<user>", "<assistant>", "<unknown>"]
    words = {word: number for number, word in enumerate([*special, *(f"w{number}" for number in range(WORDS))])}
    model = Tokenizer(models.WordLevel(words, unk_token="<unknown>"))
    model.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=model, eos_token="<end>", unk_token="<unknown>")
    made.chat_template = TEMPLATE
    return made


class Remembering:
    """A tokenizer that caches its results."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.chat_template = tokenizer.chat_template
        self._tokenizer = tokenizer
        self._texts: dict[str, str] = {}
        self._ids: dict[str, list[int]] = {}
        self._decoded: dict[int, str] = {}

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> str:
        """Messages as text."""
        key = "".join(message["content"] for message in messages)
        if key not in self._texts:
            self._texts[key] = str(self._tokenizer.apply_chat_template(messages, **options))
        return self._texts[key]

    def encode(self, text: str, **options: Any) -> list[int]:
        """Text as ids."""
        if text not in self._ids:
            self._ids[text] = self._tokenizer.encode(text, **options)
        return self._ids[text]

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        """Ids as text."""
        if len(ids) not in self._decoded:  # the policy returns the same ids each time
            self._decoded[len(ids)] = str(self._tokenizer.decode(list(ids), **options))
        return self._decoded[len(ids)]


class Long(Env):
    """Lasts a given number of turns and shows the same text each time."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.text = " ".join(f"w{number % WORDS}" for number in range(OBSERVED - 3))  # the template adds three

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        """The first observation."""
        super().reset(seed=seed)
        self.left = self.turns
        return self.text, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The same observation again."""
        self.left -= 1
        return self.text, 0.5, self.left == 0, False, {}

    def sample_random_action(self) -> str:
        """Any action."""
        return "w1"


def policy(prompts: Sequence[Any]) -> list[Completion]:
    """The same tokens for every prompt."""
    ids = [4 + number % WORDS for number in range(SAMPLED - 1)] + [0]
    return [Completion(ids, [-0.5 - number / 1000 for number in range(SAMPLED)]) for _ in prompts]


def measure(turns: int, history: int | None, episodes: int = 64, rounds: int = 20) -> dict[str, float]:
    """Costs of one length, in this process."""
    gem_core.register("bench:Long-v0", Long)
    settings = RolloutSettings(max_response_tokens=SAMPLED, history=history)
    made: Any = Remembering(tokenizer())

    def collector(width: int) -> BatchCollector:
        vec = gem_core.make_vec("bench:Long-v0", width, backend="sync", env_kwargs={"turns": turns}, seed=0)
        return BatchCollector(vec, policy, made, settings)

    few = collector(4)
    few.collect_round()
    collecting = min(_cpu(few.collect_round) for _ in range(rounds)) / 4 / turns
    [episode, *_] = few.collect_round().episodes
    rows = min(_cpu(lambda: rows_of(episode, "episode")) for _ in range(rounds)) / turns
    record = len(msgspec.json.encode(recorded(episode)))
    many, start = collector(episodes), _peak()
    batch = many.collect_round()
    assert batch.turns == episodes * turns
    return {
        "turns": turns,
        "collector_us_per_turn": 1e6 * collecting,
        "rows_us_per_turn": 1e6 * rows,
        "record_kb_per_turn": record / turns / 1e3,
        "memory_mb_of_64_episodes": _peak() - start,
    }


def _cpu(run: Any) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Measure each length in a separate process, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=int, help="observations in a prompt; all by default")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--turns", type=int, help="one length, in this process")
    arguments = parser.parse_args()
    if arguments.turns:
        print(json.dumps(measure(arguments.turns, arguments.history)))
        return
    history = [] if arguments.history is None else ["--history", str(arguments.history)]
    lines: list[dict[str, float]] = []
    for turns in LENGTHS:
        command = [sys.executable, __file__, "--turns", str(turns), *history]
        lines.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    print("| turns | collector, us per turn | rows, us per turn | record, kB per turn | 64 episodes, MB |")
    print("| --- | --- | --- | --- | --- |")
    for line in lines:
        turns, *numbers = line.values()
        print(f"| {turns} | " + " | ".join(f"{number:.1f}" for number in numbers) + " |")
    if arguments.json:
        arguments.json.write_text(json.dumps(lines))


if __name__ == "__main__":
    main()
