"""The agent loop with real environments: the sampled ids, one seed per task, and no exceptions."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hydra
import msgspec
import pytest
from omegaconf import DictConfig
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, DictConfigWrap, ToolListWrap, _agent_loop_registry
from verl.workers.rollout.replica import TokenOutput

import gem_core
from gem_core import Wrapper
from gem_core.seeding import derive_seed
from gem_support.babble import Babble
from gem_support.waiting import wait_until
from gem_train.recording import stop_recording
from gem_train.records import read_episodes
from gem_train.results import EpisodeResult
from gem_train.rollout import ChatTemplate, StopReason, end_token_ids
from gem_verl._loop import EnvironmentLoop
from gem_verl._rows import RESULT, TURNS
from gem_verl._runner import RUNNERS, _share_of_batch, build
from gem_verl._tasks import EnvTasks
from gem_verl.settings import VerlSettings

MAX_TOKENS = 8


class Client:
    """Answers as verl's client does, from the prompt and the request alone."""

    def __init__(self, tokenizer: Any, version: int = 0, **answer: Any) -> None:
        self.calls: list[tuple[str, list[int], dict[str, Any], list[int]]] = []
        self._tokenizer, self._version, self._answer = tokenizer, version, answer

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **extra: Any
    ) -> TokenOutput:
        assert not extra
        rng = random.Random(repr((request_id, prompt_ids)))
        await asyncio.sleep(rng.random() / 1000)
        ids = [rng.randrange(7, len(self._tokenizer)) for _ in range(rng.randint(0, sampling_params["max_tokens"] - 1))]
        ids.append(self._tokenizer.eos_token_id)
        self.calls.append((request_id, list(prompt_ids), sampling_params, ids))
        answer = {"token_ids": ids, "log_probs": [-rng.random() for _ in ids], **self._answer}
        return TokenOutput(**answer, stop_reason="completed", extra_fields={"global_steps": self._version})


class Shouting(Wrapper):
    """A wrapper that shows every observation twice."""

    def reset(self, **options: Any) -> Any:
        observation, info = self.env.reset(**options)
        return f"{observation} {observation}", info


class Sleepy(Babble):
    """Half of the seeds do not answer for a while."""

    def step(self, action: str) -> Any:
        if self.slow:
            time.sleep(5)
        return super().step(action)

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        self.slow = (seed or 0) % 2 == 0
        return super().reset(seed=seed)


class Ruin(Babble):
    """Never starts."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        raise OSError(f"no file \udcff for {seed}")


class Unbuildable(Babble):
    """Cannot be built."""

    built = 0

    def __init__(self) -> None:
        Unbuildable.built += 1
        raise OSError("no such licence")


def setup_module() -> None:
    for cls in (Sleepy, Ruin, Unbuildable):
        gem_core.register(f"test:{cls.__name__}-v0", cls)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    RUNNERS.close()
    stop_recording()


@pytest.fixture
def play(configure: Callable[..., DictConfig], words: Any) -> Callable[..., list[list[AgentLoopOutput]]]:
    """A function that plays tasks as verl's agent workers do: the rows of each episode."""

    def run(
        tasks: Sequence[int], *flags: str, client: Client | None = None, sessions: int = 1, split: str = "train"
    ) -> list[list[AgentLoopOutput]]:
        config = configure(*flags)
        rows = EnvTasks(split, config.data)
        return play_rows(config, words, client or Client(words), [rows[task] for task in tasks], sessions)

    return run


def play_rows(
    config: DictConfig,
    tokenizer: Any,
    client: Any,
    rows: Sequence[dict[str, Any]],
    sessions: int = 1,
    processor: Any = None,
) -> list[list[AgentLoopOutput]]:
    async def one(row: dict[str, Any], session: int) -> list[AgentLoopOutput]:
        # As `AgentLoopWorker._run_agent_loop`.
        made = hydra.utils.instantiate(
            config=_agent_loop_registry[row["agent_name"]],
            trainer_config=DictConfigWrap(config=config),
            server_manager=client,
            tokenizer=tokenizer,
            processor=processor,
            hf_model_type="qwen3",
            dataset_cls=EnvTasks,
            data_config=DictConfigWrap(config.data),
            tools=ToolListWrap([]),
        )
        assert type(made) is EnvironmentLoop
        fields = {name: value for name, value in row.items() if name != "agent_name"}
        sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}
        return await made.run(sampling, session_id=session, uid="x", global_steps=1, **fields)

    async def everything() -> list[list[AgentLoopOutput]]:
        return await asyncio.gather(*[one(row, session) for row in rows for session in range(sessions)])

    try:
        return asyncio.run(everything())
    finally:
        RUNNERS.close()


