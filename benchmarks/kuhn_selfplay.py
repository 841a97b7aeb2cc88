"""Self-play on Kuhn poker in TRL: how exploitable a tiny model is before the training, after it, and on average.

    OMP_NUM_THREADS=1 python benchmarks/kuhn_selfplay.py [--seeds 0 1 2] [--updates 1000]

One policy plays both seats, with the estimator `rae`. It is told its seat and
its card and no rules, so that a model of 100,000 parameters sees the card at once; the warm start teaches it words and
format on random play. Exploitability is exact: the model's probability of a bet is
computed for each of the twelve things that a player can know. Self-play circles around an equilibrium, so the policy
that counts is the average of the last checkpoints: the player who draws one of them for each match. The probabilities
of every checkpoint are written to a file. The same command continues where it was stopped, and refuses other options.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from kept_options import keep
from transformers import PreTrainedTokenizerFast, PrinterCallback, Qwen3ForCausalLM, TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

import gem_core
from gem_matches._moves import boxed
from gem_matches.kuhn import ACTIONS, BET, INFORMATION_SETS, PASS, KuhnPoker, Policy, exploitability
from gem_tiny import tiny_policy
from gem_train.rollout import ChatTemplate, Conversation
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer

ENV = "benchmark:KuhnPoker-v0"
FREE = ("seeds", "last", "output")
"""Options that change no run: a seed has a run of its own, and the average is computed from a run."""
MOVES = {"p": PASS, "b": BET}
SEATS = {"benchmark:KuhnFirst-v0": "player 1", "benchmark:KuhnSecond-v0": "player 0"}
"""Ids for the warm start, with the seat that a random player has: transcripts show what one player sees."""


class TerseKuhnPoker(KuhnPoker):
    """The same game in fewer words."""

    def _rules(self, agent: str) -> str:
        return f"{agent} {self._cards[agent]}"


class Read(TrainerCallback):
    """Reads the policy before the training, and at regular intervals of updates, into a file of its own.

    Args:
        tokenizer: of the policy.
        every: updates from reading to reading.
        file: of the readings. Each is `[update, smallest probability of an allowed move, probabilities of a bet]`.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, every: int, file: Path) -> None:
        pairs = [
            (_prompt(tokenizer, card, history), _ids(tokenizer, boxed(move)))
            for card, history in INFORMATION_SETS
            for move in ACTIONS
        ]
        whole = [torch.tensor([*prompt, *response]) for prompt, response in pairs]
        # Filled up at the end, which no token before it sees.
        self.asked = torch.nn.utils.rnn.pad_sequence(whole, batch_first=True)
        self.responses = torch.tensor([response for _, response in pairs])
        starts = torch.tensor([[len(prompt) - 1] for prompt, _ in pairs])
        self.places = starts + torch.arange(self.responses.shape[1])
        self.every = every
        self.file = file
        self.readings: list[tuple[int, float, list[float]]] = json.loads(file.read_text()) if file.exists() else []

    @property
    def policies(self) -> list[dict[tuple[str, str], float]]:
        return [dict(zip(INFORMATION_SETS, bets, strict=True)) for _, _, bets in self.readings]

    @property
    def allowed(self) -> list[float]:
        return [allowed for _, allowed, _ in self.readings]

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.readings = [one for one in self.readings if one[0] <= state.global_step]  # of a run that was stopped
        if not self.readings:
            self.read(0, model)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if state.global_step % self.every == 0:
            self.read(state.global_step, model)

    @torch.no_grad()
    def read(self, update: int, model: Qwen3ForCausalLM) -> None:
        logits = model(input_ids=self.asked).logits.log_softmax(-1)
        logprobs = logits[torch.arange(len(self.asked))[:, None], self.places, self.responses].sum(1)
        both = logprobs.exp().reshape(-1, len(ACTIONS))
        allowed = both.sum(1)
        bets = (both[:, ACTIONS.index(BET)] / allowed).tolist()
        self.readings.append((update, allowed.min().item(), bets))
        self.file.write_text(json.dumps(self.readings))


