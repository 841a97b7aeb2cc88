"""Wrappers: the exact text of each history mode, limits and totals."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import gem_core
from gem_core import Env
from gem_core.errors import TemplateError
from gem_core.wrappers import EpisodeStatistics, HistoryMode, ObservationHistory, TurnLimit

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Script(Env):
    """Says what it is told to say."""

    def __init__(self, lines: tuple[str, ...] = ("a", "b\n", "c", ""), infos: tuple[dict[str, Any], ...] = ()) -> None:
        self.lines = lines
        self.infos = infos
        self.turn = 0

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return self.lines[0], self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        done = self.turn == len(self.lines) - 1
        return self.lines[self.turn], self.turn / 4, done, False, self._info()

    def sample_random_action(self) -> str:
        return "x"

    def _info(self) -> dict[str, Any]:
        return dict(self.infos[self.turn]) if self.turn < len(self.infos) else {}


def views(env: Env, actions: tuple[str, ...] = ("x", "y\n", "z")) -> list[str]:
    """What an episode shows, observation by observation."""
    return [env.reset(seed=0)[0], *(env.step(action)[0] for action in actions)]


# -- history -----------------------------------------------------------------------------------------------------------


def test_concat_shows_the_observations() -> None:
    assert views(ObservationHistory(Script())) == ["a\n", "a\nb\n", "a\nb\nc\n", "a\nb\nc\n"]


def test_concat_with_action_shows_both_in_turn() -> None:
    env = ObservationHistory(Script(), "concat_with_action")
    assert views(env) == ["a\n", "a\nx\nb\n", "a\nx\nb\ny\nc\n", "a\nx\nb\ny\nc\nz\n"]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (1, ["a\n", "b\n", "c\n", ""]),
        (2, ["a\n", "a\nx\nb\n", "b\ny\nc\n", "c\nz\n"]),
        (3, ["a\n", "a\nx\nb\n", "a\nx\nb\ny\nc\n", "b\ny\nc\nz\n"]),
        (9, ["a\n", "a\nx\nb\n", "a\nx\nb\ny\nc\n", "a\nx\nb\ny\nc\nz\n"]),
    ],
)
def test_last_keeps_so_many_observations_and_the_actions_between(last: int, expected: list[str]) -> None:
    assert views(ObservationHistory(Script(), "concat_with_action", last=last)) == expected


def test_last_without_actions() -> None:
    assert views(ObservationHistory(Script(), last=2)) == ["a\n", "a\nb\n", "b\nc\n", "c\n"]


def test_chat_shows_messages_in_the_template(chatml: PreTrainedTokenizerFast) -> None:
    env = ObservationHistory(Script(), "concat_chat", tokenizer=chatml)
    first = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
    second = "x<|im_end|>\n<|im_start|>user\nb\n<|im_end|>\n<|im_start|>assistant\n"
    assert views(env)[:2] == [first, first + second]


def test_chat_keeps_the_last_messages(words: PreTrainedTokenizerFast) -> None:
    env = ObservationHistory(Script(), HistoryMode.CONCAT_CHAT, last=2, tokenizer=words)
    assert views(env)[2] == "<|user|>b\n<|end|><|assistant|>y\n<|end|><|user|>c<|end|><|assistant|>"


def test_chat_on_reset_appends_plain_text_to_the_first_message(chatml: PreTrainedTokenizerFast) -> None:
    env = ObservationHistory(Script(), "concat_chat_on_reset", tokenizer=chatml)
    opening = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
    assert views(env) == [
        opening,
        opening + "x\nb\n",
        opening + "x\nb\ny\nc\n",
        opening + "x\nb\ny\nc\nz\n",
    ]


def test_a_tool_s_answer_has_its_own_role(chatml: PreTrainedTokenizerFast, words: PreTrainedTokenizerFast) -> None:
    script = Script(infos=({}, {"use_tool": True}, {}))
    shown = views(ObservationHistory(script, "concat_chat", tokenizer=words))
    assert shown[2] == (
        "<|user|>a<|end|><|assistant|>x<|end|><|tool|>b\n<|end|><|assistant|>y\n<|end|><|user|>c<|end|><|assistant|>"
    )
    shown = views(ObservationHistory(script, "concat_chat", tokenizer=chatml))
    assert "<|im_start|>user\n<tool_response>\nb\n\n</tool_response><|im_end|>\n" in shown[1]


def test_prefix_and_suffix_frame_the_history_and_are_not_kept() -> None:
    script = Script(infos=({"prefix": "Rules.\n", "suffix": "Your move:"}, {"suffix": "Move 2:"}, {}))
    assert views(ObservationHistory(script, "concat_with_action"))[:3] == [
        "Rules.\na\nYour move:",
        "a\nx\nb\nMove 2:",
        "a\nx\nb\ny\nc\n",
    ]


def test_prefix_and_suffix_stand_inside_the_messages(words: PreTrainedTokenizerFast) -> None:
    script = Script(infos=({"prefix": "Rules.\n", "suffix": "Your move:"}, {"prefix": "P", "suffix": "S"}))
    assert views(ObservationHistory(script, "concat_chat", tokenizer=words))[:2] == [
        "<|user|>Rules.\na\nYour move:<|end|><|assistant|>",
        "<|user|>Pa<|end|><|assistant|>x<|end|><|user|>b\n\nS<|end|><|assistant|>",
    ]


def test_a_prefix_is_not_shown_again_by_whoever_builds_a_prompt() -> None:
    info = {"prefix": "Rules.\n", "suffix": "Your move:", "success": False}
    env = ObservationHistory(Script(infos=(info, info)))
    assert env.reset(seed=0) == ("Rules.\na\nYour move:", {"success": False})
    assert env.step("x")[4] == {"success": False}


def test_the_part_that_counted_stands_for_the_action() -> None:
    script = Script(infos=({}, {"parsed_action": "<x>"}))
    assert views(ObservationHistory(script, "concat_with_action"))[1] == "a\n<x>\nb\n"


def test_a_reset_forgets() -> None:
    env = ObservationHistory(Script(), "concat_with_action", last=2)
    assert views(env) == views(env)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="last must be at least 1"):
        ObservationHistory(Script(), last=0)
    with pytest.raises(ValueError, match="concat_all"):
        ObservationHistory(Script(), "concat_all")
    for mode in ("concat_chat", "concat_chat_on_reset"):
        with pytest.raises(TemplateError, match=mode):
            ObservationHistory(Script(), mode)


# -- turn limit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "flags"),
    [
        (1, [(False, True)]),
        (2, [(False, False), (False, True)]),
        # The task's own end is no truncation, in the very turn of the limit too.
        (3, [(False, False), (False, False), (True, False)]),
        (9, [(False, False), (False, False), (True, False)]),
    ],
)
def test_the_limit_truncates_what_has_not_ended(limit: int, flags: list[tuple[bool, bool]]) -> None:
    env = TurnLimit(Script(), limit)
    for _ in range(2):  # the second episode has its turns again
        env.reset(seed=0)
        assert [env.step("x")[2:4] for _ in flags] == flags


def test_the_environment_s_own_truncation_stays() -> None:
    env = TurnLimit(TurnLimit(Script(), 1), 9)
    env.reset()
    assert env.step("x")[2:4] == (False, True)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        TurnLimit(Script(), limit)


# -- totals ------------------------------------------------------------------------------------------------------------


def test_totals_are_in_every_info_and_the_last_episode_s_in_the_next_reset() -> None:
    env = EpisodeStatistics(Script())
    assert env.reset()[1] == {"turn_count": 0, "episode_return": 0.0}
    assert env.step("x")[4] == {"turn_count": 1, "episode_return": 0.25}
    assert env.step("x")[4] == {"turn_count": 2, "episode_return": 0.75}
    assert env.step("x")[4] == {"turn_count": 3, "episode_return": 1.5}
    fresh = {"turn_count": 0, "episode_return": 0.0}
    assert env.reset()[1] == {**fresh, "prev_ep_turn_count": 3, "prev_ep_return": 1.5}
    # A reset without a turn in between changes nothing.
    assert env.reset()[1] == {**fresh, "prev_ep_turn_count": 3, "prev_ep_return": 1.5}


def test_totals_do_not_touch_the_environment_s_own_info() -> None:
    info = {"kept": 1}
    env = EpisodeStatistics(Script(infos=(info,)))
    assert env.reset()[1]["kept"] == 1
    assert info == {"kept": 1}


# -- together ----------------------------------------------------------------------------------------------------------


def stack(tokenizer: PreTrainedTokenizerFast) -> Env:
    return EpisodeStatistics(ObservationHistory(TurnLimit(Script(), 3), "concat_chat", tokenizer=tokenizer))


def test_a_stack_can_be_pickled_half_way(words: PreTrainedTokenizerFast) -> None:
    env = stack(words)
    env.reset(seed=0)
    env.step("x")
    other = pickle.loads(pickle.dumps(env))
    assert other.step("y") == env.step("y")
    assert other.step("z") == env.step("z")


def test_a_stack_goes_back_to_a_snapshot(words: PreTrainedTokenizerFast) -> None:
    env = stack(words)
    env.reset(seed=0)
    env.step("x")
    state = env.get_state()
    following = [env.step("y"), env.step("z")]
    for _ in range(2):
        env.set_state(state)
        assert [env.step("y"), env.step("z")] == following


class Heavy:
    """A tokenizer that must not be copied with every snapshot."""

    def __deepcopy__(self, memo: Any) -> Heavy:
        raise AssertionError("the tokenizer was copied")

    def apply_chat_template(self, conversation: list[dict[str, str]], **kwargs: Any) -> str:
        return "|".join(message["content"] for message in conversation)


def test_snapshots_and_spawned_twins_share_the_tokenizer() -> None:
    gem_core.register("demo:Script-v0", Script)
    env = ObservationHistory(gem_core.make("demo:Script-v0"), "concat_chat", tokenizer=Heavy())
    env.reset(seed=0)
    env.step("x")
    state, twin = env.get_state(), env.spawn(same_state=True)
    following = env.step("y")
    assert twin.step("y") == following
    env.set_state(state)
    assert env.step("y") == following


def test_copying_a_wrapped_environment_copies_the_environment() -> None:
    env = TurnLimit(Script(), 2)
    env.reset(seed=0)
    other = copy.deepcopy(env)
    env.step("x")
    assert other.turn == 0
    assert other.unwrapped is not env.unwrapped
