"""Where a response ends: with a model whose chat template ends turns with another token than its tokenizer's."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from test_settings import configuration
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from gem_core.errors import GemError
from gem_roll.checks import check, check_model
from gem_support.base_model import (
    ENV,
    REFUSED,
    assert_stops,
    assert_turns_ended,
    played_episodes,
    saved_base_model,
)

TASKS = 24


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_base_model(tmp_path_factory.mktemp("base"))


class Queue:
    """ROLL's queue of an environment manager, in this process."""

    def __init__(self) -> None:
        numbers = iter([*range(TASKS), None])
        self.rows: list[Any] = []
        self.get_episode_id = SimpleNamespace(remote=lambda *_: next(numbers))
        self.put = SimpleNamespace(remote=lambda group, number, started, rollout, env: self.rows.append(rollout))


class Router:
    """ROLL's router, with an engine in this process."""

    def __init__(self, engine: Any) -> None:
        self.stops: set[tuple[int, ...]] = set()
        self._engine = engine

    async def on_send_request(self, request_id: str) -> bool:
        return True

    async def on_request_routed(self, request_id: str) -> None: ...

    async def generate_request(self, payload: Any, request_id: str, uid: int) -> dict[str, Any]:
        self.stops.add(tuple(payload["sampling_params"]["stop_token_ids"]))
        return await self._engine.generate_request(payload)


def engine_of(model: Path) -> Any:
    from roll.distributed.strategy.vllm_strategy import VllmStrategy  # gem_cpu's

    made: Any = VllmStrategy.__new__(VllmStrategy)
    made.worker = SimpleNamespace(pipeline_config=SimpleNamespace(seed=0))
    made.worker_config = SimpleNamespace(model_args=SimpleNamespace(model_name_or_path=str(model)))
    asyncio.run(made.initialize(None))
    made._engine.load(AutoModelForCausalLM.from_pretrained(model).state_dict())
    return made


def manager_of(tokenizer: Any, queue: Queue) -> Any:
    from roll.configs.generating_args import GeneratingArguments

    from gem_roll._env_manager import TurnEnvManager

    arguments = GeneratingArguments(max_new_tokens=6, temperature=1.0, top_p=1.0, top_k=-1)
    sizes = {"group_size": 1, "num_env_groups": 1, "max_env_num_per_worker": 1}
    worker = SimpleNamespace(generating_args=arguments, **sizes)
    limits = {"rollout_batch_size": TASKS, "val_batch_size": 1, "sequence_length": 256, "max_steps": 1}
    config: Any = SimpleNamespace(gem={"env": [ENV]}, **limits)
    place = {"env_id": 0, "group_id": 0}
    made: Any = TurnEnvManager(worker, config, place, tokenizer, None, queue, None)
    made.current_step = 0
    return made


@pytest.mark.needs_roll
def test_engines_stop_where_the_template_ends_a_turn(base: Path, monkeypatch: pytest.MonkeyPatch):
    from roll.distributed.scheduler.router import RouterClient, RouterManager

    from gem_roll import _env_manager

    tokenizer, queue = AutoTokenizer.from_pretrained(base), Queue()
    router = Router(engine_of(base))
    meta = {"strategy_name": "vllm", "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    monkeypatch.setattr(RouterManager, "create_client_sync", lambda _: RouterClient(router, meta))
    monkeypatch.setattr(_env_manager.ray, "get", lambda answer: answer)
    with played_episodes() as episodes:
        manager_of(tokenizer, queue).run_rollout_loop(None)
    [stops] = router.stops
    assert_stops(stops, tokenizer)
    assert len(episodes) == TASKS
    assert_turns_ended(episodes, tokenizer)
    trained = Counter[tuple[int, ...]]()
    for rollout in queue.rows[:-1]:
        for ids, mask in zip(rollout.batch["input_ids"], rollout.batch["response_mask"], strict=True):
            trained.update(_runs(ids, mask))
    assert trained == Counter(tuple(one.response_ids(turn)) for one in episodes for turn in one.turns)


def _runs(ids: torch.Tensor, mask: torch.Tensor) -> list[tuple[int, ...]]:
    runs = itertools.groupby(zip(ids.tolist(), mask.tolist(), strict=True), key=lambda pair: pair[1])
    return [tuple(number for number, _ in run) for trained, run in runs if trained]


@pytest.mark.parametrize(("setting", "value", "message"), REFUSED)
def test_what_the_template_cannot_carry_is_refused(base: Path, setting: str, value: Any, message: str):
    config = configuration(f"gem.env={ENV}", "sequence_length=384")
    tokenizer, generation_config = AutoTokenizer.from_pretrained(base), GenerationConfig.from_pretrained(base)
    check_model(check(config), config, tokenizer, generation_config)
    config["gem"][setting] = value
    with pytest.raises(GemError, match=message):
        check_model(check(config), config, tokenizer, generation_config)
