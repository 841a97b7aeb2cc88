"""The threads of ROLL's managers with one runner, and the answers of an engine."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gem_core.episode import TokenIds, as_token_ids
from gem_core.errors import ClosedError, EnvFailure
from gem_core.failures import FailurePolicy
from gem_core.vector import TaskTable
from gem_roll._shared_runner import SharedRunner, shared_runner
from gem_train.rollout import Completion, EpisodeRunner, RolloutSettings

BABBLE = TaskTable("test:Babble-v0", 1)


class Same:
    """A policy of one word."""

    def __init__(self, tokenizer: Any) -> None:
        self._ids = [*tokenizer.encode("north", add_special_tokens=False), tokenizer.eos_token_id]

    async def __call__(self, prompt: TokenIds) -> Completion:
        return Completion(self._ids)


def runner(words: Any, env_id: str = "test:Babble-v0", **options: Any) -> EpisodeRunner:
    return EpisodeRunner(env_id, words, RolloutSettings(8, 200), seed=1, max_concurrent=4, **options)


def test_many_threads_play_at_once_and_each_gets_its_own_episode(words: Any):
    shared = SharedRunner(runner(words))
    with ThreadPoolExecutor(16) as threads:
        played = threads.map(lambda number: shared.play(Same(words), BABBLE[number]), range(64))
        episodes = [episode for [episode] in played]
    shared.close()
    assert [episode.slot for episode in episodes] == [*range(64)]
    again = SharedRunner(runner(words))
    [once_more] = again.play(Same(words), BABBLE[5])
    assert once_more.turns == episodes[5].turns
    again.close()


def test_a_failure_that_must_stop_the_run_is_raised_in_the_playing_thread(words: Any):
    shared = SharedRunner(runner(words, "test:Fragile-v0", failures=FailurePolicy(then="raise")))

    def play_on() -> None:
        fragile = TaskTable("test:Fragile-v0", 1)
        for number in range(50):
            shared.play(Same(words), fragile[number])

    with pytest.raises(EnvFailure, match="test:Fragile-v0"):
        play_on()
    shared.close()


def test_the_first_builds_and_the_last_closes(words: Any):
    built: list[EpisodeRunner] = []

    def build() -> EpisodeRunner:
        built.append(runner(words))
        return built[-1]

    entered, leave = threading.Barrier(4), threading.Event()

    def stay() -> None:
        with shared_runner("train", build) as shared:
            entered.wait(120)
            leave.wait(120)
            shared.play(Same(words), BABBLE[1])

    with ThreadPoolExecutor(3) as threads:
        staying = [threads.submit(stay) for _ in range(3)]
        entered.wait(120)
        assert len(built) == 1
        with shared_runner("train", build):
            pass  # a user that leaves does not affect the others
        leave.set()
        for one in staying:
            one.result(120)
    with shared_runner("train", build), shared_runner("eval", build):
        assert len(built) == 3
    late = SharedRunner(built[0])
    with pytest.raises(ClosedError):
        late.play(Same(words), BABBLE[1])
    late.close()


# -- the policy -------------------------------------------------------------------------------------------------------


class Answers:
    """Stands in for ROLL's router client: returns the prepared answers and records the requests."""

    def __init__(self, *prepared: dict[str, Any] | None) -> None:
        self._prepared = [*prepared]
        self.asked: list[Any] = []
        self.limits: list[int] = []

    async def generate_request(self, req: Any, request_id: Any, uid: int) -> Any:
        from roll.distributed.scheduler.protocol import DataProto

        self.asked.append(req)
        self.limits.append(req.meta_info["generation_config"]["max_new_tokens"])
        req.meta_info["generation_config"]["max_new_tokens"] = 1  # the real client modifies it, too
        answer = self._prepared.pop(0)
        version = {"metrics": {"gem_version": len(self.asked)}}
        return None if answer is None else DataProto(meta_info={**answer, **version})


def answer(reason: str = "stop", ids: Any = (3, 4)) -> dict[str, Any]:
    return {"finish_reasons": [reason], "output_token_ids": [ids], "output_logprobs": [[-1.0] * len(ids)]}


def sample(client: Answers, running: bool = True) -> Completion:
    import asyncio

    from gem_roll._policy import RouterPolicy

    policy: Any = RouterPolicy(client, {"max_new_tokens": 8}, 3, lambda: running)  # type: ignore[arg-type]
    return asyncio.run(policy(as_token_ids([1, 2])))


@pytest.mark.needs_roll
def test_token_ids_in_and_token_ids_out():
    client = Answers(answer())
    assert sample(client) == Completion([3, 4], [-1.0, -1.0], truncated=False, versions=1)
    assert client.asked[0].batch["input_ids"].tolist() == [[1, 2]]
    assert client.asked[0].batch["attention_mask"].tolist() == [[1, 1]]


@pytest.mark.needs_roll
def test_a_response_at_the_limit_is_truncated():
    assert sample(Answers(answer("length"))).truncated


@pytest.mark.needs_roll
def test_the_new_weights_continue_an_aborted_turn_token_for_token():
    client = Answers({"finish_reasons": ["abort"]}, answer("abort", (9,)), answer())
    assert sample(client) == Completion([9, 3, 4], [-1.0] * 3, truncated=False, versions=[2, 3, 3])
    assert [one.batch["input_ids"].tolist() for one in client.asked] == [[[1, 2]], [[1, 2]], [[1, 2, 9]]]
    assert client.limits == [8, 8, 7]


@pytest.mark.needs_roll
def test_a_turn_that_is_aborted_at_its_limit_is_complete():
    found = sample(Answers(answer("abort", (9,) * 8), answer()))
    assert (found.ids, found.truncated) == ([9] * 8, True)


@pytest.mark.needs_roll
def test_a_request_has_all_ends_and_its_answer_the_step_in_which_the_router_admitted_it():
    import asyncio

    from gem_roll._policy import EngineProxy

    class Proxy:
        async def generate_request(self, payload: Any, request_id: str, uid: int) -> dict[str, Any]:
            assert payload == {"rid": "name", "sampling_params": {"n": 1, "stop_token_ids": [5, 7, 0]}}
            assert (request_id, uid) == ("name", 3)
            return {"finish_reasons": ["stop"], "metrics": {"accepted": 1}}

        async def on_send_request(self, request_id: str) -> bool:
            return True

    proxy = EngineProxy(Proxy(), [5, 7], lambda: 4)
    assert asyncio.run(proxy.on_send_request("name"))
    # ROLL's own: the tokenizer's end, here one that has none, and its padding.
    payload = {"rid": "name", "sampling_params": {"n": 1, "stop_token_ids": [None, 7, 0]}}
    found = asyncio.run(proxy.generate_request(payload=payload, request_id="name", uid=3))
    assert found == {"finish_reasons": ["stop"], "metrics": {"accepted": 1, "gem_version": 4}}


@pytest.mark.needs_roll
def test_the_end_of_the_rollout_ends_the_episode():
    from gem_roll._policy import Stopped

    for client, running in ((Answers(None), True), (Answers(answer()), False)):
        with pytest.raises(Stopped):
            sample(client, running)
