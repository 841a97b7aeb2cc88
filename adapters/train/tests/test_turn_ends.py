"""Where a response ends: what each family of templates says, what stays in it, and what follows it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from tokenizers import AddedToken

from gem_core import Env, make
from gem_core.errors import SettingsError, TemplateError
from gem_core.tools import FunctionTool, ToolEnv
from gem_core.wrappers import HistoryMode, ObservationHistory
from gem_support.chat_families import FAMILIES, OTHERS
from gem_train.rollout import ChatTemplate, Conversation, RolloutSettings, end_token_ids
from gem_train.template_checks import check_template, check_tools

ALL = {**FAMILIES, **OTHERS}
histories = pytest.mark.parametrize("history", [None, 1, 2, 3])

# The end of a turn, headers that end it as well, and the end that base models of the family have.
ENDS = {
    "chatml": (["<|im_end|>"], ["<|im_start|>"], "<|endoftext|>"),
    "qwen": (["<|im_end|>"], ["<|im_start|>"], "<|endoftext|>"),
    "llama": (["<|eot_id|>"], ["<|start_header_id|>"], "<|python_tag|>"),
    "mistral": (["</s>"], ["[INST]", "[TOOL_RESULTS]"], "<s>"),
    "gemma": (["<end_of_turn>"], ["<start_of_turn>"], "<eos>"),
    "phi": (["<|end|>"], ["<|user|>", "<|tool|>", "<|assistant|>"], "<|endoftext|>"),
    "deepseek": (["<｜end▁of▁sentence｜>"], ["<｜User｜>", "<｜tool▁outputs▁begin｜>"], "<｜begin▁of▁sentence｜>"),
    "glm": ([], ["<|user|>", "<|observation|>", "<|system|>", "<|assistant|>"], "<|endoftext|>"),
    "channels": (["<|return|>", "<|call|>"], [], "<|endoftext|>"),
    "llama2": (["</s>"], ["<s>"], "<s>"),
    "command": (["<|END_TEXT|>", "<|END_TURN|>"], ["<|START_TURN|>"], "<EOS>"),
    "words": ([], [], "<|endoftext|>"),
    "parts": (["<end_of_utterance>"], [], "<|im_start|>"),
}
WITHIN_A_TURN = {"channels": ["<|start|>", "<|channel|>", "<|message|>", "<|end|>"]}
"""What the assistant itself writes between its words."""
OWN_HEADER = {"channels": "<|channel|>final<|message|>", "words": " ", "parts": " "}
"""What the policy itself samples before its words."""
NO_TOOL_ROLE = {"channels", "llama2", "command"}


@pytest.fixture(scope="module", params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    """Each family in turn."""
    return request.param


@pytest.fixture(scope="module")
def family(name: str) -> Any:
    """Its tokenizer, as of a chat model."""
    return ALL[name]()


def encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def names(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    return tokenizer.convert_ids_to_tokens([*ids])


def rendered(tokenizer: Any, *talk: tuple[str, str]) -> list[int]:
    """The template's own rendering, with the header of the answer."""
    in_parts = tokenizer.eos_token == "<end_of_utterance>"
    messages = [
        {"role": role, "content": [{"type": "text", "text": text}] if in_parts else text} for role, text in talk
    ]
    return encode(tokenizer, tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def test_the_table_has_every_family() -> None:
    assert {*ENDS} == {*ALL}


# -- what ends a response ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [False, True], ids=["chat model", "base model"])
def test_ends_are_those_of_the_template_and_of_the_model(name: str, family: Any, base: bool) -> None:
    ends, headers, foreign = ENDS[name]
    tokenizer = copy.deepcopy(family)
    if base:
        tokenizer.eos_token = foreign
    found = names(
        tokenizer, end_token_ids(ChatTemplate(tokenizer), tokenizer, {"eos_token_id": tokenizer.eos_token_id})
    )
    assert {*ends, *headers, tokenizer.eos_token} <= {*found}
    assert {*found} <= {*tokenizer.all_special_tokens, *(str(one) for one in tokenizer.added_tokens_decoder.values())}
    assert not {*WITHIN_A_TURN.get(name, [])} & {*found}
    assert found[: len(ends)] == ends[: len(found)]  # the template's come first, its end of a turn before all
    assert found == names(tokenizer, end_token_ids(ChatTemplate(copy.deepcopy(tokenizer)), tokenizer))  # stable


def test_a_system_prompt_and_options_change_no_end(family: Any, name: str) -> None:
    if name == "llama2":
        pytest.skip("its template refuses a system prompt")
    assert ChatTemplate(family, system_prompt="go left").ends == ChatTemplate(family, options={"x": 1}).ends


@pytest.mark.parametrize("text", ["\n\n", "\n", " ", "user", "user: left", "left\n\nright"])
def test_lines_and_words_end_nothing(family: Any, text: str) -> None:
    assert not {*encode(family, text)} & {*ChatTemplate(family).ends}


def test_an_added_token_behind_the_next_message_ends_nothing() -> None:
    """Only what stands between two speakers counts, not what comes after the next one's words."""
    tokenizer = OTHERS["words"]()
    tokenizer.add_tokens([AddedToken("<|sep|>", special=True)])
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}<|sep|>\n{% endfor %}"
    assert names(tokenizer, ChatTemplate(tokenizer).ends) == ["<|sep|>"]
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '<|sep|>' if m.role == 'user' }}\n{% endfor %}"
    )
    assert ChatTemplate(tokenizer).ends == ()


