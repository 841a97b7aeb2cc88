"""verl's own trainer on the CPU: it trains on the sampled ids, and no environment stops it."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import Run, train, trained_responses
from transformers import AutoModelForCausalLM

from gem_core.seeding import derive_seed
from gem_cpu.verl import separate as separate_devices
from gem_support import kinds, pairs_match
from gem_support.brute_force import expected, gae, returns_to_go
from gem_support.byte_level import byte_level_bpe
from gem_support.forks import are_forks
from gem_support.hostile_run import (
    assert_every_episode_is_counted,
    assert_groups_play_one_task,
    assert_nothing_stopped_it,
    assert_the_limit_held,
)
from gem_support.loss_numbers import assert_same_numbers, assert_whole_run, turns_in_loss, turns_in_record
from gem_support.same_tasks import FIRST_BATCH, SEED
from gem_support.training_run import (
    SECONDS,
    Response,
    assert_gradient,
    assert_policy_gradient,
    assert_summaries_were_trained,
    token_logprobs,
)
from gem_tiny import tiny_model
from gem_train.records import open_records

pytestmark = [pytest.mark.timeout(SECONDS * 2), pytest.mark.uncertain("a real run: Ray has its own time limits")]

GAMMA, LAM = 0.9, 0.8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a tokenizer for which decoding and encoding again gives other ids."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = byte_level_bpe()
    tokenizer.save_pretrained(folder)
    tiny_model(tokenizer, seed=0).save_pretrained(folder)
    return folder


COMMON = [
    f"algorithm.gamma={GAMMA}",
    "gem.max_response_tokens=6",
    "gem.truncated_is_invalid=False",
    "data.max_prompt_length=128",
    "data.max_response_length=256",
]


# -- two ranks, a row per turn, groups, environments that misbehave ---------------------------------------------------


SGD = [
    "actor_rollout_ref.actor.optim.optimizer=SGD",
    "actor_rollout_ref.actor.optim.lr=1.0",
    "actor_rollout_ref.actor.optim.weight_decay=0",
    "actor_rollout_ref.actor.optim.override_optimizer_config={}",
    "actor_rollout_ref.actor.optim.clip_grad=1e9",
]
HOSTILE = [
    "gem.env=[test:Babble-v0,test:Hostile-v0,test:Chatty-v0]",
    "gem.env_weights=[2,3,1]",
    "gem.env_limits=[1,0,0]",
    "gem.eval_env=game:Corridor-v0",
    "gem.eval_episodes=4",
    "gem.row=turn",
    "gem.history=2",
    "gem.seed=23",  # each of the hostile fates occurs with this seed
    "gem.vector_backend=process",
    "gem.vector_workers=1",
    "gem.env_timeout=2",
    "gem.max_env_failure_share=null",
    "algorithm.adv_estimator=grpo",
    "actor_rollout_ref.rollout.n=2",
    *SGD,
    "actor_rollout_ref.actor.checkpoint.save_contents=[model,optimizer,extra,hf_model]",
    "data.train_batch_size=12",
    "actor_rollout_ref.actor.ppo_mini_batch_size=12",
    "trainer.total_training_steps=3",
    "trainer.save_freq=1",
    "trainer.test_freq=3",
]


@pytest.fixture(scope="module")
def hostile(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("hostile"), model, [*COMMON, *HOSTILE], ranks=2)


def test_environments_that_raise_hang_die_and_overflow_do_not_stop_it(hostile: Run):
    assert_nothing_stopped_it(hostile)


def test_every_episode_is_counted(hostile: Run):
    assert_every_episode_is_counted(hostile)


def test_members_of_a_group_play_the_same_task(hostile: Run):
    assert_groups_play_one_task(hostile)


def test_an_environment_has_as_many_episodes_under_way_as_its_limit_allows(hostile: Run):
    assert_the_limit_held(hostile)


def test_the_seed_decides_every_task_on_two_ranks(hostile: Run):
    """With the formula of `same_tasks`, but for other environments."""
    seeds = {one.slot: one.seed for one in hostile.episodes if one.env_id.startswith("test:")}
    assert seeds == {task: derive_seed(derive_seed(23, "train"), task) for task in range(36)}


def test_sampled_ids_are_trained_ids(hostile: Run):
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in hostile.sampled)
    for batch in hostile.batches:
        trained = Counter((one.before, one.ids) for one in trained_responses(batch))
        assert trained
        assert not trained - sampled
        assert_same_probabilities(batch)


def assert_same_probabilities(batch: dict[str, Any]) -> None:
    """The ids in both records: sampled and trained."""
    columns = [batch[name] for name in ("response_mask", "rollout_log_probs", "old_log_probs")]
    for mask, rollout, old in zip(*columns, strict=True):
        assert torch.allclose(rollout[mask.bool()], old[mask.bool()], atol=1e-4)


def test_advantages_equal_brute_force_over_the_global_batch(hostile: Run):
    assert_expected(hostile, "grpo", rows=12)


def test_validation_logs_each_environment(hostile: Run):
    last = hostile.metrics[-1]
    assert last["eval_rollout/episodes"] == 4
    assert -1.0 <= last["eval_episode/return"] <= 1.0
    assert 0.0 <= last["val-core/game:Corridor-v0/acc/mean@1"] <= 1.0


def test_a_step_is_the_policy_gradient(hostile: Run, model: Path):
    """The weights after one step of SGD on two ranks, from autograd on each turn alone."""
    after = hostile.folder / "checkpoints" / "global_step_1" / "actor" / "huggingface"
    # The number of episodes, times the token limit of a response.
    assert_policy_gradient(model, after, trained_responses(hostile.batches[0]), 24 * 6)


def test_nothing_is_left_behind(hostile: Run):
    assert hostile.left == []


def test_workers_are_forks_of_a_process_that_has_imported_verl(hostile: Run):
    # The driver, the trainer, an agent loop, and two policies with their servers.
    assert are_forks(hostile.folder) == [True] * 7


def test_a_resumed_run_continues_where_it_stopped(hostile: Run, model: Path, tmp_path: Path):
    shutil.copytree(hostile.folder / "checkpoints", tmp_path / "checkpoints")
    (tmp_path / "report").mkdir()
    lines = (hostile.folder / "report" / "metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "report" / "metrics.jsonl").write_text("".join(lines[:2]))
    flags = ["trainer.total_training_steps=4", "trainer.val_before_train=True", "trainer.test_freq=-1"]
    resumed = train(tmp_path, model, [*COMMON, *HOSTILE, *flags], ranks=2)
    assert resumed.code == 0, resumed.output[-3000:]
    assert resumed.metrics[:2] == hostile.metrics[:2]
    evaluated, trained = resumed.metrics[2:]
    assert (evaluated["step"], "eval_episode/return" in evaluated, "episode/return" in evaluated) == (3, True, False)
    assert (trained["step"], "eval_episode/return" in trained, "episode/return" in trained) == (4, False, True)
    seeds, before = ({one.seed for one in run.episodes if one.env_id.startswith("test:")} for run in (resumed, hostile))
    assert seeds
    assert not seeds & before
    recorded = open_records(tmp_path / "records").summaries
    assert {one.update for one in recorded if one.split == "train"} == {4}
    weights = [tmp_path / "checkpoints" / f"global_step_{step}" / "actor" / "huggingface" for step in (3, 4)]
    (batch,) = resumed.batches
    assert_policy_gradient(*weights, trained_responses(batch), 24 * 6)
    assert_same_probabilities(batch)


# -- a row per episode, with a critic, on environments of every kind ---------------------------------------------------


@pytest.fixture(scope="module")
def critic(tmp_path_factory: pytest.TempPathFactory) -> Run:
    model = kinds.saved_model(tmp_path_factory.mktemp("kinds"))
    flags = [
        "gem.track=[tensorboard]",
        f"gem.env=[{','.join(kinds.limits())}]",
        f"gem.env_limits={[*kinds.limits().values()]}",
        f"gem.wrappers=[{','.join(kinds.WRAPPERS)}]",
        f"gem.seed={SEED}",
        f"data.max_prompt_length={kinds.PROMPT}",
        f"data.max_response_length={kinds.REST}",
        "algorithm.adv_estimator=gae",
        f"algorithm.lam={LAM}",
        f"critic.model.path={model}",
        f"critic.model.tokenizer_path={model}",
        "critic.optim.lr=1e-2",
        "data.train_batch_size=16",
        "actor_rollout_ref.actor.ppo_mini_batch_size=8",
        "trainer.total_training_steps=3",
    ]
    return train(tmp_path_factory.mktemp("critic"), model, [*COMMON, *flags])


def test_environments_of_every_kind_train_within_their_limits(critic: Run):
    assert critic.code == 0, critic.output[-3000:]
    kinds.assert_played(critic.episodes)
    kinds.assert_warned(critic.output, "gem.max_response_tokens")


def test_a_tracker_has_each_step_and_episodes_of_other_processes(critic: Run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(critic.folder / "report" / "tensorboard"), size_guidance={"tensors": 0})
    found.Reload()
    returns = {one.step: one.value for one in found.Scalars("episode/return")}
    assert returns == {line["step"]: pytest.approx(line["episode/return"]) for line in critic.metrics}
    episodes = {one.step: one.tensor_proto.string_val[0].decode() for one in found.Tensors("episodes/0")}
    assert sorted(episodes) == sorted(returns)
    assert all("[assistant]" in text for text in episodes.values())
    assert not (critic.folder / "report" / "samples").exists()


def test_the_seed_decides_the_first_tasks(critic: Run):
    """The same as in every framework, but in other environments; `test_tasks.py` tests which."""
    seeds = {one.slot: one.seed for one in critic.episodes}
    assert [seeds[task] for task in range(len(FIRST_BATCH))] == [seed for _, seed in FIRST_BATCH]


def test_gae_is_turn_level_with_the_value_at_the_first_token(critic: Run):
    steps = critic.episodes_by_step(16)
    assert len(steps) == len(critic.batches) == 3
    for step, batch in enumerate(critic.batches):
        values = values_at_first_tokens(batch)
        assert len({round(value, 6) for value in values.values()}) > 10
        want: list[Response] = []
        for episode in steps[step]:
            keys = [(tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn))) for turn in episode.turns]
            critics = [values[key] for key in keys]
            numbers = gae([turn.reward for turn in episode.turns], critics, GAMMA, LAM)
            rows = zip(keys, numbers, critics, strict=True)
            want += [Response(*key, number, number + value) for key, number, value in rows]
        assert_same(trained_responses(batch), want)


def values_at_first_tokens(batch: dict[str, Any]) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    found = {}
    for prompt, ids, mask, values in zip(
        *(batch[name] for name in ("prompts", "responses", "response_mask", "values")), strict=True
    ):
        marks = [0, *mask.tolist(), 0]
        starts = [at for at in range(len(mask)) if marks[at + 1] and not marks[at]]
        ends = [at + 1 for at in range(len(mask)) if marks[at + 1] and not marks[at + 2]]
        for start, end in zip(starts, ends, strict=True):
            found[(*prompt.tolist(), *ids[:start].tolist()), tuple(ids[start:end].tolist())] = values[start].item()
    return found


def test_an_episode_is_a_row_and_a_batch_two_updates(critic: Run):
    steps = critic.episodes_by_step(16)
    for step, batch in enumerate(critic.batches):
        rows = sum(mask.any().item() for mask in batch["response_mask"])
        assert rows == sum(bool(one.turns) for one in steps[step])
        assert len(batch["keys"]) == rows + rows % 2  # a row that trains nothing makes two equal updates
        assert batch["info"]["mini_batch_size"] == len(batch["keys"]) // 2
        assert batch["info"]["global_batch_size"] == len(batch["keys"]) // 2


def test_samples_are_of_the_weights_that_train_on_them(critic: Run):
    assert {line["staleness/max"] for line in critic.metrics} == {0.0}


def test_the_critic_learns_one_value_per_turn(critic: Run):
    for line in critic.metrics:
        assert math.isfinite(line["critic/vf_loss"])
    assert critic.metrics[0]["critic/vf_loss"] > 0


def test_rows_of_whole_episodes_train_on_sampled_ids(critic: Run):
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in critic.sampled)
    trained = Counter((one.before, one.ids) for batch in critic.batches for one in trained_responses(batch))
    assert trained == sampled


# -- sampling ahead ---------------------------------------------------------------------------------------------------


AHEAD = [
    "gem.env=[test:Babble-v0,test:Wander-v0]",
    "gem.env_weights=[15,1]",
    "gem.max_staleness=2",
    "gem.compaction=policy",
    "data.max_response_length=512",  # a request for a summary has 300 tokens
    *SGD,
    "actor_rollout_ref.actor.checkpoint.save_contents=[model,optimizer,extra,hf_model]",
    "algorithm.rollout_correction.rollout_is=token",
    "algorithm.rollout_correction.rollout_is_threshold=1.5",
    "data.train_batch_size=16",
    "actor_rollout_ref.actor.ppo_mini_batch_size=16",
    "trainer.total_training_steps=5",
    "trainer.save_freq=1",
]


@pytest.fixture(scope="module")
def ahead(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("ahead"), model, [*COMMON, *AHEAD])


@pytest.fixture(scope="module")
def separate(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The rollout server has a process of its own, as with devices of its own."""
    return train(tmp_path_factory.mktemp("separate"), model, [*COMMON, *AHEAD, *separate_devices()])


