"""Sampling ahead in TRL: the weights that sample, the bound, the correction in the loss, and the end of the thread."""

from __future__ import annotations

import math
import threading

import pytest
import torch
from spy import SpyTrainer, assert_same
from transformers import TrainerCallback

import gem_core
from gem_core.errors import EnvFailure, SettingsError
from gem_support.babble import Babble
from gem_trl import TurnGRPOTrainer
from gem_trl._ahead import PolicyCopy

STEP = {"learning_rate": 1e-2, "max_grad_norm": 1e9, "optim": "sgd", "lr_scheduler_type": "constant"}


class Coin(Babble):
    """The only reward is for success."""

    def step(self, action):
        observation, _, over, truncated, info = super().step(action)
        return observation, float(over and info["success"]), over, truncated, info


gem_core.register("test:Coin-v0", Coin)


class AlwaysAhead(TurnGRPOTrainer):
    """Samples in the thread whatever the bound."""

    _runs_ahead = True


def weights(run) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()])


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "gem-sampling"]


def test_a_bound_of_0_equals_the_synchronous_run(trainer):
    ends = []
    for cls in (TurnGRPOTrainer, AlwaysAhead):
        # Transformers' samples depend on which prompts share a batch, so both wait for all environments.
        run = trainer(cls=cls, max_steps=4, min_generation_batch=8, **{**STEP, "learning_rate": 0.1})
        start = weights(run)
        run.train()
        ends.append(weights(run))
    assert (ends[0] - start).abs().max() > 1e-3
    torch.testing.assert_close(ends[0], ends[1], atol=2e-5, rtol=0)


def lora():
    from peft import LoraConfig

    return {"peft_config": LoraConfig(r=4, target_modules=["q_proj", "v_proj"])}


def trained(run) -> dict[str, torch.Tensor]:
    return {name: one for name, one in run.model.named_parameters() if one.requires_grad}


def model_logprobs(model, prompt: list[int], ids: list[int]) -> list[float]:
    model.eval()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).squeeze(1).tolist()


@pytest.mark.parametrize("extra", [dict, lora], ids=["plain", "lora"])
def test_a_copy_samples_with_the_weights_that_were_published(trainer, extra):
    run = trainer(extra=extra(), max_staleness=1)
    policy = PolicyCopy(run, 4)
    prompt = torch.arange(5, 12)
    for version in range(3):
        run.state.global_step = version
        policy.publish()
        published = {name: one.detach().clone() for name, one in trained(run).items()}
        with torch.no_grad():  # the training moves on
            for one in trained(run).values():
                one.add_(torch.randn_like(one) * 0.3)
        completions = policy([prompt] * 4)
        moved = {name: one.detach().clone() for name, one in trained(run).items()}
        differences = []
        for completion in completions:
            assert completion.versions == version
            live = model_logprobs(run.model, prompt.tolist(), completion.ids)
            run.model.load_state_dict(published, strict=False)
            want = model_logprobs(run.model, prompt.tolist(), completion.ids)
            run.model.load_state_dict(moved, strict=False)
            assert completion.logprobs == pytest.approx(want, abs=1e-4)
            differences += [abs(one - other) for one, other in zip(live, want, strict=True)]
        assert max(differences) > 1e-2


def test_log_probabilities_are_those_at_the_temperature(trainer):
    run = trainer(max_staleness=1, correction="decoupled", temperature=0.5)
    run.train()
    assert run.state.log_history[0]["correction/kl"] == pytest.approx(0, abs=1e-5)
    assert run.state.log_history[0]["correction/weight"] == pytest.approx(1, abs=1e-4)


def test_the_bound_holds_and_everything_is_trained_once(trainer):
    run = trainer(cls=SpyTrainer, max_steps=50, max_staleness=2, **STEP)
    run.train()
    assert not threads()
    logged = [line for line in run.state.log_history if "staleness/max" in line]
    assert len(logged) == len(run.batches) == 50
    for number, (line, batch) in enumerate(zip(logged, run.batches, strict=True)):
        oldest = [episode.version_counts()[0][0] for episode in batch.episodes]
        assert line["staleness/max"] == number - min(oldest)
        assert line["staleness/max"] <= 2
    episodes = [(episode.slot, episode.number) for batch in run.batches for episode in batch.episodes]
    assert episodes == [(slot, number) for number in range(50) for slot in range(8)]
    assert_same(run.trained_responses(), run.expected_responses("rebn", 0.9))