def result_of(rows: Sequence[AgentLoopOutput]) -> EpisodeResult:
    (text,) = {row.extra_fields["reward_extra_info"][RESULT] for row in rows}
    return EpisodeResult.decode(text)


def dumped(episodes: Sequence[Sequence[AgentLoopOutput]]) -> list[list[dict[str, Any]]]:
    """The rows without times, and without the names of episodes, which no other run repeats."""
    return [[_dumped(row) for row in rows] for rows in episodes]


def _dumped(row: AgentLoopOutput) -> dict[str, Any]:
    summary = msgspec.structs.replace(result_of([row]).summary, id="")
    fields = row.model_dump(exclude={"metrics"})
    fields["extra_fields"]["reward_extra_info"] |= {RESULT: EpisodeResult(summary).encode()}
    return fields


def trained_turns(row: AgentLoopOutput) -> list[tuple[list[int], list[int]]]:
    """The prompt and the response of each turn of a row."""
    ids = row.prompt_ids + row.response_ids
    return [(ids[:start], ids[start:end]) for _, start, end, *_ in row.extra_fields[TURNS]]


def nothing_trained(rows: Sequence[AgentLoopOutput]) -> bool:
    return [row.response_mask for row in rows] == [[0]] and [row.extra_fields[TURNS] for row in rows] == [[]]


@pytest.mark.parametrize(("row", "history"), [("episode", "null"), ("turn", "null"), ("turn", "1")])
def test_sampled_ids(play, words, row, history):
    client = Client(words)
    episodes = play(range(12), f"gem.row={row}", f"gem.history={history}", client=client)
    trained = [turn for rows in episodes for row in rows for turn in trained_turns(row)]
    assert sorted(trained) == sorted((prompt, ids) for _, prompt, _, ids in client.calls)
    turns = [result_of(rows).summary.turns for rows in episodes]
    assert len(trained) == sum(turns) > 20
    assert [len(rows) for rows in episodes] == (turns if row == "turn" else [1] * 12)
    assert [rows[0].num_turns for rows in episodes] == turns


def test_a_tokenizer_that_encodes_other_ids(configure, bpe):
    config, client = configure(), Client(bpe)
    rows = EnvTasks("train", config.data)
    episodes = play_rows(config, bpe, client, [rows[task] for task in range(12)])
    trained = [turn for rows in episodes for row in rows for turn in trained_turns(row)]
    assert sorted(trained) == sorted((prompt, ids) for _, prompt, _, ids in client.calls)
    drifted = [ids for _, ids in trained if bpe.encode(bpe.decode(ids), add_special_tokens=False) != ids]
    assert len(drifted) > len(trained) / 2


def test_sessions_of_a_task_play_the_same_task(play, words):
    client = Client(words)
    episodes = play([3, 8], client=client, sessions=4)
    seeds = [result_of(rows).summary.seed for rows in episodes]
    assert seeds == [derive_seed(derive_seed(0, "train"), task) for task in (3, 8) for _ in range(4)]
    assert [result_of(rows).summary.task_id for rows in episodes] == [3] * 4 + [8] * 4
    openings = [rows[0].prompt_ids for rows in episodes]
    assert openings[:4] == [openings[0]] * 4
    assert openings[4:] == [openings[4]] * 4
    assert openings[0] != openings[4]
    # But each episode has its own samples.
    assert len({tuple(rows[0].response_ids) for rows in episodes}) == 8
    assert {request for request, *_ in client.calls} == {f"train-{task}-{s}-0" for task in (3, 8) for s in range(4)}


def test_workers_and_width_change_nothing(play):
    wanted = dumped(play(range(10)))
    narrow = play(range(10), "gem.max_concurrent=1")
    several = play(range(10), "actor_rollout_ref.rollout.agent.num_workers=4", "gem.vector_workers=2")
    backend = play(range(10), "gem.vector_backend=sync")
    assert wanted == dumped(narrow) == dumped(several) == dumped(backend)
    alone = [rows for task in (0, 4, 9) for rows in dumped(play([task]))]
    assert alone == [wanted[task] for task in (0, 4, 9)]