on_each = pytest.mark.parametrize("name", ["ahead", "separate"])
"""The runs that sample ahead, on the devices that train and on others."""


@on_each
def test_samples_are_at_most_as_old_as_the_bound(name: str, request: pytest.FixtureRequest):
    ahead: Run = request.getfixturevalue(name)
    assert ahead.code == 0, ahead.output[-3000:]
    summaries = [one for one in open_records(ahead.folder / "records").summaries if one.summary.turns]
    oldest = max(one.staleness for one in summaries if one.staleness is not None)
    assert oldest <= 2
    assert oldest == max(line["staleness/max"] for line in ahead.metrics)


@on_each
def test_every_episode_that_is_played_is_trained_on_in_the_batch_of_its_task(name: str, request: pytest.FixtureRequest):
    ahead: Run = request.getfixturevalue(name)
    records = open_records(ahead.folder / "records")
    episodes = assert_whole_run(records, "verl", updates=5)
    assert sorted(one.episode.slot for one in episodes) == [*range(80)]
    assert all(one.summary.update == one.episode.slot // 16 + 1 for one in episodes)
    recorded = [turn for one in episodes for turn in turns_in_record(one)]
    assert_same_numbers(recorded, turns_in_loss(ahead.folder), within=1e-6)


@on_each
def test_each_token_has_the_version_that_sampled_it(name: str, request: pytest.FixtureRequest):
    ahead: Run = request.getfixturevalue(name)
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"]), one["version"]) for one in ahead.sampled if one["ids"])
    recorded: Counter[tuple[tuple[int, ...], tuple[int, ...], int]] = Counter()
    for episode in ahead.episodes:
        for turn in episode.turns:
            before, rest = tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn))
            for version, tokens in turn.versions:
                recorded[before, rest[:tokens], version] += 1
                before, rest = before + rest[:tokens], rest[tokens:]
    assert recorded == sampled


