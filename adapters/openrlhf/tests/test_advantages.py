"""Advantages in OpenRLHF's own classes, compared with their formulas in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from made_up import add_turn, random_batch, rewards_of
from openrlhf.models import PolicyLoss
from openrlhf.trainer.ppo_utils.experience import Experience, make_experience_batch, split_experience_batch
from openrlhf.trainer.ppo_utils.kl_controller import FixedKLController
from openrlhf.trainer.ppo_utils.replay_buffer import NaiveReplayBuffer
from openrlhf.utils.loss_utils import _optimizer_step_loss_norm

from gem_core.episode import Episode, as_logprobs, as_token_ids
from gem_openrlhf._actors import plain_class
from gem_openrlhf._averages import loss_norm, masked_mean
from gem_openrlhf._experience import TurnExperienceMaker, row_experience, training_rows
from gem_openrlhf._rows import EpisodeRows
from gem_openrlhf._workers import TurnCriticActor
from gem_openrlhf.settings import OpenRLHFSettings
from gem_support import brute_force
from gem_train.rows import Row, TurnSpan

ESTIMATORS = ["rebn", "rebn_loo", "reinforce", "grpo", "drgrpo", "rloo"]
GAMMA, LAM = 0.9, 0.8
CriticActor = plain_class(TurnCriticActor)


class Step:
    """A batch on its way through OpenRLHF, up to the replay buffer; the models' numbers are made up."""

    def __init__(self, args: SimpleNamespace, batch: list[EpisodeRows], *, advantage: str, multiple: int = 4) -> None:
        self.batch = batch
        args.gem = OpenRLHFSettings(env=["test:Babble-v0"], steps=1, advantage=advantage)
        args.algo.advantage.gamma, args.algo.advantage.lambd = GAMMA, LAM
        args.rollout.micro_batch_size = 4
        strategy, tokenizer = SimpleNamespace(args=args), SimpleNamespace(pad_token_id=0)
        control = FixedKLController(args.algo.kl.init_coef)
        maker: Any = TurnExperienceMaker(None, None, None, None, control, strategy, tokenizer)
        self.maker = maker
        self.rows, self.turns = training_rows(batch, multiple, 1)
        experiences = maker.split_rollout_samples([row_experience(row) for row in self.rows])
        generator = torch.Generator().manual_seed(0)
        for one in experiences:
            shape = one.action_mask.shape
            one.action_log_probs = torch.zeros(shape)
            one.kl = torch.randn(shape, generator=generator)
            one.values = torch.randn(shape, generator=generator) if advantage == "gae" else None
        self.kl = [row.clone() for one in experiences for row in one.kl]
        self.values = [row.clone() for one in experiences if one.values is not None for row in one.values]
        maker.expect(self.turns, 1, 0, [])
        self.experiences: list[Experience] = maker.compute_advantages_and_returns(experiences)

    def items(self) -> list[Experience]:
        """The items of the actor's replay buffer: one row each, without padding."""
        buffer = NaiveReplayBuffer(1)
        for experience in self.experiences:
            buffer.append(experience)
        return buffer.items

    def spans(self) -> Iterator[tuple[tuple[int, int], int, int, int]]:
        """Each turn of the batch: its episode, its position, its row, and its columns in OpenRLHF's tables."""
        turns = self.turns
        keys = zip(turns.episode.tolist(), turns.position.tolist(), strict=True)
        yield from zip(keys, turns.row.tolist(), turns.start.tolist(), turns.end.tolist(), strict=True)

    def per_turn(self, field: str = "advantages") -> list[float]:
        """One number per turn of the batch, from the rows; all other tokens have 0."""
        tables = [getattr(item, field).tolist() for item in self.items()]
        for row, item, table in zip(self.rows, self.items(), tables, strict=True):
            assert item.sequences.tolist() == row.ids.tolist()
            assert len(table) == len(row.ids) - 1
        found: dict[tuple[int, int], float] = {}
        masks = [item.action_mask for item in self.items()]
        for turn, row, start, end in self.spans():
            assert masks[row][start:end].all()
            (found[turn],) = {*tables[row][start:end]}  # one turn, one number
            tables[row][start:end] = [0.0] * (end - start)
        assert not any(map(any, tables)), "no number on tokens that were not sampled"
        return in_order(found)

    def at_first_tokens(self, tables: list[torch.Tensor]) -> list[float]:
        """The numbers of tables at each turn's first token."""
        return in_order({turn: tables[row][start].item() for turn, row, start, _ in self.spans()})

    def rewards(self) -> list[float]:
        """The environment's reward of each turn."""
        return [reward for one in self.batch for reward in rewards_of(one)]

    def split(self, numbers: list[float]) -> list[list[float]]:
        """Numbers per turn as lists per episode with turns."""
        left = iter(numbers)
        return [[next(left) for _ in rewards_of(one)] for one in self.batch if one.rows]


