"""Oat's own learner and actor on the CPU: they train on the sampled ids, with advantages as in the formulas."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from runs import GAMMA, Run, WatchedLearner, arguments, train, train_with_sgd
from transformers import AutoModelForCausalLM, AutoTokenizer

import gem_core
from gem_support import kinds
from gem_support.babble import Babble
from gem_support.brute_force import expected, gae, returns_to_go
from gem_support.same_tasks import LIMITED, assert_first_batch, assert_two_at_once_at_most
from gem_support.training_run import token_logprobs
from gem_train.records import RecordedEpisode, open_records, read_episodes
from gem_train.rollout import StopReason

LAM = 0.8


def summaries(run: Run, batch: int) -> list[Any]:
    return [one.summary for one in run.learner.batches_of[batch] if one.summary is not None]


def turns_of(run: Run, batch: int) -> list[Any]:
    """(before, ids, reward) of each turn of each episode, as in Oat's rows."""
    return [
        [(tuple(turn.prompt_ids), tuple(turn.response_ids), turn.rewards[-1]) for turn in one]
        for one in run.learner.turns_of[batch]
    ]


def assert_trained(run: Run, batch: int, advantages: list[list[float]]) -> None:
    """Exactly the turns, each with its number."""
    want = sorted(
        (before, ids, number)
        for episode, numbers in zip(turns_of(run, batch), advantages, strict=True)
        for (before, ids, _), number in zip(episode, numbers, strict=True)
    )
    got = sorted((one.before, one.ids, one.advantage) for one in run.batches[batch])
    assert [one[:2] for one in got] == [one[:2] for one in want]
    assert [one[2] for one in got] == pytest.approx([one[2] for one in want], abs=1e-5)


def logprob(policy: Any, before: Sequence[int], ids: Sequence[int]) -> torch.Tensor:
    """The log-probability of all ids together, after the ids before."""
    return token_logprobs(policy, torch.tensor([*before, *ids]))[len(before) - 1 :].sum()