@on_each
def test_the_loss_of_each_token_has_the_truncated_ratio(name: str, request: pytest.FixtureRequest):
    """verl's correction, from the formula and from the weights after a step."""
    ahead: Run = request.getfixturevalue(name)
    folder = ahead.folder / "checkpoints"
    stale = [number for number, line in enumerate(ahead.metrics, 1) if line["staleness/max"]]
    names = ("response_mask", "rollout_log_probs", "old_log_probs", "rollout_is_weights")
    ratios = [
        ((old - rollout).exp().clamp(max=1.5)[mask.bool()], weights[mask.bool()])
        for step in stale
        for mask, rollout, old, weights in zip(*(ahead.batches[step - 1][name] for name in names), strict=True)
    ]
    assert all(torch.allclose(wanted, weights, atol=1e-5) for wanted, weights in ratios)
    weights = torch.cat([weights for _, weights in ratios])
    assert weights.min() < 0.95
    assert weights.max() == 1.5
    step = stale[0]
    batch = ahead.batches[step - 1]
    before, after = (folder / f"global_step_{number}" / "actor" / "huggingface" for number in (step - 1, step))
    assert_gradient(before, after, weighted_rows(batch), 16 * 6)


def test_a_server_has_the_weights_of_its_version(separate: Run):
    """The sampler's log-probabilities of a response of each version are those of the checkpoint."""
    responses: dict[int, tuple[list[int], list[float]]] = {}
    for episode in separate.episodes:
        for turn in episode.turns:
            if len(turn.versions) == 1 and (sampled := episode.response_logprobs(turn)) is not None:
                ids = [*episode.prompt_ids(turn), *episode.response_ids(turn)]
                responses.setdefault(turn.versions[0][0], (ids, [*sampled]))
    # Batch 4 begins after update 1, so some version is later than 0; which ones depends on who is faster.
    later = responses.keys() - {0}
    assert later
    for version in later:
        ids, sampled = responses[version]
        saved = separate.folder / "checkpoints" / f"global_step_{version}" / "actor" / "huggingface"
        policy = AutoModelForCausalLM.from_pretrained(saved, dtype=torch.float32)
        with torch.no_grad():
            logprobs = token_logprobs(policy, torch.tensor(ids))
        assert torch.allclose(logprobs[-len(sampled) :], torch.tensor(sampled), atol=1e-4)


