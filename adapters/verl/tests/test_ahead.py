"""Sampling ahead of verl's training: the bound, the order of batches, and responses that a weight update interrupts."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import ray
import torch
from omegaconf import DictConfig
from tensordict import TensorDict
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput
from without_ray import MemoryQueue, trainer

from gem_cpu.sampling import Engine
from gem_cpu.verl.replica import Server
from gem_support.waiting import wait_until
from gem_tiny import tiny_model
from gem_verl._liveness import Liveness
from gem_verl._policy import ServerPolicy
from gem_verl._trainer import TurnTrainer

# -- the bound: a trainer of 1,000 steps ------------------------------------------------------------------------------


class Rollouts:
    """Stands in for verl's agent workers and servers: episodes of uneven lengths, a token in each tick of a clock.

    Args:
        queue: where finished episodes go.
        seed: of the lengths.
    """

    def __init__(self, queue: MemoryQueue, seed: int) -> None:
        self.queue, self.dice = queue, random.Random(seed)
        self.playing: dict[str, int] = {}
        self.versions: dict[str, list[int]] = defaultdict(list)
        self.tasks: dict[str, int] = {}
        self.version, self.sampling = 0, True

    def generate_sequences(self, batch: TensorDict) -> None:
        for uid, task in zip(batch["uid"], batch["index"], strict=True):
            self.playing[uid] = 1 + int(self.dice.lognormvariate(0.5, 1.0))
            self.tasks[uid] = int(task)

    def tick(self) -> None:
        for uid in [*self.playing] if self.sampling else []:
            self.versions[uid].append(self.version)
            self.playing[uid] -= 1
            if not self.playing[uid]:
                del self.playing[uid]
                self.queue.tags[f"{uid}_0_0"] = {"status": "success"}
                self.queue.tags[uid] = {**self.queue.tags[uid], "status": "finished"}

    # The methods of verl's checkpoint manager.

    def update_weights(self, version: int) -> None:
        self.version = version

    def abort_replicas(self) -> None:
        self.sampling = False

    def sleep_replicas(self) -> None: ...

    def resume_generation_replicas(self) -> None:
        self.sampling = True


@pytest.fixture
def simulated(configure: Callable[..., DictConfig], words: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that makes a trainer whose rollouts are simulated. verl's replay buffer and data loader are real."""

    def make(ahead: int, steps: int) -> tuple[TurnTrainer, Rollouts]:
        flags = [f"gem.max_staleness={ahead}", f"trainer.total_training_steps={steps}"]
        made: Any = trainer(configure(*flags), words)
        rollouts = Rollouts(MemoryQueue().install(monkeypatch), ahead)
        made.processor, made.agent_loop_manager, made.checkpoint_manager = None, rollouts, rollouts
        made.timing_raw, made.curr_step_profile = {}, False
        made._init_dataloader()

        def poll(*_: Any) -> float:
            rollouts.tick()
            return 0.0

        made._wait = poll
        return made, rollouts

    return make


def train(made: TurnTrainer, rollouts: Rollouts, steps: int) -> list[list[str]]:
    """Take the steps of a training as verl does. Returns the tasks of each batch, in verl's names."""
    made.on_train_begin()
    batches: list[list[str]] = []
    for step in range(made.global_steps, made.global_steps + steps):
        made.global_steps = step
        made.prepare_step()
        batch, _ = made.replay_buffer.sample(made.global_steps, "train", 8)
        made.on_sample_end()
        rollouts.tick()
        batches.append([key.split("_")[0] for key in batch.keys])
        made.on_step_end()
    return batches


@pytest.mark.parametrize(("ahead", "steps"), [(1, 50), (2, 200), (4, 50)])
def test_the_bound_holds_and_every_task_is_trained_on_once_in_order(simulated, ahead, steps):
    made, rollouts = simulated(ahead, steps)
    batches = train(made, rollouts, steps)
    stale = [
        version - sampled
        for version, batch in enumerate(batches)
        for uid in batch
        for sampled in rollouts.versions[uid]
    ]
    assert (min(stale), max(stale)) == (0, ahead)
    for number, batch in enumerate(batches):
        assert sorted(rollouts.tasks[uid] for uid in batch) == [*range(number * 8, number * 8 + 8)]
    assert not rollouts.playing, "no episode is begun that nobody needs"
    assert max(len({*versions}) for versions in rollouts.versions.values()) > 1, "some straddle updates"


def test_a_look_at_no_actors_starts_no_ray():
    before = ray.is_initialized()
    Liveness().check()
    assert ray.is_initialized() == before


def test_without_a_bound_a_step_plays_its_own_batch(simulated):
    made, rollouts = simulated(0, 20)
    batches = train(made, rollouts, 20)
    for number, batch in enumerate(batches):
        assert {version for uid in batch for version in rollouts.versions[uid]} == {number}


