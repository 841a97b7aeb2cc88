"""The tiny models of the examples: what they read before training, and what they cost."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

import gem_core
from gem_core.errors import EnvFailure
from gem_tiny import saved_tiny_policy, tiny_model, tiny_policy, tiny_tokenizer, warm_start
from gem_tiny._play import MAX_PLAYED_TURNS, random_play
from gem_tiny.warm_start import MAX_ROW_LENGTH, TOKENS_OF_A_STEP, _encoder, _loss, _rows, _shared, _transcript
from gem_train.rollout import ChatTemplate
from gem_train.settings import RunSettings

ENDLESS = "game:GuessTheNumber-v0-hard-no-max-turn"


class Fragile(gem_core.Env):
    """Raises in its second turn where the seed says so, and cannot start for some others."""

    def __init__(self, word: str = "north", fails: int = 3) -> None:
        self.word, self.fails = word, fails

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turns, self.fate = 0, self.rng.randrange(self.fails)
        if self.fate == 1:
            raise RuntimeError("no such level")
        return "begin", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turns += 1
        if self.fate == 0 and self.turns == 2:
            raise RuntimeError("lost the connection")
        return "on", 0.0, self.turns == 3, False, {}

    def sample_random_action(self) -> str:
        return self.word


class Garbled(gem_core.Env):
    """Answers with something of the wrong type."""

    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        answer: Any = ("begin", None) if self.wrong == "reset" else ("begin", {})
        return answer

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation: Any = 5 if self.wrong == "observation" else "on"
        info: Any = None if self.wrong == "info" else {}
        return observation, 0.0, True, False, info

    def sample_random_action(self) -> str:
        return "go"


gem_core.register("test:TinyFragile-v0", Fragile)
gem_core.register("test:TinyGarbled-v0", Garbled)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_an_environment_that_fails_now_and_then_is_played_all_the_same() -> None:
    with closing(random_play(["test:TinyFragile-v0"], env_kwargs={"fails": 6}, seed=0)) as play:
        episodes = [*itertools.islice(play, 50)]
    assert {len(episode) for episode in episodes} == {4}, "whole episodes only: three turns and the last observation"
    model, tokenizer = tiny_policy("test:TinyFragile-v0", env_kwargs={"fails": 6}, warm_start_steps=2)
    assert model.config.vocab_size == len(tokenizer)


def test_one_that_fails_too_often_ends_the_play() -> None:
    with pytest.raises(EnvFailure, match="test:TinyFragile-v0"):
        tiny_tokenizer(["test:TinyFragile-v0"], env_kwargs={"fails": 2})


@pytest.mark.parametrize("wrong", ["reset", "observation", "info"])
def test_answers_of_the_wrong_type_are_failures(wrong: str) -> None:
    with closing(random_play(["test:TinyGarbled-v0"])) as play:
        assert [turn.observation for turn in next(play)] == ["begin", "on"]
    with (
        closing(random_play(["test:TinyGarbled-v0"], env_kwargs={"wrong": wrong})) as play,
        pytest.raises(EnvFailure, match="test:TinyGarbled-v0"),
    ):
        next(play)


def test_arguments_reach_the_environment() -> None:
    words = tiny_tokenizer(["test:TinyFragile-v0"], env_kwargs={"word": "south", "fails": 9}).get_vocab()
    assert "south" in words
    assert "north" not in words


def test_play_is_the_same_for_the_same_seed() -> None:
    def play(seed: int) -> list[Any]:
        with closing(random_play(["game:Corridor-v0", ENDLESS], seed=seed)) as episodes:
            return [[turn[::2] for turn in episode] for episode in itertools.islice(episodes, 6)]

    assert play(1) == play(1) != play(2)


def test_play_without_an_end_is_left_and_a_step_has_a_bounded_number_of_tokens() -> None:
    tokenizer = tiny_tokenizer([ENDLESS], episodes=20)
    template = ChatTemplate(tokenizer)
    with closing(random_play([ENDLESS], seed=0)) as play:
        episodes = [*itertools.islice(play, 64)]
    assert max(map(len, episodes)) == MAX_PLAYED_TURNS + 1
    encode = _encoder(tokenizer, template)
    transcripts = [_transcript(episode, template, encode) for episode in episodes]
    assert max(len(ids) for ids, _ in transcripts) == MAX_ROW_LENGTH
    rows = _rows(iter(transcripts), 64)
    assert len(rows) * max(len(ids) for ids, _ in rows) <= TOKENS_OF_A_STEP + MAX_ROW_LENGTH
    short = [(ids[:8], 4) for ids, _ in transcripts]
    assert _rows(iter(short), 32) == short[:32]


def test_a_tiny_policy_has_torch_use_one_thread() -> None:
    torch.set_num_threads(2)
    tiny_policy("game:Corridor-v0", warm_start_steps=0)
    assert torch.get_num_threads() == 1


def test_a_saved_policy_is_gone_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = RunSettings(env=["game:Corridor-v0"], eval_env=["game:Corridor-v0"], wrappers=["test_tiny:Shouting"])
    with saved_tiny_policy(settings, warm_start_steps=0) as folder:
        assert {"config.json", "tokenizer.json"} <= {path.name for path in Path(folder).iterdir()}
        assert "LOUD" in (Path(folder) / "tokenizer.json").read_text(), "wrappers are applied"
    assert not [*tmp_path.iterdir()]


class Shouting(gem_core.Wrapper):
    """Begins every episode with a word of its own."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, **options)
        return f"LOUD {observation}", info