def test_summaries_are_trained_as_they_were_sampled(ahead: Run):
    assert_summaries_were_trained(ahead, [one for batch in ahead.batches for one in trained_responses(batch)])


def weighted_rows(batch: dict[str, Any]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Each row with the advantages of its trained tokens times their weights."""
    names = ("prompts", "responses", "response_mask", "advantages", "rollout_is_weights")
    for prompt, ids, mask, advantages, weights in zip(*(batch[name] for name in names), strict=True):
        yield torch.cat([prompt, ids]), torch.cat([torch.zeros(len(prompt)), advantages * weights * mask])


# -- the records of both ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "tasks"), [("hostile", 12), ("critic", 16)])
def test_records_have_the_numbers_of_the_loss(request: pytest.FixtureRequest, name: str, tasks: int):
    run: Run = request.getfixturevalue(name)
    records = open_records(run.folder / "records")
    episodes = assert_whole_run(records, "verl", updates=3)
    assert "verl" in records.versions
    assert records.settings["verl"]["data"]["train_batch_size"] == tasks
    assert all(one.summary.update == one.episode.slot // tasks + 1 for one in episodes)
    recorded = [turn for one in episodes for turn in turns_in_record(one)]
    assert_same_numbers(recorded, turns_in_loss(run.folder), within=1e-6)
    if name == "hostile":  # one update for each batch, so the loss computes the same log-probabilities once more
        assert_same_numbers(recorded, turns_in_loss(run.folder, computed=True), within=1e-5)
    for step, batch in enumerate(run.batches, 1):
        own = [one for one in episodes if one.summary.update == step]
        turns = sum(len(one.episode.turns) for one in own)
        assert len(trained_responses(batch)) == turns


# -- what stops a run ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def matches(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Self-play, until a match cannot start."""
    flags = [
        f"gem.env={pairs_match.FRAGILE_ID}",
        f"gem.seed={pairs_match.FRAGILE_SEED}",
        "gem.env_failure=raise",
        "algorithm.adv_estimator=rae",
        "data.train_batch_size=4",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        "trainer.total_training_steps=20",
    ]
    return train(tmp_path_factory.mktemp("matches"), model, [*COMMON, *flags])


def test_a_failure_that_must_stop_the_run_stops_it_with_the_reason(matches: Run):
    assert matches.code == 1
    last = matches.output.strip().splitlines()[-40:]
    wanted = f"AdapterError: EnvFailure: {pairs_match.FRAGILE_ID}"
    assert any(line.startswith(wanted) for line in last), "\n".join(last)


def test_ten_updates_of_self_play_before_it(matches: Run):
    batches = [trained_responses(batch) for batch in matches.batches]
    assert len(batches) == len(matches.metrics) >= 10, matches.output[-3000:]
    assert all(line["rollout/episodes"] == 8 for line in matches.metrics)
    assert all("agent/second/return" in line for line in matches.metrics)
    pairs_match.assert_trained_with_rae(batches, matches.episodes_by_step(4), matches=4, gamma=GAMMA)


def assert_expected(run: Run, name: str, rows: int) -> None:
    """Each response with its advantage, from the recorded episodes and the formula."""
    steps = run.episodes_by_step(rows)
    assert len(steps) == len(run.batches) > 0
    for step, batch in enumerate(run.batches):
        episodes = [episode for episode in steps[step] if episode.turns]
        rewards = [[turn.reward for turn in episode.turns] for episode in episodes]
        numbers = expected(name, rewards, [episode.group_id for episode in episodes], GAMMA)
        want = [
            Response(tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn)), number, later)
            for episode, row in zip(episodes, numbers, strict=True)
            for turn, number, later in zip(
                episode.turns, row, returns_to_go([turn.reward for turn in episode.turns], GAMMA), strict=True
            )
        ]
        assert_same(trained_responses(batch), want)


def assert_same(got: list[Response], want: list[Response]) -> None:
    """The same responses, equally often, with numbers equal to 1e-5."""
    assert [one[:2] for one in sorted(got)] == [one[:2] for one in sorted(want)]
    numbers = [[number for one in sorted(responses) for number in one[2:]] for responses in (got, want)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-5)