def test_a_resumed_run_plays_what_was_begun_and_not_trained_on(simulated, tmp_path):
    made, rollouts = simulated(2, 9)
    train(made, rollouts, 3)
    made.actor_rollout_wg.save_checkpoint = lambda *_, **__: None
    made.config.trainer.default_local_dir = str(tmp_path)
    made._save_checkpoint()
    resumed, rollouts = simulated(2, 9)
    state = torch.load(tmp_path / "global_step_3" / "data.pt", weights_only=False)
    resumed.train_dataloader.load_state_dict(state)
    resumed.global_steps = 4
    batches = train(resumed, rollouts, 6)
    assert sorted(rollouts.tasks[uid] for batch in batches for uid in batch) == [*range(24, 72)]


# -- a response that is interrupted -----------------------------------------------------------------------------------


class Interrupting:
    """verl's client of a server that updates its weights after each call.

    Args:
        pieces: the tokens of each call.
    """

    def __init__(self, *pieces: list[int]) -> None:
        self.pieces = [*pieces]
        self.calls: list[tuple[list[int], dict[str, Any]]] = []

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> TokenOutput:
        self.calls.append((prompt_ids, sampling_params))
        ids = self.pieces.pop(0)
        reason = "aborted" if self.pieces else "completed"
        version = {"global_steps": len(self.calls)}
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason=reason, extra_fields=version)


def policy_of(client: Any, **options: Any) -> ServerPolicy:
    return ServerPolicy(
        client, {"logprobs": True}, **{"max_tokens": 6, "ends": {9}, "episode": "e", "updates": 1, "seed": 5, **options}
    )


def sample(policy: ServerPolicy, prompt: list[int]) -> Any:
    return asyncio.run(policy(torch.tensor(prompt, dtype=torch.int32).numpy()))


def test_new_weights_continue_an_interrupted_response_token_for_token():
    client = Interrupting([4, 5], [], [6, 9])
    policy = policy_of(client, updates=4)
    found = sample(policy, [1, 2])
    assert (found.ids, found.logprobs, found.truncated) == ([4, 5, 6, 9], [-0.5] * 4, False)
    assert found.versions == [4, 4, 12, 12]  # updates of the policy
    assert policy.versions == [1, 3]  # verl's steps
    assert [prompt for prompt, _ in client.calls] == [[1, 2], [1, 2, 4, 5], [1, 2, 4, 5]]
    assert [one["max_tokens"] for _, one in client.calls] == [6, 4, 4]
    seeds = [one["seed"] for _, one in client.calls]
    assert seeds[0] != seeds[1] == seeds[2]


def test_a_response_that_is_interrupted_at_its_limit_is_complete():
    client = Interrupting([4, 5, 6], [9, 9])
    assert sample(policy_of(client, max_tokens=3), [1]).truncated
    assert len(client.calls) == 1


# -- the server of runs on a CPU --------------------------------------------------------------------------------------


class Direct(LLMServerClient):
    """verl's client, with a server in this process."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def generate(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]
    ) -> TokenOutput:
        return await self.server.generate(prompt_ids, sampling_params, request_id)


def test_the_cpu_server_interrupts_between_tokens_and_continues_with_the_new_weights(configure, words, monkeypatch):
    config = configure("actor_rollout_ref.rollout.ignore_eos=True").actor_rollout_ref
    server = Server(omega_conf_to_dataclass(config.rollout), config.model)
    first, second = tiny_model(words, seed=0), tiny_model(words, seed=1)
    sampled = asyncio.Event()
    generate = Engine.generate

    async def play() -> Any:
        loop = asyncio.get_running_loop()

        def watched(self: Engine, requests: Any, interrupted: Callable[[], bool]) -> Any:
            asked: list[int] = []

            def after_three() -> bool:
                """Before the fourth token, the trainer wants the device."""
                asked.append(1)
                if len(asked) == 4 and not sampled.is_set():
                    loop.call_soon_threadsafe(sampled.set)
                    wait_until(interrupted)
                return interrupted()

            return generate(self, requests, after_three)

        monkeypatch.setattr(Engine, "generate", watched)
        await server.load(dict(first.named_parameters()), 1)
        policy = policy_of(Direct(server), max_tokens=8, ends=set())
        answer = asyncio.create_task(policy(torch.arange(3, 9, dtype=torch.int32).numpy()))
        await sampled.wait()
        await server.abort_all_requests()
        await server.load(dict(second.named_parameters()), 2)
        assert not answer.done()
        await server.resume_generation()
        return await answer

    found = asyncio.run(play())
    assert found.versions == [1] * 3 + [2] * 5
    ids = torch.tensor([*range(3, 9), *found.ids])
    for model, these in ((first, slice(0, 3)), (second, slice(3, 8))):
        logits = model(ids[None]).logits[0, 5:-1].float()
        wanted = logits.log_softmax(-1).gather(1, ids[6:, None])[:, 0]
        assert torch.allclose(wanted[these], torch.tensor(found.logprobs)[these], atol=1e-5)
