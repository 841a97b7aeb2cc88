"""The agent with real environments: the sampled ids, one seed per task, and no environment that stops the agent."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openrlhf.trainer.ray.vllm_engine import _load_agent_executor
from vllm import SamplingParams

import gem_core
from gem_core.errors import EnvFailure, NotFoundError, SettingsError
from gem_core.seeding import derive_seed
from gem_openrlhf import GemAgentExecutor
from gem_openrlhf._images import ImageIds
from gem_openrlhf._launcher import DEFAULT_AGENT
from gem_openrlhf._rows import RESULT, EpisodeRows
from gem_openrlhf._tasks import Split, write_tasks
from gem_openrlhf.settings import OpenRLHFSettings, parse
from gem_support.babble import Babble
from gem_support.same_tasks import SETTINGS, assert_first_batch
from gem_train.recording import stop_recording
from gem_train.records import open_records, read_episodes
from gem_train.rollout import StopReason

MAX_TOKENS = 8
CONTEXT = 256


class Engine:
    """Answers as OpenRLHF's engine does, from the prompt and the request alone."""

    def __init__(self, tokenizer: Any, *, ends: bool = True, logprobs: bool = True) -> None:
        self.calls: list[tuple[list[int], list[int], Any]] = []
        self._tokenizer, self._ends, self._logprobs = tokenizer, ends, logprobs

    async def generate(self, prompt: list[int], sampling: Any, multi_modal_data: None = None) -> Any:
        rng = random.Random(repr(prompt))
        await asyncio.sleep(rng.random() / 1000)
        length = sampling.max_tokens if not self._ends else rng.randint(0, sampling.max_tokens - 1)
        ids = [rng.randrange(7, len(self._tokenizer)) for _ in range(length)]
        ids += [self._tokenizer.eos_token_id] if self._ends else []
        self.calls.append((list(prompt), ids, sampling))
        choices = [{one: SimpleNamespace(logprob=-rng.random()), -5: None} for one in ids] if self._logprobs else None
        reason = "stop" if self._ends else "length"
        text = self._tokenizer.decode(ids)
        answer = SimpleNamespace(token_ids=ids, text=text, logprobs=choices, finish_reason=reason)
        return SimpleNamespace(outputs=[answer])


class Ruin(Babble):
    """Never starts."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        raise OSError(f"no file for {seed}")


def setup_module() -> None:
    gem_core.register("test:Ruin-v0", Ruin)


@pytest.fixture
def play(words: Any, tmp_path: Path) -> Callable[..., list[EpisodeRows]]:
    """A function that plays tasks as OpenRLHF's engine actor does."""

    def run(
        count: int,
        *flags: str,
        engine: Engine | None = None,
        copies: int = 1,
        split: Split = "train",
        tokenizer: Any = None,
        batch: int = 6,
    ) -> list[EpisodeRows]:
        own = flags if "--gem.env" in flags else ["--gem.env", "test:Babble-v0", *flags]
        settings, rest = parse([*own, "--gem.steps", "1"])
        assert not rest
        labels = written(tmp_path, settings, split, count, batch)
        return play_labels(labels, tokenizer or words, engine or Engine(tokenizer or words), copies)

    return run


def written(
    folder: Path, settings: OpenRLHFSettings, split: Split, count: int, batch: int, images: ImageIds | None = None
) -> list[str]:
    path = folder / f"{split}.jsonl"
    write_tasks(path, settings, split, batch=batch, count=count, concurrent=8, images=images)
    return [json.loads(line)["label"] for line in path.open("rb")]


