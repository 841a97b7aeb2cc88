"""Environments with tools: turns, rewards, counters, and prompts; alone, wrapped, in vectors and in rollouts."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import gem_core
from gem_core import Env
from gem_core.errors import (
    ClosedError,
    EnvKwargsError,
    MissingExtraError,
    NotFoundError,
    TemplateError,
    ToolError,
)
from gem_core.tools import CallContext, Function, FunctionTool, Tool, Toolbox, ToolEnv, ToolResult
from gem_core.vector import FailurePolicy
from gem_core.wrappers import EpisodeStatistics, ObservationHistory, TurnLimit
from gem_testing import check_env
from gem_train.rollout import (
    BatchCollector,
    ChatTemplate,
    Completion,
    Conversation,
    EpisodeRunner,
    RolloutSettings,
    batch_metrics,
    episode_metrics,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Sum(Env):
    """Asks for a sum; any action without a right answer goes on."""

    takes_data_index = True

    def reset(
        self, seed: int | None = None, data_index: int | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.data_index, self.turn = data_index, 0
        self.a, self.b = self.rng.randint(0, 99), self.rng.randint(0, 99)
        return f"What is {self.a} + {self.b}?", {
            "prefix": "Think.\n",
            "suffix": "Turn 0:",
            "env_data_index": data_index,
        }

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        right = action.strip() == str(self.a + self.b)
        done = right or self.turn == 3
        info = {"success": right, "suffix": f"Turn {self.turn}:"}
        return ("" if done else "No."), float(right), done, False, info

    def sample_random_action(self) -> str:
        return str(self.a + self.b)


class Reverse(Tool):
    """Reverses text; what starts with "!" fails."""

    def __init__(self, *, tag: str = "reverse", timeout: float = 600.0) -> None:
        self.tag, self.timeout = tag, timeout

    def functions(self) -> Sequence[Function]:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        examples = ({"text": "abc"}, {"text": ""})
        return [
            Function(
                self.tag, "Reverses.", schema, tag=self.tag, fence=self.tag, reply="Result: {}\n", examples=examples
            )
        ]

    def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> ToolResult | str:
        if arguments["text"].startswith("!"):
            raise ValueError("it starts with !")
        return ToolResult(arguments["text"][::-1], info={"length": len(arguments["text"])})


def add(a: int, b: int) -> int:
    "The sum of two numbers."
    return a + b


REWARDS = {"tool_reward": 0.25, "tool_success_reward": 0.5, "tool_execute_error_reward": -1.0}


@pytest.fixture(autouse=True)
def _registered() -> None:
    gem_core.register("demo-tools:Sum-v0", Sum)
    gem_core.register("demo-tools:Twin-v0", Sum)


def tool_env(**settings: Any) -> ToolEnv:
    return ToolEnv(Sum(), [Reverse()], **settings)


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


# -- turns -------------------------------------------------------------------------------------------------------------


def test_an_episode_with_tool_turns() -> None:
    with tool_env(**REWARDS) as env:
        observation, info = env.reset(seed=1, data_index=7)
        assert observation.startswith("What is ")
        assert "<reverse>text</reverse>" in observation
        assert "at most 10 times" in observation
        assert (info["prefix"], info["suffix"], info["env_data_index"]) == ("Think.\n", "Turn 0:", 7)
        assert info["tool_use_counter"] == info["tool_success_counter"] == 0
        assert "use_tool" not in info

        played = env.step("I see <reverse> abc </reverse> and <reverse>d</reverse>")
        assert played[:4] == ("Result: cba\n", 0.75, False, False)
        assert played[4] == {
            "length": 3,
            "prefix": "Think.\n",
            "suffix": "Turn 0:",
            "tool_use_counter": 1,
            "tool_success_counter": 1,
            "use_tool": True,
            "tool_type": "reverse",
            "parsed_action": "I see <reverse> abc </reverse>",
        }

        observation, reward, *_, info = env.step("5")
        assert (observation, reward, info["suffix"]) == ("No.", 0.0, "Turn 1:")
        assert (info["tool_use_counter"], "use_tool" in info, "parsed_action" in info) == (1, False, False)

        observation, reward, terminated, truncated, info = env.step("```reverse\n!x\n```")
        assert (observation, reward) == ("Result: Error: ValueError: it starts with !\n", -0.75)
        assert (terminated, truncated) == (False, False)
        assert info["tool_error"] == "Error: ValueError: it starts with !"
        # The environment said no prefix on its last turn, and a new suffix.
        assert ("prefix" in info, info["suffix"]) == (False, "Turn 1:")
        assert (info["tool_use_counter"], info["tool_success_counter"]) == (2, 1)
        assert env.step(env.env.sample_random_action())[1:3] == (1.0, True)


def test_counters_of_the_episode_before() -> None:
    with tool_env() as env:
        _, info = env.reset(seed=0)
        assert not [key for key in info if key.startswith("prev_ep_")]
        env.step("<reverse>a</reverse>")
        env.step("<reverse>!</reverse>")
        _, info = env.reset(seed=0)
        assert (info["prev_ep_tool_use_counter"], info["prev_ep_tool_success_counter"]) == (2, 1)
        _, info = env.reset(seed=0)
        assert (info["prev_ep_tool_use_counter"], info["tool_use_counter"]) == (0, 0)


@pytest.mark.parametrize(("limit", "uses"), [(0, 0), (1, 1), (2, 2), (None, 3)])
def test_after_the_last_use_everything_goes_to_the_environment(limit: int | None, uses: int) -> None:
    with tool_env(max_tool_uses=limit) as env:
        env.reset(seed=0)
        seen = [env.step("<reverse>!</reverse>") for _ in range(3)]  # Sum ends after three turns
    assert [one[4].get("use_tool", False) for one in seen] == [True] * uses + [False] * (3 - uses)
    last = [("last tool call" in one[0]) for one in seen]
    assert last == [limit is not None and number == limit for number in range(1, 4)]
    assert seen[-1][4]["tool_use_counter"] == uses


@pytest.mark.parametrize("text", ["{}", "{0} {} {x}", "\\1 \\g<0>", "%s", ""])
def test_results_are_shown_as_they_are(text: str) -> None:
    with tool_env() as env:
        env.reset(seed=0)
        assert env.step(f"<reverse>{text[::-1]}</reverse>")[0] == f"Result: {text}\n"


def test_a_call_of_nothing_is_a_failed_use() -> None:
    with ToolEnv(Sum(), [FunctionTool(add)], **REWARDS) as env:
        observation, _ = env.reset(seed=0)
        assert '"name":"add"' in observation
        observation, reward, *_, info = env.step(call("ad", a=1, b=2))
        assert observation == "Error: no tool 'ad'. Did you mean 'add'? There is: add"
        assert (reward, info["tool_type"], info["tool_use_counter"], info["tool_success_counter"]) == (
            -0.75,
            "ad",
            1,
            0,
        )
        assert env.step("<tool_call>?</tool_call>")[4]["tool_type"] == ""
        assert env.step(call("add", a=1, b=2))[0] == "3"


def test_an_instruction_of_the_user_s_own() -> None:
    for text in ("Use <reverse>.", ""):
        with tool_env(instruction=text) as env:
            assert env.reset(seed=0)[0].split("?\n")[1] == text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "json"}, "form must be one of"),
        ({"max_tool_uses": -1}, "max_tool_uses"),
        ({"max_tool_uses": True}, "max_tool_uses"),
        ({"form": "native", "instruction": "x"}, "text form only"),
        ({"tools": []}, "needs a list of tools"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        ToolEnv(Sum(), **{"tools": [Reverse()], **settings})


def test_a_tool_after_the_end_needs_a_reset() -> None:
    env = tool_env()
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(ClosedError, match=r"reset\(\) first"):
        env.step("<reverse>a</reverse>")
    env.reset(seed=0)
    assert env.step("<reverse>a</reverse>")[0] == "Result: a\n"
    env.close()


# -- state -------------------------------------------------------------------------------------------------------------


class Memory(Tool):
    """Counts the calls of each episode."""

    keeps_state = True

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}

    def functions(self) -> Sequence[Function]:
        return [Function("count", "Counts.")]

    def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> str:
        self.calls[context.episode] = self.calls.get(context.episode, 0) + 1
        return str(self.calls[context.episode])

    def end_episode(self, episode: str) -> None:
        self.calls.pop(episode, None)


def test_state_is_the_episode_s() -> None:
    memory = Memory()
    toolbox = Toolbox([memory])
    one, two = ToolEnv(Sum(), toolbox), ToolEnv(Sum(), toolbox)
    for env in (one, two):
        env.reset(seed=0)
    assert [env.step(call("count"))[0] for env in (one, one, two)] == ["1", "2", "1"]
    one.reset(seed=0)
    assert one.step(call("count"))[0] == "1"
    one.close()
    two.close()
    assert memory.calls == {}


def test_what_keeps_state_is_not_copied() -> None:
    env = ToolEnv(gem_core.make("demo-tools:Sum-v0"), [Memory()])
    env.reset(seed=0)
    with pytest.raises(NotImplementedError, match="keeps state"):
        env.get_state()
    with pytest.raises(NotImplementedError, match="keeps state"):
        env.spawn(same_state=True)
    with pytest.raises(ClosedError), copy.deepcopy(env) as twin:
        twin.step(call("count"))
    with env.spawn() as twin:
        twin.reset(seed=0)
        assert twin.step(call("count"))[0] == "1"
    env.close()


@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        lambda env: pickle.loads(pickle.dumps(env)),
        lambda env: env.spawn(same_state=True),
    ],
)
def test_copies_go_on_where_the_environment_stands(copied: Callable[[Env], Env]) -> None:
    with ToolEnv(gem_core.make("demo-tools:Sum-v0"), [Reverse()], max_tool_uses=2) as env:
        first = env.reset(seed=3)[0]
        env.step("<reverse>a</reverse>")
        with copied(env) as twin:
            assert twin.step("<reverse>ab</reverse>")[4]["tool_use_counter"] == 2
            assert env.step("<reverse>ab</reverse>")[4]["tool_use_counter"] == 2
            assert twin.step("1")[:4] == env.step("1")[:4]
            assert twin.reset(seed=3)[0] == first


def test_a_snapshot_can_be_gone_back_to_twice() -> None:
    with tool_env() as env:
        env.reset(seed=3)
        env.step("<reverse>a</reverse>")
        state = env.get_state()
        for _ in range(2):
            assert env.step("<reverse>b</reverse>")[4]["tool_use_counter"] == 2
            env.set_state(state)
        assert env.step("<reverse>b</reverse>")[4]["tool_use_counter"] == 2


class Conforming(ToolEnv):
    def __init__(self, form: str) -> None:
        tools = [Reverse(timeout=600), FunctionTool(add, timeout=600)]  # never reached, on however busy a machine
        super().__init__(Sum(), tools, form=form)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["text", "native"])
def test_an_environment_with_tools_keeps_the_contract(form: str) -> None:
    gem_core.register("demo-tools:Conforming-v0", Conforming)
    check_env("demo-tools:Conforming-v0", form=form)


# -- other wrappers ----------------------------------------------------------------------------------------------------


def test_a_turn_limit_counts_tool_turns_where_it_is_outside() -> None:
    actions = ["<reverse>a</reverse>", "1", "<reverse>a</reverse>", "1"]
    for env, cut in ((TurnLimit(tool_env(), 3), 2), (ToolEnv(TurnLimit(Sum(), 2), [Reverse()]), 3)):
        with env:
            env.reset(seed=0)
            assert [env.step(action)[3] for action in actions[: cut + 1]] == [False] * cut + [True]


def test_statistics_outside_count_tool_turns_and_inside_do_not() -> None:
    for env, turns, total in (
        (EpisodeStatistics(tool_env(**REWARDS)), 2, 0.75),
        (ToolEnv(EpisodeStatistics(Sum()), [Reverse()], **REWARDS), 1, 0.0),
    ):
        with env:
            env.reset(seed=0)
            env.step("<reverse>a</reverse>")
            info = env.step("x")[4]
            assert (info["turn_count"], info["episode_return"]) == (turns, total)
            _, info = env.reset(seed=0)
            assert (info["prev_ep_turn_count"], info["prev_ep_tool_use_counter"]) == (turns, 1)


def test_histories_show_what_counted_of_a_tool_turn(words: PreTrainedTokenizerFast) -> None:
    action = "go <reverse>ab</reverse> on"

    def shown(mode: str, **more: Any) -> str:
        with ObservationHistory(tool_env(instruction="i"), mode, **more) as env:
            env.reset(seed=0)
            return env.step(action)[0]

    question = Sum().reset(seed=0)[0]
    opening = f"{question}\ni\n"
    assert shown("concat") == f"Think.\n{opening}Result: ba\nTurn 0:"
    assert shown("concat_with_action") == f"Think.\n{opening}go <reverse>ab</reverse>\nResult: ba\nTurn 0:"
    assert shown("concat_chat", tokenizer=words) == (
        f"<|user|>Think.\n{question}\ni<|end|><|assistant|>go <reverse>ab</reverse><|end|>"
        "<|tool|>Result: ba\n\nTurn 0:<|end|><|assistant|>"
    )
    assert shown("concat_chat_on_reset", tokenizer=words) == (
        f"Think.\n<|user|>{question}\ni<|end|><|assistant|>\ngo <reverse>ab</reverse>\nResult: ba\nTurn 0:"
    )


# -- chat templates with tools -----------------------------------------------------------------------------------------

_MESSAGES = (
    "{%- for m in messages -%}"
    "{%- if m.role == 'tool' -%}{{- '<|im_start|>user\n<tool_response>\n' + m.content + '\n</tool_response>' -}}"
    "{%- else -%}{{- '<|im_start|>' + m.role + '\n' + m.content -}}{%- endif -%}{{- '<|im_end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
# As Hermes and Qwen show functions, in words of our own: JSON in a system message.
HERMES = (
    "{%- if tools -%}{{- '<|im_start|>system\nYou can call:\n<tools>' -}}"
    "{%- for tool in tools -%}{{- '\n' + (tool | tojson) -}}{%- endfor -%}"
    "{{- '\n</tools>\nas <tool_call>{...}</tool_call>.<|im_end|>\n' -}}{%- endif -%}" + _MESSAGES
)
# As Qwen3-Coder does: elements for each function and parameter.
ELEMENTS = (
    "{%- if tools -%}{{- '<|im_start|>system\nFunctions:' -}}"
    "{%- for tool in tools -%}{{- '\n<function>' + tool.function.name + '</function> ' + tool.function.description -}}"
    "{%- for name, one in tool.function.parameters.properties.items() -%}"
    "{{- '\n<parameter>' + name + ': ' + (one.type | string) + '</parameter>' -}}{%- endfor -%}{%- endfor -%}"
    "{{- '<|im_end|>\n' -}}{%- endif -%}" + _MESSAGES
)
# As Llama 3.1 does: in the first user message, and answers as JSON from a role of their own.
LLAMA = (
    "{%- for m in messages -%}"
    "{%- if tools and loop.first -%}{{- '<|im_start|>user\n' -}}"
    "{%- for tool in tools -%}{{- (tool | tojson(indent=4)) + '\n\n' -}}{%- endfor -%}{{- m.content -}}"
    "{%- elif m.role == 'tool' -%}{{- '<|im_start|>ipython\n' + (m.content | tojson) -}}"
    "{%- else -%}{{- '<|im_start|>' + m.role + '\n' + m.content -}}{%- endif -%}{{- '<|im_end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
ANSWERS = {
    HERMES: '<tool_call>\n{"name": "add", "arguments": {"a": 20, "b": 3}}\n</tool_call>',
    ELEMENTS: "<tool_call>\n<function=add>\n<parameter=a>\n20\n</parameter>\n<parameter=b>\n3\n</parameter>\n"
    "</function>\n</tool_call>",
    LLAMA: '{"name": "add", "parameters": {"a": 20, "b": 3}}',
}


def with_template(tokenizer: PreTrainedTokenizerFast, template: str) -> PreTrainedTokenizerFast:
    changed = copy.deepcopy(tokenizer)
    changed.chat_template = template
    return changed


@pytest.mark.parametrize("template", ANSWERS)
@pytest.mark.parametrize("history", [None, 1, 2, 3])
def test_native_functions_reach_the_prompt_and_sampled_ids_stay(
    chatml: PreTrainedTokenizerFast, template: str, history: int | None
) -> None:
    tokenizer = with_template(chatml, template)
    conversation = Conversation(ChatTemplate(tokenizer, system_prompt=None), history)
    # Letter by letter, as no tokenizer would write it: decoding and encoding again would change it.
    sampled = [tokenizer.encode(letter, add_special_tokens=False)[0] for letter in ANSWERS[template]]
    with ToolEnv(Sum(), [FunctionTool(add)], form="native") as env:
        observation, info = env.reset(seed=0)
        assert [tool["function"]["name"] for tool in info["tools"]] == ["add"]
        message = conversation.observe(observation, info)
        responses = []
        for turn in range(3):
            prompt = tokenizer.decode(conversation.prompt())
            assert "The sum of two numbers." in prompt
            visible = responses if history is None else responses[max(0, turn - history + 1) :]
            ids = conversation.prompt().tolist()
            for one in visible:
                assert any(ids[at : at + len(one)] == one for at in range(len(ids)))
            text = conversation.respond(sampled)
            responses.append(sampled)
            observation, _, _, _, info = env.step(text)
            assert (observation, info["use_tool"]) == ("23", True)
            conversation.observe(observation, info)
    final = tokenizer.decode(conversation.prompt())
    assert "23" in final
    assert (message in final) == (history is None)
    wanted = 1 if history == 1 else 3 if history is None else history - 1
    assert final.count("20") - ("20" in message) == (0 if history == 1 else wanted)


def test_with_full_history_every_prompt_continues_the_last_over_tool_turns(chatml: PreTrainedTokenizerFast) -> None:
    tokenizer = with_template(chatml, HERMES)
    conversation = Conversation(ChatTemplate(tokenizer))
    with ToolEnv(Sum(), [FunctionTool(add)], form="native") as env:
        conversation.observe(*env.reset(seed=0))
        for text in (ANSWERS[HERMES], "7", ANSWERS[HERMES] + " and more"):
            before = conversation.prompt().tolist()
            ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
            observation, *_, info = env.step(conversation.respond(ids))
            conversation.observe(observation, info)
            assert conversation.prompt().tolist()[: len(before) + len(ids)] == before + ids


@pytest.mark.parametrize("template", ANSWERS)
def test_text_histories_show_native_functions(chatml: PreTrainedTokenizerFast, template: str) -> None:
    tokenizer = with_template(chatml, template)
    inner = ToolEnv(Sum(), [FunctionTool(add)], form="native")
    with ObservationHistory(inner, "concat_chat", tokenizer=tokenizer) as env:
        assert "The sum of two numbers." in env.reset(seed=0)[0]
        assert "The sum of two numbers." in env.step(ANSWERS[template])[0]


def test_a_template_that_shows_no_tools_is_refused(chatml: PreTrainedTokenizerFast) -> None:
    conversation = Conversation(ChatTemplate(chatml))
    with (
        ToolEnv(Sum(), [FunctionTool(add)], form="native") as env,
        pytest.raises(TemplateError, match=r"shows no tools.*form='text'"),
    ):
        conversation.observe(*env.reset(seed=0))


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ("{{ raise_exception('user and assistant only') }}", r"only.*A tool's answer has the role 'tool'"),
        ("", "drops messages of the role 'tool'"),
    ],
)
def test_a_template_without_the_role_of_tools_is_refused_for_native_calls_alone(
    chatml: PreTrainedTokenizerFast, roles: str, message: str
) -> None:
    shown = "{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' -}}"
    template = (
        "{%- for tool in tools or [] -%}{{- tool.function.name -}}{%- endfor -%}{%- for m in messages -%}"
        f"{{%- if m.role in ('user', 'assistant') -%}}{shown}{{%- else -%}}{roles}{{%- endif -%}}{{%- endfor -%}}"
    )
    tokenizer = with_template(chatml, template)
    conversation = Conversation(ChatTemplate(tokenizer))
    with ToolEnv(Sum(), [FunctionTool(add)], form="native") as env, pytest.raises(TemplateError, match=message):
        conversation.observe(*env.reset(seed=0))  # at the first reset, not at the first call
    prompts: list[str] = []
    for info in ({"use_tool": True}, {}):  # a result is a message of the user
        conversation = Conversation(ChatTemplate(tokenizer))
        conversation.observe("go", {})
        conversation.respond([5])
        conversation.observe("42", info)
        prompts.append(tokenizer.decode(conversation.prompt()))
    assert prompts[0] == prompts[1]


# -- vectors -----------------------------------------------------------------------------------------------------------


class Where(Tool):
    """Tells in which process and toolbox it is."""

    opened = 0

    def functions(self) -> Sequence[Function]:
        Where.opened += 1
        return [Function("where", "Tells where.")]

    def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> str:
        return f"{os.getpid()} {id(self)} {Where.opened}"


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_environments_of_a_vector_share_a_toolbox_in_each_process(backend: Any) -> None:
    toolbox = Toolbox([Where()], max_concurrent=2)
    Where.opened = 0
    ids = {"demo-tools:Sum-v0": 2, "demo-tools:Twin-v0": 2}
    settings = {} if backend == "sync" else {"workers": 2}
    with gem_core.make_vec(
        ids, num_envs=8, backend=backend, wrappers=[partial(ToolEnv, tools=toolbox)], seed=0, **settings
    ) as vec:
        vec.reset()
        observations = vec.step([call("where")] * 8)[0]
    places = {tuple(one.split()) for one in observations}
    assert len(places) == len({place[0] for place in places}) == (2 if backend == "process" else 1)
    assert {place[2] for place in places} == {"1"}


def test_counters_of_the_ended_episode_stand_beside_the_next_opening() -> None:
    wrap = partial(ToolEnv, tools=Toolbox([Reverse()]))
    with gem_core.make_vec("demo-tools:Sum-v0", num_envs=1, wrappers=[wrap], seed=0) as vec:
        vec.reset()
        vec.step(["<reverse>a</reverse>"])
        for _ in range(3):
            observations, _, ends, _, infos = vec.step(["x"])
        assert ends[0]
        assert infos[0]["prev_ep_tool_use_counter"] == 1
        assert (infos[0]["tool_use_counter"], infos[0]["final_info"]["tool_use_counter"]) == (0, 1)
        assert "<reverse>" in observations[0]


class Flaky(Sum):
    """Fails at the second turn of the first environment that gets there."""

    failed = False

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.turn == 1 and not Flaky.failed:
            Flaky.failed = True
            raise OSError("gone")
        return super().step(action)


def test_a_retry_plays_tool_turns_again() -> None:
    gem_core.register("demo-tools:Flaky-v0", Flaky)
    Flaky.failed = False
    wrap = partial(ToolEnv, tools=Toolbox([Reverse()]))
    policy = FailurePolicy(retries=1)
    with gem_core.make_vec("demo-tools:Flaky-v0", num_envs=1, wrappers=[wrap], seed=0, failures=policy) as vec:
        vec.reset()
        for action in ("<reverse>ab</reverse>", "x", "x"):
            observations, _, _, _, infos = vec.step([action])
    assert Flaky.failed
    assert (observations[0], infos[0]["tool_use_counter"]) == ("No.", 1)
    assert "error" not in infos[0]


# -- rollouts ----------------------------------------------------------------------------------------------------------

SCRIPT = ["go <reverse>left</reverse>", "<reverse>!</reverse>", "a", "b", "c"]


class Scripted:
    """Writes the lines of a script, the n-th one after n answers."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer

    def __call__(self, prompts: Sequence[list[int]]) -> list[Completion]:
        return [self.complete(prompt) for prompt in prompts]

    def complete(self, prompt: list[int]) -> Completion:
        turn = sum(one in self.tokenizer.decode(prompt) for one in ("tfel", "starts with", "Turn 1", "Turn 2"))
        ids = self.tokenizer.encode(SCRIPT[turn], add_special_tokens=False)
        return Completion([*ids, self.tokenizer.eos_token_id])