def test_the_mark_of_a_thought_that_the_prompt_opens_ends_nothing() -> None:
    tokenizer = FAMILIES["mistral"]()
    tokenizer.add_tokens([AddedToken("<think>", special=True), AddedToken("</think>", special=True)])
    tokenizer.chat_template = str(tokenizer.chat_template) + "{% if add_generation_prompt %}<think>\n{% endif %}"
    found = names(tokenizer, ChatTemplate(tokenizer).ends)
    assert "</s>" in found
    assert not {"<think>", "</think>"} & {*found}


@pytest.mark.parametrize("configured", [7, [7, 8, 7], (7, 8), {"eos_token_id": [7, 8]}, None])
def test_ends_of_the_model_come_last_and_once(configured: Any) -> None:
    tokenizer = FAMILIES["chatml"]()
    template = ChatTemplate(tokenizer)
    own = [*template.ends, tokenizer.eos_token_id]
    more = [] if configured is None else [7] if configured == 7 else [7, 8]
    assert end_token_ids(template, tokenizer, configured) == (*dict.fromkeys([*own, *more]),)
    tokenizer.eos_token = None
    assert end_token_ids(template, tokenizer, configured) == (*template.ends, *more)


# -- what the environment gets -----------------------------------------------------------------------------------------


def test_the_environment_gets_the_words_without_the_end(family: Any) -> None:
    template = ChatTemplate(family)
    for end in template.ends:
        conversation = Conversation(template)
        conversation.observe("go", {})
        assert conversation.respond([*encode(family, "left"), end]).strip() == "left"


def test_an_end_that_is_no_special_token_is_no_word_either() -> None:
    tokenizer = OTHERS["words"]()
    tokenizer.add_tokens([AddedToken("<|turn|>", special=False, normalized=False)])
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}\n{{ m.content }}<|turn|>{% endfor %}"
    template = ChatTemplate(tokenizer)
    [end] = template.ends
    assert template.decode([*encode(tokenizer, "go left"), end]) == "go left"
    assert template.decode([*encode(tokenizer, "go <|turn|> left"), end]) == "go <|turn|> left"


@pytest.mark.parametrize("special", [True, False])
def test_marks_of_thoughts_and_calls_stay(special: bool) -> None:
    tokenizer = FAMILIES["chatml"]()
    marks = ["[THINK]", "[/THINK]", "<tool_call>", "</tool_call>"]
    tokenizer.add_tokens([AddedToken(one, special=special, normalized=False) for one in marks])
    text = '[THINK]left or right?[/THINK]<tool_call>{"name": "look"}</tool_call>'
    ids = [*encode(tokenizer, text), tokenizer.pad_token_id, tokenizer.eos_token_id]
    assert ChatTemplate(tokenizer).decode(ids) == text
    assert ChatTemplate(FAMILIES["chatml"]()).decode([*encode(FAMILIES["chatml"](), "left"), 0]) == "left"


# -- what follows a response -------------------------------------------------------------------------------------------


def played(tokenizer: Any, history: int | None, response: list[int], turns: int = 4) -> list[list[int]]:
    """The prompts of a conversation in which the policy always says the same."""
    conversation, prompts = Conversation(ChatTemplate(tokenizer), history), []
    for turn in range(turns):
        conversation.observe(f"go {turn}", {})
        prompts.append(conversation.prompt().tolist())
        conversation.respond(response)
    return prompts


def window(history: int | None, turn: int, said: str) -> list[tuple[str, str]]:
    """The messages that the prompt of a turn shows."""
    talk = [one for number in range(turn) for one in (("user", f"go {number}"), ("assistant", said))]
    shown = [*talk, ("user", f"go {turn}")]
    return shown if history is None else shown[-(2 * history - 1) :]


