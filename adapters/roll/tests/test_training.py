"""ROLL's own pipeline on the CPU: it trains on the sampled ids, and no environment stops it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import Run, train, trained_responses
from transformers import AutoModelForCausalLM

from gem_support import kinds, pairs_match
from gem_support.brute_force import expected
from gem_support.byte_level import byte_level_bpe
from gem_support.hostile_run import (
    assert_every_episode_is_counted,
    assert_groups_play_one_task,
    assert_nothing_stopped_it,
    assert_the_limit_held,
)
from gem_support.loss_numbers import assert_same_numbers, assert_whole_run, turns_in_loss, turns_in_record
from gem_support.same_tasks import first_batch_of
from gem_support.training_run import (
    SECONDS,
    assert_gradient,
    assert_policy_gradient,
    assert_summaries_were_trained,
    token_logprobs,
)
from gem_tiny import tiny_model
from gem_train.records import open_records

pytestmark = [
    pytest.mark.timeout(SECONDS * 2),
    pytest.mark.needs_roll,
    pytest.mark.uncertain("a real run: Ray has its own time limits"),
]

GAMMA = 0.9
TENSORS = ["input_ids", "attention_mask", "response_mask", "infer_logprobs", "old_log_probs"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a tokenizer for which decoding and encoding again gives other ids."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = byte_level_bpe()
    tokenizer.save_pretrained(folder)
    tiny_model(tokenizer, seed=0).save_pretrained(folder)
    return folder


COMMON = [f"step_reward_gamma={GAMMA}", "++gem.truncated_is_invalid=false"]


# -- two ranks, a row per turn, groups, environments that misbehave ---------------------------------------------------


@pytest.fixture(scope="module")
def hostile(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    flags = [
        "gem.env=[test:Babble-v0,test:Hostile-v0,test:Chatty-v0]",
        "++gem.env_weights=[2,3,1]",
        "++gem.env_limits=[1,0,0]",
        "++gem.eval_env=game:Corridor-v0",
        "++gem.eval_episodes=4",
        "++gem.row=turn",
        "++gem.history=2",
        "++gem.seed=23",  # each of the hostile fates occurs with this seed
        "++gem.vector_backend=process",
        "++gem.vector_workers=1",
        "++gem.env_timeout=2",
        "++gem.max_env_failure_share=null",
        "++gem.advantage=grpo",
        "++train_env_manager.group_size=2",
        "++train_env_manager.num_env_groups=6",  # each manager plays two episodes, or more if it is fast
        "++actor_train.worker_cls=roll_spy.SgdActorWorker",
        "actor_train.training_args.learning_rate=1.0",
        "++max_grad_norm=1e9",
        "rollout_batch_size=24",
        "max_steps=3",
        "save_steps=1",
        "eval_steps=2",
    ]
    return train(tmp_path_factory.mktemp("hostile"), model, [*COMMON, *flags], ranks=2)


def test_environments_that_raise_hang_die_and_overflow_do_not_stop_it(hostile: Run):
    assert_nothing_stopped_it(hostile)


def test_every_episode_is_counted(hostile: Run):
    assert_every_episode_is_counted(hostile)


def test_members_of_a_group_play_the_same_task(hostile: Run):
    assert_groups_play_one_task(hostile)


def test_an_environment_has_as_many_episodes_under_way_as_its_limit_allows(hostile: Run):
    assert_the_limit_held(hostile)


def test_the_seed_decides_the_first_batch_on_two_ranks(hostile: Run):
    assert_first_seeds(hostile, 23)


def test_sampled_ids_are_trained_ids(hostile: Run):
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in hostile.sampled)
    assert max(len(one["ids"]) for one in hostile.sampled) == 6  # of one turn
    for batch in hostile.batches:
        trained = Counter((one.before, one.ids) for one in trained_responses(batch))
        assert trained
        assert not trained - sampled
        mask = batch["response_mask"][:, 1:].bool()
        # The engine's probabilities are for the same tokens as the trainer's.
        assert torch.allclose(batch["infer_logprobs"][mask], batch["old_log_probs"][mask], atol=1e-4)


def test_copies_fill_a_batch_and_train_nothing(hostile: Run):
    for step, batch in enumerate(hostile.batches):
        rows = len(batch["input_ids"])
        assert rows % 8 == 0  # two ranks, micro-batches of four
        trained = int(batch["response_mask"].any(-1).sum())
        assert trained == len(trained_responses(batch)) == hostile.metrics[step]["rollout/turns"]
        assert batch["meta"]["gem_accumulation"] == rows // 8
        assert hostile.metrics[step]["actor/backward_steps"] == 1
    assert any(
        len(batch["input_ids"]) > line["rollout/turns"]
        for batch, line in zip(hostile.batches, hostile.metrics, strict=True)
    )


def test_advantages_equal_brute_force_over_the_global_batch(hostile: Run):
    assert_expected(hostile, "grpo", tasks=12)


def test_an_evaluation_plays_the_same_tasks_each_time(hostile: Run):
    evaluated = [line for line in hostile.lines if "eval_rollout/episodes" in line]
    assert [(line["step"], line["eval_rollout/episodes"]) for line in evaluated] == [(0, 4), (2, 4)]
    assert all(-1.0 <= line["eval_episode/return"] <= 1.0 for line in evaluated)
    seeds = Counter(episode.seed for episode in hostile.episodes if episode.env_id == "game:Corridor-v0")
    assert len(seeds) == 4
    assert {*seeds.values()} == {2}


def test_a_step_is_the_policy_gradient(hostile: Run):
    """The weights after one step of SGD on two ranks, from autograd on each turn; ROLL saves no initial weights."""
    responses = trained_responses(hostile.batches[2])
    assert_policy_gradient(hostile.saved(1), hostile.saved(2), responses, divisor=len(responses))


def test_nothing_is_left_behind(hostile: Run):
    assert hostile.left == []


# -- a row per episode, ReBN, two updates for each batch, environments of every kind ----------------------------------


# Without desks, whose prompts are four times as long: ROLL fills up every row to `sequence_length`.
REBN = [
    f"gem.env=[{','.join(kinds.limits(desk=False))}]",
    f"++gem.env_limits={[*kinds.limits(desk=False).values()]}",
    f"++gem.wrappers=[{','.join(kinds.BRIEFER_WRAPPERS)}]",
    f"sequence_length={kinds.SHORT}",
    "++gem.updates=2",
    "++ppo_epochs=2",
    "++actor_train.worker_cls=roll_spy.SpiedActorWorker",
    "rollout_batch_size=10",  # which two updates of micro-batches of four do not divide
    "++train_env_manager.num_env_groups=5",  # each environment manager plays two episodes of a batch
    "++train_env_manager.max_env_num_per_worker=3",  # in two processes
]


@pytest.fixture(scope="module")
def model_of_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kinds.saved_model(tmp_path_factory.mktemp("kinds"))


@pytest.fixture(scope="module")
def rebn(model_of_kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("rebn"), model_of_kinds, [*COMMON, *REBN])


def test_environments_of_every_kind_train_within_their_limits(rebn: Run):
    assert rebn.code == 0, rebn.output[-3000:]
    kinds.assert_played(rebn.episodes, desk=False)
    kinds.assert_warned(rebn.output, "train_env_manager.generating_args.max_new_tokens")


def test_rebn_equals_brute_force_with_copies_in_the_batch(rebn: Run):
    assert_expected(rebn, "rebn", tasks=10)
    steps = rebn.episodes_by_step(10)
    for step, batch in enumerate(rebn.batches):
        rows = sum(bool(one.turns) for one in steps[step])
        assert int(batch["response_mask"].any(-1).sum()) == rows
        assert len(batch["input_ids"]) == -(-rows // 8) * 8  # two updates of micro-batches of four
        # The probabilities before the first update; a copy must not replace them.
        mask = batch["response_mask"][:, 1:].bool()
        assert torch.allclose(batch["infer_logprobs"][mask], batch["old_log_probs"][mask], atol=1e-4)


def test_the_seed_decides_the_first_batch_on_one_rank(rebn: Run):
    assert_first_seeds(rebn, 0)


def test_a_batch_has_the_set_number_of_updates(rebn: Run):
    assert [line["actor/backward_steps"] for line in rebn.metrics] == [4, 4]  # two in each pass
    assert [batch["meta"]["gem_accumulation"] for batch in rebn.batches] == [2, 2]
    # Two updates need the probabilities before the first.
    assert all(line["critic/old_log_prob/mean"] < 0 for line in rebn.metrics)


def test_a_row_per_episode_trains_on_sampled_ids(rebn: Run):
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in rebn.sampled)
    trained = Counter((one.before, one.ids) for batch in rebn.batches for one in trained_responses(batch))
    assert trained == sampled


def test_a_resumed_run_continues_where_it_stopped(rebn: Run, model_of_kinds: Path, tmp_path: Path):
    shutil.copytree(rebn.folder / "report", tmp_path / "report")
    flags = ["max_steps=3", f"++resume_from_checkpoint={rebn.saved(1)}"]
    resumed = train(tmp_path, model_of_kinds, [*COMMON, *REBN, *flags])
    assert resumed.code == 0, resumed.output[-3000:]
    assert [line["step"] for line in resumed.metrics] == [1, 2, 3]
    assert resumed.metrics[:2] == rebn.metrics
    assert {one.slot for one in resumed.episodes} == {*range(20, 30)}
    assert not {episode.seed for episode in resumed.episodes} & {episode.seed for episode in rebn.episodes}
    assert {one.update for one in open_records(tmp_path / "records").summaries} == {3}
    (batch,) = resumed.batches
    policy = AutoModelForCausalLM.from_pretrained(rebn.saved(1), dtype=torch.float32)
    for ids, attention, mask, sampled, trained in zip(*(batch[name] for name in TENSORS), strict=True):
        length = int(attention.sum())
        with torch.no_grad():
            found = token_logprobs(policy, ids[:length])
        at = mask[1:length].bool()
        assert torch.allclose(sampled[: length - 1][at], found[at], atol=1e-4)
        assert torch.allclose(trained[: length - 1][at], found[at], atol=1e-4)


# -- sampling ahead ----------------------------------------------------------------------------------------------------


RATE, MAX_WEIGHT = 0.05, 1.05
AHEAD = [
    "gem.env=[test:Babble-v0,test:Chatty-v0,test:Wander-v0]",
    "++gem.env_weights=[5,4,1]",
    "++gem.max_staleness=2",
    "++gem.compaction=policy",
    "sequence_length=640",  # a request for a summary has 300 tokens
    "++actor_train.worker_cls=roll_spy.SgdActorWorker",
    f"actor_train.training_args.learning_rate={RATE}",
    "++max_grad_norm=1e9",
    "++train_infer_correction.is_weight.enabled=true",
    f"++train_infer_correction.is_weight.upper_bound={MAX_WEIGHT}",
    "rollout_batch_size=10",
    "++train_env_manager.num_env_groups=5",
]


@pytest.fixture(scope="module")
def ahead(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("ahead"), model, [*COMMON, *AHEAD, "max_steps=5", "save_steps=1"])


def test_samples_are_at_most_as_old_as_the_bound(ahead: Run):
    assert ahead.code == 0, ahead.output[-3000:]
    summaries = [one for one in open_records(ahead.folder / "records").summaries if one.summary.turns]
    oldest = max(one.staleness for one in summaries if one.staleness is not None)
    assert oldest <= 2
    assert oldest == max(line["staleness/max"] for line in ahead.metrics)


def test_every_episode_that_is_played_is_trained_on_in_the_batch_of_its_task(ahead: Run):
    records = open_records(ahead.folder / "records")
    episodes = assert_whole_run(records, "roll", updates=5)
    assert sorted(one.episode.slot for one in episodes) == [*range(50)]
    assert all(one.summary.update == one.episode.slot // 10 + 1 for one in episodes)
    recorded = [turn for one in episodes for turn in turns_in_record(one)]
    assert_same_numbers(recorded, turns_in_loss(ahead.folder), within=1e-6)


def test_each_token_has_the_version_that_sampled_it(ahead: Run):
    pieces = Counter((tuple(one["prompt"]), tuple(one["ids"]), one["version"]) for one in ahead.sampled if one["ids"])
    recorded: Counter[tuple[tuple[int, ...], tuple[int, ...], int]] = Counter()
    for episode in ahead.episodes:
        for turn in episode.turns:
            before, rest = tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn))
            for version, tokens in turn.versions:
                recorded[before, rest[:tokens], version] += 1
                before, rest = before + rest[:tokens], rest[tokens:]
    assert recorded == pieces


def test_a_version_is_one_set_of_weights(ahead: Run, model: Path):
    """The sampler's log-probability of each token is that of the weights of its version."""
    folders = {0: model, **{step + 1: ahead.saved(step) for step in range(1, 4)}}  # ROLL does not save step 0
    policies = {
        version: AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        for version, folder in folders.items()
    }
    compared: Counter[int] = Counter()
    for episode in ahead.episodes:
        for turn in episode.turns:
            ids = torch.tensor([*episode.prompt_ids(turn), *episode.response_ids(turn)])
            at = len(ids) - len(episode.response_ids(turn)) - 1
            sampled = torch.tensor(episode.response_logprobs(turn))
            for version, tokens in turn.versions:
                if version in policies:
                    with torch.no_grad():
                        wanted = token_logprobs(policies[version], ids)[at : at + tokens]
                    assert torch.allclose(sampled[:tokens], wanted, atol=1e-4)
                    compared[version] += tokens
                at, sampled = at + tokens, sampled[tokens:]
    assert len(compared) > 1


