"""Token in, token out: prompts contain what was sampled, id by id, and nothing that was not."""

from __future__ import annotations

import copy
import math
import random
from array import array
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gem_core.episode import as_token_ids
from gem_core.errors import PolicyError, TemplateError
from gem_core.vector import Transition
from gem_support.example_counts import examples
from gem_train.rollout import (
    ChatTemplate,
    Completion,
    Conversation,
    Episode,
    EpisodeBuilder,
    RolloutSettings,
    StopReason,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

# The tokenizers are built once for the session, so hypothesis may reuse the fixtures.
prop = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])

texts = st.text(alphabet=st.sampled_from("abc go left right 12 .\n<>\\{}é漢"), max_size=12)
sampled = st.tuples(st.lists(st.integers(0, 10**6), min_size=1, max_size=8), st.booleans())
turns = st.lists(st.tuples(texts, sampled), min_size=1, max_size=5)
histories = pytest.mark.parametrize("history", [None, 1, 2, 3])


def ids_of(tokenizer: PreTrainedTokenizerFast, drawn: tuple[list[int], bool]) -> list[int]:
    """Sampled ids: any tokens at all, and at the end the end of turn or not."""
    numbers, ended = drawn
    ids = [number % len(tokenizer) for number in numbers]
    return [*ids, tokenizer.eos_token_id] if ended else ids


