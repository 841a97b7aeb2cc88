"""Where a response ends: vLLM, with a model whose chat template ends turns with another token than its tokenizer's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_agent import CONTEXT, play_labels, trained, written
from transformers import AutoTokenizer
from vllm import LLM, SamplingParams
from vllm.distributed import cleanup_dist_env_and_memory

from gem_openrlhf.settings import parse
from gem_support.base_model import ENV, assert_stops, assert_turns_ended, played_episodes, saved_base_model

TASKS = 24


class Engine:
    """OpenRLHF's engine, with vLLM in this process."""

    def __init__(self, llm: LLM) -> None:
        self.stops: set[tuple[int, ...]] = set()
        self._llm = llm

    async def generate(self, prompt: list[int], sampling: SamplingParams, multi_modal_data: None = None) -> Any:
        self.stops.add(tuple(sampling.stop_token_ids or ()))
        [answer] = self._llm.generate([{"prompt_token_ids": prompt}], sampling, use_tqdm=False)
        return answer


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_base_model(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def vllm(base: Path) -> Iterator[LLM]:
    yield LLM(model=str(base), enforce_eager=True, gpu_memory_utilization=0.1, max_model_len=CONTEXT, seed=1)
    cleanup_dist_env_and_memory()


def test_vllm_stops_where_the_template_ends_a_turn(base: Path, vllm: LLM, tmp_path: Path):
    tokenizer: Any = AutoTokenizer.from_pretrained(base)
    settings, _ = parse(["--gem.env", ENV, "--gem.steps", "1"])
    labels = written(tmp_path, settings, "train", TASKS, TASKS)
    engine = Engine(vllm)
    with played_episodes() as episodes:
        played = play_labels(labels, tokenizer, engine)
    [stops] = engine.stops
    assert_stops(stops, tokenizer)
    assert len(episodes) == TASKS
    assert_turns_ended(episodes, tokenizer)
    assert sum(one.summary.truncated for one in played if one.summary) == 0
    said = [([*one.prompt_ids(turn)], [*one.response_ids(turn)]) for one in episodes for turn in one.turns]
    assert sorted(trained(played)) == sorted(said)
