"""The installed GRPOTrainer trains on exactly what was sampled, with exactly the advantages of the core."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
from spy import SpyTrainer, assert_same

import gem_core
import gem_tiny._tokenizer as tokenizer_module
from gem_core.errors import AdapterError, AdvantageError
from gem_support.babble import Babble
from gem_support.same_tasks import LIMITED, assert_first_batch, assert_two_at_once_at_most
from gem_trl import ProgressCallback

ESTIMATORS = ["reinforce", "rebn", "rebn_loo", "grpo", "drgrpo", "rloo", "turn_grpo", "gigpo"]
ROWS = [("episode", None), ("turn", None), ("turn", 1), ("turn", 2)]


@pytest.mark.parametrize(("row", "history"), ROWS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_advantages_equal_brute_force(trainer, name, row, history):
    run = trainer(cls=SpyTrainer, advantage=name, row=row, history=history, num_generations=4, max_steps=2)
    run.train()
    assert len(run.trained_responses()) > 16
    assert_same(run.trained_responses(), run.expected_responses(name, 0.9))


@pytest.mark.parametrize(("row", "history"), ROWS)
def test_trained_ids_are_the_sampled_ids(bpe_trainer, row, history):
    # Random ids of a byte-level BPE: decoding and encoding them again almost always gives other ids.
    run = bpe_trainer(cls=SpyTrainer, row=row, history=history, max_steps=2, max_completion_length=6)
    run.train()
    tokenizer = run.processing_class
    drifting = [ids for _, ids in run.sampled if tokenizer.encode(tokenizer.decode(ids)) != list(ids)]
    assert len(drifting) > len(run.sampled) / 2
    assert sorted((one.before, one.ids) for one in run.trained_responses()) == sorted(run.sampled)


def test_the_seed_decides_the_first_batch_of_a_mixture_with_limits(trainer, monkeypatch):
    monkeypatch.setenv("COUNT_AT_ONCE", "1")
    run = trainer(cls=SpyTrainer, **LIMITED)
    run.train()
    assert_first_batch((episode.env_id, episode.seed) for episode in run.batches[0].episodes)
    assert_two_at_once_at_most(run.batches[0].episodes)


class Retooled(Babble):
    """Offers a tool from the second turn on, so that the second prompt does not continue the first one."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        schema = {"type": "function", "function": {"name": "look", "parameters": {}}}
        return observation, reward, terminated, truncated, {**info, "tools": [schema]}


gem_core.register("test:Retooled-v0", Retooled)


def show_tools(run: SpyTrainer) -> None:
    template = run.processing_class.chat_template
    shown = "{% for tool in tools or [] %}<|im_start|>system\n{{ tool.function.name }}<|im_end|>\n{% endfor %}"
    run.processing_class.chat_template = shown + template


def test_an_episode_whose_tools_change_has_a_row_for_each_sequence(bpe_trainer):
    run = bpe_trainer(cls=SpyTrainer, env="test:Retooled-v0", max_steps=2)
    show_tools(run)
    run.train()
    sequences = [len(episode.sequences) for batch in run.batches for episode in batch.episodes]
    assert {*sequences} == {1, 2}
    assert sorted((one.before, one.ids) for one in run.trained_responses()) == sorted(run.sampled)
    assert_same(run.trained_responses(), run.expected_responses("rebn", 0.9))


def test_settings_that_count_rows_are_refused_if_an_episode_has_several(bpe_trainer):
    run = bpe_trainer(env="test:Retooled-v0", log_completions=True)
    show_tools(run)
    with pytest.raises(AdapterError, match="log_completions=True counts rows, and an episode has several rows here"):
        run.train()


def test_both_kinds_of_row_give_the_same_update(trainer):
    weights = []
    for row in ("episode", "turn"):
        run = trainer(row=row, learning_rate=1e-2, max_grad_norm=1e9, optim="sgd", lr_scheduler_type="constant")
        run.train()
        weights.append(torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()]))
    start = torch.cat([parameter.detach().flatten() for parameter in trainer().model.parameters()])
    assert (weights[0] - start).abs().max() > 1e-5
    torch.testing.assert_close(weights[0], weights[1], atol=1e-6, rtol=0)


