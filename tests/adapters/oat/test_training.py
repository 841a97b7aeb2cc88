"""Oat's own learner and actor on the CPU: they train on what was sampled, with advantages by their formulas."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from brute_force import expected, gae, returns_to_go
from oat.utils.deepspeed import DeepspeedStrategy
from runs import GAMMA, Run, arguments, train
from transformers import AutoModelForCausalLM

LAM = 0.8


def summaries(run: Run, batch: int) -> list[Any]:
    return [one.summary for one in run.learner.batches_of[batch] if one.summary is not None]


def turns_of(run: Run, batch: int) -> list[Any]:
    """(before, ids, reward, episode) of each turn that came in, in their order."""
    return [
        [(tuple(turn.prompt_ids), tuple(turn.response_ids), turn.rewards[-1]) for turn in one.turns]
        for one in run.learner.batches_of[batch]
    ]


def assert_trained(run: Run, batch: int, advantages: list[list[float]]) -> None:
    """Each turn with its number, and no other."""
    want = sorted(
        (before, ids, number)
        for episode, numbers in zip(turns_of(run, batch), advantages, strict=True)
        for (before, ids, _), number in zip(episode, numbers, strict=True)
    )
    got = sorted((one.before, one.ids, one.advantage) for one in run.batches[batch])
    assert [one[:2] for one in got] == [one[:2] for one in want]
    assert [one[2] for one in got] == pytest.approx([one[2] for one in want], abs=1e-5)


# -- one episode per environment, two updates, a reference model, plain SGD --------------------------------------------


@pytest.fixture(scope="module")
def plain(model: Path) -> Run:
    args = arguments(model, zero_stage=0, eval_steps=2)  # DeepSpeed knows ZeRO with Adam only
    before = DeepspeedStrategy.create_optimizer
    DeepspeedStrategy.create_optimizer = lambda self, net, **_: torch.optim.SGD(net.parameters(), lr=1.0)
    try:
        return train(args)
    finally:
        DeepspeedStrategy.create_optimizer = before


def test_sampled_ids_are_trained_ids(plain: Run):
    trained = Counter((one.before, one.ids) for batch in plain.batches for one in batch)
    evaluated = sum(trained.values())
    assert evaluated > 36
    assert not trained - Counter(plain.sampled)
    played = [episode for episode in plain.episodes[4:] if episode.slot < 12]
    assert sum(trained.values()) <= sum(len(episode.turns) for episode in played)


def test_a_batch_is_whole_episodes_one_of_each_environment(plain: Run):
    for batch in range(3):
        assert len(plain.learner.batches_of[batch]) == 12
        turns = [len(one.turns) for one in plain.learner.batches_of[batch]]
        assert min(turns) >= 1
        assert plain.learner.info[batch]["rollout/turns"] == sum(turns)
        assert plain.learner.info[batch]["episode/turns"] == pytest.approx(sum(turns) / 12)


def test_advantages_are_brute_force(plain: Run):
    for batch in range(3):
        rewards = [[reward for *_, reward in episode] for episode in turns_of(plain, batch)]
        assert_trained(plain, batch, expected("rebn", rewards, [0] * 12, GAMMA))
        flat = [number for one in rewards for number in returns_to_go(one, GAMMA)]
        assert plain.learner.info[batch]["advantage/return_mean"] == pytest.approx(sum(flat) / len(flat), abs=1e-5)


def test_a_step_is_the_policy_gradient(plain: Run, model: Path):
    """The weights after one step of SGD, from autograd on each turn alone."""
    policy = AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.float32)
    total = torch.zeros(())
    for one in plain.batches[0]:
        ids = torch.tensor([[*one.before, *one.ids]])
        logprobs = policy(ids).logits[0, len(one.before) - 1 : -1].log_softmax(-1)
        total = total + one.advantage * logprobs.gather(1, torch.tensor(one.ids)[:, None]).sum()
    (-total / (12 * 6)).backward()  # episodes, and the token limit of a response
    moved = 0.0
    for name, parameter in policy.named_parameters():
        if parameter.grad is None:
            continue
        trained = plain.learner.weights[1][name]
        assert torch.allclose(trained, parameter - parameter.grad, atol=2e-5), name
        moved = max(moved, parameter.grad.abs().max().item())
    assert moved > 1e-3


def test_a_batch_is_one_update_however_many_turns(plain: Run):
    assert plain.learner.updates == [1, 1, 1]
    assert all(rows % 4 == 0 for rows in plain.learner.rows)
    turns = [len(batch) for batch in plain.batches]
    assert any(rows > count for rows, count in zip(plain.learner.rows, turns, strict=True)), "some rows are padding"


def test_the_learner_has_the_probabilities_of_the_sampler(plain: Run):
    for info in plain.learner.info:
        assert abs(info["train/sampler_learner_prob_diff_max"]) < 1e-5
        assert abs(info["train/sampler_learner_prob_diff_min"]) < 1e-5
        assert not any(math.isnan(value) for value in info.values())


def test_an_evaluation_plays_the_same_tasks_each_time(plain: Run):
    assert len(plain.learner.evaluations) == 3  # before, after two batches, and at the end
    for metrics in plain.learner.evaluations:
        assert metrics["eval_rollout/episodes"] == 4
        assert {"eval_episode/return", "eval_episode/success"} <= metrics.keys()
    asked = [
        [one.seed for one in plain.episodes if one.run == run] for run in dict.fromkeys(e.run for e in plain.episodes)
    ]
    evaluations = [seeds for seeds in asked if len(seeds) == 4]
    assert len(evaluations) == 3
    assert all(sorted(seeds) == sorted(evaluations[0]) for seeds in evaluations)


# -- groups, more environments than a batch has episodes, environments that fail ---------------------------------------


@pytest.fixture(scope="module")
def groups(model: Path) -> Run:
    args = arguments(
        model,
        env=["test:Babble-v0", "test:Fragile-v0"],
        advantage="grpo",
        group_size=2,
        num_env=20,
        env_failure="drop",
        max_env_failure_share=None,
        max_train=72,
        train_batch_size=4,
        train_batch_size_per_device=2,
    )
    return train(args)


def test_grpo_compares_the_episodes_of_a_task(groups: Run):
    for batch in range(6):
        data = groups.learner.batches_of[batch]
        rewards = [[reward for *_, reward in episode] for episode in turns_of(groups, batch)]
        kept = [index for index, one in enumerate(rewards) if one]
        tasks = [data[index].turns[0].group for index in kept]
        assert max(Counter(tasks).values()) == 2
        seeds = {task: {data[i].summary.seed for i in kept if data[i].turns[0].group == task} for task in tasks}
        assert all(len(one) == 1 for one in seeds.values())
        numbers = dict(zip(kept, expected("grpo", [rewards[i] for i in kept], tasks, GAMMA), strict=True))
        assert_trained(groups, batch, [numbers.get(index, []) for index in range(len(rewards))])


def test_the_collector_gives_exactly_what_was_asked_for(groups: Run):
    assert [len(batch) for batch in groups.learner.batches_of] == [12] * 6
    info = groups.learner.info
    assert all(one["rollout/episodes"] + one["rollout/dropped"] == 12 for one in info)


def test_no_episode_is_thrown_away(groups: Run):
    """Every whole episode of the run is trained on once, whatever its length, or still waits for its batch."""
    trained = [one.summary for batch in groups.learner.batches_of for one in batch if one.summary is not None]
    keys = Counter((one.seed, one.group) for one in trained)
    assert all(count <= 2 for count in keys.values())
    carried = [batch[0].info["rollout/carried_turns"] for batch in groups.learner.batches_of]
    assert carried[0] == 0
    assert sum(carried) > 0
    for batch in groups.learner.batches_of:
        assert len({tuple(sorted(one.info)) for one in batch}) == 1, "the same keys in all items, or Oat's mean fails"


def test_updates_per_batch_do_not_depend_on_the_number_of_rows(groups: Run):
    assert groups.learner.updates == [3] * 6
    assert len({*groups.learner.rows}) > 1


# -- a critic, a penalty, a reference model ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def critic(model: Path) -> Run:
    args = arguments(
        model, advantage="gae", lam=LAM, beta=0.01, critic_learning_rate=1e-2, num_ppo_epochs=2, non_stop_penalty=-0.5
    )
    return train(args)


def test_gae_is_turn_level_with_the_value_at_the_first_token(critic: Run):
    for batch in range(3):
        got = {(one.before, one.ids): one for one in critic.batches[batch]}
        assert len({round(one.value, 5) for one in got.values()}) > 10
        for episode in turns_of(critic, batch):
            values = [got[before, ids].value for before, ids, _ in episode]
            numbers = gae([reward for *_, reward in episode], values, GAMMA, LAM)
            for (before, ids, _), value, number in zip(episode, values, numbers, strict=True):
                assert got[before, ids].advantage == pytest.approx(number, abs=1e-5)
                assert got[before, ids].return_ == pytest.approx(number + value, abs=1e-5)


def test_the_critic_learns(critic: Run):
    losses = [info["train/critic_loss"] for info in critic.learner.info]
    assert all(math.isfinite(loss) and loss > 0 for loss in losses)


def test_a_response_without_an_end_costs_what_oats_flag_says(critic: Run):
    played = {
        (tuple(turn.prompt_ids), tuple(turn.response_ids)): turn.reward - 0.5 * turn.truncated
        for episode in critic.episodes
        for turn in episode.turns
    }
    rewards = {
        key: reward
        for batch in range(3)
        for one in turns_of(critic, batch)
        for *key, reward in one
        for key in [tuple(key)]
    }
    assert rewards == pytest.approx({key: played[key] for key in rewards})
    assert any(turn.truncated for episode in critic.episodes for turn in episode.turns)