@pytest.mark.parametrize("driver", ["collector", "runner"])
def test_rollouts_keep_the_rewards_of_tool_turns(chatml: PreTrainedTokenizerFast, driver: str) -> None:
    wrap = partial(ToolEnv, tools=Toolbox([Reverse()]), **REWARDS)
    settings = RolloutSettings(max_response_tokens=64)
    policy = Scripted(chatml)
    if driver == "collector":
        with gem_core.make_vec("demo-tools:Sum-v0", num_envs=2, wrappers=[wrap], seed=0) as vec:
            batch = BatchCollector(vec, policy, chatml, settings).collect_round()
            episodes, metrics = batch.episodes, batch_metrics(batch)
    else:
        episodes = asyncio.run(run(policy, chatml, settings, wrap))
        metrics = episode_metrics([episode.summary() for episode in episodes])
    for episode in episodes:
        assert [turn.reward for turn in episode.turns] == [0.75, -0.75, 0.0, 0.0, 0.0]
        assert [turn.tool_call for turn in episode.turns] == [True, True, False, False, False]
        assert (episode.summary().tool_calls, episode.summary().tool_successes) == (2, 1)
        for before, after in zip(episode.turns, episode.turns[1:], strict=False):
            joined = episode.prompt_ids(before) + episode.response_ids(before)
            assert episode.prompt_ids(after)[: len(joined)] == joined
        prompt = chatml.decode(episode.prompt_ids(episode.turns[1]))
        assert "<tool_response>\nThink.\nResult: tfel\nTurn 0:\n</tool_response>" in prompt
    assert (metrics["episode/tool_calls"], metrics["tool/success"]) == (2.0, 0.5)