def test_the_loss_of_each_token_has_the_truncated_ratio(ahead: Run):
    """ROLL's correction of stale tokens, from the formula and by the weights after a step of SGD."""
    stale = [step for step, line in enumerate(ahead.metrics) if line["staleness/max"]]
    weights = torch.cat([token_weights(ahead.batches[step]) for step in stale])
    assert weights.min() < 0.95
    assert weights.max() == pytest.approx(MAX_WEIGHT)
    step = next(step for step in stale if step > 1)  # ROLL does not save step 0
    batch = ahead.batches[step]
    rows = int(batch["response_mask"].any(-1).sum())
    assert_gradient(ahead.saved(step - 1), ahead.saved(step), weighted_rows(batch), rows, RATE)


def test_summaries_are_trained_as_they_were_sampled(ahead: Run):
    assert_summaries_were_trained(ahead, [one for batch in ahead.batches for one in trained_responses(batch)])


def token_weights(batch: dict[str, Any]) -> torch.Tensor:
    """The weight of each trained token in the loss, asserted to be that of the formula."""
    mask = batch["response_mask"][:, 1:].bool()
    wanted = (batch["old_log_probs"] - batch["infer_logprobs"])[mask].exp().clamp(max=MAX_WEIGHT)
    torch.testing.assert_close(batch["train_infer_is_weight"][mask], wanted, atol=1e-5, rtol=0)
    return wanted