def test_the_seed_decides_the_first_batch_of_a_mixture_with_limits(model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COUNT_AT_ONCE", "1")
    sizes = {"rollout_batch_size_per_device": 8, "train_batch_size": 8, "max_train": 8, "max_model_len": 1024}
    run = train(arguments(model, **LIMITED, **sizes))
    assert_first_batch((one.env_id, one.seed) for one in summaries(run, 0))
    assert_two_at_once_at_most(run.training_episodes)


def test_environments_of_every_kind_train_in_one_run_with_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    envs = {"env": [*kinds.limits()], "env_limits": [*kinds.limits().values()], "wrappers": kinds.WRAPPERS}
    args = arguments(kinds.saved_model(tmp_path), **envs, max_train=12, max_model_len=kinds.PROMPT + kinds.REST)
    run = train(args)
    kinds.assert_played(run.training_episodes)
    kinds.assert_warned(capsys.readouterr().out, "--generate_max_length")
    played = [(one, turn) for one in run.training_episodes for turn in one.turns]
    ids = Counter((tuple(one.prompt_ids(turn)), tuple(one.response_ids(turn))) for one, turn in played)
    assert Counter((one.before, one.ids) for one in run.batches[0]) == ids == Counter(run.sampled)
    rewards = [[turn.reward for turn in one.turns] for one in run.training_episodes]
    numbers = expected("rebn", rewards, [0] * len(rewards), GAMMA)
    want = sorted(
        (tuple(one.prompt_ids(turn)), tuple(one.response_ids(turn)), number)
        for one, row in zip(run.training_episodes, numbers, strict=True)
        for turn, number in zip(one.turns, row, strict=True)
    )
    assert [one[:3] for one in sorted(run.batches[0])] == [(*one[:2], pytest.approx(one[2], abs=1e-5)) for one in want]


# -- one episode per environment, plain SGD ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train_with_sgd(arguments(model, eval_steps=2, **recorded(tmp_path_factory)))


def recorded(folders: pytest.TempPathFactory) -> dict[str, str]:
    """The settings of a run that is recorded."""
    return {"record": "full", "record_folder": str(folders.mktemp("records"))}


def test_sampled_ids_are_trained_ids(plain: Run):
    trained = Counter((one.before, one.ids) for batch in plain.batches for one in batch)
    played = [(episode, turn) for episode in plain.training_episodes for turn in episode.turns]
    assert trained == Counter((tuple(one.prompt_ids(turn)), tuple(one.response_ids(turn))) for one, turn in played)
    assert not trained - Counter(plain.sampled)
    assert sum(trained.values()) > 36


def test_a_batch_has_whole_episodes_one_per_environment(plain: Run):
    for batch in range(3):
        assert len(plain.learner.batches_of[batch]) == 12
        turns = [len(one) for one in plain.learner.turns_of[batch]]
        assert turns == [one.summary.turns for one in plain.learner.batches_of[batch]]
        assert min(turns) >= 1
        assert plain.learner.info[batch]["rollout/turns"] == sum(turns)
        assert plain.learner.info[batch]["episode/turns"] == pytest.approx(sum(turns) / 12)


def test_advantages_equal_brute_force(plain: Run):
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
        total = total + one.advantage * logprob(policy, one.before, one.ids)
    (-total / (12 * 6)).backward()  # episodes, and the token limit of a response
    moved = 0.0
    for name, parameter in policy.named_parameters():
        if parameter.grad is None:
            continue
        trained = plain.learner.weights[1][name]
        assert torch.allclose(trained, parameter - parameter.grad, atol=2e-5), name
        moved = max(moved, parameter.grad.abs().max().item())
    assert moved > 1e-3


def test_a_kl_penalty_is_subtracted_from_its_turn(model: Path):
    run = train_with_sgd(arguments(model, kl_penalty_coef=0.5, max_train=24))
    reference, policy = (AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.float32) for _ in range(2))
    policy.load_state_dict(run.learner.weights[1], strict=False)
    episodes = turns_of(run, 1)
    with torch.no_grad():
        apart = [[(logprob(policy, *turn) - logprob(reference, *turn)).item() for *turn, _ in one] for one in episodes]
    assert max(abs(number) for one in apart for number in one) > 0.1
    rewards = [
        [reward - 0.5 * number for (*_, reward), number in zip(*pair, strict=True)]
        for pair in zip(episodes, apart, strict=True)
    ]
    assert_trained(run, 1, expected("rebn", rewards, [0] * 12, GAMMA))


def test_a_batch_is_one_update_whatever_the_number_of_turns(plain: Run):
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
    runs = dict.fromkeys(episode.run for episode in plain.episodes)
    evaluations = [sorted(one.seed for one in plain.episodes if one.run == run) for run in runs]
    evaluations = [seeds for seeds in evaluations if len(seeds) == 4]
    assert len(evaluations) == 3
    assert evaluations[0] == evaluations[1] == evaluations[2]


# -- groups, more environments than a batch has episodes, environments that fail ---------------------------------------