async def run(policy: Scripted, tokenizer: Any, settings: RolloutSettings, wrap: Any) -> list[Any]:
    async def sample(prompt: list[int]) -> Completion:
        return policy.complete(prompt)

    runner = EpisodeRunner("demo-tools:Sum-v0", tokenizer, settings, seed=0, wrappers=[wrap])
    try:
        return [await runner.run(sample, task=task) for task in range(2)]
    finally:
        runner.close()


def test_metrics_say_nothing_of_tools_where_there_are_none(chatml: PreTrainedTokenizerFast) -> None:
    settings = RolloutSettings(max_response_tokens=64)
    for wrappers, expected in (([], {}), ([partial(ToolEnv, tools=[Reverse()])], {"episode/tool_calls": 0.0})):
        with gem_core.make_vec("demo-tools:Sum-v0", num_envs=2, wrappers=wrappers, seed=0) as vec:
            batch = BatchCollector(vec, lambda prompts: [Completion([5])] * len(prompts), chatml, settings)
            metrics = batch_metrics(batch.collect_round())
        assert {name: value for name, value in metrics.items() if "tool" in name} == expected


# -- tools by name -----------------------------------------------------------------------------------------------------


def test_tools_are_built_by_name(site: Any, in_force: Any) -> None:
    module = site.add(
        "words",
        """
        from gem_core import ToolSpec
        from gem_core.tools import FunctionTool

        def count(text: str) -> int:
            "How many words."
            return len(text.split())

        def counter(timeout: float = 600.0) -> FunctionTool:
            return FunctionTool(count, timeout=timeout)

        def broken() -> None:
            raise OSError("no words")

        def nothing() -> None:
            pass

        @hookimpl
        def gem_tools():
            yield ToolSpec("words:Count", counter)
            yield ToolSpec("words:Broken", broken)
            yield ToolSpec("words:None", nothing)
            yield ToolSpec("words:Missing", "no_such_module:Tool", extra="words")
        """,
    )
    assert module
    in_force()
    tool = gem_core.registry.make_tool("words:Count", timeout=2.5)
    assert (tool.timeout, tool.spec and tool.spec.id, repr(tool)) == (2.5, "words:Count", "<FunctionTool words:Count>")
    with ToolEnv(Sum(), ["words:Count"]) as env:
        env.reset(seed=0)
        assert env.step(call("count", text="a b c"))[0] == "3"
    for name, error, message in (
        ("words:Cont", NotFoundError, "Did you mean 'words:Count'"),
        ("words:Broken", ToolError, "OSError: no words"),
        ("words:None", ToolError, "not a gem_core.tools.Tool"),
        ("words:Missing", MissingExtraError, "words"),
    ):
        with pytest.raises(error, match=message):
            Toolbox([name])
    with pytest.raises(EnvKwargsError, match="timeout"):
        gem_core.registry.make_tool("words:Count", timout=1)
    with pytest.raises(EnvKwargsError, match="wrong type"):
        gem_core.registry.make_tool("words:Count", timeout="1")
