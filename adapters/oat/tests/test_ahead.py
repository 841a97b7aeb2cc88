"""Oat's actor plays the next batch while the learner trains, and never with weights that are being changed."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from runs import Run, WatchedLearner, arguments, train, train_with_sgd
from transformers import AutoModelForCausalLM

import gem_core
from gem_core import Env
from gem_core.errors import SettingsError
from gem_core.seeding import derive_seed
from gem_oat import GemActor
from gem_oat._ahead import ActorAhead
from gem_oat._checks import prepare
from gem_oat._policy import EnginePolicy
from gem_support.training_run import token_logprobs
from gem_support.waiting import SECONDS, wait_until

BATCHES = 4
AHEAD = {"max_staleness": 1, "max_train": BATCHES * 12}


class Patient(Env):
    """Episodes of two turns. Those of the second batch wait in between until the actor has new weights."""

    played = 0
    waiting = 0
    sent = threading.Event()
    lock = threading.Lock()

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        with Patient.lock:
            self.number, Patient.played = Patient.played, Patient.played + 1
        self.turn = 0
        return "go", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        if self.turn == 1 and 12 <= self.number < 24:
            with Patient.lock:
                Patient.waiting += 1
            assert Patient.sent.wait(SECONDS)
        return "go on", self.rng.uniform(-1, 1), self.turn == 2, False, {"success": True}

    def sample_random_action(self) -> str:
        return "go"


class Sending(WatchedLearner):
    """Sends its first weights when all episodes of the second batch wait for them."""

    def _broadcast_to_vllm(self) -> None:
        wait_until(lambda: Patient.waiting == 12)
        super()._broadcast_to_vllm()
        Patient.sent.set()


@pytest.fixture(autouse=True)
def _patient() -> None:
    gem_core.register("test:Patient-v0", Patient)
    Patient.played = Patient.waiting = 0
    Patient.sent.clear()


@pytest.fixture(scope="module")
def ahead(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("records")
    return train(arguments(model, **AHEAD, record="full", record_folder=str(folder)))


def test_a_batch_is_at_most_one_older_than_the_weights_that_train_on_it(ahead: Run) -> None:
    for number, batch in enumerate(ahead.learner.batches_of):
        versions = {version for one in batch for version, _ in one.summary.versions}
        assert versions <= {number, max(number - 1, 0)}
    assert ahead.learner.info[0]["staleness/max"] == 0.0
    assert all(info["staleness/max"] <= 1.0 for info in ahead.learner.info)


def test_every_episode_that_is_played_is_trained_on_in_order(ahead: Run) -> None:
    assert [len(batch) for batch in ahead.learner.batches_of] == [12] * BATCHES
    tasks = [derive_seed(derive_seed(ahead.learner.args.seed, "train"), number) for number in range(12 * BATCHES)]
    assert sorted(one.seed for one in ahead.episodes) == sorted(tasks)
    for number, batch in enumerate(ahead.learner.batches_of):
        assert sorted(one.summary.seed for one in batch) == sorted(tasks[12 * number : 12 * number + 12])
    trained = Counter((one.before, one.ids) for batch in ahead.batches for one in batch)
    assert trained == Counter(ahead.sampled)


def test_weights_change_between_the_turns_of_an_episode_and_each_turn_has_its_version(model: Path) -> None:
    run = train(arguments(model, env=["test:Patient-v0"], vector_backend="thread", **AHEAD), kind=Sending)
    ids = {one.summary.id for one in run.learner.batches_of[1]}
    second = [one for one in run.episodes if one.id in ids]
    assert len(second) == 12
    assert all([[version for version, _ in turn.versions] for turn in one.turns] == [[0], [1]] for one in second)
    assert run.learner.info[1]["staleness/span"] == 1.0


def test_a_version_is_one_set_of_weights(ahead: Run) -> None:
    """The sampler's log-probability of each turn is that of the weights of its version."""
    policy = AutoModelForCausalLM.from_pretrained(ahead.learner.args.pretrain, torch_dtype=torch.float32)
    for one in ahead.episodes:
        for turn in one.turns:
            ((version, _),) = turn.versions
            policy.load_state_dict(ahead.learner.weights[version], strict=False)
            ids = torch.tensor([*one.prompt_ids(turn), *one.response_ids(turn)])
            with torch.no_grad():
                wanted = token_logprobs(policy, ids)[len(one.prompt_ids(turn)) - 1 :]
            assert torch.allclose(torch.tensor(one.response_logprobs(turn)), wanted, atol=1e-4)


class HeldAhead(ActorAhead):
    """Begins the next step at once, too, but holds the engine before, until it has the weights that train on it."""

    first, held = True, False

    def _begin(self, prompts: tuple[Any, ...]) -> Any:
        if not self.first:
            self._actor.futures.hold().result()
        self.first, self.held = False, not self.first
        return super()._begin(prompts)


class BoundOfNothing(WatchedLearner):
    """Trains with the machinery of `max_staleness`, and a bound of 0."""

    def _init(self, args: Any, actors: Any) -> None:
        super()._init(args, actors)
        (actor,) = actors
        self._ahead = HeldAhead(actor, args.batches)
        collector: Any = self.collector
        collector.actors = [self._ahead]

    def _at_actors(self, method: str, *arguments: Any) -> None:
        if not (method == "hold" and self._ahead.held):
            super()._at_actors(method, *arguments)
        self._ahead.held = False