@pytest.fixture(scope="module")
def groups(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    args = arguments(
        model,
        env=["test:Fragile-v0"],
        advantage="grpo",
        group_size=2,
        max_concurrent=20,
        env_failure="drop",
        max_env_failure_share=None,
        max_train=72,
        train_batch_size=4,
        train_batch_size_per_device=2,
        **recorded(tmp_path_factory),
    )
    return train(args)


def test_grpo_compares_the_episodes_of_a_task(groups: Run):
    for batch in range(6):
        data = groups.learner.batches_of[batch]
        rewards = [[reward for *_, reward in episode] for episode in turns_of(groups, batch)]
        kept = [index for index, one in enumerate(rewards) if one]
        tasks = [data[index].summary.group_id for index in kept]
        assert max(Counter(tasks).values()) == 2
        seeds = {task: {data[i].summary.seed for i in kept if data[i].summary.group_id == task} for task in tasks}
        assert all(len(one) == 1 for one in seeds.values())
        numbers = dict(zip(kept, expected("grpo", [rewards[i] for i in kept], tasks, GAMMA), strict=True))
        assert_trained(groups, batch, [numbers.get(index, []) for index in range(len(rewards))])


def test_the_collector_returns_exactly_the_requested_number(groups: Run):
    assert [len(batch) for batch in groups.learner.batches_of] == [12] * 6
    info = groups.learner.info
    assert all(one["rollout/episodes"] == 12 for one in info)
    failed = sum(episode.error is not None for episode in groups.episodes)
    assert 0 < sum(one["rollout/dropped"] for one in info) <= failed


def test_no_episode_is_lost(groups: Run):
    """Each complete group is trained on once, in the order of completion, or waits for its batch."""
    trained = Counter((one.summary.seed, one.summary.group_id) for data in groups.learner.batches_of for one in data)
    assert {*trained.values()} == {2}
    failed = {(episode.seed, episode.group_id) for episode in groups.episodes if episode.error is not None}
    whole = Counter((one.seed, one.group_id) for one in groups.episodes if (one.seed, one.group_id) not in failed)
    waiting = sum((whole - trained).values())
    assert waiting == groups.learner.batches_of[-1][0].info["rollout/surplus"]
    carried = [batch[0].info["rollout/carried_turns"] for batch in groups.learner.batches_of]
    assert carried[0] == 0
    assert sum(carried) > 0
    for batch in groups.learner.batches_of:
        assert len({tuple(sorted(one.info)) for one in batch}) == 1, "the same keys in all items, or Oat's mean fails"


def test_staleness_is_that_of_the_sampled_versions(groups: Run):
    versions = [[one for item in summaries(groups, batch) for one in item.versions] for batch in range(6)]
    updates = 3  # on each batch of 12 episodes, 4 for each
    assert groups.learner.model.model.global_steps == 6 * updates
    for batch, (known, info) in enumerate(zip(versions, groups.learner.info, strict=True)):
        assert {one % updates for one, _ in known} == {0}
        batch *= updates
        tokens = sum(count for _, count in known)
        assert info["staleness/mean"] == pytest.approx(sum((batch - one) * count for one, count in known) / tokens)
        assert info["staleness/max"] == batch - min(one for one, _ in known)
    assert groups.learner.info[0]["staleness/max"] == 0
    assert max(info["staleness/max"] for info in groups.learner.info) > 0  # environments carry turns over


def test_updates_per_batch_do_not_depend_on_the_number_of_rows(groups: Run):
    assert groups.learner.updates == [3] * 6
    assert len({*groups.learner.rows}) > 1


# -- a critic, a penalty, a reference model ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def critic(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    args = arguments(
        model,
        advantage="gae",
        lam=LAM,
        beta=0.01,
        critic_learning_rate=1e-2,
        num_ppo_epochs=2,
        lr_scheduler="cosine_with_min_lr",
        reward_scale=0.5,
        non_stop_penalty=-0.5,
        **recorded(tmp_path_factory),
    )
    return train(args)


def test_gae_is_turn_level_with_the_value_at_the_first_token(critic: Run):
    for batch in range(3):
        got = {(one.before, one.ids): one for one in critic.batches[batch]}
        assert len({round(one.value, 5) for one in got.values()}) > 10
        for episode in turns_of(critic, batch):
            values = [got[before, ids].value for before, ids, _ in episode]
            numbers = gae([0.5 * reward for *_, reward in episode], values, GAMMA, LAM)
            for (before, ids, _), value, number in zip(episode, values, numbers, strict=True):
                assert got[before, ids].advantage == pytest.approx(number, abs=1e-5)
                assert got[before, ids].return_ == pytest.approx(number + value, abs=1e-5)


def test_the_critic_learns_the_targets(critic: Run):
    """The second pass over a batch starts closer to the targets than the first."""
    assert all(math.isfinite(info["train/critic_loss"]) for info in critic.learner.info)
    assert critic.learner.critic.global_steps == 6
    off = [sum((one.return_ - one.value) ** 2 for one in batch) / len(batch) for batch in critic.batches]
    assert off[-1] < off[0]


