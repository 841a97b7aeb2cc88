"""Sessions of a server: their number, their limits and their end, whatever becomes of client or server."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from env_servers import PROGRAM, Server, serving

from gem_core import Env, make, make_vec
from gem_core.errors import EnvError
from gem_core.failures import FailurePolicy
from gem_core.vector import VectorEnv
from gem_remote._messages import PROTOCOL, Open, Reset, Step, encoded
from gem_support.waiting import wait_until

pytest.importorskip("websockets")

GUESS = "game:GuessTheNumber-v0-easy"
TOKEN = "GEM_SERVE_TOKEN"


def remote(server: Server, env_id: str = "demo:Odd-v0") -> Env:
    return make(f"remote:{env_id}", url=server.url, patience=0.0)


def opened(env: Env) -> None:
    """Reset, on however busy a machine: limits of a second may end a session before it begins."""

    def reset() -> bool:
        try:
            env.reset(seed=1)
        except EnvError:
            return False
        return True

    wait_until(reset)


def by_place(result: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """What a vector shows of each place: arrays could not be compared as a whole."""
    return [*zip(*result, strict=True)]


def played(vector: VectorEnv, turns: int) -> list[Any]:
    """What a vector shows, apart from the ids."""
    shown: list[Any] = [by_place(vector.reset(seed=1))]
    shown += [by_place(vector.step([f"\\boxed{{{turn % 10 + 1}}}"] * vector.num_envs)) for turn in range(turns)]
    vector.close()
    return shown


def test_64_sessions_play_what_64_environments_play() -> None:
    with serving(GUESS) as server:
        here = make_vec(GUESS, num_envs=64, seed=1)
        there = make_vec(f"remote:{GUESS}", num_envs=64, seed=1, backend="thread", env_kwargs={"url": server.url})
        there.reset()
        assert server.sessions == 64
        assert played(there, 12) == played(here, 12)
        wait_until(lambda: server.sessions == 0, "sessions of closed environments ended")


def test_processes_play_the_same() -> None:
    with serving(GUESS) as server:
        here = make_vec(GUESS, num_envs=4, seed=1)
        kwargs = {"url": server.url}
        there = make_vec(f"remote:{GUESS}", num_envs=4, seed=1, backend="process", workers=2, env_kwargs=kwargs)
        assert played(there, 6) == played(here, 6)


CLIENT = """
import sys, gem_core
env = gem_core.make("remote:demo:Odd-v0", url=sys.argv[1])
env.reset(seed=1)
print("plays", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_the_session_of_a_process_that_is_gone_ends(killed: bool) -> None:
    with serving("demo:Odd-v0") as server:
        command = [sys.executable, "-c", CLIENT, server.url]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert client.stdout is not None
        assert client.stdout.readline() == "plays\n"
        assert server.sessions == 1
        if killed:
            client.kill()
        client.communicate()
        wait_until(lambda: server.sessions == 0)


def test_the_session_of_an_environment_that_is_forgotten_ends() -> None:
    with serving("demo:Odd-v0") as server:
        env = remote(server)
        env.reset(seed=1)
        assert server.sessions == 1
        del env
        wait_until(lambda: server.sessions == 0)


def test_an_episode_of_a_killed_server_fails_and_the_next_one_connects_again() -> None:
    with serving("demo:Odd-v0") as server, remote(server) as env:
        first = env.reset(seed=1)
        server.end()
        with pytest.raises(EnvError, match=r"the server at ws://.* is gone. The episode is lost"):
            env.step("on")
        with pytest.raises(EnvError, match="this episode is lost"):
            env.sample_random_action()
        with pytest.raises(EnvError, match="no server answers"):
            env.reset(seed=1)
        with serving("demo:Odd-v0", port=server.port):
            assert env.reset(seed=1) == first
            assert env.step("on")[0] == "on"


def test_a_server_that_is_lost_between_episodes_is_not_noticed() -> None:
    with serving("demo:Odd-v0") as server, remote(server) as env:
        first = env.reset(seed=1)
        server.end()
        with serving("demo:Odd-v0", port=server.port):
            assert env.reset(seed=1) == first


def test_a_vector_replays_the_episodes_of_a_killed_server() -> None:
    kwargs = {"patience": 120.0}
    with serving(GUESS) as server:
        here = make_vec(GUESS, num_envs=3, seed=1)
        there = make_vec(
            f"remote:{GUESS}",
            num_envs=3,
            seed=1,
            backend="thread",
            env_kwargs={"url": server.url, **kwargs},
            failures=FailurePolicy(retries=1),
        )
        assert there.reset() == here.reset()
        actions = ["\\boxed{5}"] * 3
        assert by_place(there.step(actions)) == by_place(here.step(actions))
        server.end()
        there.send(dict(enumerate(actions)))  # before the server is there again
        with serving(GUESS, port=server.port):
            answers = there.recv(at_least=3)
            assert [tuple(answers[slot]) for slot in range(3)] == by_place(here.step(actions))
            there.close()


def test_a_full_server_says_so_and_has_room_again() -> None:
    with serving("demo:Odd-v0", "--max-sessions", "1") as server, remote(server) as first, remote(server) as second:
        first.reset(seed=1)
        with pytest.raises(EnvError, match=r"has no room \(all of its 1 sessions are in use\)"):
            second.reset(seed=1)
        first.close()
        wait_until(lambda: server.sessions == 0)
        second.reset(seed=1)


def test_sessions_are_shared_by_servers() -> None:
    full = ("demo:Odd-v0", "--max-sessions", "2")
    with serving(*full) as one, serving(*full) as other:
        url = f"{one.url} {other.url}"
        envs = [make("remote:demo:Odd-v0", url=url, patience=0.0) for _ in range(4)]
        assert len({env.reset(seed=1)[0] for env in envs}) == 1
        assert (one.sessions, other.sessions) == (2, 2)
        one.end()
        for env in envs:
            env.close()
        wait_until(lambda: other.sessions == 0)
        envs[0].reset(seed=1)


def test_a_call_that_takes_too_long_ends_the_session() -> None:
    with serving("demo:Odd-v0", "--call-seconds", "0.5") as server, remote(server) as env:
        opened(env)
        with pytest.raises(EnvError, match=r"the call took more than 0\.5 seconds"):
            env.step("hang")
        wait_until(lambda: server.health()["closing"] >= 1, "the environment still hangs")
        opened(env)
        server.process.terminate()
        server.process.wait(120)  # though a thread never ends


def test_a_session_without_calls_ends() -> None:
    with serving("demo:Odd-v0", "--idle-seconds", "1") as server, remote(server) as env:
        opened(env)
        wait_until(lambda: server.sessions == 0)
        with pytest.raises(EnvError, match="closed the session: nothing was asked for 1 seconds"):
            env.step("on")


def test_a_message_that_is_too_long_ends_the_session() -> None:
    with serving("demo:Odd-v0", "--message-bytes", "50000") as server, remote(server) as env:
        env.reset(seed=1)
        with pytest.raises(EnvError, match="The episode is lost; reset"):
            env.step("x" * 60_000)
        with pytest.raises(EnvError, match="this episode is lost"):
            env.step("on")
        env.reset(seed=1)
        with pytest.raises(EnvError, match=r"ValueError: the environment's answer has 100,.* bytes"):
            env.step("long")
        assert env.step("on")[0] == "on"


def test_an_answer_that_is_too_long_is_not_even_made() -> None:
    with serving("demo:Odd-v0") as server, remote(server) as env:
        env.reset(seed=1)
        with pytest.raises(EnvError, match=r"ValueError: the environment's answer has [\d,]+ bytes or more"):
            env.step("wide")
        most = Path(f"/proc/{server.process.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        assert int(most) < 500_000  # KB; the answer would have 2 GB
        assert env.step("on")[0] == "on"


def test_sigterm_ends_a_server_whose_call_never_returns() -> None:
    from websockets.sync.client import connect

    with serving("demo:Odd-v0") as server, connect(server.url) as client:
        for message in (Open(PROTOCOL, "demo:Odd-v0"), Reset(1, {})):
            client.send(encoded(message))
            client.recv()
        client.send(encoded(Step("hang")))
        began = time.monotonic()
        assert "1 sessions were still playing" in server.end(signal.SIGTERM)
        assert time.monotonic() - began < 5


def test_a_token_is_needed_where_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("demo:Odd-v0", token="sesame") as server, remote(server) as env:
        monkeypatch.setenv("GEM_REMOTE_URL", f"ws://127.0.0.1:9 {server.url}/")
        for wrong in ("", "sesam", "sesame!"):
            monkeypatch.setenv(TOKEN, wrong)
            with pytest.raises(EnvError, match="the token is missing or wrong"):
                env.reset(seed=1)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            server.health()
        monkeypatch.setenv(TOKEN, "sesame")
        env.reset(seed=1)
        assert "sesame" not in repr(vars(env))
        assert b"sesame" not in Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        assert "sesame" not in server.end()


@pytest.mark.parametrize("token", ["s\u00e9same", "\u65e5\u672c", "\udcff", "ses ame", "sesame\n"])
def test_a_token_that_no_header_carries_is_refused_on_both_sides(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal("demo:Odd-v0", **{TOKEN: token})
    assert f"{TOKEN} has blanks or characters outside of ASCII" in said
    assert "Traceback" not in said
    with serving("demo:Odd-v0") as server, remote(server) as env:
        monkeypatch.setenv(TOKEN, token)
        with pytest.raises(EnvError, match="outside of ASCII"):
            env.reset(seed=1)


def test_pages_of_browsers_are_refused() -> None:
    with serving("demo:Odd-v0") as server:
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}/health", headers={"Origin": "http://evil"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request)


def test_bytes_that_are_no_message_end_the_session() -> None:
    from websockets.sync.client import connect

    with serving("demo:Odd-v0") as server:
        for data in (b"", b"\xc1", b"\x92\xa4step\xa2on", "text", b"\x91\xa6sample"):
            with connect(server.url) as client:
                client.send(data)
                assert b"EnvError" in client.recv(decode=False)
        wait_until(lambda: server.sessions == 0)


def test_fragments_without_end_end_the_session() -> None:
    from websockets.sync.client import connect

    with serving("demo:Odd-v0") as server, connect(server.url) as client:
        wait_until(lambda: server.sessions == 1)
        client.socket.sendall(b"\x02\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * 2000)
        wait_until(lambda: server.sessions == 0)


def test_the_log_of_a_server_drives_no_terminal() -> None:
    with serving("demo:Odd-v0") as server, remote(server) as env:
        env.reset(seed=1)
        with pytest.raises(EnvError, match="Mazed"):
            env.step("quote \x1b]0;title\x07")
        log = server.end()
        assert r"Mazed: quote \x1b]0;title\x07" in log
        assert "\x1b" not in log


def refusal(*arguments: str, **environment: str) -> str:
    """What the command says that does not start."""
    server = subprocess.run(
        [sys.executable, str(PROGRAM), "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "", **environment},
    )
    assert server.returncode
    return server.stderr


def test_what_cannot_be_served_is_said_before_the_first_client_comes() -> None:
    assert f"set {TOKEN}".lower() in refusal(GUESS, "--host", "0.0.0.0").lower()
    assert "Did you mean" in refusal("game:GuessTheNumber")
    assert "no argument 'turns'" in refusal(GUESS, "--set", "turns=3")
    assert "demo:Stuck-v0 could not be closed: SystemExit" in refusal("demo:Stuck-v0")
    with serving(GUESS) as server:
        assert "Next: another --port" in refusal(GUESS, "--port", str(server.port))