def play_labels(labels: Sequence[str], tokenizer: Any, engine: Engine, copies: int = 1) -> list[EpisodeRows]:
    agent: Any = _load_agent_executor(str(DEFAULT_AGENT))
    sampling = SamplingParams(temperature=1.0, max_tokens=MAX_TOKENS, min_tokens=1, logprobs=1)

    async def everything() -> list[Any]:
        return await asyncio.gather(
            *[
                agent.execute(
                    prompt="",
                    label=label,
                    sampling_params=sampling,
                    max_length=CONTEXT,
                    hf_tokenizer=tokenizer,
                    llm_engine=engine,
                    images=None,
                )
                for label in labels
                for _ in range(copies)
            ]
        )

    try:
        responses = asyncio.run(everything())
    finally:
        agent.close()
    assert sampling.min_tokens == 1, "what episodes share is left as it was"
    return [response[RESULT] for response in responses]


def trained(played: Sequence[EpisodeRows]) -> list[tuple[list[int], list[int]]]:
    return [
        (row.ids[: turn.start].tolist(), row.ids[turn.start : turn.end].tolist())
        for one in played
        for row in one.rows
        for turn in row.turns
    ]


@pytest.mark.parametrize("flags", [[], ["--gem.row", "turn"], ["--gem.row", "turn", "--gem.history", "1"]])
def test_sampled_ids(play, words, flags):
    engine = Engine(words)
    played = play(12, *flags, engine=engine)
    assert sorted(trained(played)) == sorted((prompt, ids) for prompt, ids, _ in engine.calls)
    turns = [one.summary.turns for one in played]
    assert sum(turns) > 20
    assert [len(one.rows) for one in played] == (turns if flags else [1] * 12)
    assert [sum(len(row.turns) for row in one.rows) for one in played] == turns


def test_a_tokenizer_that_encodes_other_ids(play, bpe):
    engine = Engine(bpe)
    found = trained(play(12, engine=engine, tokenizer=bpe))
    assert sorted(found) == sorted((prompt, ids) for prompt, ids, _ in engine.calls)
    drifted = [ids for _, ids in found if bpe.encode(bpe.decode(ids), add_special_tokens=False) != ids]
    assert len(drifted) > len(found) / 2


def test_log_probabilities_are_at_their_tokens(play, words):
    for one in play(6):
        for row in one.rows:
            assert len(row.logprobs) == len(row.ids)
            sampled = {at for turn in row.turns for at in range(turn.start, turn.end)}
            assert all((value < 0) == (at in sampled) for at, value in enumerate(row.logprobs))
    assert all(row.logprobs is None for one in play(3, engine=Engine(words, logprobs=False)) for row in one.rows)


def test_a_response_has_its_own_limit_and_may_be_empty(play, words):
    engine = Engine(words)
    play(3, engine=engine)
    assert {sampling.max_tokens for _, _, sampling in engine.calls} == {MAX_TOKENS}
    assert {sampling.min_tokens for _, _, sampling in engine.calls} == {0}


def test_a_truncated_response(play, words):
    for flags, invalid in (([], True), (["--no-gem.truncated_is_invalid"], False)):
        engine = Engine(words, ends=False)
        (one,) = play(1, "--gem.env", "game:Corridor-v0", *flags, engine=engine)
        assert all(turn.truncated for row in one.rows for turn in row.turns)
        assert one.summary.truncated == one.summary.turns
        assert (one.summary.invalid == one.summary.turns) or not invalid
        for row in one.rows:
            for turn in row.turns[:-1]:
                assert row.ids[turn.end] == words.eos_token_id, (
                    "the end of turn that was not sampled, and is not trained on"
                )


def test_copies_of_a_task_play_the_same_task(play, words):
    engine = Engine(words)
    played = play(4, engine=engine, copies=3)
    seeds = [one.summary.seed for one in played]
    assert seeds == [derive_seed(derive_seed(0, "train"), task) for task in range(4) for _ in range(3)]
    assert [one.summary.group_id for one in played] == [task for task in range(4) for _ in range(3)]


def test_the_seed_decides_the_first_batch(play):
    flags = [part for name, value in SETTINGS.items() for part in (f"--gem.{name}", *_texts(value))]
    played = play(16, *flags, batch=8)
    assert_first_batch((one.summary.env_id, one.summary.seed) for one in played[:8])