def encode(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def header(tokenizer: PreTrainedTokenizerFast, message: str) -> str:
    """A user message and the header of the answer, written by hand."""
    if tokenizer.eos_token == "<|im_end|>":
        return f"<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"
    return f"<|user|>{message}<|end|><|assistant|>"


def glue(tokenizer: PreTrainedTokenizerFast, response: list[int], message: str) -> list[int]:
    """What stands between a response and the answer to the next message: what the response sampled of it only once."""
    chatml = tokenizer.eos_token == "<|im_end|>"
    whole = encode(tokenizer, f"{tokenizer.eos_token}{chr(10) if chatml else ''}" + header(tokenizer, message))
    ends = encode(tokenizer, f"{tokenizer.eos_token}{'<|im_start|>' if chatml else '<|user|>'}")
    return whole[whole.index(response[-1]) + 1 :] if response[-1] in ends else whole


def starts_with(whole: list[int], head: list[int]) -> bool:
    return whole[: len(head)] == head


# -- repeated messages -------------------------------------------------------------------------------------------------


def test_a_repeated_message_is_encoded_once_and_its_ids_are_the_callers_own(
    chatml: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = ChatTemplate(chatml)
    places = [template.initial_prompt, template.bridge_tokens]
    first = [(place(message), place(message, "user")) for place in places for message in ("left", "right")]
    expected = copy.deepcopy(first)
    assert len({tuple(ids) for ids, _ in first}) == 4
    with monkeypatch.context() as patch:
        patch.setattr(template, "_tokenizer", None)  # any use of it raises
        for ids, same in first:
            ids.append(0)
            same.clear()
        again = [(place(message), place(message)) for place in places for message in ("left", "right")]
        assert again == expected
    assert template.initial_prompt("up") == encode(chatml, header(chatml, "up"))


def test_no_more_than_a_bounded_number_of_short_messages_is_kept(
    chatml: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gem_train.rollout._template._KEPT_MESSAGES", 3)
    template = ChatTemplate(chatml)
    long = "go left " * 500
    for message in [*"abcdefgh", long]:
        for _ in range(2):
            assert template.initial_prompt(message) == encode(chatml, header(chatml, message))
    kept = vars(template)["_kept"]
    assert 1 <= len(kept) <= 3
    assert not any(long in key for key in kept)


def test_a_template_with_tools_keeps_messages_of_its_own(chatml: PreTrainedTokenizerFast) -> None:
    chatml = copy.deepcopy(chatml)
    chatml.chat_template = "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}" + str(
        chatml.chat_template
    )
    plain = ChatTemplate(chatml)
    before = plain.initial_prompt("go")
    shown = plain.with_tools([{"type": "function", "function": {"name": "look", "parameters": {}}}])
    assert shown.initial_prompt("go") == [*encode(chatml, "[look]"), *before]
    assert plain.initial_prompt("go") == before


# -- what is sampled stays as it is ------------------------------------------------------------------------------------


def test_these_ids_would_not_survive_decoding(chatml: PreTrainedTokenizerFast) -> None:
    # Why all this is needed: a model may sample a word in other pieces than the tokenizer would choose.
    pieces = [encode(chatml, letter)[0] for letter in "another"]
    text = chatml.decode(pieces)
    assert text == "another"
    assert encode(chatml, text) != pieces


@prop
@given(turns)
def test_with_full_history_every_prompt_continues_the_last(
    tokenizer: PreTrainedTokenizerFast, drawn: list[tuple[str, tuple[list[int], bool]]]
) -> None:
    conversation = Conversation(ChatTemplate(tokenizer))
    before: list[int] = []
    for number, (message, response) in enumerate(drawn):
        conversation.observe(message, {})
        prompt = conversation.prompt().tolist()
        assert starts_with(prompt, before)
        added = prompt[len(before) :]
        if number:
            assert added == glue(tokenizer, before, message)
        else:
            assert added == encode(tokenizer, header(tokenizer, message))
        ids = ids_of(tokenizer, response)
        conversation.respond(ids)
        before = prompt + ids


@pytest.mark.parametrize("history", [1, 2, 3])
@prop
@given(turns)
def test_with_k_observations_the_last_k_and_the_answers_between_stand_unchanged(
    tokenizer: PreTrainedTokenizerFast, history: int, drawn: list[tuple[str, tuple[list[int], bool]]]
) -> None:
    conversation = Conversation(ChatTemplate(tokenizer), history)
    seen: list[tuple[str, list[int]]] = []
    for message, response in drawn:
        conversation.observe(message, {})
        shown = seen[len(seen) - history + 1 :] if len(seen) >= history else seen
        expected: list[int] = []
        for text, ids in [*shown, (message, [])]:
            expected += glue(tokenizer, expected, text) if expected else encode(tokenizer, header(tokenizer, text))
            expected += ids
        assert conversation.prompt().tolist() == expected
        seen.append((message, ids_of(tokenizer, response)))
        conversation.respond(seen[-1][1])


@histories
@prop
@given(st.lists(st.tuples(texts, texts, st.booleans()), min_size=1, max_size=5))
def test_canonical_responses_give_the_plain_rendering_of_the_template(
    tokenizer: PreTrainedTokenizerFast, history: int | None, drawn: list[tuple[str, str, bool]]
) -> None:
    conversation = Conversation(ChatTemplate(tokenizer, system_prompt="you are the goal"), history)
    messages: list[dict[str, str]] = []
    for message, answer, ended in drawn:
        conversation.observe(message, {})
        messages.append({"role": "user", "content": message})
        window = messages if history is None else messages[-(2 * history - 1) :]
        rendered = tokenizer.apply_chat_template(
            [{"role": "system", "content": "you are the goal"}, *window], tokenize=False, add_generation_prompt=True
        )
        assert conversation.prompt().tolist() == encode(tokenizer, rendered)
        ids = encode(tokenizer, answer)
        conversation.respond([*ids, tokenizer.eos_token_id] if ended or not ids else ids)
        messages.append({"role": "assistant", "content": answer})


def test_the_response_is_given_back_as_text_without_special_tokens(tokenizer: PreTrainedTokenizerFast) -> None:
    conversation = Conversation(ChatTemplate(tokenizer))
    conversation.observe("go", {})
    assert conversation.respond([*encode(tokenizer, "go left"), tokenizer.eos_token_id]) == "go left"


def test_reasoning_that_the_template_would_cut_out_stays(chatml: PreTrainedTokenizerFast) -> None:
    conversation = Conversation(ChatTemplate(chatml))
    conversation.observe("go", {})
    ids = [*encode(chatml, "<think>\nleft?\n</think>\nleft"), chatml.eos_token_id]
    before = conversation.prompt().tolist()
    conversation.respond(ids)
    conversation.observe("on", {})
    assert starts_with(conversation.prompt().tolist(), before + ids)


def test_prompts_given_out_can_be_changed_without_harm(tokenizer: PreTrainedTokenizerFast) -> None:
    conversation = Conversation(ChatTemplate(tokenizer))
    conversation.observe("go", {})
    expected = conversation.prompt().tolist()
    del conversation.prompt()[:]
    response = [5, 6]
    conversation.respond(response)
    response.clear()
    conversation.observe("on", {})
    assert starts_with(conversation.prompt().tolist(), [*expected, 5, 6])


def test_prefix_suffix_and_tool_answers_are_part_of_the_message(chatml: PreTrainedTokenizerFast) -> None:
    conversation = Conversation(ChatTemplate(chatml))
    assert conversation.observe("board", {"prefix": "Rules.\n", "suffix": "Your move:"}) == "Rules.\nboard\nYour move:"
    conversation.respond([chatml.eos_token_id])
    assert conversation.observe("42", {"use_tool": True}) == "42"
    text = chatml.decode(conversation.prompt().tolist())
    assert text.startswith("<|im_start|>user\nRules.\nboard\nYour move:<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n")
    assert text.endswith("<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n")


def test_a_response_that_cannot_be_decoded_leaves_nothing_behind(words: PreTrainedTokenizerFast) -> None:
    made = builder(words)
    before = made.prompt
    for ids in ([5, -1], [5, 2**40], [5, "a"]):
        with pytest.raises(PolicyError, match="something that is not a token id"):
            made.act(Completion(ids))  # type: ignore[arg-type]

    def refuse(*args: Any, **kwargs: Any) -> str:
        raise OverflowError("no such token")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChatTemplate, "decode", refuse)
        with pytest.raises(OverflowError):
            made.act(Completion([5]))
    assert made.prompt == before
    made.act(Completion([6]))
    made.record(go_on())
    assert made.prompt[: len(before) + 1] == before + as_token_ids([6])


def test_tools_can_be_withdrawn(chatml: PreTrainedTokenizerFast) -> None:
    chatml = copy.deepcopy(chatml)
    chatml.chat_template = "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}" + str(
        chatml.chat_template
    )
    conversation = Conversation(ChatTemplate(chatml))
    look = {"type": "function", "function": {"name": "look", "parameters": {}}}
    conversation.observe("go", {"tools": [look]})
    conversation.respond([5])
    conversation.observe("on", {"tools": []})
    assert "[look]" not in chatml.decode(conversation.prompt().tolist())
    assert len(conversation.sequences) == 2


def test_a_list_of_tools_that_changes_starts_a_sequence_whose_prompt_shows_it(chatml: PreTrainedTokenizerFast) -> None:
    def tool(name: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "parameters": {}}}

    chatml = copy.deepcopy(chatml)
    shown = "{% if tools %}{% for tool in tools %}[{{ tool.function.name }}]{% endfor %}{% endif %}"
    chatml.chat_template = shown + str(chatml.chat_template)
    conversation = Conversation(ChatTemplate(chatml))
    conversation.observe("go", {"tools": [tool("look")]})
    conversation.respond([5])
    conversation.observe("on", {"tools": [tool("look")]})
    assert len(conversation.sequences) == 1
    first = conversation.prompt().tolist()
    conversation.respond([6])
    conversation.observe("further", {"tools": [tool("look"), tool("jump")]})
    assert len(conversation.sequences) == 2
    text = chatml.decode(conversation.prompt().tolist())
    assert text.startswith("[look][jump]<|im_start|>")
    # All that was said before is there, as it was sampled.
    opening = encode(chatml, "[look]")
    changed = encode(chatml, "[look][jump]")
    assert starts_with(conversation.prompt().tolist(), [*changed, *first[len(opening) :], 6])
    assert text.count("further") == 1


# -- templates ---------------------------------------------------------------------------------------------------------


def test_template_options_reach_the_template(chatml: PreTrainedTokenizerFast) -> None:
    opening = chatml.decode(ChatTemplate(chatml, options={"thinking": False}).initial_prompt("go"))
    assert opening.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


@pytest.fixture
def bare() -> Any:
    import copy

    def make(tokenizer: PreTrainedTokenizerFast, template: str | None) -> PreTrainedTokenizerFast:
        changed = copy.deepcopy(tokenizer)
        changed.chat_template = template
        return changed

    return make


def test_a_tokenizer_without_a_template_is_refused(words: PreTrainedTokenizerFast, bare: Any) -> None:
    with pytest.raises(TemplateError, match=r"no chat template.*chat_template"):
        ChatTemplate(bare(words, None))


def test_a_template_that_drops_the_answers_is_refused(words: PreTrainedTokenizerFast, bare: Any) -> None:
    only_users = "{% for m in messages if m.role == 'user' %}{{ m.content }}<|end|>{% endfor %}"
    with pytest.raises(TemplateError, match="drops the assistant's words"):
        ChatTemplate(bare(words, only_users))


def test_a_template_that_says_no_says_what(words: PreTrainedTokenizerFast, bare: Any) -> None:
    strict = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role here') }}{% endif %}"
        "<|user|>{{ m.content }}<|end|>{% endfor %}"
    )
    ChatTemplate(bare(words, strict))
    with pytest.raises(TemplateError, match="no system role here"):
        ChatTemplate(bare(words, strict), system_prompt="you are the goal")


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_response_tokens": 0}, "max_response_tokens must be at least 1"),
        ({"max_response_tokens": 8, "max_context_tokens": 8}, "leaves no room"),
        ({"max_response_tokens": 8, "history": 0}, "history must be None"),
    ],
)
def test_settings_that_cannot_work_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RolloutSettings(**arguments)