@histories
def test_prompts_are_the_templates_renderings(name: str, family: Any, history: int | None) -> None:
    """With the template's own end, and cut off before any end."""
    response = encode(family, OWN_HEADER.get(name, "") + "left")
    ends = family.convert_tokens_to_ids(ENDS[name][0][:1])
    for said in (response, *([*response, end] for end in ends)):
        for turn, prompt in enumerate(played(family, history, said)):
            text, expected = (family.decode(one) for one in (prompt, rendered(family, *window(history, turn, "left"))))
            if name == "channels" and said is not response:
                text = text.replace("<|return|>", "<|end|>")  # what was sampled stays
            if name in ("mistral", "llama2"):  # a text's first space may be written or not
                assert "".join(text.split()) == "".join(expected.split())
            elif name == "deepseek":  # this template writes the header of an answer only in front of the next one
                assert text.replace("<｜Assistant｜>", "") == expected.replace("<｜Assistant｜>", "")
            else:
                assert text == expected
                assert prompt == rendered(family, *window(history, turn, "left")) or name == "channels"


def test_a_sampled_header_is_not_written_again() -> None:
    """The header stays in the response, which is trained on it, and the template goes on from there."""
    tokenizer = FAMILIES["chatml"]()
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    first, second, *_ = played(tokenizer, None, [*encode(tokenizer, "left"), start])
    text = tokenizer.decode(second[len(first) :])
    assert text == "left<|im_start|>user\ngo 1<|im_end|>\n<|im_start|>assistant\n"
    glm = OTHERS["glm"]()
    first, second, *_ = played(glm, None, [*encode(glm, "left"), glm.convert_tokens_to_ids("<|user|>")])
    assert glm.decode(second[len(first) :]) == "left<|user|>\ngo 1<|assistant|>\n"


def test_a_foreign_end_is_followed_by_the_templates() -> None:
    """A base model that ends its text: the next prompt still has the end of the turn."""
    tokenizer = FAMILIES["chatml"]()
    tokenizer.eos_token = "<|endoftext|>"
    first, second, *_ = played(tokenizer, None, [*encode(tokenizer, "left"), tokenizer.eos_token_id])
    assert tokenizer.decode(second[len(first) :]).startswith("left<|endoftext|><|im_end|>\n<|im_start|>user\ngo 1")


def test_a_turn_that_ends_as_the_last_one_is_not_ended_twice() -> None:
    tokenizer = OTHERS["channels"]()
    response = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>left<|return|>"
    first, second, *_ = played(tokenizer, None, encode(tokenizer, response))
    assert tokenizer.decode(second[len(first) :]) == f"{response}<|start|>user<|message|>go 1<|end|><|start|>assistant"


def test_the_second_of_two_ends_is_not_written_again() -> None:
    tokenizer = OTHERS["command"]()
    for said in ("left", "left<|END_TEXT|>", "left<|END_TEXT|><|END_TURN|>"):
        assert played(tokenizer, None, encode(tokenizer, said))[1] == rendered(
            tokenizer, ("user", "go 0"), ("assistant", "left"), ("user", "go 1")
        )


# -- results of tools --------------------------------------------------------------------------------------------------


def test_without_a_role_for_tools_a_result_is_a_message_of_the_user(name: str, family: Any) -> None:
    template = ChatTemplate(family)
    assert template.tool_role == ("user" if name in NO_TOOL_ROLE else "tool")
    for history in (None, 1, 2):
        conversation = Conversation(template, history)
        conversation.observe("go", {})
        conversation.respond(encode(family, "look"))
        conversation.observe("it is left", {"use_tool": True})
        assert "it is left" in family.decode(conversation.prompt()).replace('"', "")
        if name in NO_TOOL_ROLE:
            same = Conversation(template, history)
            same.observe("go", {})
            same.respond(encode(family, "look"))
            same.observe("it is left", {})
            assert same.prompt() == conversation.prompt()


@pytest.mark.parametrize("refusal", ["{{ raise_exception('no user') }}", ""])
def test_a_result_that_a_bounded_history_begins_with_may_be_the_users(refusal: str) -> None:
    """Qwen3.5's template refuses a conversation without a message of the user."""
    tokenizer = FAMILIES["chatml"]()
    plain = tokenizer.chat_template
    tokenizer.chat_template = f"{{% if messages[0].role == 'tool' %}}{refusal}{{% else %}}{plain}{{% endif %}}"
    for history in (1, 2):
        conversation = Conversation(ChatTemplate(tokenizer), history)
        for turn in range(3):
            conversation.observe(f"go {turn}", {"use_tool": turn > 0})
            prompt = conversation.prompt().tolist()
            conversation.respond(encode(tokenizer, "left"))
        assert ("go 1" in tokenizer.decode(prompt)) == (history == 2)
        assert tokenizer.decode(prompt).startswith(f"<|im_start|>user\ngo {3 - history}<|im_end|>")


