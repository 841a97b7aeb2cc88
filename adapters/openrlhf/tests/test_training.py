"""OpenRLHF's own training on the CPU: it trains on the sampled ids, and no environment stops it."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs import Run, loss_tokens, train, trained_responses
from transformers import AutoModelForCausalLM

from gem_core.seeding import derive_seed
from gem_support import kinds, pairs_match
from gem_support.brute_force import expected, gae, returns_to_go
from gem_support.forks import are_forks
from gem_support.hostile_run import (
    assert_every_episode_is_counted,
    assert_groups_play_one_task,
    assert_nothing_stopped_it,
    assert_the_limit_held,
)
from gem_support.training_run import SECONDS, assert_policy_gradient, token_logprobs
from gem_train.records import open_records, read_episodes
from gem_train.rollout import Episode

pytestmark = [pytest.mark.timeout(SECONDS * 2), pytest.mark.uncertain("a real run: Ray has its own time limits")]

GAMMA, LAM = 0.9, 0.8
HOSTILE_SEED = 23
"""With this seed, each of the hostile fates occurs."""
COMMON = [
    *("--algo.advantage.gamma", str(GAMMA)),
    *("--algo.advantage.is_correction_level", "token"),  # vLLM returns log-probabilities, and OpenRLHF compares them
    *("--algo.advantage.is_correction_mode", "clip"),
    *("--rollout.max_new_tokens", "6"),
    *("--data.max_len", "256"),
    "--no-gem.truncated_is_invalid",
]


# -- asynchronous, two ranks, a row per turn, groups, environments that misbehave -------------------------------------


@pytest.fixture(scope="module")
def hostile(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    flags = [
        *("--gem.env", "test:Babble-v0", "test:Hostile-v0", "test:Chatty-v0"),
        *("--gem.env_weights", "2", "3", "1"),
        *("--gem.env_limits", "1", "0", "0"),
        *("--gem.eval_env", "game:Corridor-v0"),
        *("--gem.eval_episodes", "4"),
        *("--gem.steps", "3"),
        *("--gem.row", "turn"),
        *("--gem.history", "2"),
        *("--gem.seed", str(HOSTILE_SEED)),
        *("--gem.vector_backend", "process"),
        *("--gem.vector_workers", "1"),
        *("--gem.env_timeout", "2"),
        *("--gem.max_env_failure_share", "none"),
        *("--gem.advantage", "grpo"),
        *("--rollout.n_samples_per_prompt", "2"),
        *("--rollout.batch_size", "12"),
        *("--rollout.micro_batch_size", "2"),
        *("--train.batch_size", "24"),
        *("--train.micro_batch_size", "2"),
        *("--algo.kl.init_coef", "0"),
        # With this epsilon, Adam's first step is the gradient itself.
        *("--actor.adam.lr", "1e6", "--actor.adam.eps", "1e6", "--actor.max_norm", "1e9"),
        *("--actor.lr_scheduler", "constant"),
        *("--eval.steps", "2"),
        *("--eval.n_samples_per_prompt", "1"),
        *("--ckpt.save_steps", "1"),
        "--ckpt.save_hf",
        "--ckpt.disable_ds",
        *("--ckpt.best_metric_key", "none"),
        *("--gem.max_staleness", "1"),
    ]
    return train(tmp_path_factory.mktemp("hostile"), model_folder, [*COMMON, *flags], ranks=2)


def test_environments_that_raise_hang_die_and_overflow_do_not_stop_it(hostile: Run):
    assert_nothing_stopped_it(hostile)


def test_every_episode_is_counted(hostile: Run):
    assert_every_episode_is_counted(hostile)


def test_members_of_a_group_play_the_same_task(hostile: Run):
    assert_groups_play_one_task(hostile)


def test_an_environment_has_as_many_episodes_under_way_as_its_limit_allows(hostile: Run):
    assert_the_limit_held(hostile)


def test_the_seed_decides_the_tasks(hostile: Run):
    """For any number of ranks, also in asynchronous training."""
    run = derive_seed(HOSTILE_SEED, "train")
    played = {episode.slot: episode.seed for episode in hostile.episodes if episode.env_id.startswith("test:")}
    assert played == {number: derive_seed(run, number) for number in range(36)}


def test_sampled_ids_are_trained_ids(hostile: Run):
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in hostile.sampled)
    for batch in hostile.batches():
        trained = Counter((one.before, one.ids) for one in trained_responses(batch))
        assert trained
        assert not trained - sampled


def test_advantages_equal_brute_force_over_the_global_batch(hostile: Run):
    steps = hostile.episodes_by_step(12)
    for step, batch in enumerate(hostile.batches()):
        episodes = [episode for episode in steps[step] if episode.turns]
        numbers = expected("grpo", _rewards(episodes), [episode.group_id for episode in episodes], GAMMA)
        later = [returns_to_go(rewards, GAMMA) for rewards in _rewards(episodes)]
        assert_trained(batch, episodes, numbers, later)


def test_a_batch_is_one_update_whatever_the_number_of_rows(hostile: Run):
    counts = {len(rank["rows"]) for batch in hostile.batches() for rank in batch}
    assert len(counts) > 1
    for batch in hostile.batches():
        assert len({len(rank["rows"]) for rank in batch}) == 1, "each rank has as many"
        assert [rank["updates"] for rank in batch] == [1, 1]


def test_a_step_is_the_policy_gradient(hostile: Run, model_folder: Path):
    """The weights after one update on two ranks, from autograd on each turn alone."""
    responses = trained_responses(hostile.batches()[0])
    after = hostile.folder / "checkpoints" / "global_step1_hf"
    assert_policy_gradient(model_folder, after, responses, sum(len(one.ids) for one in responses))


def test_an_evaluation_logs_its_environments(hostile: Run):
    (line,) = [one for one in hostile.metrics if "eval_rollout/episodes" in one]
    assert line["step"] == 2
    assert line["eval_rollout/episodes"] == 4
    assert -1.0 <= line["eval_episode/return"] <= 1.0
    assert line["eval_game:Corridor-v0_pass1"] == line["eval_episode/success"]


def test_nothing_is_left_behind(hostile: Run):
    assert hostile.left == []
    assert [*hostile.folder.glob("closed-*")], "engines close their environments"


def test_workers_are_forks_of_a_process_that_has_imported_openrlhf(hostile: Run):
    forks = are_forks(hostile.folder)
    assert len(forks) >= 5  # the driver, two policies, an engine, and who plays or trains
    assert all(forks)


def test_workers_have_the_titles_that_ray_gives_them(hostile: Run):
    titles = [path.read_text() for path in hostile.folder.glob("title-*")]
    assert sum(title.startswith("ray::PolicyModelActor.fit") for title in titles) == 2


# -- a row per episode, two updates per batch, a critic, a reference model; environments of every kind -----------------


CRITIC = [
    *("--gem.env", *kinds.limits()),
    *("--gem.env_limits", *map(str, kinds.limits().values())),
    *("--gem.wrappers", *kinds.WRAPPERS),
    *("--data.max_len", str(kinds.PROMPT + kinds.REST)),
    *("--gem.steps", "3"),
    *("--gem.advantage", "gae"),
    *("--algo.advantage.lambd", str(LAM)),
    *("--algo.kl.init_coef", "0.01"),
    *("--algo.kl.estimator", "k3"),
    "--algo.kl.use_loss",
    *("--actor.adam.lr", "1e-2"),
    *("--critic.adam.lr", "1e-2"),
    *("--rollout.batch_size", "16"),
    *("--rollout.micro_batch_size", "4"),
    *("--train.batch_size", "8"),
    *("--train.micro_batch_size", "4"),
    *("--ckpt.save_steps", "1"),
    "--ckpt.save_hf",
]


@pytest.fixture(scope="module")
def model_of_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kinds.saved_model(tmp_path_factory.mktemp("kinds"))


@pytest.fixture(scope="module")
def critic(model_of_kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("critic"), model_of_kinds, [*COMMON, *CRITIC])


def test_environments_of_every_kind_train_within_their_limits(critic: Run):
    assert critic.code == 0, critic.output[-3000:]
    kinds.assert_played(critic.episodes)
    kinds.assert_warned(critic.output, "--rollout.max_new_tokens")


def test_gae_is_turn_level_with_the_value_at_the_first_token(critic: Run):
    steps = critic.episodes_by_step(16)
    for step, batch in enumerate(critic.batches()):
        values = values_at_first_tokens(batch)
        assert len({round(value, 4) for value in values.values()}) > 10
        critics = [
            [values[tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn))] for turn in episode.turns]
            for episode in steps[step]
        ]
        numbers = [gae(*both, GAMMA, LAM) for both in zip(_rewards(steps[step]), critics, strict=True)]
        targets = [
            [number + value for number, value in zip(*both, strict=True)] for both in zip(numbers, critics, strict=True)
        ]
        assert_trained(batch, steps[step], numbers, targets)


def values_at_first_tokens(batch: list[dict[str, Any]]) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    found = {}
    for row in (row for rank in batch for row in rank["rows"]):
        ids, marks = row["sequences"].tolist(), [0, *row["action_mask"].tolist(), 0]
        starts = [at for at in range(1, len(marks)) if marks[at] and not marks[at - 1]]
        ends = [at for at in range(1, len(marks)) if marks[at - 1] and not marks[at]]
        for start, end in zip(starts, ends, strict=True):
            found[tuple(ids[:start]), tuple(ids[start:end])] = row["values"][start - 1].item()
    return found


def test_vllm_has_the_weights_of_the_update(critic: Run):
    # With other weights than the trainer's, it would be thousands of times larger.
    assert all(abs(line["vllm_kl"]) < 1e-5 for line in critic.metrics)


def test_an_episode_is_a_row_and_a_batch_two_updates(critic: Run):
    steps = critic.episodes_by_step(16)
    for worker in ("actor", "critic"):
        for step, (rank,) in enumerate(critic.batches(worker)):
            # Two updates of micro-batches of four: each divides the rows.
            assert len(rank["rows"]) == -(-sum(bool(one.turns) for one in steps[step]) // 8) * 8
            assert rank["updates"] == 2


def test_the_critic_learns_one_value_per_turn(critic: Run):
    for (actor,), (rank,) in zip(critic.batches(), critic.batches("critic"), strict=True):
        turns = sum(len(starts(row["action_mask"].tolist())) for row in actor["rows"])
        assert sum(row["action_mask"].sum().item() for row in rank["rows"]) == turns
        assert all(math.isfinite(number) for row in rank["rows"] for number in row["returns"].tolist())
    assert all(math.isfinite(line["critic_loss"]) and line["critic_loss"] > 0 for line in critic.metrics)


def starts(mask: list[int]) -> list[int]:
    return [at for at, one in enumerate(mask) if one and not (at and mask[at - 1])]


def test_environments_are_closed(critic: Run):
    assert [*critic.folder.glob("closed-*")]


def test_rows_of_episodes_train_on_sampled_ids(critic: Run):
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in critic.sampled)
    trained = Counter((one.before, one.ids) for batch in critic.batches() for one in trained_responses(batch))
    assert trained == sampled


# -- batches under way together, with partial rollouts -----------------------------------------------------------------


@pytest.fixture(scope="module")
def ahead(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four batches of four tasks. The first episode ends only once the third batch has begun."""
    flags = [
        *("--gem.env", "test:Gated-v0"),
        *("--gem.eval_env", "game:Corridor-v0"),
        *("--gem.eval_episodes", "4"),
        *("--gem.steps", "4"),
        *("--gem.max_staleness", "2"),
        "--train.partial_rollout_enable",
        *("--rollout.batch_size", "4"),
        *("--rollout.micro_batch_size", "2"),
        *("--train.batch_size", "4"),
        *("--train.micro_batch_size", "2"),
        *("--algo.kl.init_coef", "0"),
        *("--eval.steps", "2"),
        *("--eval.n_samples_per_prompt", "1"),
        *("--ckpt.save_steps", "2"),
        *("--ckpt.best_metric_key", "none"),
    ]
    return train(tmp_path_factory.mktemp("ahead"), model_folder, [*COMMON, *flags])


