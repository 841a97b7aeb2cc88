"""What records of a run cost: bytes per token, and CPU per token beside a training step.

    python benchmarks/records.py                    # bytes and CPU per token, on made-up episodes
    python benchmarks/records.py --train            # also a TRL run with record=none and record=full (needs `[trl]`),
                                                    # and its difference beside a step of a model of 0.6B parameters

Made-up episodes: ids by Zipf's law over 20,000 words, log-probabilities as an exponential mixture, the trainer's 0.01
away from the sampler's. Texts are what the ids say.

The model of 0.6B parameters has the shape of Qwen3-0.6B and random weights. Its step is one forward and backward pass
of the loss over two rows of 256 tokens, in float32 on this CPU: less than a real step, which also samples, computes
log-probabilities once more, and updates the weights. Its CPU per token is set against that of recording: the difference
of the TRL runs for each token that they recorded, and of the made-up episodes. Only the ratio is about a 0.6B model;
a training of one with records was not run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gem_core.episode import Episode, StopReason, TokenSequence, Turn, as_logprobs, as_token_ids
from gem_train.records import RunRecorder, Update, read_episodes

WORDS = 20_000
CHANCE = np.random.default_rng(0)
_PROBABILITY = 1 / np.arange(1, WORDS + 1) ** 1.05
_CUMULATIVE = np.cumsum(_PROBABILITY / _PROBABILITY.sum())


class Words:
    """Texts of made-up ids."""

    def decode(self, token_ids: Any, /, **_: Any) -> str:
        """Words of two to seven letters, frequent ones shorter."""
        return "".join(f" {np.base_repr(one + 40, 36).lower()}" for one in token_ids)


def made_up(count: int, turns: int, sampled: int, observed: int) -> list[tuple[Episode, list[np.ndarray]]]:
    """Episodes of one sequence each, with the trainer's log-probabilities of each turn."""
    return [_episode(number, turns, sampled, observed) for number in range(count)]


def _episode(number: int, turns: int, sampled: int, observed: int) -> tuple[Episode, list[np.ndarray]]:
    words = Words()
    sequence = TokenSequence.starting(as_token_ids())
    made, trained = [], []
    for position in range(turns):
        seen, said = (np.searchsorted(_CUMULATIVE, CHANCE.random(size)) for size in (observed, sampled))
        sequence.add_prompt(as_token_ids(seen.tolist()))
        start = len(sequence.ids)
        sure = CHANCE.random(sampled) < 0.6
        logprobs = -np.where(sure, CHANCE.exponential(0.02, sampled), CHANCE.exponential(0.9, sampled))
        sequence.add_response(as_token_ids(said.tolist()), as_logprobs(logprobs))
        trained.append(logprobs + CHANCE.normal(0, 0.01, sampled) * np.minimum(1, -logprobs))
        response = words.decode(said)
        made.append(
            Turn(0, start, start + sampled, words.decode(seen), response, response, False, float(position == 9))
        )
    episode = Episode(
        "demo:A-v0", number, slot=number, task_id=number, turns=made, sequences=[sequence], run="0123456789abcdef"
    )
    episode.stop_reason = StopReason.TERMINATED
    return episode, trained


def update(episodes: list[tuple[Episode, list[np.ndarray]]]) -> Update:
    """An update on all turns."""
    turns = len(episodes[0][1])
    return Update(
        number=1,
        episodes=[episode.id for episode, _ in episodes],
        episode=np.repeat(np.arange(len(episodes)), turns),
        position=np.tile(np.arange(turns), len(episodes)),
        task_id=np.repeat(np.arange(len(episodes)), turns),
        advantage=CHANCE.normal(size=turns * len(episodes)),
        return_to_go=CHANCE.random(turns * len(episodes)),
        logprobs=[numbers for _, own in episodes for numbers in own],
    )


