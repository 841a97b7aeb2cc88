"""Where a response ends: with a model whose chat template ends turns with another token than its tokenizer's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import DictConfig
from test_loop import play_rows, result_of, trained_turns
from transformers import AutoModelForCausalLM, AutoTokenizer
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.rollout.replica import TokenOutput
from without_ray import trainer

from gem_core.errors import GemError
from gem_cpu.verl.replica import Server
from gem_support.base_model import ENV, REFUSED, assert_stops, assert_turns_ended, played_episodes, saved_base_model
from gem_verl._policy import ServerPolicy
from gem_verl._tasks import EnvTasks

TASKS = 24


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_base_model(tmp_path_factory.mktemp("base"))


class Client:
    """verl's client of one server, in this process."""

    def __init__(self, server: Server) -> None:
        self.stops: set[tuple[int, ...]] = set()
        self._server = server

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> TokenOutput:
        self.stops.add(tuple(sampling_params["stop_token_ids"]))
        return await self._server.generate(prompt_ids, sampling_params, request_id)


def test_servers_stop_where_the_template_ends_a_turn(configure: Callable[..., DictConfig], base: Path):
    config = configure(f"gem.env={ENV}", f"actor_rollout_ref.model.path={base}", f"data.train_batch_size={TASKS}")
    tokenizer, model = AutoTokenizer.from_pretrained(base), AutoModelForCausalLM.from_pretrained(base)
    server = Server(omega_conf_to_dataclass(config.actor_rollout_ref.rollout), config.actor_rollout_ref.model)
    server._load(model.state_dict(), 0)
    client, rows = Client(server), EnvTasks("train", config.data)
    with played_episodes() as episodes:
        played = play_rows(config, tokenizer, client, [rows[task] for task in range(TASKS)])
    [stops] = client.stops
    assert_stops(stops, tokenizer)
    assert len(episodes) == TASKS
    assert_turns_ended(episodes, tokenizer)
    assert sum(result_of(one).summary.truncated for one in played) == 0
    trained = sorted(turn for rows in played for row in rows for turn in trained_turns(row))
    said = [([*one.prompt_ids(turn)], [*one.response_ids(turn)]) for one in episodes for turn in one.turns]
    assert trained == sorted(said)


@pytest.mark.parametrize(("setting", "value", "message"), REFUSED)
def test_what_the_template_cannot_carry_is_refused_before_workers_start(
    configure: Callable[..., DictConfig], base: Path, setting: str, value: Any, message: str
):
    flags = [f"gem.env={ENV}", f"actor_rollout_ref.model.path={base}"]
    trainer(configure(*flags), None)._init_tokenizer()
    config = configure(*flags)
    config.gem[setting] = value
    with pytest.raises(GemError, match=message):
        trainer(config, None)._init_tokenizer()


@pytest.mark.parametrize(
    ("pieces", "ids", "truncated"),
    [
        ([[4, 9, 5, 6]], [4, 9], False),
        ([[4, 5, 6, 7]], [4, 5, 6, 7], True),
        ([[4, 5, 6, 9]], [4, 5, 6, 9], False),
        ([[4], [5, 9, 6]], [4, 5, 9], False),
        ([[4, 9], [5]], [4, 9], False),  # aborted just after its end
    ],
)
def test_a_server_that_does_not_stop_is_cut_off_at_the_end(pieces: list[list[int]], ids: list[int], truncated: bool):
    """verl's TensorRT-LLM server overwrites the end tokens of a request."""
    left = [*pieces]

    class Endless:
        async def generate(self, **request: Any) -> TokenOutput:
            assert request["sampling_params"]["stop_token_ids"] == [9]
            answer = left.pop(0)
            reason = "aborted" if left else "completed"
            known, version = [-1.0] * len(answer), {"global_steps": 3}
            return TokenOutput(token_ids=answer, log_probs=known, stop_reason=reason, extra_fields=version)

    client: Any = Endless()
    policy = ServerPolicy(client, {}, max_tokens=4, ends=[9], episode="one", updates=1, seed=None)
    found = asyncio.run(policy(torch.tensor([1, 2], dtype=torch.int32).numpy()))
    assert (found.ids, found.truncated, found.versions) == (ids, truncated, 3)
    assert found.logprobs == [-1.0] * len(ids)