def test_a_batch_begins_while_an_episode_of_another_is_under_way(ahead: Run):
    assert ahead.code == 0, ahead.output[-3000:]
    assert all(line["env/errors"] == 0 for line in ahead.metrics)


def test_batches_that_are_under_way_together_train_in_the_order_of_their_tasks(ahead: Run):
    records = open_records(ahead.folder / "records")
    trained = (one for one in read_episodes(records.path) if one.trained is not None)
    batches = sorted((one.trained.update, one.episode.slot) for one in trained)
    assert batches == [(1 + number // 4, number) for number in range(16)]


def test_a_checkpoint_knows_nothing_of_batches_that_have_not_trained(ahead: Run):
    (path,) = (ahead.folder / "checkpoints").glob("_actor/global_step2/mp_rank_00_model_states.pt")
    states = torch.load(path, weights_only=False)
    assert states["total_consumed_prompts"] == 8
    assert states["data_loader_state_dict"]["_num_yielded"] == 8


def test_weights_do_not_change_during_an_evaluation(ahead: Run):
    assert [line["step"] for line in ahead.metrics if "eval_episode/success" in line] == [2]
    evaluated = [episode for episode in ahead.episodes if episode.env_id == "game:Corridor-v0"]
    assert len(evaluated) == 4
    assert len({version for episode in evaluated for version, _ in episode.version_counts()}) == 1


# -- resumed, with more rows than turns --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def resumed(critic: Run, model_of_kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One more step of `critic`: 104 rows for at most 64 turns, and each row is a micro-batch."""
    folder = tmp_path_factory.mktemp("resumed")
    for name in ("checkpoints", "report"):
        shutil.copytree(critic.folder / name, folder / name)
    flags = [flag for flag in CRITIC if flag != "--algo.kl.use_loss"]
    rows = ["--rollout.micro_batch_size", "13", "--train.batch_size", "2", "--train.micro_batch_size", "1"]
    return train(folder, model_of_kinds, [*COMMON, *flags, *rows, "--gem.steps", "4", "--ckpt.load_enable"])


def test_a_resumed_run_continues_where_it_stopped(critic: Run, resumed: Run):
    assert resumed.code == 0, resumed.output[-3000:]
    assert [line["step"] for line in resumed.metrics] == [1, 2, 3, 4]
    assert resumed.metrics[:3] == critic.metrics
    assert not {episode.seed for episode in resumed.episodes} & {episode.seed for episode in critic.episodes}
    policy = AutoModelForCausalLM.from_pretrained(
        critic.folder / "checkpoints" / "global_step3_hf", dtype=torch.float32
    )
    ((rank,),) = resumed.batches()
    for row in rank["rows"]:
        ids, at = row["sequences"], row["action_mask"].bool()
        with torch.no_grad():
            logprobs = token_logprobs(policy, ids)
        assert torch.allclose(row["rollout_log_probs"][at], logprobs[at], atol=1e-4), (
            "vLLM has the checkpoint's weights"
        )
        assert torch.allclose(row["action_log_probs"][at], logprobs[at], atol=1e-4)


def test_rows_without_a_trained_token_change_nothing(resumed: Run):
    for worker in ("actor", "critic"):
        ((rank,),) = resumed.batches(worker)
        assert len(rank["rows"]) == 104
        assert sum(not row["action_mask"].any() for row in rank["rows"]) >= 40
        assert rank["updates"] == 8
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in resumed.sampled)
    (batch,) = resumed.batches()
    assert Counter((one.before, one.ids) for one in trained_responses(batch)) == sampled
    line = resumed.metrics[3]
    assert [name for name, value in line.items() if not math.isfinite(value)] == []
    assert {"kl", "logprobs_diff", "ppo_kl", "vllm_kl", "policy_loss", "critic_loss", "values"} <= line.keys()
    assert abs(line["vllm_kl"]) < 1e-5


# -- records -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "updates"), [("hostile", {1, 2, 3}), ("critic", {1, 2, 3}), ("resumed", {4}), ("ahead", {1, 2, 3, 4})]
)
def test_records_have_the_numbers_of_the_loss(name: str, updates: set[int], request: pytest.FixtureRequest):
    run: Run = request.getfixturevalue(name)
    records = open_records(run.folder / "records")
    assert records.gaps == []
    trained = [one for one in read_episodes(records.path) if one.trained is not None]
    in_loss = dict(zip(sorted(updates), map(loss_tokens, run.batches()), strict=True))
    found: dict[int, Counter[tuple[int, ...]]] = {number: Counter() for number in updates}
    for one in trained:
        assert one.trained is not None
        for turn, advantage, logprobs in zip(
            one.episode.turns, one.trained.advantages, one.trained.logprobs, strict=True
        ):
            ids = tuple(one.episode.sequences[turn.sequence].ids[: turn.end])
            sampled = one.episode.response_logprobs(turn)
            assert logprobs is not None
            assert sampled is not None
            numbers = [[advantage] * len(sampled), logprobs, sampled]
            assert any(np.allclose(numbers, tokens, rtol=0, atol=1e-6) for tokens in in_loss[one.trained.update][ids])
            found[one.trained.update][ids] += 1
    for number in updates:
        assert found[number]
        assert found[number] == {ids: len(one) for ids, one in in_loss[number].items()}


