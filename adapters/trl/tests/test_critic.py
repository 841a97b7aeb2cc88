"""The critic of `advantage="gae"`: turn-level GAE from its values, its learning, LoRA and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from peft import LoraConfig
from spy import SpyTrainer, assert_same

from gem_core.advantages import Moments
from gem_core.episode import as_token_ids
from gem_core.errors import SettingsError
from gem_tiny import tiny_model, tiny_tokenizer
from gem_train.rows import Row, TurnSpan
from gem_trl.critic import FILE, Critic, ValueModel

ROWS = [("episode", None), ("turn", None), ("turn", 1)]


@pytest.mark.parametrize(("row", "history"), ROWS)
def test_advantages_equal_brute_force(trainer, row, history):
    run = trainer(
        cls=SpyTrainer, advantage="gae", row=row, history=history, lam=0.7, max_steps=3, critic_learning_rate=1e-2
    )
    run.train()
    assert_same(run.trained_responses(), run.expected_responses("gae", 0.9))
    assert not any(value for episode in run.critic_values[0] for value in episode)  # it starts at zero
    assert len({value for episode in run.critic_values[2] for value in episode}) > 5
    logged = [line for line in run.state.log_history if "critic/loss" in line]
    assert logged[0]["critic/explained_variance"] == pytest.approx(0, abs=1e-9)
    assert all(line["critic/loss"] > 0 for line in logged)


def test_a_step_is_the_gradient_of_the_squared_error(settings):
    """One step of plain arithmetic on each turn alone, for rows of several turns, of one and of none."""
    critic = _critic(
        settings(advantage="gae", critic_learning_rate=1e-3, lr_scheduler_type="constant", max_grad_norm=0)
    )
    torch.nn.init.normal_(critic.model.head.weight, generator=torch.Generator().manual_seed(0))
    rows, targets = _rows(), np.array([1.0, -2.0, 0.5, 3.0])
    copied = ValueModel(_model())
    copied.load_state_dict(critic.model.state_dict())
    optimizer = torch.optim.AdamW(copied.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    turns = [(row.ids.tolist(), turn.start) for row in rows for turn in row.turns]
    for (ids, start), target in zip(turns, targets, strict=True):
        prompt = torch.tensor([ids[:start]])
        (0.5 * (copied(prompt, torch.ones_like(prompt))[0, -1] - target) ** 2 / len(turns)).backward()
    optimizer.step()
    critic.learn(rows, targets)
    for name, weight in copied.named_parameters():
        torch.testing.assert_close(dict(critic.model.named_parameters())[name], weight, atol=1e-5, rtol=0, msg=name)


def test_values_are_learned(settings):
    critic = _critic(settings(advantage="gae", critic_learning_rate=1e-2, max_steps=60, lr_scheduler_type="constant"))
    generator = np.random.default_rng(0)
    rows = [_row(generator.integers(4, 12, 8).tolist(), [(3, 4), (6, 7)]) for _ in range(24)]
    # A turn is worth more the larger the last id of its prompt is.
    targets = np.array([row.ids[turn.start - 1] / 4 for row in rows for turn in row.turns])
    for _ in range(60):
        critic.learn(rows, targets)
    left = Moments.of(targets - critic.values(rows)).std / Moments.of(targets).std
    assert 1 - left**2 > 0.9


def test_lora_shares_what_is_frozen_and_copies_what_is_trained(trainer):
    lora = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    run = trainer(
        advantage="gae", max_steps=2, critic_learning_rate=1e-2, learning_rate=1e-2, extra={"peft_config": lora}
    )
    critic = run._critic.model.backbone
    ours = dict(critic.named_parameters())
    theirs = dict(run.model.get_base_model().base_model.named_parameters())
    assert ours.keys() == theirs.keys()
    trained = {name for name, weight in theirs.items() if weight.requires_grad}
    assert trained
    assert all("lora" in name for name in trained)
    for name, weight in ours.items():
        assert (weight is theirs[name]) == (name not in trained)
    frozen = {name: weight.detach().clone() for name, weight in theirs.items() if name not in trained}
    run.train()
    for name, weight in frozen.items():
        torch.testing.assert_close(ours[name], weight, atol=0, rtol=0)
    assert any(not torch.equal(ours[name], theirs[name]) for name in trained)


def test_a_checkpoint_keeps_the_critic(trainer, tmp_path):
    options = {
        "advantage": "gae",
        "critic_learning_rate": 1e-2,
        "max_steps": 2,
        "save_strategy": "steps",
        "save_steps": 1,
    }
    first = trainer(**options)
    first.train()
    saved = torch.load(tmp_path / "checkpoint-1" / FILE, weights_only=True)
    resumed = trainer(cls=SpyTrainer, **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    loaded = trainer(**options)._critic
    loaded.load(tmp_path / "checkpoint-1")
    for name, weight in saved["weights"].items():
        torch.testing.assert_close(dict(loaded.model.named_parameters())[name].data, weight, atol=0, rtol=0)
    # The first batch after the checkpoint has the values of its critic, not of a new one, which are zeros.
    assert all(value for episode in resumed.critic_values[0] for value in episode)
    assert resumed._critic._schedule.last_epoch == 2
    (tmp_path / "checkpoint-1" / FILE).unlink()
    with pytest.raises(SettingsError, match=r"has no critic\.pt: it was written by a run without a critic"):
        trainer(**options).train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))


def test_a_setting_without_a_critic_is_refused(trainer):
    with pytest.raises(SettingsError, match=r"critic_learning_rate=0.1 has no effect"):
        trainer(critic_learning_rate=0.1)


def _model():
    return tiny_model(tiny_tokenizer(["game:Corridor-v0"], episodes=20), seed=0)


def _critic(args) -> Critic:
    args.gradient_accumulation_steps = args.steps_per_generation
    return Critic(_model(), args, Accelerator(cpu=True), 0)


def _row(ids, spans) -> Row:
    turns = [TurnSpan(position, *span, 0.0, False) for position, span in enumerate(spans)]
    return Row(as_token_ids(ids), spans[0][0] if spans else 1, None, turns)


def _rows() -> list[Row]:
    return [
        _row([5, 6, 7, 8, 9, 6, 5, 7], [(2, 4), (6, 8)]),
        _row([0, 0], []),
        _row([8, 5], [(1, 2)]),
        _row([9, 9, 8, 7, 6], [(4, 5)]),
    ]


def test_a_critic_values_what_was_sampled_ahead(trainer):
    ahead = {"max_staleness": 2, "critic_learning_rate": 1e-2}
    run = trainer(cls=SpyTrainer, advantage="gae", lam=0.7, max_steps=4, **ahead)
    run.train()
    assert_same(run.trained_responses(), run.expected_responses("gae", 0.9))
    assert all(any(value for episode in values for value in episode) for values in run.critic_values[1:])