def test_a_history_below_one_is_refused(words: PreTrainedTokenizerFast) -> None:
    with pytest.raises(ValueError, match="history must be None"):
        Conversation(ChatTemplate(words), 0)


# -- episodes ----------------------------------------------------------------------------------------------------------


def builder(
    tokenizer: PreTrainedTokenizerFast, observation: str = "go", info: dict[str, Any] | None = None, **chosen: Any
) -> EpisodeBuilder:
    settings = RolloutSettings(**{"max_response_tokens": 4, **chosen})
    return EpisodeBuilder(Episode("demo:A", 1), ChatTemplate(tokenizer), settings, observation, info or {})


def go_on(observation: str = "on") -> Transition:
    return Transition(observation, 0.0, False, False, {})


@histories
@prop
@given(turns, st.booleans())
def test_turns_record_exactly_what_was_shown_and_sampled(
    tokenizer: PreTrainedTokenizerFast,
    history: int | None,
    drawn: list[tuple[str, tuple[list[int], bool]]],
    truncated: bool,
) -> None:
    made = builder(tokenizer, drawn[0][0], history=history)
    prompts: list[list[int]] = []
    for number, (_, response) in enumerate(drawn):
        ids = ids_of(tokenizer, response)
        prompts.append(made.prompt.tolist())
        logprobs = [-random.random() for _ in ids]
        action = made.act(Completion(ids, logprobs, truncated))
        assert action == ("" if truncated else tokenizer.decode(ids, skip_special_tokens=True))
        last = number == len(drawn) - 1
        made.record(Transition("" if last else drawn[number + 1][0], 0.5, last, False, {"turn": number}))
        episode, turn = made.episode, made.episode.turns[-1]
        assert episode.prompt_ids(turn).tolist() == prompts[-1]
        assert episode.response_ids(turn).tolist() == ids
        assert episode.response_logprobs(turn) == array("f", logprobs)
        assert (turn.reward, turn.info, turn.action, turn.truncated) == (0.5, {"turn": number}, action, truncated)
        assert turn.observation == drawn[number][0]
        # The next prompt shows it as it was sampled, or not at all.
        if not last and history != 1:
            assert any(
                made.prompt.tolist()[start : start + len(ids)] == ids for start in range(len(made.prompt.tolist()))
            )
    assert made.over
    assert len(made.episode.turns) == len(drawn)


