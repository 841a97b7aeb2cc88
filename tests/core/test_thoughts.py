"""Where a thought ends and speech begins, and who gets which."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gem_core
from gem_core import Env, Match, MatchStep, make_vec
from gem_core.env import Wrapper
from gem_core.partner import PartnerConversation, PartnerLog
from gem_core.responses import MARKS, read_response, speech_of
from gem_core.responses._thoughts import PAIRS
from gem_core.tools import FunctionTool, ToolEnv
from gem_core.wrappers import TurnLimit

CALL = '<tool_call>{"name": "note", "arguments": {"text": "a </think> b"}}</tool_call>'
BY_PYTHON = "<|tool_call_start|>[note(text='a </think> b')]<|tool_call_end|>"
HARMONY = "<|channel|>analysis<|message|>a<|end|>"
BY_PARAMETER = "<function=note>\n<parameter=text>\na </think> b\n</parameter>\n</function>"


@pytest.mark.parametrize(("opening", "closing"), PAIRS.items())
def test_the_marks_of_each_family(opening: str, closing: str) -> None:
    for thought in (f"{opening}\nhm\n{closing}\n\n", f"hm\n{closing}", f"{opening}{closing} ", f"a{closing}b{closing}"):
        assert speech_of(f"{thought}Yes.") == "Yes."
    assert speech_of(f" {opening}hm, what if") == ""
    assert speech_of(f"The mark is {opening}.") == f"The mark is {opening}."


@pytest.mark.parametrize(
    ("response", "speech"),
    [
        ("Yes.", "Yes."),
        ("", ""),
        ("  Yes.\n", "  Yes.\n"),
        # Blank lines after a mark go, the indentation of the first line stays.
        ("<think>hm</think>\n\n  - a\n  - b\n", "  - a\n  - b\n"),
        ("<think>hm</think>\n \r\n\n", ""),
        # In a string, a parameter, an element or a block, a mark is text; also after a thought.
        (CALL, CALL),
        (f"<think>hm</think>{CALL}", CALL),
        (f"hm</think>{CALL}", CALL),
        (BY_PARAMETER, BY_PARAMETER),
        (BY_PYTHON, BY_PYTHON),
        (f"<think>{BY_PYTHON}</think>{BY_PYTHON}", BY_PYTHON),
        (f'<tool_call>{{"text": "{HARMONY}"}}</tool_call>', f'<tool_call>{{"text": "{HARMONY}"}}</tool_call>'),
        (f"<python>print('{HARMONY}')</python>", f"<python>print('{HARMONY}')</python>"),
        (f"```text\n{HARMONY}\n```", f"```text\n{HARMONY}\n```"),
        (f"It writes `{HARMONY}` first.", f"It writes `{HARMONY}` first."),
        ("<python>print('</think>')</python>", "<python>print('</think>')</python>"),
        ("<bash>cat <<E\n<think>a</think>\nE\n</bash>", "<bash>cat <<E\n<think>a</think>\nE\n</bash>"),
        ("```python\nprint('</think>')\n```", "```python\nprint('</think>')\n```"),
        ("Write `</think>` last.", "Write `</think>` last."),
        ("<think>a</think>\n```python\ns = '</think>'\nprint(s)", "```python\ns = '</think>'\nprint(s)"),
        ('Plan.</think>\n```python\ns = "</think>"', '```python\ns = "</think>"'),
        ("It's a ```python\ndraft </think> Yes.", "Yes."),
        # A mention opens nothing, whole or half.
        (f"The form is <tool_call> and so on.</think>{CALL}", CALL),
        (f'<tool_call>{{"name": "note", "argum</think>{CALL}', CALL),
        (f"I take <function=note><parameter=text></think>{BY_PARAMETER}", BY_PARAMETER),
        ("I may <search>.</think><search>K2</search>", "<search>K2</search>"),
        ("```python\nprint(1)\n</think>```python\nprint(2)\n```", "```python\nprint(2)\n```"),
        ("so `x`</think>```python\n1\n```", "```python\n1\n```"),
        # A draft is no speech, and one whose string has the mark does not end the thought.
        (f"<think>{CALL} no.</think>Yes.", "Yes."),
        (f"<think>{CALL} no", ""),
        # Another family's mark ends no thought.
        ("<think>Some write [/THINK], and", ""),
        # Messages with headers.
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>", "Yes."),
        ("<|channel|>analysis<|message|>hm", ""),
        ("hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "Yes."),
        ("<|channel|>commentary<|message|>So.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "So.\nYes."),
        ("<|channel|>final<|message|>Yes.<|end|><|start|>user<|message|>And now?", "Yes."),
        (" to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>Yes.<|eot|>", "Yes."),
    ],
)  # fmt: skip
def test_thought_and_speech(response: str, speech: str) -> None:
    read = read_response(response)
    assert read.speech == speech
    assert not (read.thought and speech == response)


def test_a_call_in_a_message_stays_as_it_is_written() -> None:
    call = '<|start|>assistant<|channel|>commentary to=functions.note<|message|>{"text": "<|end|>"}<|call|>'
    assert speech_of(f"<|channel|>analysis<|message|>hm<|end|>{call}") == call
    call = 'to=functions.note<|channel|>commentary json<|message|>{"text": "<|end|>"}<|call|>'
    assert speech_of(f" {call}") == call


PIECES = [
    *PAIRS, *PAIRS.values(), '<tool_call>{"a": "', '"}</tool_call>', '{"a": 1}', "<python>", "</python>", "```python\n",
    "```\n", "\n", " ", "a", "`", '"', "{", "}", "<function=f>", "</function>", "<|channel|>analysis<|message|>",
    "<|end|>", "to=self", "<|channel|>final<|message|>", "<|channel|>commentary to=functions.f<|message|>",
    "<|start|>assistant", "<|start|>user",
]  # fmt: skip
STEEP = ['{"a":{"</think>', '{"a": 1, </think>', "<a1><a2></think></a1>", '<x>"</think>"</x>', '{"a":', "<a></think>"]
"""Pieces that make a careless reader quadratic."""


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_the_speech_of_a_speech_is_the_same(response: str) -> None:
    speech = speech_of(response)
    assert speech_of(speech) == speech


@pytest.mark.parametrize("frame", ["{}", "<think>{}", "{}</think>"])
@pytest.mark.parametrize(
    "piece",
    [
        *PIECES,
        '{"a":{"</think>',
        '{"a": 1, </think>',
        "<a1><a2></think></a1>",
        '<x>"</think>"</x>',
        '{"a":',
        "<a></think>",
    ],
)
def test_the_time_grows_with_the_length_and_no_faster(piece: str, frame: str) -> None:
    def seconds(characters: int) -> float:
        response = frame.replace("{}", piece * (characters // len(piece)))
        began = time.process_time()
        read_response(response)
        return time.process_time() - began

    assert seconds(200_000) < 6 * seconds(50_000) + 0.2


def test_decoding_keeps_every_mark_that_is_one_token() -> None:
    tokens = [mark for pair in PAIRS.items() for mark in pair if "<|sep|>" not in mark and not mark.endswith("thought")]
    assert {*tokens, "<|channel|>", "<|message|>", "<|start|>", "<|channel>", "<|sep|>", "[TOOL_CALLS]"} <= MARKS
    assert not {"<|end|>", "<|return|>", "<|im_end|>", "<|eot_id|>"} & MARKS  # ends of turns are no marks


# -- who gets which ----------------------------------------------------------------------------------------------------


class Echo(Env):
    """Shows what it was given."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return "?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return action, 0.0, False, False, {}

    def sample_random_action(self) -> str:
        return "Yes."


