"""Tools under load and under attack: limits, failures, sharing, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gem_core.errors import ToolError
from gem_core.tools import CallContext, Function, FunctionTool, Tool, Toolbox, ToolResult, ToolSession
from gem_core.tools._calls import ParsedCall
from gem_support.waiting import wait_until


class Says(Tool):
    """Answers with what a function gives, and remembers what was done to it."""

    def __init__(self, answer: Callable[[], Any] = lambda: "ok", *, name: str = "say", timeout: float = 60.0) -> None:
        self.answer, self.name, self.timeout = answer, name, timeout
        self.log: list[str] = []

    def functions(self) -> Sequence[Function]:
        self.log.append("open")
        return [Function(self.name, "It says something.")]

    def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> Any:
        return self.answer()

    def end_episode(self, episode: str) -> None:
        self.log.append("end")

    def close(self) -> None:
        self.log.append("close")


class AsyncSays(Says):
    """The same as coroutines."""

    async def functions(self) -> Sequence[Function]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().functions()

    async def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> Any:
        answer = self.answer()
        return await answer if asyncio.iscoroutine(answer) else answer

    async def close(self) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().close()


def say(toolbox: Toolbox, name: str = "say") -> ToolResult:
    return toolbox.call(ParsedCall(name, 0), "episode")


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    wait_until(lambda: not {one for one in threading.enumerate() if one.name.startswith("gem-tool")} - before)


def raising(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


# -- failures ----------------------------------------------------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Rude(BaseException):
    pass


@pytest.mark.parametrize("kind", [Says, AsyncSays])
@pytest.mark.parametrize("in_caller", [False, True])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such day"), "Error: ValueError: no such day"),
        (ToolError("use a date"), "Error: use a date"),
        (TimeoutError("theirs"), "Error: TimeoutError: theirs"),
        (SystemExit(3), "SystemExit: 3"),
        (Rude("bye"), "Rude: bye"),
        (GeneratorExit(), "GeneratorExit"),
        (Unspeakable(), "Unspeakable"),
        (RecursionError("deep"), "RecursionError: deep"),
    ],
)
def test_whatever_a_tool_raises_is_a_result(kind: type[Says], in_caller: bool, error: BaseException, text: str) -> None:
    tool = kind(raising(error))
    tool.keeps_time = in_caller  # type: ignore[misc]
    toolbox = Toolbox([tool])
    toolbox.attach("a")
    result = say(toolbox)
    assert result.error
    assert text in result.text
    tool.answer = lambda: "still there"
    assert say(toolbox) == ToolResult("still there")
    toolbox.detach("a")


@pytest.mark.parametrize("kind", [Says, AsyncSays])
def test_an_interrupt_that_a_tool_raises_itself_is_a_result(kind: type[Says]) -> None:
    toolbox = Toolbox([kind(raising(KeyboardInterrupt()))])
    assert "KeyboardInterrupt" in say(toolbox).text


@pytest.mark.parametrize(
    ("output", "text", "error"),
    [
        (None, "None", False),
        (3, "3", False),
        (b"x", "b'x'", False),
        ("", "", False),
        ("{} {0} \x00", "{} {0} \x00", False),
        ("\ud800", "?", False),
        (ToolResult("bad", error=True), "bad", True),
        (ToolResult("bad", error=1), "bad", True),  # type: ignore[arg-type]
        (ToolResult(3), "whose text is no string", True),  # type: ignore[arg-type]
        (ToolResult("x", info=None), "whose info no mapping", True),  # type: ignore[arg-type]
    ],
)
def test_whatever_a_tool_returns_is_a_result(output: Any, text: str, error: bool) -> None:
    result = say(Toolbox([Says(lambda: output)]))
    assert (result.text == text) if not error else (text in result.text)
    assert result.error is error


def test_a_result_does_not_say_itself_how_its_call_ended() -> None:
    said = {"tool_error": "none", "success": True, "prefix": "you win", "pages": 3}
    assert say(Toolbox([Says(lambda: ToolResult("x", info=said))])).info == {"pages": 3}


def test_a_task_that_a_tool_started_does_not_end_the_event_loop() -> None:
    async def start() -> str:
        asyncio.get_running_loop().create_task(leave())
        await asyncio.sleep(0.05)
        return "started"

    async def leave() -> None:
        raise SystemExit

    tool = AsyncSays(start)
    toolbox = Toolbox([tool])
    toolbox.attach("a")
    assert not say(toolbox).text.startswith("Error: no answer")
    tool.answer = lambda: "still there"
    assert say(toolbox).text == "still there"
    toolbox.detach("a")


def test_a_long_result_is_cut_in_its_middle_and_says_so() -> None:
    toolbox = Toolbox([Says(lambda: "a" * 60 + "b" * 60)], max_output=20)
    assert say(toolbox).text == "a" * 10 + "\n[... 100 characters left out ...]\n" + "b" * 10
    assert len(toolbox.call(ParsedCall("", 0, problem="x" * 1000), "e").text) < 80
    assert say(Toolbox([Says(lambda: "c" * 20)], max_output=20)).text == "c" * 20
    assert say(Toolbox([Says(lambda: "cd")], max_output=1)).text == "c\n[... 1 characters left out ...]\n"


def test_a_function_that_is_not_there_any_more() -> None:
    assert "not offered any more" in say(Toolbox([Says()]), "other").text


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_call_is_given_up_at_its_time_limit() -> None:
    released = threading.Event()
    toolbox = Toolbox([Says(released.wait, timeout=0.1)])
    result = say(toolbox)
    assert result == ToolResult("Error: no answer within 0.1 seconds.", error=True)
    released.set()


def test_a_coroutine_is_cancelled_at_its_time_limit() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()

    toolbox = Toolbox([AsyncSays(wait, timeout=0.1)])
    # A busy machine may reach the limit before the coroutine begins; then there is nothing to cancel.
    while not begun.is_set():
        assert "no answer within 0.1 seconds" in say(toolbox).text
    wait_until(cancelled.is_set)


def test_a_coroutine_that_will_not_be_cancelled_holds_nobody_up() -> None:
    stop = threading.Event()

    async def stay() -> None:
        while not stop.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    tool = AsyncSays(stay, timeout=0.1)
    toolbox = Toolbox([tool])
    toolbox.attach("a")
    assert "no answer" in say(toolbox).text
    tool.answer, tool.timeout = lambda: "next", 60.0
    assert say(toolbox).text == "next"
    stop.set()
    toolbox.detach("a")


def test_an_awaitable_of_a_sync_tool_counts_against_the_same_limit() -> None:
    class Both(Says):
        def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> Awaitable[str]:
            async def later() -> str:
                await asyncio.sleep(600)
                return "never"

            return later()

    assert "no answer" in say(Toolbox([Both(timeout=0.2)])).text


def test_ctrl_c_before_the_wait_begins_cancels_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, cancelled = threading.Event(), threading.Event()
    submit = asyncio.run_coroutine_threadsafe

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()

    def interrupted(*arguments: Any) -> Any:
        future = submit(*arguments)
        wait_until(begun.is_set)
        signal.raise_signal(signal.SIGINT)
        return future

    toolbox = Toolbox([AsyncSays(wait)])
    toolbox.attach("a")
    monkeypatch.setattr("gem_core.tools._background.asyncio.run_coroutine_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        say(toolbox)
    monkeypatch.undo()
    wait_until(cancelled.is_set)
    toolbox.detach("a")


def test_ctrl_c_reaches_the_caller_and_cancels_the_call() -> None:
    source = """
        import asyncio, signal, threading, os
        from gem_core.tools import *
        from gem_core.tools._calls import ParsedCall

        async def wait() -> str:
            "Waits."
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                await asyncio.sleep(60)
            finally:
                os.write(1, b"cancelled ")

        signal.signal(signal.SIGINT, signal.default_int_handler)
        toolbox = Toolbox([FunctionTool(wait)])
        toolbox.attach("a")
        try:
            print(toolbox.call(ParsedCall("wait", 0), "e"))
        except KeyboardInterrupt:
            os.write(1, b"interrupted ")
        toolbox.detach("a")
    """
    assert sorted(output(source).split()) == ["cancelled", "interrupted"]


def output(source: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


# -- opening and closing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Says, AsyncSays])
def test_tools_are_opened_once_closed_with_the_last_user_and_opened_again(kind: type[Says]) -> None:
    tool = kind()
    toolbox = Toolbox([tool])
    assert tool.log == []
    for user in "ab":
        assert [function.name for function in toolbox.attach(user)] == ["say"]
    toolbox.detach("a")
    toolbox.detach("a")
    assert tool.log == ["open"]
    assert say(toolbox).text == "ok"
    toolbox.detach("b")
    assert tool.log == ["open", "close"]
    toolbox.attach("c")
    assert say(toolbox).text == "ok"
    toolbox.close()
    toolbox.close()
    assert tool.log == ["open", "close"] * 2
    toolbox.detach("c")


def test_a_call_keeps_the_tools_open_until_it_ends() -> None:
    started, release = threading.Event(), threading.Event()

    def answer() -> str:
        started.set()
        release.wait(120)
        return f"closed: {'close' in tool.log}"

    tool = Says(answer)
    toolbox = Toolbox([tool])
    toolbox.attach("a")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(say, toolbox)
        started.wait(120)
        toolbox.detach("a")
        release.set()
        assert running.result().text == "closed: False"
    assert tool.log == ["open", "close"]


class Bad(Says):
    """Offers what it is told to."""

    def __init__(self, offer: Callable[[], Any]) -> None:
        super().__init__()
        self.offer = offer

    def functions(self) -> Any:
        return self.offer()


def schema(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], **more}


@pytest.mark.parametrize(
    ("offer", "message"),
    [
        (raising(OSError("no network")), "could not be opened: OSError: no network"),
        (raising(SystemExit(1)), "SystemExit: 1"),
        (lambda: None, "functions\\(\\) gave None"),
        (lambda: ["say"], "functions\\(\\) gave \\['say'\\]"),
        (list, "offers no function"),
        (lambda: [Function("a b", "")], "'a b': a name has letters"),
        (lambda: [Function("", "")], "a name has letters"),
        (lambda: [Function("f", "", {"type": "string"})], "the JSON schema of an object"),
        (lambda: [Function("f", "", {"properties": []})], "the JSON schema of an object"),
        (lambda: [Function("f", "", {"required": "x"})], "'required' must be a list"),
        (lambda: [Function("f", "", None)], "must be a JSON schema"),  # type: ignore[arg-type]
        (lambda: [Function("f", "", {"properties": {"x": object}})], "cannot be written as JSON"),
        (lambda: [Function("f", "", reply="done")], "reply has no {}"),
        (lambda: [Function("f", "", tag="f")], "one required parameter, a string"),
        (lambda: [Function("f", "", schema(properties={"x": {"type": "integer"}}), tag="f")], "a string"),
        (lambda: [Function("f", "", schema(), tag="<f>")], "'<f>' cannot be a tag"),
        (lambda: [Function("f", "", schema(), tag="tool_call")], "cannot be a tag"),
        (lambda: [Function("f", "", schema(), fence="f")], "a fence needs a tag"),
        (lambda: [Function("f", "", schema(), tag="f", fence="`")], "cannot be the language"),
        (lambda: [Function("f", "", schema(), examples=({},))], "the example {}: the argument 'x' is missing"),
    ],
)
def test_what_cannot_be_offered_is_an_error_that_names_the_tool(offer: Callable[[], Any], message: str) -> None:
    good = Says(name="good")
    toolbox = Toolbox([good, Bad(offer)])
    with pytest.raises(ToolError, match=message) as caught:
        toolbox.attach("a")
    assert "Bad" in str(caught.value) or "SystemExit" in str(caught.value)
    assert good.log == ["open", "close"]
    assert say(toolbox, "good").error


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), None, True, "5"])
def test_a_time_limit_that_is_none_is_refused(timeout: Any) -> None:
    with pytest.raises(ToolError, match="timeout must be a positive number"):
        Toolbox([Says(timeout=timeout)]).attach("a")


@pytest.mark.parametrize("what", ["name", "tag", "fence"])
def test_two_functions_of_one_name_tag_or_fence_are_refused(what: str) -> None:
    def one(number: int) -> Tool:
        given = {key: "same" if key == what else f"{key}{number}" for key in ("name", "tag", "fence")}
        return Bad(lambda: [Function(description="", parameters=schema(), **given)])

    with pytest.raises(ToolError, match=f"two functions have the {what} 'same'"):
        Toolbox([one(1), one(2)]).attach("a")


def test_a_tool_that_hangs_while_it_says_what_it_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gem_core.tools._toolbox._OPEN_SECONDS", 0.1)
    release = threading.Event()
    with pytest.raises(ToolError, match=r"did not say within 0\.1 seconds what it offers"):
        Toolbox([Bad(lambda: release.wait(120))]).attach("a")
    release.set()


def test_a_tool_that_hangs_or_fails_while_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gem_core.tools._toolbox._CLOSE_SECONDS", 0.1)
    release = threading.Event()

    class Sticky(Says):
        def close(self) -> None:
            release.wait(120)

        def end_episode(self, episode: str) -> None:
            raise OSError

    after = Says(name="after")
    toolbox = Toolbox([Sticky(), after])
    toolbox.attach("a")
    toolbox.end_episode("e")
    toolbox.detach("a")
    # A busy machine may reach the limit here, too: then these two end later, in any order.
    wait_until(lambda: sorted(after.log) == ["close", "end", "open"])
    assert not release.is_set()
    release.set()


def test_an_open_tool_in_a_second_toolbox_is_refused() -> None:
    tool = Says()
    first, second = Toolbox([tool]), Toolbox([tool])
    first.attach("a")
    with pytest.raises(ToolError, match="open in another toolbox"):
        second.attach("b")
    assert tool.log == ["open"]
    first.detach("a")
    second.attach("b")
    second.detach("b")


@pytest.mark.parametrize(
    ("tools", "settings", "message"),
    [
        ([], {}, "needs a list of tools"),
        ("python:Interpreter", {}, "needs a list of tools"),
        (Says(), {}, "needs a list of tools"),
        ([print], {}, "Wrap a Python function in FunctionTool"),
        ([Says()], {"max_output": 0}, "max_output"),
        ([Says()], {"max_concurrent": 0}, "max_concurrent"),
        ([Says()], {"max_concurrent": True}, "max_concurrent"),
    ],
)
def test_a_toolbox_that_cannot_work_is_refused(tools: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        Toolbox(tools, **settings)


# -- forgotten, collected, forked, at exit -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Says, AsyncSays])
def test_a_session_that_nobody_closed_is_a_user_less(kind: type[Says]) -> None:
    tool = kind()
    toolbox = Toolbox([tool])
    session = ToolSession(toolbox)
    session.begin()
    del session
    gc.collect()
    wait_until(lambda: tool.log == ["open", "close"])


def test_the_garbage_collector_may_find_a_session_on_the_event_loop() -> None:
    toolbox: Toolbox

    async def collect() -> str:
        session = ToolSession(toolbox)
        session.begin()
        session.cycle = session  # type: ignore[attr-defined]
        del session
        gc.collect()
        return "collected"

    toolbox = Toolbox([AsyncSays(collect)])
    toolbox.attach("a")
    assert say(toolbox).text == "collected"
    toolbox.detach("a")


EXIT = """
    import asyncio, os
    from gem_core.tools import *
    from gem_core.tools._calls import ParsedCall

    class Open(Tool):
        def functions(self):
            return [Function("f", "")]
        {a}def call(self, function, arguments, context):
            return str(os.getpid() == {pid})
        {a}def close(self):
            print("closed", os.getpid() == {pid}, flush=True)

    toolbox = Toolbox([Open()], max_concurrent=1)
    session = ToolSession(toolbox)
    session.begin()
    print(session.call(ParsedCall("f", 0)).text, flush=True)