def test_a_synchronous_run_has_no_staleness(trainer):
    run = trainer(cls=SpyTrainer, max_steps=2)
    run.train()
    versions = [{one for episode in batch.episodes for one, _ in episode.version_counts()} for batch in run.batches]
    assert versions == [{0}, {1}]
    assert [line["staleness/max"] for line in run.state.log_history if "staleness/max" in line] == [0, 0]


class Shifted(SpyTrainer):
    """Changes the weights between sampling and training, as if the samples were old."""

    def rollout(self, count):
        output = super().rollout(count)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for one in self.model.parameters():
                one.add_(torch.randn(one.shape, generator=generator) * 0.02)
        self.shifted = {name: one.detach().clone() for name, one in self.model.named_parameters()}
        return output


def weigh(kind: str, ratio: float) -> float:
    low, high = 0.8, 1.25
    return {"tis": min(ratio, high), "icepop": ratio if low <= ratio <= high else 0.0, "decoupled": ratio}[kind]


@pytest.mark.parametrize(
    ("kind", "unit", "row"),
    [
        ("tis", "token", "episode"),
        ("icepop", "token", "turn"),
        ("tis", "turn", "turn"),
        ("decoupled", "episode", "turn"),
    ],
)
def test_the_update_is_the_corrected_policy_gradient(trainer, kind, unit, row):
    """From autograd on each turn alone: -sum w A log p / (episodes x max_completion_length), w by brute force."""
    read = {"tis": ["correction_high"], "icepop": ["correction_low", "correction_high"], "decoupled": []}[kind]
    limits = {"correction_low": 0.8, "correction_high": 1.25}
    settings = {"correction": kind, "correction_unit": unit, "row": row, **{name: limits[name] for name in read}}
    run = trainer(cls=Shifted, max_staleness=1, min_generation_batch=8, **settings, **{**STEP, "learning_rate": 1.0})
    run.train()
    end = {name: one.detach().clone() for name, one in run.model.named_parameters()}
    model = run.model
    model.load_state_dict(run.shifted, strict=False)
    model.zero_grad()
    [batch] = run.batches
    advantages = {(one.before, one.ids): one.advantage for one in run.expected_responses("rebn", 0.9)}
    seen = []
    for episode in batch.episodes:
        turns = []
        for turn in episode.turns:
            before, ids = tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn))
            logits = model(input_ids=torch.tensor([[*before, *ids]])).logits[0, len(before) - 1 : -1]
            chosen = logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).squeeze(1)
            sampler = torch.tensor(episode.response_logprobs(turn))
            turns.append((advantages[before, ids], chosen, (chosen.detach() - sampler).tolist()))
        whole = sum(sum(differences) for *_, differences in turns)
        for advantage, chosen, differences in turns:
            logs = {"token": differences, "turn": [sum(differences)] * len(chosen), "episode": [whole] * len(chosen)}
            ratios = [math.exp(one) for one in logs[unit]]
            seen += ratios
            weight = torch.tensor([weigh(kind, one) for one in ratios])
            (-advantage * (weight * chosen).sum() / (8 * run.args.max_completion_length)).backward(retain_graph=True)
    assert min(seen) < 0.8
    assert max(seen) > 1.25
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(run.shifted[name] - parameter.grad, end[name], atol=1e-4, rtol=1e-3)


def test_an_error_of_the_thread_ends_the_run_with_its_reason(trainer):
    run = trainer(env="test:Fragile-v0", max_steps=20, max_staleness=1, env_failure="raise")
    with pytest.raises(EnvFailure, match=r"no such level|lost the connection"):
        run.train()
    assert not threads()