def test_a_first_prompt_longer_than_a_row_leaves_room_for_what_is_learned() -> None:
    env_ids = ["desk:Retail-v0"]
    tokenizer = tiny_tokenizer(env_ids, episodes=2)
    with closing(random_play(env_ids, seed=0)) as play:
        template = ChatTemplate(tokenizer)
        ids, opening = _transcript(next(play), template, _encoder(tokenizer, template))
    assert len(ids) <= MAX_ROW_LENGTH
    assert opening == MAX_ROW_LENGTH // 2 < len(ids)
    losses: list[float] = []
    warm_start(tiny_model(tokenizer), tokenizer, env_ids, steps=2, batch=2, on_step=lambda _, loss: losses.append(loss))
    assert len(losses) == 2
    assert all(map(math.isfinite, losses))


def test_the_loss_falls() -> None:
    model, tokenizer = tiny_policy("game:Corridor-v0", warm_start_steps=0)
    losses: list[float] = []
    warm_start(model, tokenizer, ["game:Corridor-v0"], steps=20, on_step=lambda _, loss: losses.append(loss))
    assert losses[-1] < losses[0] / 2


def test_the_loss_is_that_of_each_episode_alone_though_their_beginning_is_computed_once() -> None:
    env_ids = ["game:GuessTheNumber-v0-easy", "game:Corridor-v0"]
    tokenizer = tiny_tokenizer(env_ids)
    model, template = tiny_model(tokenizer), ChatTemplate(tokenizer)
    encode = _encoder(tokenizer, template)
    with closing(random_play(env_ids, seed=0)) as play:
        both = [_transcript(episode, template, encode) for episode in itertools.islice(play, 8)]
    assert _shared(both[::2]) > 10, "prompts of one game begin alike"
    assert _shared(both) == 0, "two games have few words in common"
    computed: list[int] = []
    for rows in (both, both[::2], [(ids, 1) for ids, _ in both]):
        summed = sum(_alone(model, ids, opening) for ids, opening in rows)
        count = sum(len(ids) - opening for ids, opening in rows)
        expected = torch.autograd.grad(summed / count, model.lm_head.weight)[0]
        handle = model.get_input_embeddings().register_forward_hook(lambda _, ids, __: computed.append(ids[0].numel()))
        [found] = torch.autograd.grad(_loss(model, rows, 0), model.lm_head.weight)
        handle.remove()
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
    assert len(computed) == 4, "one pass for each, and one for the beginning of one game's prompts"
    assert computed[1] == _shared(both[::2])


def _alone(model: Any, ids: list[int], opening: int) -> torch.Tensor:
    logits = model(input_ids=torch.tensor([ids])).logits[0, opening - 1 : -1]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[opening:]), reduction="sum")


def test_digits_are_tokens_so_numbers_that_play_never_showed_can_be_read_and_written() -> None:
    tokenizer = tiny_tokenizer(["game:GuessTheNumber-v0-easy"], digits=True, episodes=5)
    ids = tokenizer.encode("\\boxed{9045}", add_special_tokens=False)
    assert tokenizer.unk_token_id not in ids
    assert tokenizer.decode(ids) == "\\boxed{9045}"
    assert tokenizer.convert_ids_to_tokens(ids) == ["\\boxed{", "9", "0", "4", "5", "}"]
    whole = tiny_tokenizer(["game:GuessTheNumber-v0-easy"], episodes=5)
    assert whole.unk_token_id in whole.encode("\\boxed{9045}", add_special_tokens=False)