"""


@pytest.mark.parametrize("a", ["", "async "])
def test_tools_are_closed_at_exit(a: str) -> None:
    assert output(EXIT.format(a=a, pid=os.getpid())).splitlines() == ["False", "closed False"]


FORK = """
    {start}
    parent = os.getpid()
    toolbox._lock.acquire()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        toolbox._lock.release()
        session.close()
    else:
        import threading
        called = threading.Thread(target=lambda: print(session.call(ParsedCall("f", 0)).text, flush=True))
        called.start()
        called.join(120)
        print("child", flush=True)
        os._exit(0)
"""


@pytest.mark.parametrize("a", ["", "async "])
def test_a_fork_opens_its_own(a: str) -> None:
    start = EXIT.format(a=a, pid=os.getpid())
    lines = output(textwrap.dedent(start) + textwrap.dedent(FORK.format(start=""))).splitlines()
    assert lines == ["False", "False", "child", "closed False"]


def test_copies_and_pickles_are_the_same_toolbox() -> None:
    toolbox = Toolbox([FunctionTool(add)], max_concurrent=2)
    assert copy.copy(toolbox) is copy.deepcopy(toolbox) is pickle.loads(pickle.dumps(toolbox)) is toolbox


def add(a: int, b: int = 1) -> int:
    "The sum."
    return a + b


# -- many at once ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Says, AsyncSays])
def test_environments_come_and_go_while_calls_run(kind: type[Says]) -> None:
    tool = kind()
    toolbox = Toolbox([tool], max_concurrent=3)

    def play(number: int) -> int:
        good = 0
        for _ in range(15):
            session = ToolSession(toolbox)
            session.begin()
            good += session.call(ParsedCall("say", 0)).text == "ok"
            session.close()
        return good

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play, range(8))) == [15] * 8
    assert tool.log.count("open") == tool.log.count("close") > 0


class Crowd(Tool):
    """Counts how many calls are under way at one time. Each waits until three are."""

    lock, three, now, most = threading.Lock(), threading.Barrier(3), 0, 0

    def functions(self) -> Sequence[Function]:
        return [Function("say", "It says something.")]

    def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> str:
        with Crowd.lock:
            Crowd.now += 1
            Crowd.most = max(Crowd.most, Crowd.now)
        Crowd.three.wait(timeout=240)
        time.sleep(0.005)  # long enough for a fourth to come in, if it could
        with Crowd.lock:
            Crowd.now -= 1
        return "ok"


@pytest.mark.parametrize("arrived", ["built", "unpickled", "forked"])
def test_the_limit_holds_over_the_threads_of_a_process(arrived: str) -> None:
    toolbox = Toolbox([Crowd()], max_concurrent=3)
    if arrived == "unpickled":  # as in another process, where there is none of that name yet
        sent = pickle.dumps(toolbox)
        del toolbox
        gc.collect()
        toolbox = pickle.loads(sent)
    if arrived == "forked":
        toolbox.forked()
    Crowd.most = 0
    toolbox.attach("a")
    with ThreadPoolExecutor(12) as pool:
        results = [pool.submit(say, toolbox) for _ in range(60)]
        assert all(one.result().text == "ok" for one in results)
    toolbox.detach("a")
    assert Crowd.most == 3


# -- functions as tools ------------------------------------------------------------------------------------------------


def shout(text: str, *, times: int = 1, to: list[str] | None = None) -> ToolResult:
    "Say it aloud."
    return ToolResult(text.upper() * times, info={"to": to})


async def wait(seconds: float) -> float:
    "Wait."
    await asyncio.sleep(seconds)
    return seconds


def test_functions_are_offered_and_called() -> None:
    toolbox = Toolbox([pickle.loads(pickle.dumps(FunctionTool(add, shout, wait, timeout=600)))])
    functions = {function.name: function for function in toolbox.attach("a")}
    assert [*functions] == ["add", "shout", "wait"]
    assert functions["add"].description == "The sum."
    assert functions["add"].parameters["required"] == ["a"]
    assert functions["shout"].schema["function"]["parameters"]["properties"]["times"] == {
        "type": "integer",
        "default": 1,
    }

    def call(name: str, **arguments: Any) -> ToolResult:
        return toolbox.call(ParsedCall(name, 0, arguments), "e")

    assert call("add", a=2) == ToolResult("3")
    assert call("shout", text="a", times=2, to=["b"]) == ToolResult("AA", info={"to": ["b"]})
    assert call("wait", seconds=0) == ToolResult("0.0")
    assert call("add", a="2").text.startswith("Error: ValidationError: Expected `int`")
    toolbox.detach("a")


def nothing_said(a: int) -> int:
    return a


def no_hint(a) -> int:  # type: ignore[no-untyped-def]
    "No hint."
    return a


def no_json(a: threading.Lock) -> int:
    "No JSON."
    return 1


def only_position(a: int, /) -> int:
    "Only by position."
    return a


def unreadable(a: Missing) -> int:  # type: ignore[name-defined]  # noqa: F821
    "Names nothing."
    return 1


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ((), "needs functions of different names"),
        ((add, add), "needs functions of different names"),
        ((lambda a: a,), "has no name"),
        ((nothing_said,), "has no docstring"),
        ((no_hint,), "give the parameter 'a' a name and a type hint"),
        ((only_position,), "a name and a type hint"),
        ((no_json,), "JSON cannot carry"),
        ((unreadable,), "type hints cannot be read"),
    ],
)
def test_functions_that_no_model_could_call_are_refused(functions: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        FunctionTool(*functions)