class Interrupt(TrainerCallback):
    """Ctrl-C after the second update."""

    def on_step_end(self, args, state, control, **_):
        if state.global_step == 2:
            raise KeyboardInterrupt


def test_ctrl_c_leaves_no_thread(trainer):
    run = trainer(max_steps=20, max_staleness=1, extra={"callbacks": [Interrupt()]})
    with pytest.raises(KeyboardInterrupt):
        run.train()
    assert not threads()


class Numbered(SpyTrainer):
    """Keeps the round of each training batch."""

    def __init__(self, *args, **kwargs):
        self.rounds = []
        super().__init__(*args, **kwargs)

    def rollout(self, count):
        output = super().rollout(count)
        if self._training:
            [number] = {episode.number for episode in self._batch.episodes}
            self.rounds.append(number)
        return output


def test_evaluations_and_a_resumed_run(trainer, tmp_path):
    settings = {
        "max_staleness": 2,
        "save_strategy": "steps",
        "save_steps": 2,
        "eval_strategy": "steps",
        "eval_steps": 2,
    }
    settings |= {"eval_episodes": 8, "per_device_eval_batch_size": 8}
    run = trainer(cls=Numbered, max_steps=2, **settings)
    run.train()
    again = trainer(cls=Numbered, max_steps=4, **settings)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert (run.rounds, again.rounds) == ([0, 1], [2, 3])
    assert not threads()
    evaluated = [line["eval_episode/turns"] for line in again.state.log_history if "eval_episode/turns" in line]
    assert len(evaluated) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_staleness": 1, "use_vllm": True}, "max_staleness=1 cannot be used with use_vllm: TRL gives vLLM"),
        ({"max_staleness": 1, "cast_lm_head_to_fp32": True}, "cannot be used with cast_lm_head_to_fp32"),
        ({"max_staleness": 1, "use_transformers_continuous_batching": True}, "no continuous batching"),
        ({"max_staleness": 1, "num_iterations": 2, "max_steps": 2}, "less than the 2 updates that a batch serves"),
        ({"max_staleness": -1}, "max_staleness=-1"),
        ({"correction": "tis"}, "correction='tis' compares the sampler with the trainer"),
        ({"correction": "tis", "use_vllm": True}, "correct the same twice"),
        ({"filter_groups": "success"}, "filter_groups='success' needs groups"),
        (
            {"filter_groups": "success", "advantage": "rebn", "num_generations": 4},
            "filter_groups='success' needs groups",
        ),
    ],
)
def test_what_cannot_work_is_refused(settings, changes, message):
    with pytest.raises(SettingsError, match=message):
        settings(**changes)


def test_batches_ahead_are_whole(settings):
    assert settings(max_staleness=3).batches_ahead == 3
    several = {"gradient_accumulation_steps": 1, "steps_per_generation": 2, "max_steps": 2}
    assert settings(max_staleness=3, **several).batches_ahead == 1


@pytest.mark.parametrize(("judged_on", "staleness"), [("success", 0), ("return", 1)])
def test_groups_without_signal_are_replaced(trainer, judged_on, staleness):
    settings = {"advantage": "grpo", "num_generations": 2, "filter_groups": judged_on, "filter_limit": 1000}
    settings |= {"truncated_is_invalid": False, "max_steps": 3, "max_staleness": staleness}
    run = trainer(cls=SpyTrainer, env="test:Coin-v0", **settings)
    run.train()
    if not staleness:  # otherwise samples depend on timing
        assert sum(batch.filtered for batch in run.batches) > 0
    for batch in run.batches:
        groups: dict[int, list] = {}
        for episode in batch.episodes:
            groups.setdefault(episode.group_id, []).append(episode)
        assert len(groups) == 4
        for group in groups.values():
            numbers = [one.success if judged_on == "success" else one.total_reward for one in group]
            assert len(group) == len({*numbers}) == 2
    assert_same(run.trained_responses(), run.expected_responses("grpo", 0.9))
    logged = [line["rollout/filtered"] for line in run.state.log_history if "rollout/filtered" in line]
    assert logged == [batch.filtered for batch in run.batches]