def weighted_rows(batch: dict[str, Any]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Each row with the advantages of its trained tokens times their weights."""
    numbers = batch["advantages"] * batch["train_infer_is_weight"] * batch["response_mask"][:, 1:]
    for ids, attention, row in zip(batch["input_ids"], batch["attention_mask"], numbers, strict=True):
        length = int(attention.sum())
        yield ids[:length], torch.cat([torch.zeros(1), row[: length - 1]])


# -- the records of both ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "updates", "tasks", "passes"), [("hostile", 3, 12, 1), ("rebn", 2, 10, 2)])
def test_records_have_the_numbers_of_the_loss(
    request: pytest.FixtureRequest, name: str, updates: int, tasks: int, passes: int
):
    run: Run = request.getfixturevalue(name)
    records = open_records(run.folder / "records")
    episodes = assert_whole_run(records, "roll", updates)
    assert records.settings["roll"]["max_steps"] == updates
    assert records.versions["roll"].startswith("0.3.")
    assert all(one.summary.update == one.episode.slot // tasks + 1 for one in episodes)
    recorded = [turn for one in episodes for turn in turns_in_record(one)]
    assert_same_numbers(recorded, turns_in_loss(run.folder), passes=passes, within=1e-6)
    if name == "hostile":  # one update for each batch, so the loss computes the same log-probabilities once more
        assert_same_numbers(recorded, turns_in_loss(run.folder, computed=True), within=1e-5)


# -- what stops a run ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def matches(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Self-play, until a match cannot start."""
    flags = [
        f"gem.env={pairs_match.FRAGILE_ID}",
        f"++gem.seed={pairs_match.FRAGILE_SEED}",
        "++gem.env_failure=raise",
        "++gem.advantage=rae",
        "rollout_batch_size=4",
        "max_steps=20",
    ]
    return train(tmp_path_factory.mktemp("matches"), model, [*COMMON, *flags])


def test_a_failure_that_must_stop_the_run_stops_it_with_the_reason(matches: Run):
    assert matches.code == 1
    # Ray may print its workers' output after the program's last output.
    wanted = f"EnvFailure: {pairs_match.FRAGILE_ID}"
    words = [line for line in matches.output.splitlines() if line.startswith(wanted)]
    assert len(words) == 1, matches.output[-3000:]
    assert matches.left == []


def test_ten_updates_of_self_play_before_it(matches: Run):
    batches = [trained_responses(batch) for batch in matches.batches]
    assert len(batches) == len(matches.metrics) >= 10, matches.output[-3000:]
    assert all(line["rollout/episodes"] == 8 for line in matches.metrics)
    assert all("agent/second/return" in line for line in matches.metrics)
    pairs_match.assert_trained_with_rae(batches, matches.episodes_by_step(4), matches=4, gamma=GAMMA)


def assert_first_seeds(run: Run, seed: int) -> None:
    """The first tasks have the same seeds as in every framework; the environments are those of the run."""
    steps = run.episodes_by_step(tasks=1)
    seeds = {episode.group_id: episode.seed for step in steps.values() for episode in step}
    want = [one for _, one in first_batch_of(seed)]
    assert [seeds[task] for task in range(len(want))] == want


def assert_expected(run: Run, name: str, tasks: int) -> None:
    """Each response with its advantage, from the recorded episodes and the formula."""
    steps = run.episodes_by_step(tasks)
    assert len(steps) == len(run.batches) > 0
    for step, batch in enumerate(run.batches):
        episodes = [episode for episode in steps[step] if episode.turns]
        rewards = [[turn.reward for turn in episode.turns] for episode in episodes]
        numbers = expected(name, rewards, [episode.group_id for episode in episodes], GAMMA)
        want = sorted(
            (tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn)), number)
            for episode, row in zip(episodes, numbers, strict=True)
            for turn, number in zip(episode.turns, row, strict=True)
        )
        got = sorted(trained_responses(batch))
        assert [one[:2] for one in got] == [one[:2] for one in want]
        # To 1e-6: ROLL keeps advantages in 32 bits, and nothing else comes between.
        assert [one.advantage for one in got] == pytest.approx([one[2] for one in want], abs=1e-6)