def measured(count: int, turns: int, sampled: int, observed: int) -> tuple[int, float, float]:
    """Bytes of the files, CPU seconds of writing, and CPU seconds of reading all of it."""
    episodes = made_up(count, turns, sampled, observed)
    with tempfile.TemporaryDirectory() as folder:
        recorder = RunRecorder(folder, tokenizer=Words())
        recorder.gem_episode_end(episodes[0][0])  # the texts of frequent words
        before = recorder.path.stat().st_size
        begin = time.process_time()
        for episode, _ in episodes[1:]:
            recorder.gem_episode_end(episode)
        recorder.gem_update(update(episodes[1:]))
        wrote = time.process_time() - begin
        recorder.close()
        size = recorder.path.stat().st_size - before
        begin = time.process_time()
        for _ in read_episodes(folder):
            pass
        return size, wrote, time.process_time() - begin


def per_token() -> float:
    """Print bytes and CPU per sampled token and per prompt token. Returns the most CPU seconds of writing a token."""
    count, turns = 200, 10
    print(f"{'sampled':>8}{'observed':>9}{'bytes/episode':>15}{'write us/token':>16}{'read us/token':>15}")
    found, most = {}, 0.0
    for sampled, observed in ((30, 0), (30, 60), (300, 0), (300, 200)):
        size, wrote, read = measured(count + 1, turns, sampled, max(observed, 1))
        tokens = count * turns * (sampled + observed)
        found[sampled, observed] = size / count / turns
        most = max(most, wrote / tokens)
        print(
            f"{sampled:>8}{observed:>9}{size / count:>15,.0f}{wrote / tokens * 1e6:>16.2f}{read / tokens * 1e6:>15.2f}"
        )
    for sampled, observed in ((30, 60), (300, 200)):
        own = found[sampled, 0] / sampled
        prompt = (found[sampled, observed] - found[sampled, 0]) / observed
        print(f"{sampled} tokens sampled a turn: {own:.1f} bytes per sampled token, {prompt:.1f} per prompt token")
    return most


def training(updates: int, pairs: int) -> float:
    """Print the CPU of a TRL run with and without records, in turns. Returns the difference for each token."""
    seconds: dict[str, list[float]] = {"none": [], "full": []}
    tokens = 0
    for _ in range(pairs):
        for record, found in seconds.items():
            spent, tokens = _train(record, updates)
            found.append(spent)
            print(f"record={record}: {spent:.2f} s CPU for {updates} updates", flush=True)
    none, full = (min(seconds[name]) for name in ("none", "full"))
    print(f"full / none: {full / none:.3f} (smallest of {pairs} each), {tokens:,} tokens recorded")
    return (full - none) / tokens


def _train(record: str, updates: int) -> tuple[float, int]:
    from gem_tiny import tiny_policy
    from gem_trl import TurnGRPOConfig, TurnGRPOTrainer

    env = "game:GuessTheNumber-v0-easy"
    model, tokenizer = tiny_policy([env], warm_start_steps=0, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        args = TurnGRPOConfig(
            folder, env=[env], per_device_train_batch_size=128, max_steps=updates, max_completion_length=4, seed=0,
            logging_steps=10**6, save_strategy="no", report_to=[], disable_tqdm=True, record=record,
            record_folder=None if record == "none" else str(Path(folder) / "records"),
        )  # fmt: skip
        spent = _cpu(TurnGRPOTrainer(model, args, tokenizer).train)
        recorded = [] if record == "none" else read_episodes(args.record_folder)
        return spent, sum(len(sequence.ids) for one in recorded for sequence in one.episode.sequences)


def model_step(rows: int = 2, length: int = 256) -> float:
    """CPU seconds that a forward and backward pass of a 0.6B model takes for each token."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=151_936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, tie_word_embeddings=True,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    ids = torch.randint(config.vocab_size, (rows, length))

    def step() -> None:
        model(input_ids=ids, labels=ids).loss.backward()

    step()  # allocates the gradients
    spent = _cpu(step) / ids.numel()
    parameters = sum(one.numel() for one in model.parameters())
    print(f"a step of a model of {parameters / 1e9:.2f}B parameters: {spent * 1e3:.1f} ms CPU a token", flush=True)
    return spent


def _cpu(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true", help="compare a TRL run with and without records")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    writing = per_token()
    if options.train:
        more = training(options.updates, options.pairs)
        step = model_step()
        for name, spent in (("the TRL run's difference", more), ("writing made-up episodes", writing)):
            print(f"{name}: {spent * 1e6:.2f} us CPU a token, {spent / step:.4%} of that step")