def test_a_role_without_a_frame_of_its_own_is_no_role() -> None:
    """A result that the template writes, but gives to nobody, would look like the assistant's own words."""
    tokenizer = FAMILIES["deepseek"]()
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'user' %}<｜User｜>{{ m.content }}{% elif m.role == 'assistant' %}"
        "<｜Assistant｜>{{ m.content }}<｜end▁of▁sentence｜>{% else %}{{ m.content }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<｜Assistant｜>{% endif %}"
    )
    assert ChatTemplate(tokenizer).tool_role == "user"


def looking(form: str = "text") -> Env:
    """An environment with a tool."""

    def look() -> str:
        """Look around."""
        return "it is left"

    return ToolEnv(make("game:Corridor-v0"), [FunctionTool(look)], form=form)  # pyright: ignore[reportArgumentType]


def test_native_tools_need_a_template_that_shows_them() -> None:
    for name in ("llama2", "chatml"):
        with pytest.raises(TemplateError, match="has native tools, and the chat template"):
            check_tools(ChatTemplate(ALL[name]()), looking("native"))
        check_tools(ChatTemplate(ALL[name]()), looking())
    tokenizer = FAMILIES["chatml"]()
    tokenizer.chat_template = "{{ tools | tojson if tools }}" + str(tokenizer.chat_template)
    check_tools(ChatTemplate(tokenizer), looking("native"))
    check_tools(ChatTemplate(tokenizer), ObservationHistory(looking("native")))


def test_a_history_in_text_has_results_of_tools_too() -> None:
    env = ObservationHistory(looking(), HistoryMode.CONCAT_CHAT, tokenizer=OTHERS["llama2"]())
    env.reset(seed=0)
    observation, *_, info = env.step('<tool_call>{"name": "look", "arguments": {}}</tool_call>')
    assert info["use_tool"]
    assert "[INST] it is left [/INST]" in observation
    tokenizer = FAMILIES["chatml"]()
    tokenizer.chat_template = "{{ raise_exception('no user') if messages[0].role == 'tool' }}" + str(
        tokenizer.chat_template
    )
    env = ObservationHistory(looking(), HistoryMode.CONCAT_CHAT, last=1, tokenizer=tokenizer)
    env.reset(seed=0)
    observation, *_ = env.step('<tool_call>{"name": "look", "arguments": {}}</tool_call>')
    assert observation.startswith("<|im_start|>user\nit is left")


# -- checks at the start -----------------------------------------------------------------------------------------------


def test_what_fits_is_not_refused(family: Any) -> None:
    template = ChatTemplate(family)
    check_template(template, RolloutSettings(64, 512), end_token_ids(template, family), "tokens")


def test_a_model_without_any_end_is_refused() -> None:
    tokenizer = OTHERS["words"]()
    tokenizer.eos_token = None
    template = ChatTemplate(tokenizer)
    ends = end_token_ids(template, tokenizer)
    with pytest.raises(SettingsError, match=r"nothing ends a response.*Set tokenizer\.eos_token"):
        check_template(template, RolloutSettings(64), ends, "tokens")
    check_template(template, RolloutSettings(1, truncated_is_invalid=False), ends, "tokens")


def test_a_limit_below_the_header_of_every_answer_is_refused() -> None:
    tokenizer = OTHERS["channels"]()
    template = ChatTemplate(tokenizer)
    header, count = template.answer_header
    assert header == "<|channel|>final<|message|>"
    assert count == len(encode(tokenizer, header))
    ends = end_token_ids(template, tokenizer)
    with pytest.raises(SettingsError, match=rf"limit=4: before its first word.*at least {count + 2} tokens"):
        check_template(template, RolloutSettings(count + 1), ends, "limit=4")
    check_template(template, RolloutSettings(count + 2), ends, "limit")
    assert ChatTemplate(FAMILIES["chatml"]()).answer_header == ("", 0)


def test_a_context_that_has_no_room_for_a_prompt_is_refused(family: Any) -> None:
    template = ChatTemplate(family, options={})
    shortest, ends = len(template.initial_prompt(".")), end_token_ids(template, family)
    with pytest.raises(SettingsError, match=rf"limits: the chat template.*takes {shortest} tokens"):
        check_template(template, RolloutSettings(20, shortest + 19), ends, "limits")
    check_template(template, RolloutSettings(20, shortest + 20), ends, "limits")
