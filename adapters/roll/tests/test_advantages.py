"""Advantages in ROLL's own code: its batches, its copies, its functions between ours and the loss."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gem_core.episode import Episode
from gem_roll._recording import ENTROPIES
from gem_roll._rows import columns, tensors, training_rows
from gem_roll.settings import ROLLSettings
from gem_support.brute_force import expected
from gem_support.hand_made import Said, hand_made
from gem_support.listening import UpdateListener, registered
from gem_train.report import RunReport
from gem_train.results import EpisodeResult

pytestmark = pytest.mark.needs_roll

GAMMA, LENGTH = 0.9, 48


def played(number: int, random: np.random.Generator) -> Episode:
    turns: list[Said] = []
    before = [1, 2]
    for _ in range(random.integers(1, 5)):
        response = random.integers(3, 8, random.integers(1, 4)).tolist()
        reward = float(random.normal())
        turns.append(Said(before, response, reward, [-1.0] * len(response)))
        before = [*before, *response, 9]
    return hand_made(*turns, seed=number, task_id=number // 2, slot=number)


EPISODES = [played(number, np.random.default_rng(number)) for number in range(8)]


def batch(kind: Any) -> Any:
    """A batch as ROLL's scheduler passes it: the rows of the episodes, and a dropped episode at the end."""
    from roll.distributed.scheduler.protocol import DataProto
    from tensordict import TensorDict

    parts = []
    for number, episode in enumerate([*EPISODES, None]):
        rows = training_rows(episode, kind)
        result = EpisodeResult(None if episode is None else episode.summary())
        names = {"episode": f"e{number}", "task_name": f"t{number // 2}"}
        beside = columns([(result, rows)], env_id="test:One-v0", env=number, group=number // 2, **names)
        filled = TensorDict(tensors(rows, LENGTH, 0), batch_size=len(rows))
        parts.append(DataProto(batch=filled, non_tensor_batch=beside, meta_info={"metrics": {}, "global_step": 6}))
    return DataProto.concat(parts)


def pipeline(name: str, kind: str, size: int) -> Any:
    """Our pipeline, with only the parts that adjusting a batch needs."""
    from gem_roll._pipeline import TurnPipeline

    made: Any = TurnPipeline.__new__(TurnPipeline)
    made._settings = ROLLSettings.of({"env": "test:One-v0", "advantage": name, "gamma": GAMMA, "row": kind})
    made._announced, made._memory, made._report = True, {}, RunReport(1, "test", live=False)
    training = SimpleNamespace(per_device_train_batch_size=size, gradient_accumulation_steps=1)
    actor = SimpleNamespace(training_args=training, infer_batch_size=1)
    made.pipeline_config = SimpleNamespace(actor_train=actor, adv_estimator="reinforce", step_reward_gamma=GAMMA)
    made.actor_train = SimpleNamespace(dp_size=1)
    made._train_step = lambda data, **options: data
    return made


@pytest.mark.parametrize("size", [1, 16])
@pytest.mark.parametrize("kind", ["episode", "turn"])
@pytest.mark.parametrize("name", ["reinforce", "rebn", "rebn_loo", "grpo", "drgrpo", "rloo"])
def test_estimators_equal_brute_force_whatever_is_copied(name: str, kind: str, size: int):
    made = pipeline(name, kind, size)
    filled = made.adjust_batch(batch(kind))
    rows = sum(len(training_rows(one, kind)) for one in EPISODES) + 1
    assert len(filled) == (rows if size == 1 else -(-rows // 16) * 16)
    assert filled.meta_info["gem_accumulation"] == len(filled) // size
    trained = made._train_on_turns(filled)
    want = expected(name, [[t.reward for t in one.turns] for one in EPISODES], [n // 2 for n in range(8)], GAMMA)
    advantages, mask = trained.batch["advantages"], trained.batch["response_mask"][:, 1:]
    assert not mask[rows:].any()
    spread = [
        number
        for episode, numbers in zip(EPISODES, want, strict=True)
        for turn, number in zip(episode.turns, numbers, strict=True)
        for _ in range(turn.start, turn.end)
    ]
    assert advantages[mask].tolist() == pytest.approx(spread, abs=1e-6)


def test_rolls_own_copies_distort_its_normalization():
    """The reason to compute advantages before copying: `step_reinforce` with batch statistics, almost ReBN."""
    from roll.pipeline.agentic.agentic_config import RewardNormalizationConfig
    from roll.pipeline.agentic.agentic_pipeline import AgenticPipeline
    from roll.pipeline.agentic.utils import compute_discounted_returns, compute_response_level_rewards

    def stock(size: int) -> Any:
        np.random.seed(0)  # ROLL draws copies with it
        config = SimpleNamespace(
            adv_estimator="step_reinforce",
            reward_normalization=RewardNormalizationConfig(grouping="batch", method="mean_std"),
            reward_clip=None,
        )
        data = batch("turn")[:-1]  # without the dropped episode: ROLL's own code has no such rows
        data = compute_discounted_returns(data, "step_reinforce", GAMMA)
        adjusted = AgenticPipeline.adjust_batch(pipeline("rebn", "turn", size), data, "copy")
        rewarded, _ = compute_response_level_rewards(adjusted, config)
        return rewarded.batch["response_level_rewards"][: len(data)]

    want = expected("rebn", [[t.reward for t in one.turns] for one in EPISODES], [0] * 8, GAMMA)
    flat = torch.tensor([number for numbers in want for number in numbers], dtype=torch.float32)
    count = len(flat)
    # Without copies it is ReBN except for the n - 1 of the deviation; with copies it differs.
    assert torch.allclose(stock(1) * (count / (count - 1)) ** 0.5, flat, atol=1e-5)
    assert (stock(16) * (count / (count - 1)) ** 0.5 - flat).abs().max() > 0.01


def test_rolls_functions_accept_our_batch():
    """Everything that ROLL calls between a batch and its update, on our rows with copies among them."""
    from roll.pipeline.agentic import agentic_pipeline as stock
    from roll.utils.kl_controller import get_kl_controller

    made = pipeline("rebn", "episode", 16)
    data = batch("episode")
    stock.compute_rollout_traj_metrics(data)
    data = stock.compute_discounted_returns(data, "reinforce", GAMMA)
    data = made.adjust_batch(data)
    zeros = torch.zeros(data.batch["attention_mask"][:, 1:].shape)
    data.batch["old_log_probs"], data.batch["ref_log_probs"] = zeros, zeros.clone()
    config = SimpleNamespace(
        adv_estimator="reinforce",
        reward_normalization=SimpleNamespace(grouping="batch", norm_mean_type=None, norm_std_type=None),
        reward_clip=None,
        add_token_level_kl=False,
        kl_penalty="kl",
    )
    data, _ = stock.get_agentic_response_level_mask(data, config)
    data, _ = stock.compute_response_level_rewards(batch=data, pipeline_config=config)
    data, _ = stock.compute_token_reward(data, config, get_kl_controller(0.0, None, 1))
    data = stock.agentic_compute_advantage(data, 1.0, 0.95, "reinforce")
    stock.batch_balance(data, dp_size=2, minibatch_size=len(data))
    trained = made._train_on_turns(data)
    metrics = stock.compute_train_data_metrics(trained)
    assert all(np.isfinite(number) for number in metrics.values())
    found = trained.batch["advantages"][trained.batch["response_mask"][:, 1:]]
    want = expected("rebn", [[t.reward for t in one.turns] for one in EPISODES], [0] * 8, GAMMA)
    spread = [
        n
        for one, ns in zip(EPISODES, want, strict=True)
        for t, n in zip(one.turns, ns, strict=True)
        for _ in range(t.start, t.end)
    ]
    assert sorted(found.tolist()) == pytest.approx(sorted(spread), abs=1e-6)


@pytest.fixture
def listener() -> Iterator[UpdateListener]:
    yield from registered(UpdateListener())


@pytest.mark.parametrize("kind", ["episode", "turn"])
def test_an_update_is_reported_with_the_numbers_of_each_turn(listener: UpdateListener, kind: str):
    """Whatever order ROLL gives the rows, and whatever it copies."""
    from roll.distributed.scheduler.protocol import DataProto
    from roll.utils.functionals import batch_balance

    made = pipeline("rebn", kind, 16)
    data = made.adjust_batch(batch(kind))
    data.meta_info["global_step"] = 6
    data.reorder(torch.randperm(len(data), generator=torch.Generator().manual_seed(0)))
    ids = data.batch["input_ids"][:, 1:]
    numbers = marked(ids, torch.arange(1, LENGTH))
    made._log_probs = lambda rows, **options: DataProto.from_dict({"entropy": 2 * numbers})
    made._log_probs_with_entropies(data, blocking=True)
    data.batch["old_log_probs"] = -numbers
    batch_balance(data, dp_size=2, minibatch_size=len(data))
    assert not torch.equal(data.batch["input_ids"][:, 1:], ids), "ROLL moved rows"
    trained = made._train_on_turns(data)
    assert ENTROPIES not in trained.batch
    (update,) = listener.updates
    assert (update.number, update.rank, update.ranks) == (7, 0, 1)
    assert [*update.episodes] == [one.id for one in EPISODES]
    assert update.logprobs is not None
    assert update.entropies is not None
    want = expected("rebn", [[t.reward for t in one.turns] for one in EPISODES], [0] * 8, GAMMA)
    assert len(update.episode) == sum(len(one.turns) for one in EPISODES)
    for index, (number, position) in enumerate(zip(update.episode, update.position, strict=True)):
        turn = EPISODES[number].turns[position]
        response = torch.tensor(EPISODES[number].response_ids(turn))
        own = marked(response, torch.arange(turn.start, turn.end)).tolist()
        assert update.advantage[index] == pytest.approx(want[number][position], abs=1e-6)
        assert (-update.logprobs[index]).tolist() == pytest.approx(own)
        assert (update.entropies[index] / 2).tolist() == pytest.approx(own)


def marked(ids: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """A number for each token that says which one it is."""
    return ids + columns / 100


def test_a_batch_without_a_turn_trains_nothing_and_breaks_nothing():
    made = pipeline("rebn", "turn", 4)
    trained = made._train_on_turns(made.adjust_batch(batch("turn")[-1:]))
    assert len(trained) == 4
    assert not trained.batch["response_mask"].any()
    assert not trained.batch["advantages"].any()
    assert trained.meta_info["metrics"]["rollout/dropped"] == 1