@pytest.mark.parametrize(("name", "bound"), [("hostile", 1), ("ahead", 2), ("critic", 0), ("resumed", 0)])
def test_no_sample_is_older_than_the_bound(name: str, bound: int, request: pytest.FixtureRequest):
    run: Run = request.getfixturevalue(name)
    records = open_records(run.folder / "records")
    staleness = [one.staleness for one in records.summaries if one.update is not None and one.summary.turns]
    assert staleness
    assert all(one is not None and 0 <= one <= bound for one in staleness)
    logged = [line["staleness/max"] for line in run.metrics if "staleness/max" in line]
    assert max(logged) == max(one for one in staleness if one is not None)


def test_records_have_every_episode_of_an_update(hostile: Run):
    records = open_records(hostile.folder / "records")
    for step, episodes in hostile.episodes_by_step(12).items():
        update = {one.id for one in records.summaries if one.update == step + 1}
        assert update == {one.id for one in episodes}
        assert len(update) == hostile.metrics[step]["rollout/episodes"] == 24
    assert {one.split for one in records.summaries if one.update is None} == {"eval"}


def test_records_have_the_settings_and_the_texts(critic: Run):
    records = open_records(critic.folder / "records")
    assert (records.settings["gamma"], records.settings["advantage"]) == (GAMMA, "gae")
    assert records.settings["openrlhf"]["train"]["micro_batch_size"] == 4
    assert {"openrlhf", "ray", "torch"} <= records.versions.keys()
    for one in read_episodes(records.path):
        assert all(token in records.texts for part in one.episode.sequences for token in part.ids)