class Reader(Echo):
    reads_thoughts = True


class Format(Wrapper):
    """Pays for a thought, which its environment does not see."""

    reads_thoughts = True

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, float(action.startswith("<think>")), terminated, truncated, info


WHOLE = "<think>hm</think>\nYes."


def stepped(env: Env, action: str = WHOLE) -> Any:
    env.reset(seed=0)
    return env.step(action)


def test_environments_get_speech_unless_they_say_otherwise() -> None:
    assert stepped(Echo())[0] == stepped(TurnLimit(Echo(), 3))[0] == "Yes."
    assert stepped(Reader())[0] == stepped(TurnLimit(Reader(), 3))[0] == WHOLE
    assert stepped(Format(Echo()))[:2] == stepped(TurnLimit(Format(Echo()), 3))[:2] == ("Yes.", 1.0)
    assert stepped(Format(Echo()), "Yes.")[1] == 0.0


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_vectors_give_speech(backend: str) -> None:
    gem_core.register("demo-thoughts:Echo-v0", Echo)
    with make_vec("demo-thoughts:Echo-v0", 2, backend=backend) as vec:
        vec.reset()
        assert vec.step([WHOLE, "No."])[0] == ["Yes.", "No."]


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def test_a_tool_is_called_from_speech_alone_whatever_the_environment_reads() -> None:
    call = '<tool_call>{"name": "double", "arguments": {"number": 4}}</tool_call>'
    for env in (Echo(), Reader()):
        tools = ToolEnv(env, [FunctionTool(double)], form="native")
        assert stepped(tools, f"<think>{call}</think>Yes.")[4].get("use_tool") is None
        observation, *_, info = stepped(tools, f"<think>{call.replace('4', '5')}</think>\n{call} and more")
        assert (observation, info["parsed_action"]) == ("8", call)


class Talk(Match):
    """Each sees what the other said."""

    agents = ("a", "b")

    def deal(self) -> Mapping[str, str]:
        self.turn = 0
        return {"a": "Begin."}

    def to_act(self) -> Sequence[str]:
        return (self.agents[self.turn % 2],)

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        ((speaker, text),) = actions.items()
        self.turn += 1
        other = "b" if speaker == "a" else "a"
        return MatchStep(observations={other: text}, terminated=dict.fromkeys(self.agents, self.turn > 3))

    def random_action(self, agent: str, rng: Any) -> str:
        return "Yes."


class Thinker:
    """A partner that thinks aloud, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def answer(self, messages: Sequence[Mapping[str, str]], episode: str) -> str:
        self.asked.append([*messages])
        return "<think>My limit is 7.</think>I offer 5."

    def close(self) -> None: ...


def test_nobody_in_a_match_sees_the_thoughts_of_another() -> None:
    match = Talk()
    match.reset(seed=0)
    assert match.step({"a": WHOLE}).observations == {"b": "Yes."}

    thinker = Thinker()
    env = gem_core._match_env.MatchEnv(Talk(), {"b": "model:x"}, lambda setting: thinker)
    observation, *_, info = stepped(env)
    assert observation == "I offer 5."
    assert info["partner_replies"] == ["I offer 5."]
    assert [message["content"] for message in thinker.asked[-1]] == ["Yes."]


def test_a_partner_hears_only_what_it_said_itself() -> None:
    thinker = Thinker()
    conversation = PartnerConversation(thinker, "e", PartnerLog())
    assert [conversation.ask("5?"), conversation.ask("6?")] == ["I offer 5."] * 2
    assert [message["content"] for message in thinker.asked[-1]] == ["5?", "I offer 5.", "6?"]