def test_update_is_the_policy_gradient(trainer):
    """The loss's gradient, from autograd on each turn alone: -sum A log p / (episodes x max_completion_length)."""
    run = trainer(cls=SpyTrainer, learning_rate=1.0, max_grad_norm=1e9, optim="sgd", lr_scheduler_type="constant")
    start = {name: parameter.detach().clone() for name, parameter in run.model.named_parameters()}
    run.train()
    end = {name: parameter.detach().clone() for name, parameter in run.model.named_parameters()}
    model = run.model
    model.load_state_dict(start, strict=False)
    model.zero_grad()
    for before, ids, advantage in run.expected_responses("rebn", 0.9):
        logits = model(input_ids=torch.tensor([[*before, *ids]])).logits[0, len(before) - 1 : -1]
        chosen = logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).sum()
        (-advantage * chosen / (8 * run.args.max_completion_length)).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(start[name] - parameter.grad, end[name], atol=1e-4, rtol=1e-3)


def test_value_function_makes_gae(trainer):
    def values(episodes):
        return [[0.5] * len(episode.turns) for episode in episodes]

    run = trainer(cls=SpyTrainer, advantage="gae", gamma=1.0, extra={"value_function": values})
    run.train()
    got = {(one.before, one.ids): one.advantage for one in run.trained_responses()}
    for episode in run.batches[0].episodes:
        last = episode.turns[-1]
        key = tuple(episode.prompt_ids(last)), tuple(episode.response_ids(last))
        assert got[key] == pytest.approx(last.reward - 0.5, abs=1e-5)


def test_a_value_function_must_return_a_value_for_each_turn(trainer):
    def values(episodes):
        return [[0.5] * (len(episode.turns) + 1) for episode in episodes]

    run = trainer(advantage="gae", gamma=1.0, extra={"value_function": values})
    with pytest.raises(AdvantageError, match="one value for each turn of each episode"):
        run.train()


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_environments_that_hang_and_die_do_not_stop_training(trainer):
    run = trainer(
        cls=SpyTrainer,
        env="test:Hostile-v0",
        seed=1,  # each of the fates occurs with this seed
        max_steps=4,
        vector_backend="process",
        vector_workers=2,
        env_timeout=0.5,
    )
    run.train()
    errors = [episode.error or "" for batch in run.batches for episode in batch.episodes]
    assert len(errors) == 32
    for kind in ("lost the connection", "TimeoutError: no answer within 0.5 s", "SIGKILL"):
        assert any(kind in error for error in errors)
    assert sum(bool(error) for error in errors) < 20


def test_failing_environments_cost_only_their_episodes(trainer):
    run = trainer(cls=SpyTrainer, env="test:Fragile-v0", max_steps=3)
    run.train()
    episodes = [episode for batch in run.batches for episode in batch.episodes]
    assert len(episodes) == 24
    failed = [episode for episode in episodes if episode.error]
    assert {episode.error for episode in failed} == {
        "RuntimeError: no such level",
        "RuntimeError: lost the connection",
    }
    assert len(failed) < len(episodes)
    assert_same(run.trained_responses(), run.expected_responses("rebn", 0.9))
    logged = [line for line in run.state.log_history if "env/errors" in line]
    assert sum(line["env/errors"] for line in logged) == len(failed)
    empty = sum(not episode.turns for episode in episodes)
    assert empty > 0
    assert sum(line["rollout/padding_rows"] for line in logged) == empty


def test_huge_observations_end_episodes_but_not_the_run(trainer):
    run = trainer(cls=SpyTrainer, env="test:Chatty-v0", max_steps=2)
    run.train()
    assert {e.stop_reason.value for batch in run.batches for e in batch.episodes} == {"context_full"}
    longest = max(part["prompt_ids"].shape[1] + part["completion_ids"].shape[1] for part in run.micro_batches)
    assert longest <= 1024


def test_evaluation_plays_the_same_episodes_each_time(trainer):
    run = trainer(cls=SpyTrainer, eval_env="game:Corridor-v0", eval_episodes=16, per_device_eval_batch_size=8)
    first = run.evaluate()
    second_seeds = len(run.batches)
    run.evaluate()
    seeds = [[episode.seed for episode in batch.episodes] for batch in run.batches]
    assert seeds[:second_seeds] == seeds[second_seeds:]
    assert len({seed for batch in seeds[:second_seeds] for seed in batch}) == 16
    assert {"eval_episode/return", "eval_episode/success", "eval_episode/turns"} <= set(first)