def test_seed_and_split_decide_the_tasks(play):
    def seeds(*flags: str, split: str = "train") -> set[int]:
        return {result_of(rows).summary.seed for rows in play(range(6), *flags, split=split)}

    assert seeds() == seeds()
    assert len(seeds()) == 6
    assert not seeds() & seeds("gem.seed=1")
    assert not seeds() & seeds(split="eval")


def test_requests_to_servers(play, words):
    client = Client(words)
    play(range(4), "actor_rollout_ref.rollout.full_determinism=False", client=client, sessions=2)
    assert len(client.calls) > 8
    for _, _, sampling, _ in client.calls:
        assert sampling == {
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": -1,
            "repetition_penalty": 1.0,
            "logprobs": True,
            "max_tokens": MAX_TOKENS,
            "stop_token_ids": [*end_token_ids(ChatTemplate(words), words)],
        }


def test_full_determinism_gives_each_request_a_seed(play, words):
    flags = ["actor_rollout_ref.rollout.full_determinism=True", "actor_rollout_ref.rollout.seed=7"]
    asked = []
    for _ in range(2):
        client = Client(words)
        play(range(4), *flags, client=client, sessions=2)
        asked.append(sorted((request, len(prompt), sampling["seed"]) for request, prompt, sampling, _ in client.calls))
    assert asked[0] == asked[1]
    seeds = [seed for _, _, seed in asked[0]]
    assert len({*seeds}) == len(seeds) > 8
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_versions_of_the_sampling_weights(play, words):
    class Moving(Client):
        async def generate(self, *args: Any, **kwargs: Any) -> TokenOutput:
            self._version += 1
            return await super().generate(*args, **kwargs)

    lengths: list[int] = []
    for task in range(8):
        (rows,) = play([task], client=Moving(words, version=4))
        summary = result_of(rows).summary
        lengths.append(summary.turns)
        assert [version for version, _ in summary.versions] == [*range(5, 5 + summary.turns)]
        assert sum(tokens for _, tokens in summary.versions) == summary.response_tokens
        versions = [rows[0].extra_fields[f"{end}_global_steps"] for end in ("min", "max")]
        assert versions == [5, 4 + lengths[-1]]
    assert max(lengths) > 1


def test_a_truncated_response_is_an_empty_action(play, words):
    full = [9] * MAX_TOKENS
    (rows,) = play([0], client=Client(words, token_ids=full, log_probs=[-1.0] * MAX_TOKENS))
    assert result_of(rows).summary.truncated == result_of(rows).summary.turns
    # A response that ends exactly at the limit is complete.
    (rows,) = play([0], client=Client(words, token_ids=[*full[1:], words.eos_token_id], log_probs=None))
    assert result_of(rows).summary.truncated == 0
    assert rows[0].response_logprobs is None


def test_end_tokens_of_the_model_end_a_turn(configure, words, model_folder, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(model_folder, folder)
    file = folder / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "eos_token_id": [9, 11]}))
    config = configure(f"actor_rollout_ref.model.path={folder}")
    rows = EnvTasks("train", config.data)
    client = Client(words, token_ids=[10] * (MAX_TOKENS - 1) + [9], log_probs=None)
    (episode,) = play_rows(config, words, client, [rows[0]])
    assert result_of(episode).summary.truncated == 0
    assert {9, 11, words.eos_token_id} <= {*client.calls[0][2]["stop_token_ids"]}