def test_a_truncated_response_is_an_empty_action_but_stays_in_the_prompt(tokenizer: PreTrainedTokenizerFast) -> None:
    made = builder(tokenizer)
    ids = encode(tokenizer, "left left")
    before = made.prompt.tolist()
    assert made.act(Completion(ids, truncated=True)) == ""
    made.record(go_on())
    assert starts_with(made.prompt.tolist(), [*before, *ids, tokenizer.eos_token_id])
    turn = made.episode.turns[0]
    assert (turn.action, turn.response, turn.truncated) == ("", "left left", True)


def test_a_truncated_response_counts_where_the_settings_say_so(words: PreTrainedTokenizerFast) -> None:
    made = builder(words, truncated_is_invalid=False)
    assert made.act(Completion(encode(words, "left"), truncated=True)) == "left"


@pytest.mark.parametrize(
    ("transition", "reason", "success", "error"),
    [
        (Transition("end", 1.0, True, False, {"success": True}), StopReason.TERMINATED, True, None),
        (Transition("end", 1.0, True, False, {}), StopReason.TERMINATED, False, None),
        (Transition("end", 0.0, False, True, {"success": False}), StopReason.TRUNCATED, False, None),
        # A limit that the task reports as both is a limit.
        (Transition("end", 0.2, True, True, {"success": False}), StopReason.TRUNCATED, False, None),
        (Transition("end", 0.0, False, True, {"error": "OSError: gone"}), StopReason.ENV_ERROR, False, "OSError: gone"),
    ],
)
def test_stop_reasons(
    words: PreTrainedTokenizerFast, transition: Transition, reason: StopReason, success: bool, error: str | None
) -> None:
    made = builder(words)
    made.act(Completion([5]))
    made.record(transition)
    episode = made.episode
    assert made.over
    assert (episode.stop_reason, episode.success, episode.error) == (reason, success, error)
    assert episode.final_observation == "end"
    assert episode.total_reward == transition.reward