def test_evaluations_are_in_the_report(trainer, tmp_path):
    evaluated = {"eval_strategy": "steps", "eval_steps": 2, "eval_on_start": True}
    extra = {"callbacks": [ProgressCallback("babble")]}
    trainer(extra=extra, eval_episodes=8, per_device_eval_batch_size=8, max_steps=3, **evaluated).train()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], "episode/return" in line, "eval_episode/return" in line) for line in lines] == [
        (0, False, True),
        (1, True, False),
        (2, True, True),
        (3, True, True),
    ]


def test_lora_and_resume(trainer, tmp_path):
    from peft import LoraConfig

    adapter = LoraConfig(r=4, target_modules=["q_proj", "v_proj"])
    extra = {"peft_config": adapter, "callbacks": [ProgressCallback("babble")]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = trainer(cls=SpyTrainer, extra=extra, max_steps=2, save_strategy="steps", save_steps=1)
        run.train()
    # What PEFT and TRL read themselves is not ours.
    ours = ("`past_key_values` is deprecated", "`gradient_checkpointing` is deprecated", "is still running")
    assert not [one for one in caught if str(one.message).startswith(ours) or str(one.message).endswith(ours)]
    extra["callbacks"] = [ProgressCallback("babble")]
    again = trainer(cls=SpyTrainer, extra=extra, max_steps=3, save_strategy="no")
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert again.state.global_step == 3
    before = {episode.seed for batch in run.batches for episode in batch.episodes}
    assert not before & {episode.seed for batch in again.batches for episode in batch.episodes}
    steps = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert steps == [1, 2, 3]


def test_several_updates_per_batch(trainer):
    # Two optimizer steps per iteration, two iterations: PPO's clipping applies, rows are the same each time.
    run = trainer(cls=SpyTrainer, gradient_accumulation_steps=1, steps_per_generation=2, num_iterations=2, max_steps=4)
    run.train()
    assert len(run.batches) == 1
    assert len(run.micro_batches) == 4
    assert "old_per_token_logps" in run.micro_batches[0]


def test_group_members_play_the_same_task(trainer):
    run = trainer(cls=SpyTrainer, advantage="grpo", num_generations=4)
    run.train()
    seeds: dict[int, set[int]] = {}
    for episode in run.batches[0].episodes:
        seeds.setdefault(episode.group_id, set()).add(episode.seed)
    assert len(seeds) == 2
    assert all(len(one) == 1 for one in seeds.values())


def test_same_seed_same_run(trainer):
    records = []
    for _ in range(2):
        run = trainer(cls=SpyTrainer, max_steps=2)
        run.train()
        records.append([(e.seed, [e.response_ids(t) for t in e.turns]) for b in run.batches for e in b.episodes])
    assert records[0] == records[1]


def test_summaries_and_what_follows_them_are_trained_as_they_were_sampled(trainer):
    run = trainer(cls=SpyTrainer, env="test:Wander-v0", compaction="policy", max_context_tokens=250)
    run.train()
    [batch] = run.batches
    assert all(len(one.turns) > 24 and one.summary().compactions for one in batch.episodes)
    assert all(part["prompt_ids"].shape[1] <= 250 for part in run.micro_batches)
    trained = run.trained_responses()
    assert sorted((one.before, one.ids) for one in trained) == sorted(run.sampled)
    assert_same(trained, run.expected_responses("rebn", 0.9))


@pytest.mark.parametrize("row", ["episode", "turn"])
def test_turns_are_trained_as_they_were_sampled_where_later_prompts_drop_thoughts(trainer, monkeypatch, row):
    """Here what is dropped is in the header of the next response alone, as an empty thought is."""
    template = tokenizer_module._TEMPLATE.replace("<|assistant|>{% endif %}", "<|assistant|>.{% endif %}")
    monkeypatch.setattr(tokenizer_module, "_TEMPLATE", template)
    run = trainer(cls=SpyTrainer, thoughts="drop", row=row, num_generations=4)
    run.train()
    [batch] = run.batches
    assert all(len(one.sequences) == len(one.turns) for one in batch.episodes)
    assert any(len(one.turns) > 2 for one in batch.episodes)
    trained = run.trained_responses()
    assert sorted((one.before, one.ids) for one in trained) == sorted(run.sampled)
    assert_same(trained, run.expected_responses("rebn", 0.9))