def _texts(value: Any) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [value])]


def test_evaluation_plays_other_tasks(play):
    train = {one.summary.seed for one in play(6)}
    evaluation = {one.summary.seed for one in play(6, split="eval")}
    assert len(train) == len(evaluation) == 6
    assert not train & evaluation


def test_environments_that_fail_lose_only_their_episode(play):
    played = play(30, "--gem.env", "test:Fragile-v0", "--gem.max_env_failure_share", "none")
    reasons = [one.summary.stop_reason for one in played]
    assert {StopReason.ENV_ERROR, StopReason.TERMINATED} <= {*reasons}
    assert all(one.summary.error for one in played if one.summary.stop_reason is StopReason.ENV_ERROR)
    assert any(one.summary.turns == 0 for one in played)
    assert all(bool(one.rows) == (one.summary.turns > 0) for one in played)


def test_a_dropped_episode(play):
    flags = ["--gem.env", "test:Fragile-v0", "--gem.max_env_failure_share", "none", "--gem.env_failure", "drop"]
    assert EpisodeRows() in play(12, *flags)


def test_a_hanging_environment(play):
    flags = ["--gem.vector_backend", "process", "--gem.env_timeout", "1", "--gem.max_env_failure_share", "none"]
    played = play(24, "--gem.env", "test:Hostile-v0", "--gem.seed", "23", *flags)
    errors = {str(one.summary.error).split(":")[0] for one in played if one.summary.error}
    assert {"RuntimeError", "TimeoutError", "ChildProcessError"} & errors


def test_an_episode_that_exceeds_its_context(play):
    (one,) = play(1, "--gem.env", "test:Chatty-v0")
    assert one.summary.stop_reason is StopReason.CONTEXT_FULL
    assert one.summary.turns == 1


def test_a_failure_that_must_stop_the_run_is_raised(play):
    with pytest.raises(EnvFailure, match=r"test:Fragile-v0 .*failed"):
        play(12, "--gem.env", "test:Fragile-v0", "--gem.env_failure", "raise")
    with pytest.raises(EnvFailure, match="Its first errors"):
        play(60, "--gem.env", "test:Ruin-v0", "--gem.max_env_failure_share", "0.2")


def test_wrong_input_gives_clear_errors(play, words):
    with pytest.raises(NotFoundError, match="game:Corrido-v0"):
        play(1, "--gem.env", "game:Corrido-v0")
    with pytest.raises(SettingsError, match=r"is not a task: start training with gem_openrlhf\.launch"):
        play_labels(["4"], words, Engine(words))
    with pytest.raises(SettingsError, match="is not a task"):
        play_labels([""], words, Engine(words))


def test_environments_alternate(play):
    played = play(12, "--gem.env", "test:Babble-v0", "game:Corridor-v0", "--gem.env_weights", "1", "2")
    ids = [one.summary.env_id for one in played]
    assert ids[:6].count("game:Corridor-v0") == ids[6:].count("game:Corridor-v0") == 4


def test_episodes_are_recorded(play, tmp_path):
    folder = tmp_path / "records"
    try:
        play(5, "--gem.record", "full", "--gem.record_folder", str(folder))
    finally:
        stop_recording()
    records = open_records(folder)
    assert [one.split for one in records.summaries] == ["train"] * 5
    assert all(token in records.texts for one in read_episodes(folder) for token in one.episode.sequences[0].ids)


def test_the_agent_imports_no_training_code():
    code = (
        "import sys; import gem_openrlhf._default_agent; "
        "assert not {'deepspeed', 'openrlhf.trainer', 'gem_openrlhf._launcher', 'gem_openrlhf._trainer', "
        "'gem_openrlhf._workers', 'gem_openrlhf._experience', 'gem_openrlhf._samples'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_openrlhf_finds_the_agent():
    assert isinstance(_load_agent_executor(str(DEFAULT_AGENT)), GemAgentExecutor)