def test_the_last_words_are_the_ended_episode_s_after_an_autoreset(words: PreTrainedTokenizerFast) -> None:
    made = builder(words)
    made.act(Completion([5]))
    final = {"final_observation": "the end", "final_info": {"success": True}}
    made.record(Transition("next episode", 1.0, True, False, {"seed": 2, "episode": 1, "error": "not mine", **final}))
    assert made.episode.final_observation == "the end"
    assert made.episode.turns[0].info == {"success": True}
    assert (made.episode.success, made.episode.error) == (True, None)
    assert made.episode.stop_reason is StopReason.TERMINATED


def test_a_prompt_that_just_fits_is_played_and_one_more_token_is_not(words: PreTrainedTokenizerFast) -> None:
    opening = len(builder(words).prompt)
    made = builder(words, max_context_tokens=opening + 4)
    assert not made.over
    full = builder(words, max_context_tokens=opening + 3)
    assert full.over
    assert (full.episode.stop_reason, full.episode.turns) == (StopReason.CONTEXT_FULL, [])
    assert full.episode.final_observation == "go"

    made.act(Completion([5]))
    made.record(go_on("a b"))
    assert made.over
    assert made.episode.stop_reason is StopReason.CONTEXT_FULL
    assert len(made.episode.turns) == 1
    assert made.episode.final_observation == "a b"


def test_a_short_history_keeps_a_long_episode_inside_the_context(words: PreTrainedTokenizerFast) -> None:
    long, short = (builder(words, max_context_tokens=30, history=history) for history in (None, 1))
    for made in (long, short):
        for _ in range(20):
            if not made.over:
                assert len(made.prompt.tolist()) + 4 <= 30
                made.act(Completion([5]))
                made.record(go_on())
    assert long.episode.stop_reason is StopReason.CONTEXT_FULL
    assert not short.over


def test_an_environment_that_failed_at_its_reset_has_no_turns(words: PreTrainedTokenizerFast) -> None:
    made = builder(words, "", {"error": "OSError: no level"})
    assert made.over
    assert (made.episode.stop_reason, made.episode.error) == (StopReason.ENV_ERROR, "OSError: no level")


@pytest.mark.parametrize(
    ("completion", "message"),
    [
        (Completion([]), "without any token"),
        (Completion([1, 2], [-0.5]), "1 log-probabilities for 2 tokens"),
        (Completion([1], []), "0 log-probabilities for 1 tokens"),
        (Completion([1, 2], [-0.5, None]), "no number"),  # type: ignore[list-item]
        (Completion([1], [-math.inf]), "infinite"),
    ],
)
def test_completions_that_break_the_contract_are_refused(
    words: PreTrainedTokenizerFast, completion: Completion, message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        builder(words).act(completion)


def test_an_engine_may_not_know_a_log_probability(words: PreTrainedTokenizerFast) -> None:
    made = builder(words)
    made.act(Completion([1, 2], [-0.5, math.nan]))
    made.record(go_on())
    logprobs = made.episode.response_logprobs(made.episode.turns[0])
    assert logprobs is not None
    assert logprobs[0] == -0.5
    assert math.isnan(logprobs[1])