# -- what stops a run --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def matches(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Self-play, until a match cannot start."""
    flags = [
        *("--gem.env", pairs_match.FRAGILE_ID),
        *("--gem.seed", str(pairs_match.FRAGILE_SEED)),
        *("--gem.env_failure", "raise"),
        *("--gem.advantage", "rae"),
        *("--gem.steps", "20"),
        *("--algo.kl.init_coef", "0"),
        *("--rollout.batch_size", "4", "--train.batch_size", "4"),
    ]
    return train(tmp_path_factory.mktemp("matches"), model_folder, [*COMMON, *flags])


def test_a_failure_that_must_stop_the_run_stops_it_with_the_reason(matches: Run):
    assert matches.code == 1
    lines = matches.output.strip().splitlines()
    # On a busy machine a process of vLLM's outlives the run, and the cleaning up says so after the reason.
    last = [line for line in lines if not line.startswith("gem-core ended what this run had left behind")][-1]
    assert last.startswith(f"EnvFailure: {pairs_match.FRAGILE_ID}"), matches.output[-3000:]
    assert matches.left == []


def test_ten_updates_of_self_play_before_it(matches: Run):
    batches = [trained_responses(batch) for batch in matches.batches()]
    assert len(batches) == len(matches.metrics) >= 10, matches.output[-3000:]
    assert all(line["rollout/episodes"] == 8 for line in matches.metrics)
    assert all("agent/second/return" in line for line in matches.metrics)
    pairs_match.assert_trained_with_rae(batches, matches.episodes_by_step(4), matches=4, gamma=GAMMA)


def _rewards(episodes: list[Episode]) -> list[list[float]]:
    return [[turn.reward for turn in episode.turns] for episode in episodes]


def assert_trained(
    batch: list[dict[str, Any]], episodes: list[Episode], advantages: list[list[float]], returns: list[list[float]]
) -> None:
    """Exactly the responses of these episodes, each with its numbers."""
    want = sorted(
        (tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn)), number, later)
        for episode, *columns in zip(episodes, advantages, returns, strict=True)
        for turn, number, later in zip(episode.turns, *columns, strict=True)
    )
    got = sorted(trained_responses(batch))
    assert [one[:2] for one in got] == [one[:2] for one in want]
    numbers = [number for one in want for number in one[2:]]
    assert [number for one in got for number in one[2:]] == pytest.approx(numbers, abs=1e-5)