def test_the_schedule_ends_with_the_last_pass_over_the_last_batch(critic: Run):
    assert critic.learner.updates == [2, 2, 2]
    rates = [line["misc/lr"] for line in critic.learner.logs if "train/pg_loss" in line]
    assert rates == sorted(rates, reverse=True)
    assert critic.learner.scheduler.get_last_lr()[0] == pytest.approx(1e-4)  # a tenth of its initial value


def test_a_response_without_an_end_costs_the_penalty_of_oats_flag(critic: Run):
    played = {
        (tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn))): turn.reward - 0.5 * turn.truncated
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


# -- records -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "groups", "critic"])
def test_records_have_the_numbers_of_the_loss(name: str, request: pytest.FixtureRequest):
    run: Run = request.getfixturevalue(name)
    records = open_records(run.learner.args.record_folder)
    assert records.gaps == []
    assert records.settings["oat"]["cliprange"] == run.learner.args.cliprange
    assert "oat-llm" in records.versions
    for number, batch in enumerate(run.learner.batches_of, 1):
        ids = {one.summary.id for one in batch if one.summary is not None}
        assert {one.id for one in records.summaries if one.update == number} == ids
        assert any(one.summary is not None and one.summary.turns for one in batch)
    assert_numbers_of_the_loss(run, [*read_episodes(records.path)])


def assert_numbers_of_the_loss(run: Run, episodes: list[RecordedEpisode]) -> None:
    """Assert that each token in the loss is recorded, and that a recorded token has the numbers of the loss."""
    trained = [one for one in episodes if one.trained is not None]
    assert {one.summary.split for one in trained} == {"train"}
    found: list[Counter[tuple[int, ...]]] = [Counter() for _ in run.learner.losses]
    for one in trained:
        assert one.trained is not None
        for turn, advantage, logprobs in zip(
            one.episode.turns, one.trained.advantages, one.trained.logprobs, strict=True
        ):
            ids = tuple(one.episode.sequences[turn.sequence].ids[: turn.end])
            if advantage is None:
                assert ids not in run.learner.losses[one.trained.update - 1]
                continue
            found[one.trained.update - 1][ids] += 1
            sampled = one.episode.response_logprobs(turn)
            assert logprobs is not None
            assert sampled is not None
            numbers = [[advantage] * len(sampled), logprobs, sampled]
            in_loss = run.learner.losses[one.trained.update - 1][ids]
            assert any(np.allclose(numbers, tokens, rtol=0, atol=1e-6) for tokens in in_loss)
    passes = run.learner.args.num_ppo_epochs
    for rows, seen in zip(found, run.learner.losses, strict=True):
        assert {ids: passes * count for ids, count in rows.items()} == {ids: len(one) for ids, one in seen.items()}


def test_records_have_entropies_and_texts(plain: Run, model: Path):
    records = open_records(plain.learner.args.record_folder)
    policy = AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.float32)
    first = [one for one in read_episodes(records.path) if one.summary.update == 1]
    for one in first:
        (sequence,) = one.episode.sequences
        with torch.no_grad():
            chances = policy(torch.tensor([sequence.ids.tolist()])).logits[0].log_softmax(-1)
        entropies = -(chances.exp() * chances).sum(-1)
        assert one.trained is not None
        for turn, recorded in zip(one.episode.turns, one.trained.entropies, strict=True):
            assert recorded is not None
            assert [*recorded] == pytest.approx(entropies[turn.start - 1 : turn.end - 1].tolist(), abs=1e-4)
        assert all(token in records.texts for token in sequence.ids)
    assert {one.split for one in records.summaries} == {"train", "eval"}
    assert all(one.update is None for one in records.summaries if one.split == "eval")


def test_records_lack_turns_that_the_loss_leaves_out(model: Path, tmp_path: Path):
    lengths = {"generate_max_length": 64, "max_model_len": 1024}  # some responses end
    args = arguments(model, ignore_no_eos=True, max_train=12, record="full", record_folder=str(tmp_path), **lengths)
    run = train(args)
    episodes = [*read_episodes(tmp_path)]
    assert_numbers_of_the_loss(run, episodes)
    for one in episodes:
        assert one.trained is not None
        assert [number is None for number in one.trained.advantages] == [turn.truncated for turn in one.episode.turns]
    assert any(turn.truncated for one in episodes for turn in one.episode.turns)