def test_environments_that_raise_lose_only_their_episode(play):
    episodes = play(range(24), "gem.env=test:Fragile-v0", "gem.max_env_failure_share=null")
    errors = [result_of(rows).summary.error for rows in episodes]
    assert {*errors} == {None, "RuntimeError: no such level", "RuntimeError: lost the connection"}
    for rows, error in zip(episodes, errors, strict=True):
        assert nothing_trained(rows) == (error == "RuntimeError: no such level")
        assert result_of(rows) != EpisodeResult()
        # A row without samples gets the newest version of weights: that of the previous step.
        assert rows[0].extra_fields["max_global_steps"] == 0
    failed = next(rows for rows, error in zip(episodes, errors, strict=True) if error and "connection" in error)
    assert result_of(failed).summary.stop_reason is StopReason.ENV_ERROR
    assert result_of(failed).summary.turns == 1


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_environments_that_hang_lose_only_their_episode(play):
    flags = ["gem.env=test:Sleepy-v0", "gem.env_timeout=1", "gem.max_env_failure_share=null"]
    episodes = play(range(8), *flags)
    errors = [result_of(rows).summary.error or "" for rows in episodes]
    hung = [result_of(rows).summary.seed % 2 == 0 for rows in episodes]
    assert ["no answer within 1 s" in error for error in errors] == hung
    assert True in hung
    assert False in hung


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_environments_that_kill_their_process_lose_only_their_episode(play):
    flags = ["gem.env=test:Hostile-v0", "gem.vector_backend=process", "gem.vector_workers=2", "gem.env_timeout=1"]
    episodes = play(range(16), *flags, "gem.max_env_failure_share=null")
    fates = [result_of(rows).summary.seed % 11 for rows in episodes]
    errors = [result_of(rows).summary.error or "" for rows in episodes]
    kinds = {0: "lost the connection", 1: "no answer within 1", 2: "SIGKILL"}
    assert {*fates} & {0, 1, 2}
    for fate, error in zip(fates, errors, strict=True):
        assert (kinds[fate] in error) if fate in kinds else not error


def test_observations_beyond_the_context_end_the_episode(play):
    episodes = play(range(2), "gem.env=test:Chatty-v0")
    for rows in episodes:
        assert result_of(rows).summary.stop_reason is StopReason.CONTEXT_FULL
        assert len(rows[0].prompt_ids) + len(rows[0].response_ids) <= 128 + 256


def test_environments_that_never_start_stop_the_run(play):
    # Half of the last 40 episodes may fail.
    episodes = play(range(24), "gem.env=test:Ruin-v0", "gem.max_concurrent=1")
    found = [result_of(rows) for rows in episodes]
    assert all(map(nothing_trained, episodes))
    fatal = [one.fatal for one in found if one.fatal]
    assert len(fatal) == 4
    assert "test:Ruin-v0 failed: 21 times" in fatal[0]
    told = [one.summary for one in found if one.summary]
    assert all(one.error.startswith("OSError: no file \udcff for ") and not one.turns for one in told)


def test_dropped_episodes_are_marked(play):
    flags = ["gem.env=test:Fragile-v0", "gem.env_failure=drop", "gem.max_env_failure_share=null"]
    episodes = play(range(24), *flags)
    dropped = [rows for rows in episodes if result_of(rows) == EpisodeResult()]
    assert 0 < len(dropped) < 24
    for rows in dropped:
        assert nothing_trained(rows)
    assert not any(result_of(rows).summary.error for rows in episodes if result_of(rows) != EpisodeResult())


def test_failures_that_must_stop_the_run_stop_it(play):
    episodes = play(range(24), "gem.env=test:Fragile-v0", "gem.env_failure=raise")
    fatal = [result_of(rows).fatal for rows in episodes if result_of(rows).fatal]
    assert fatal
    assert fatal[0].startswith("EnvFailure: test:Fragile-v0 (seed ")
    assert "RuntimeError: no such level" in fatal[0] or "RuntimeError: lost the connection" in fatal[0]


@pytest.mark.parametrize(
    ("answer", "words_of_it"),
    [
        ({"token_ids": [], "log_probs": []}, "PolicyError: .*without any token"),
        ({"token_ids": [8, 9], "log_probs": [-1.0]}, "PolicyError: .*1 log-probabilities for 2 tokens"),
        ({"token_ids": [8], "log_probs": [float("-inf")]}, "PolicyError: .*infinite"),
    ],
)
def test_a_server_that_breaks_its_contract_stops_the_run(play, words, answer, words_of_it):
    (rows,) = play([0], client=Client(words, **answer))
    assert nothing_trained(rows)
    assert re.match(words_of_it, result_of(rows).fatal)


def test_a_server_that_raises_stops_the_run(play, words):
    class Gone(Client):
        async def generate(self, *args: Any, **kwargs: Any) -> TokenOutput:
            raise ConnectionError("no server\udcff")

    (rows,) = play([0], client=Gone(words))
    # Errors from outside gem-core need their traceback.
    assert result_of(rows).fatal.startswith("ConnectionError: no server\udcff\nTraceback")
    assert "in generate" in result_of(rows).fatal