def in_order(numbers: dict[tuple[int, int], float]) -> list[float]:
    """One number per turn by episode and position."""
    return [numbers[turn] for turn in sorted(numbers)]


def groups(batch: list[EpisodeRows]) -> list[int]:
    return [one.summary.task_id for one in batch if one.rows and one.summary]


@pytest.mark.parametrize("kind", ["episode", "turn"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_advantages_equal_brute_force(arguments: Callable[..., SimpleNamespace], name: str, kind: str):
    for seed in range(5):
        # gem-core warns about groups of one, which is tested there.
        batch = random_batch(random.Random(seed), kind, empty=name in ("rebn", "rebn_loo", "reinforce"))
        step = Step(arguments("--algo.kl.init_coef=0"), batch, advantage=name, multiple=seed + 1)
        rewards = step.split(step.rewards())
        want = brute_force.expected(name, rewards, groups(batch), GAMMA)
        assert step.per_turn() == pytest.approx([number for row in want for number in row], abs=1e-5)
        later = [number for row in rewards for number in brute_force.returns_to_go(row, GAMMA)]
        assert step.per_turn("returns") == pytest.approx(later, abs=1e-5)
        assert step.maker.metrics["advantage/turns"] == len(later)


@effort(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), multiple=st.integers(1, 12))
def test_cut_rows_give_the_same_advantages(args_once: SimpleNamespace, seed: int, multiple: int):
    batch = random_batch(random.Random(seed), "turn")
    if not any(one.rows for one in batch):
        return
    whole = Step(args_once, batch, advantage="rebn", multiple=1).per_turn()
    assert Step(args_once, batch, advantage="rebn", multiple=multiple).per_turn() == whole


@pytest.fixture(scope="module")
def args_once() -> SimpleNamespace:
    from conftest import openrlhf_arguments

    return openrlhf_arguments("--algo.kl.init_coef=0")


@pytest.mark.parametrize("kind", ["episode", "turn"])
def test_gae_uses_values_at_first_tokens(arguments: Callable[..., SimpleNamespace], kind: str):
    step = Step(arguments("--algo.kl.init_coef=0"), random_batch(random.Random(3), kind), advantage="gae", multiple=7)
    values = step.split(step.at_first_tokens(step.values))
    rewards = step.split(step.rewards())
    want = [brute_force.gae(*both, GAMMA, LAM) for both in zip(rewards, values, strict=True)]
    assert step.per_turn() == pytest.approx([number for row in want for number in row], abs=1e-5)


@pytest.mark.parametrize("kind", ["episode", "turn"])
def test_a_critic_learns_one_value_per_turn(arguments: Callable[..., SimpleNamespace], kind: str):
    step = Step(arguments("--algo.kl.init_coef=0"), random_batch(random.Random(3), kind), advantage="gae", multiple=7)
    values, advantages = step.at_first_tokens(step.values), step.per_turn()
    critic = CriticActor.__new__(CriticActor)
    critic.trainer = SimpleNamespace(replay_buffer=NaiveReplayBuffer(1))
    for experience in step.experiences:
        critic.append(experience)
    starts: dict[int, dict[int, tuple[int, int]]] = {}
    for turn, number, start, _ in step.spans():
        starts.setdefault(number, {})[start] = turn
    targets: dict[tuple[int, int], float] = {}
    for number, item in enumerate(critic.trainer.replay_buffer.items):
        assert not item.returns.isnan().any()
        (columns,) = torch.where(item.action_mask)
        assert {*columns.tolist()} == {*starts.get(number, {})}
        targets |= {starts[number][at]: item.returns[at].item() for at in columns.tolist()}
    want = [advantage + value for advantage, value in zip(advantages, values, strict=True)]
    assert in_order(targets) == pytest.approx(want, abs=1e-5)


def test_the_kl_penalty_is_subtracted_from_the_reward_of_its_turn(arguments: Callable[..., SimpleNamespace]):
    step = Step(arguments("--algo.kl.init_coef=0.5"), random_batch(random.Random(5)), advantage="reinforce", multiple=7)
    taken = in_order({turn: 0.5 * step.kl[row][start:end].sum().item() for turn, row, start, end in step.spans()})
    rewards = [reward - less for reward, less in zip(step.rewards(), taken, strict=True)]
    want = [number for row in step.split(rewards) for number in brute_force.returns_to_go(row, GAMMA)]
    assert step.per_turn() == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("kind", ["episode", "turn"])
def test_length_penalties_are_those_of_a_response(arguments: Callable[..., SimpleNamespace], kind: str):
    flags = ["--reward.overlong_buffer_len=4", "--reward.overlong_penalty_factor=2", "--algo.kl.init_coef=0"]
    args = arguments(*flags, "--rollout.max_new_tokens=6", "--reward.stop_properly_penalty_coef=0.5")
    step = Step(args, random_batch(random.Random(5), kind), advantage="reinforce", multiple=7)
    turns = [turn for one in step.batch for row in one.rows for turn in row.turns]
    rewards = [
        (turn.reward - 2 * max(0, turn.end - turn.start - 2) / 4) * (0.5 if turn.truncated else 1) for turn in turns
    ]
    want = [number for row in step.split(rewards) for number in brute_force.returns_to_go(row, GAMMA)]
    assert step.per_turn() == pytest.approx(want, abs=1e-5)
    assert sorted(step.turns.reward.tolist()) == sorted(step.rewards()), "left alone"


def test_rewards_are_clipped_by_openrlhfs_flag(arguments: Callable[..., SimpleNamespace]):
    args = arguments("--reward.clip_range", "0.0", "0.5", "--algo.kl.init_coef=0")
    step = Step(args, random_batch(random.Random(5)), advantage="reinforce")
    rewards = [min(max(reward, 0.0), 0.5) for reward in step.rewards()]
    want = [number for row in step.split(rewards) for number in brute_force.returns_to_go(row, GAMMA)]
    assert step.per_turn() == pytest.approx(want, abs=1e-5)


def test_the_loss_is_the_same_however_rows_are_cut(arguments: Callable[..., SimpleNamespace]):
    """Its gradient for each token of each turn, by OpenRLHF's own loss over the whole batch."""

    def gradients(multiple: int) -> dict[tuple[tuple[int, int], int], float]:
        step = Step(
            arguments("--algo.kl.init_coef=0"), random_batch(random.Random(2)), advantage="rebn", multiple=multiple
        )
        batch = make_experience_batch(step.items())
        assert batch.action_mask is not None
        logprobs = torch.zeros(batch.action_mask.shape, requires_grad=True)
        loss, *_ = PolicyLoss()(
            logprobs,
            torch.zeros_like(logprobs),
            batch.advantages,
            action_mask=batch.action_mask,
            batch_num_tokens=batch.action_mask.sum().float(),
        )
        loss.backward()
        assert logprobs.grad is not None
        outside = logprobs.grad[batch.action_mask == 0]
        assert not outside.any()
        return {
            (turn, at): logprobs.grad[row, at].item()
            for turn, row, start, end in step.spans()
            for at in range(start, end)
        }

    whole, cut, filled = gradients(1), gradients(11), gradients(64)
    for other in (cut, filled):
        assert whole.keys() == other.keys()
        assert [other[key] for key in whole] == pytest.approx([*whole.values()], abs=1e-7)
    assert max(map(abs, whole.values())) > 1e-3


def test_a_row_has_the_sampled_ids():
    turns = [TurnSpan(0, 2, 3, 0.5, False), TurnSpan(1, 4, 5, 1.0, True)]
    one = row_experience(Row(as_token_ids([5, 6, 7, 8, 9]), 2, as_logprobs([0.0, 0.0, -0.5, 0.0, -0.25]), turns))
    assert one.sequences.tolist() == [[5, 6, 7, 8, 9]]
    assert one.action_mask.tolist() == [[0, 1, 0, 1]]
    assert one.rollout_log_probs.tolist() == [[0.0, -0.5, 0.0, -0.25]]
    assert one.info["reward"].tolist() == [1.5]
    assert one.truncated.tolist() == [True]
    assert one.response_length.tolist() == [2]


def test_an_update_without_targets_is_not_nan():
    some, none = torch.tensor([[1.0, 1.0, 0.0]]), torch.zeros(1, 3)
    assert loss_norm([some, none], None, 1, 2) == _optimizer_step_loss_norm([some, none], None, 1, 2)
    norm = loss_norm([none, none], None, 1, 2)
    logprobs = torch.zeros(1, 3, requires_grad=True)
    loss, *_ = PolicyLoss()(
        logprobs, torch.zeros(1, 3), torch.zeros(1, 3), action_mask=none, batch_num_tokens=norm["batch_num_tokens"]
    )
    loss.backward()
    assert loss.item() == 0.0
    assert logprobs.grad is not None
    assert not logprobs.grad.any()


def test_means_over_no_tokens_are_0():
    numbers, mask = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.tensor([[1, 0, 1], [0, 0, 0]])
    assert masked_mean(numbers, mask, dim=-1).tolist() == [2.0, 0.0]
    assert masked_mean(numbers, mask) == 2.0
    assert masked_mean(numbers, mask * 0) == 0.0


@pytest.mark.parametrize("multiple", [1, 11, 64])
def test_the_logged_kl_is_the_mean_over_tokens(arguments: Callable[..., SimpleNamespace], multiple: int):
    step = Step(
        arguments("--algo.kl.init_coef=0.5"), random_batch(random.Random(5)), advantage="rebn", multiple=multiple
    )
    tokens = torch.cat([step.kl[row][start:end] for _, row, start, end in step.spans()])
    for one in step.experiences:
        assert one.info["kl"].tolist() == pytest.approx([tokens.mean().item()] * len(one.sequences), abs=1e-6)


def test_constant_batches_give_zeros(arguments: Callable[..., SimpleNamespace]):
    episode = Episode("test:Babble-v0", 7)
    add_turn(episode, [1], [2, 3], -0.1)
    batch = [EpisodeRows.of(episode, "episode")] * 8
    assert Step(arguments("--algo.kl.init_coef=0"), batch, advantage="rebn").per_turn() == [0.0] * 8


def test_split_and_joined_again(arguments: Callable[..., SimpleNamespace]):
    """The adapter leaves nothing in `info`, which OpenRLHF turns into metrics."""
    step = Step(arguments("--algo.kl.init_coef=0"), random_batch(random.Random(2)), advantage="rebn")
    for experience in step.experiences:
        for item in split_experience_batch(experience):
            assert {*item.info} == {"kl", "reward", "return"}