def test_summaries_are_trained_as_they_were_sampled(model: Path):
    envs = {"env": ["test:Babble-v0", "test:Wander-v0"], "env_weights": [3.0, 1.0]}
    run = train(arguments(model, **envs, compaction="policy", max_model_len=640, max_train=12))
    assert_trained(
        run, 0, expected("rebn", [[reward for *_, reward in one] for one in turns_of(run, 0)], [0] * 12, GAMMA)
    )
    long = [one for one in run.training_episodes if one.env_id == "test:Wander-v0"]
    assert len(long) == 3
    assert all(len(one.turns) > 24 and len(one.sequences) > 1 for one in long)
    assert Counter((one.before, one.ids) for one in run.batches[0]) == Counter(run.sampled)


# -- what a run leaves behind ------------------------------------------------------------------------------------------


class Held(Babble):
    """Counts its open instances."""

    open: ClassVar[set[int]] = set()
    most = 0

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        Held.open.add(id(self))
        Held.most = max(Held.most, len(Held.open))
        return super().reset(seed=seed, **options)

    def close(self) -> None:
        Held.open.discard(id(self))


gem_core.register("test:Held-v0", Held)


def test_environments_are_closed_and_evaluations_are_reported_at_once(model: Path, tmp_path: Path):
    metrics = tmp_path / "metrics.jsonl"
    seen: list[list[dict[str, float]]] = []

    def watch(learner: WatchedLearner) -> None:
        learn = learner.learn

        def watched(learning_round: int) -> dict[str, Any]:
            lines = metrics.read_text().splitlines() if metrics.exists() else []
            seen.append([json.loads(line) for line in lines])
            return learn(learning_round)

        learner.learn = watched  # pyright: ignore[reportAttributeAccessIssue]

    train(arguments(model, env=["test:Held-v0"], eval_steps=2, report=str(tmp_path)), change=watch)
    assert Held.most == 16  # 12 for training, which stay open while 4 are evaluated
    assert not Held.open
    assert [["eval_episode/return" in line for line in lines] for lines in seen] == [
        [True],
        [True, False],
        [True, False, True],
    ]
    assert "eval_episode/return" in json.loads(metrics.read_text().splitlines()[-1])


def test_a_template_may_lack_the_tokenizers_bos(model: Path, tmp_path: Path):
    """Oat's own `generate` ends the run if a prompt has no BOS token."""
    shutil.copytree(model, tmp_path / "model", ignore=shutil.ignore_patterns("out"))
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.add_special_tokens({"bos_token": "<|bos|>"})
    tokenizer.save_pretrained(tmp_path / "model")
    run = train(arguments(tmp_path / "model", max_train=12))
    assert all(tokenizer.bos_token_id not in one.before for one in run.batches[0])
    assert len(run.learner.batches_of[0]) == 12


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_environments_that_raise_hang_die_and_overflow_cost_their_own_episodes(model: Path):
    args = arguments(
        model,
        env=["test:Babble-v0", "test:Hostile-v0", "test:Chatty-v0"],
        env_weights=[1.0, 2.0, 1.0],
        vector_backend="process",
        vector_workers=1,
        env_timeout=2.0,
        max_env_failure_share=None,
        seed=7,  # each of the hostile fates occurs with this seed
    )
    run = train(args)
    assert [info["rollout/episodes"] for info in run.learner.info] == [12, 12, 12]
    reasons = Counter(episode.stop_reason for episode in run.episodes)
    assert {*reasons} == {StopReason.TERMINATED, StopReason.ENV_ERROR, StopReason.CONTEXT_FULL}
    said = " ".join({str(episode.error) for episode in run.episodes if episode.error})
    assert "lost the connection" in said  # raised
    assert "within 2" in said  # hung
    assert "process" in said  # died
    assert sum(info["env/errors"] for info in run.learner.info) > 0