def test_a_bound_of_0_equals_the_synchronous_run(model: Path) -> None:
    runs = [
        train_with_sgd(arguments(model, max_train=BATCHES * 12, seed=3), rate=20.0, kind=kind)
        for kind in (WatchedLearner, BoundOfNothing)
    ]
    assert all(info["staleness/max"] == 0.0 for run in runs for info in run.learner.info)
    ends = [run.learner.weights[BATCHES] for run in runs]
    for name, one in ends[0].items():
        torch.testing.assert_close(one, ends[1][name], atol=2e-5, rtol=0)
    assert max((one - runs[0].learner.weights[0][name]).abs().max() for name, one in ends[0].items()) > 1e-2


def test_the_loss_of_each_token_has_the_truncated_ratio(model: Path) -> None:
    """Oat's correction of stale tokens, from the formula, by the weights after a step of SGD."""
    limit, rate = 0.98, 20.0  # tokens of the newest weights have the ratio 1, so some are surely truncated
    sizes = {"max_staleness": 1, "max_train": 24, "tis_c": limit}
    args = arguments(model, env=["test:Patient-v0"], vector_backend="thread", **sizes)
    run = train_with_sgd(args, rate=rate, kind=Sending)
    step = 1  # the first turns of its batch are stale, the second ones are not
    assert 0.0 < run.learner.info[step]["staleness/mean"] < 1.0
    policy = AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.float32)
    policy.load_state_dict(run.learner.weights[step], strict=False)
    total, weights = torch.zeros(()), []
    for one in run.batches[step]:
        ids = (*one.before, *one.ids)
        for loss in run.learner.losses[step][ids]:
            weights.append((torch.tensor(loss.logprobs) - torch.tensor(loss.sampled)).exp().clamp(max=limit))
            logprobs = token_logprobs(policy, torch.tensor(ids))[len(one.before) - 1 :]
            total = total + (one.advantage * weights[-1] * logprobs).sum()
    (-total / (12 * 6)).backward()  # episodes, and the token limit of a response
    assert torch.cat(weights).min() < 0.95
    assert torch.cat(weights).max() == pytest.approx(limit)
    for name, parameter in policy.named_parameters():
        if parameter.grad is not None:
            moved = (run.learner.weights[step][name] - run.learner.weights[step + 1][name]) / rate
            torch.testing.assert_close(moved, parameter.grad, atol=2e-5, rtol=0)


# -- the parts --------------------------------------------------------------------------------------------------------


class Steps:
    """An actor that counts the steps that are in flight."""

    def __init__(self) -> None:
        self.begun: list[Future[int]] = []
        self.futures = SimpleNamespace(step=self.step)

    def has_begun(self, number: int) -> bool:
        return len(self.begun) > number

    def step(self, *prompts: Any) -> Future[int]:
        assert all(one.done() for one in self.begun), "one step in flight, never more"
        self.begun.append(Future())
        return self.begun[-1]


def test_one_step_is_in_flight_and_none_is_begun_that_nobody_needs() -> None:
    actor = Steps()
    ahead = ActorAhead(actor, 1000)
    with ThreadPoolExecutor(1) as pool:
        for number in range(1000):
            taking = pool.submit(ahead.step, ["", ""])
            wait_until(partial(actor.has_begun, number))
            actor.begun[number].set_result(number)
            assert taking.result(SECONDS) == number
            assert len(actor.begun) == min(number + 2, 1000)


def test_an_error_of_a_step_is_raised_where_the_batch_is_needed() -> None:
    actor = Steps()
    ahead = ActorAhead(actor, 3)
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(ahead.step)
        wait_until(lambda: actor.begun)
        actor.begun[0].set_exception(OSError("no such device"))
        with pytest.raises(OSError, match="no such device"):
            taking.result(SECONDS)


def test_the_engine_does_not_sample_while_it_is_held() -> None:
    actor: Any = object.__new__(GemActor)
    actor._engine = threading.Lock()
    asked = threading.Event()

    def generate(**_: Any) -> list[Any]:
        asked.set()
        output = SimpleNamespace(token_ids=[1], logprobs=None, finish_reason="stop")
        return [SimpleNamespace(outputs=[output])]

    actor.llm, actor.use_lora_req = SimpleNamespace(generate=generate), False
    actor._policy = EnginePolicy(actor, None, actor._engine)
    actor.hold()
    with ThreadPoolExecutor(1) as pool:
        sampling = pool.submit(actor._policy, [torch.tensor([1]).numpy()])
        assert not asked.wait(0.2)
        actor.release(7)
        assert sampling.result(SECONDS)[0].versions == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_staleness": 2}, "--max_staleness 2: an actor of Oat plays one batch .* Use --max_staleness 1"),
        ({"max_staleness": 6, "train_batch_size": 4}, "a batch serves 3 updates. Use --max_staleness 3"),
        ({"max_staleness": 3, "num_ppo_epochs": 4}, "--max_staleness 3 is less than the 4 updates"),
        ({"max_staleness": 1, "sync_params_every": 2}, "--sync_params_every 2 makes tokens older"),
        ({"max_staleness": 1, "max_concurrent": 6}, "--max_concurrent 6 makes tokens older"),
        ({"max_staleness": 1, "vllm_sleep": True}, "--vllm_sleep frees the engine's memory during updates"),
    ],
)
def test_refused(model: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        prepare(arguments(model, **changes))