def main(options: argparse.Namespace) -> None:
    output = Path(options.output)
    keep(output, {name: value for name, value in vars(options).items() if name not in FREE})
    factors: list[float] = []
    for seed in options.seeds:
        started = time.process_time()
        read = train(seed, output, options)
        numbers = [exploitability(one) for one in read.policies]
        last = averaged(read.policies[-options.last :])
        factors.append(numbers[0] / exploitability(last))
        later = numbers[-options.last :]
        print(
            f"seed {seed}: warm start {numbers[0]:.3f}; the last {len(later)} checkpoints each {min(later):.3f} to "
            f"{max(later):.3f}, on average {exploitability(last):.3f}, {factors[-1]:.1f} times less than the warm "
            f"start; allowed moves at least {read.allowed[0]:.4f}, at the end {read.allowed[-1]:.4f}; "
            f"{time.process_time() - started:.0f} s of CPU",
            flush=True,
        )
    print(f"the smallest factor is {min(factors):.1f}")


def train(seed: int, output: Path, options: argparse.Namespace) -> Read:
    model, tokenizer = tiny_policy([*SEATS], warm_start_steps=options.warm_start_steps, seed=seed)
    folder = output / f"seed{seed}"
    read = Read(tokenizer, options.every, output / f"seed{seed}.json")
    args = TurnGRPOConfig(
        str(folder),
        env=[ENV],
        advantage="rae",
        vector_backend="sync",
        per_device_train_batch_size=options.matches,
        gradient_accumulation_steps=1,
        max_steps=options.updates,
        max_completion_length=len(_ids(tokenizer, boxed(BET))),
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant",
        weight_decay=0.0,
        adam_epsilon=1e-3,  # otherwise Adam makes steps of one size of the noise around an equilibrium
        max_grad_norm=10.0,
        entropy_coef=options.entropy,
        seed=seed,
        disable_tqdm=True,
        report_to="none",
        save_steps=20,
        save_total_limit=1,
    )
    trainer = TurnGRPOTrainer(model, args, tokenizer, callbacks=[read])
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(folder) if folder.exists() else None)
    return read


def averaged(policies: Sequence[Policy]) -> Policy:
    """The policy that plays like a player who draws one of these for each match.

    Before its second action a player has passed. So a policy counts there by how often it passed.
    """
    mean: dict[tuple[str, str], float] = {}
    for card, history in INFORMATION_SETS:
        weights = [1 - one[card, ""] if history == "pb" else 1.0 for one in policies]
        bets = [weight * one[card, history] for weight, one in zip(weights, policies, strict=True)]
        mean[card, history] = sum(bets) / sum(weights) if sum(weights) else 0.0
    return mean


def _prompt(tokenizer: PreTrainedTokenizerFast, card: str, history: str) -> list[int]:
    """What the player with this card is asked after this history, from a match in which it happened."""
    env = gem_core.make(ENV)
    for seed in range(1000):
        observation, info = env.reset(seed=seed)
        agents = ("player 0", "player 1")
        conversations = {agent: Conversation(ChatTemplate(tokenizer)) for agent in agents}
        for code in history:
            conversations[info["agent"]].observe(observation, info)
            conversations[info["agent"]].respond(_ids(tokenizer, boxed(MOVES[code])))
            observation, _, _, _, info = env.step(boxed(MOVES[code]))
        mine = conversations[info["agent"]]
        mine.observe(observation, {})
        if f"{info['agent']} {card}" in tokenizer.decode(mine.prompt().tolist()):
            return mine.prompt().tolist()
    raise RuntimeError(f"no match shows {card!r} after {history!r}")


def _ids(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """The ids of a whole response."""
    ids: list[Any] = tokenizer.encode(text, add_special_tokens=False)
    end: Any = tokenizer.eos_token_id
    return [*ids, end]


def _options(arguments: Iterable[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--matches", type=int, default=128, help="of a batch; each has two episodes")
    parser.add_argument("--every", type=int, default=4, help="updates from checkpoint to checkpoint")
    parser.add_argument("--last", type=int, default=125, help="checkpoints that the average is of")
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--entropy", type=float, default=0.3, help="entropy_coef of TRL")
    parser.add_argument("--warm-start-steps", type=int, default=200)
    parser.add_argument(
        "--output", default="runs/kuhn_selfplay", help="folder of the probabilities and of the last checkpoint"
    )
    return parser.parse_args([*arguments] if arguments is not None else None)


if __name__ == "__main__":
    for name, opponent in SEATS.items():
        gem_core.register(name, TerseKuhnPoker, kwargs={"opponents": {opponent: "random"}})
    gem_core.register(ENV, TerseKuhnPoker)
    main(_options())