def test_an_environment_that_cannot_be_built_stops_the_run(configure, words):
    Unbuildable.built = 0
    config = configure()
    row = EnvTasks("train", config.data)[0]
    config.gem.env = "test:Unbuildable-v0"
    episodes = play_rows(config, words, Client(words), [{**row, "env_id": "test:Unbuildable-v0"}] * 3, sessions=2)
    assert len(episodes) == 6
    for rows in episodes:
        assert result_of(rows).fatal == (
            "EnvError: test:Unbuildable-v0 could not be built with {}: OSError: no such licence"
        )
    assert Unbuildable.built == 1, "one attempt for all episodes"


def test_a_row_for_another_environment_stops_the_run(configure, words):
    config = configure()
    row = EnvTasks("train", config.data)[0]
    (rows,) = play_rows(config, words, Client(words), [{**row, "env_id": "game:Corridor-v0"}])
    assert "this runner plays test:Babble-v0" in result_of(rows).fatal


def test_several_environments_share_a_worker(play):
    flags = ["gem.env=[test:Babble-v0,game:Corridor-v0]", "gem.env_weights=[3,1]"]
    episodes = play(range(8), *flags, "actor_rollout_ref.rollout.agent.num_workers=8")
    names = [result_of(rows).summary.env_id for rows in episodes]
    assert names.count("game:Corridor-v0") == 2
    assert names.count("test:Babble-v0") == 6


@pytest.mark.parametrize(
    ("flags", "split", "wanted"),
    [
        ([], "train", 8),
        (["actor_rollout_ref.rollout.n=3"], "train", 24),
        (["actor_rollout_ref.rollout.n=3", "actor_rollout_ref.rollout.agent.num_workers=5"], "train", 6),
        (["actor_rollout_ref.rollout.n=3"], "eval", 8),
        (["gem.eval_episodes=9", "actor_rollout_ref.rollout.val_kwargs.n=2"], "eval", 18),
        (["actor_rollout_ref.rollout.agent.num_workers=100"], "train", 1),
    ],
)
def test_a_worker_plays_its_whole_share_of_a_batch_at_a_time(configure, flags, split, wanted):
    config = configure(*flags)
    settings = VerlSettings.of(config.gem)
    assert _share_of_batch(config, settings, split) == wanted


def test_options_of_the_chat_template(configure, words):
    runner = build(configure("+data.apply_chat_template_kwargs.enable_thinking=False"), "train", words)
    try:
        assert runner._settings.template_options == {"enable_thinking": False}
    finally:
        runner.close()


def test_wrappers(play, words):
    plain, wrapped = Client(words), Client(words)
    play([0], client=plain)
    play([0], "gem.wrappers=['test_loop:Shouting']", client=wrapped)
    texts = [words.decode(client.calls[0][1]) for client in (plain, wrapped)]
    said = texts[0].removeprefix("<|user|>").removesuffix("<|end|><|assistant|>")
    assert texts[1] == f"<|user|>{said} {said}<|end|><|assistant|>"


def test_modules_are_imported_where_environments_are_played(play, tmp_path, monkeypatch):
    (tmp_path / "gem_test_late.py").write_text(
        "import gem_core\nfrom gem_support import babble\n"
        "class Late(babble.Babble):\n    'Comes from a module.'\n"
        "gem_core.register('test:Late-v0', Late)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (rows,) = play([0], "gem.env=test:Late-v0", "gem.modules=[gem_test_late]")
    assert result_of(rows).summary.env_id == "test:Late-v0"


def test_recording(play, tmp_path):
    folder = tmp_path / "deep" / "episodes"
    episodes = play(range(6), "gem.record=full", f"gem.record_folder={folder}")
    recorded = {one.episode.slot: one.episode for one in read_episodes(folder)}
    assert sorted(recorded) == [*range(6)]
    for task, rows in enumerate(episodes):
        assert recorded[task].summary() == result_of(rows).summary
        sampled = [token for one in recorded[task].turns for token in recorded[task].response_ids(one)]
        assert sampled == [
            token for token, mask in zip(rows[0].response_ids, rows[0].response_mask, strict=True) if mask
        ]


def test_closing_leaves_nothing_behind(play):
    before = {thread.ident for thread in threading.enumerate()}
    play(range(8), "gem.vector_workers=4")
    wait_until(lambda: not [one for one in threading.enumerate() if one.ident not in before])
    assert not RUNNERS
    RUNNERS.close()
    assert result_of(play([0])[0]).summary is not None, "it can begin again"
