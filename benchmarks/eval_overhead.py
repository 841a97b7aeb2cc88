"""CPU beside the endpoint: what `gem-core eval` takes for a turn, beside other evaluators and the SDK alone.

    python benchmarks/eval_overhead.py [--episodes 1000] [--concurrency 512]
    python benchmarks/eval_overhead.py --memory [--episodes 50000]

A stub in another process answers every chat after 50 ms with the same text. All play `game:Corridor-v0`, which takes
8 turns with it, by its own code; the prompt of a turn has all turns before it. Each player is a process of its own.
Figures are CPU milliseconds of this process for each turn, and its peak memory. inspect_ai and verifiers are measured
where they are installed; they write their own records, with their own settings but for the number of episodes at a
time. The ratio is that to `gem-core eval`.

`--memory` plays GuessTheNumber with `gem-core eval` alone, and prints the memory of the process on the way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENAI_API_KEY", "none")

GAME = "game:Corridor-v0"
PARTS = 10
"""How often `--memory` prints."""
ANSWER = "\\boxed{7} " * 20
STUB = f"""
import asyncio, json
BODY = json.dumps({{
    "id": "x", "object": "chat.completion", "created": 1, "model": "stub",
    "choices": [{{"index": 0, "finish_reason": "stop", "message": {{"role": "assistant", "content": {ANSWER!r}}}}}],
    "usage": {{"prompt_tokens": 300, "completion_tokens": 80, "total_tokens": 380}},
}}).encode()
MODEL = {{"id": "stub", "object": "model", "created": 1, "owned_by": "me"}}
LIST = json.dumps({{"object": "list", "data": [MODEL]}}).encode()

def framed(body):
    head = "HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body)
    return head.encode() + body

async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            lower = head.lower()
            at = lower.find(b"content-length:")
            if at >= 0:
                await reader.readexactly(int(lower[at + 15:].split(b"\\r\\n")[0]))
            if lower.startswith(b"post"):
                await asyncio.sleep(0.05)
            writer.write(framed(BODY if lower.startswith(b"post") else LIST))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int)
    parser.add_argument("--concurrency", type=int, default=512)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--play", choices=PLAYERS, help="used by the benchmark itself: one player, at --url")
    parser.add_argument("--url", default="")
    given = parser.parse_args()
    if given.play:
        print(json.dumps(measured(lambda: PLAYERS[given.play](given.url, given.episodes, given.concurrency))))
        return
    with stub() as url:
        if given.memory:
            memory(url, given.episodes or 50_000, given.concurrency)
        else:
            compare(url, given.episodes or 1000, given.concurrency)


@contextmanager
def stub() -> Iterator[str]:
    """The URL of an endpoint that answers everything alike."""
    with subprocess.Popen([sys.executable, "-c", STUB], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


def compare(url: str, episodes: int, concurrency: int) -> None:
    """A line for each player."""
    print("| | CPU ms per turn | ratio | turns/s | turns | peak MB |\n| --- | --- | --- | --- | --- | --- |")
    least = None
    for name in PLAYERS:
        if find_spec(name) is None:
            print(f"| {name} | not installed |", flush=True)
            continue
        command = [sys.executable, __file__, "--play", name, "--url", url]
        command += [f"--episodes={episodes}", f"--concurrency={concurrency}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        one = json.loads(done.stdout.splitlines()[-1])
        least = least or one["cpu"]
        print(
            f"| {name} | {one['cpu']:.2f} | {one['cpu'] / least:.1f}x | {one['rate']:.0f} | {one['turns']} | "
            f"{one['peak']:.0f} |",
            flush=True,
        )


def measured(play: Callable[[], int]) -> dict[str, float]:
    """CPU milliseconds of this process for each turn of those that a function plays, turns a second, and its memory."""
    before, began = time.process_time(), time.monotonic()
    turns = play()
    cpu, seconds = time.process_time() - before, time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu": 1000 * cpu / turns, "rate": turns / seconds, "turns": turns, "peak": peak}


def memory(url: str, episodes: int, concurrency: int) -> None:
    """Play with `gem_evaluation` in this process, and print its memory after each tenth of the episodes."""
    from gem_evaluation import evaluate_async, load_model

    async def play() -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run" / "episodes.jsonl"
            model = load_model("stub", base_url=url, concurrency=concurrency)
            playing = asyncio.ensure_future(
                evaluate_async("game:GuessTheNumber-v0-easy", model, tasks=episodes, output=file.parent)
            )
            place = finished = shown = 0
            while not playing.done():
                await asyncio.sleep(0.5)
                if not file.exists():
                    continue
                with file.open("rb") as lines:
                    lines.seek(place)
                    finished += lines.read().count(b"\n")
                    place = lines.tell()
                if finished * PARTS // episodes > shown:
                    shown = finished * PARTS // episodes
                    print(f"{finished} episodes: {resident():.1f} MB", flush=True)
            await playing
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"with the statistics, for which scipy is loaded: {resident():.1f} MB, at most {peak:.1f} MB")

    asyncio.run(play())


def resident() -> float:
    """Memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


# -- players: each plays so many episodes, so many at a time, and returns the number of turns --------------------------


def ours(url: str, episodes: int, concurrency: int) -> int:
    """`gem_evaluation` with a folder on disk."""
    from gem_evaluation import evaluate, load_model

    model = load_model("stub", base_url=url, concurrency=concurrency)
    with tempfile.TemporaryDirectory() as folder:
        return evaluate(GAME, model, tasks=episodes, output=Path(folder) / "run").together.requests


def sdk_alone(url: str, episodes: int, concurrency: int) -> int:
    """The SDK's default client in a loop, without records."""
    import openai

    import gem_core

    async def ask() -> int:
        client, turn, requests = openai.AsyncOpenAI(base_url=url, max_retries=0), asyncio.Semaphore(concurrency), 0

        async def one(task: int) -> None:
            nonlocal requests
            async with turn:
                env, ended = gem_core.make(GAME), False
                messages: list[Any] = [{"role": "user", "content": env.reset(seed=task)[0]}]
                while not ended:
                    completion = await client.chat.completions.create(model="stub", messages=messages)
                    requests += 1
                    answer = completion.choices[0].message.content or ""
                    observation, _, terminated, truncated, _ = env.step(answer)
                    ended = terminated or truncated
                    messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": observation}]

        await asyncio.gather(*(one(task) for task in range(episodes)))
        return requests

    return asyncio.run(ask())


def with_inspect(url: str, episodes: int, concurrency: int) -> int:
    """inspect_ai with a solver that plays the game, and a log on disk."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser, get_model
    from inspect_ai.scorer import Score, Target, mean, scorer
    from inspect_ai.solver import Generate, TaskState, solver

    import gem_core

    requests = 0

    @solver
    def player() -> Any:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            nonlocal requests
            env, ended, total = gem_core.make(GAME), False, 0.0
            state.messages = [ChatMessageUser(content=env.reset(seed=int(state.sample_id))[0])]
            while not ended:
                state = await generate(state)
                requests += 1
                observation, reward, terminated, truncated, _ = env.step(state.output.completion)
                ended, total = terminated or truncated, total + reward
                if not ended:
                    state.messages.append(ChatMessageUser(content=observation))
            state.store.set("return", total)
            return state

        return solve

    @scorer(metrics=[mean()])
    def undiscounted() -> Any:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=state.store.get("return"))

        return score

    model = get_model("openai-api/stub/stub", base_url=url, api_key="none")
    task = Task(dataset=[Sample(input="", id=n) for n in range(episodes)], solver=player(), scorer=undiscounted())
    with tempfile.TemporaryDirectory() as folder:
        limits: Any = {"max_samples": concurrency, "max_connections": concurrency}
        [log] = eval(task, model=model, log_dir=folder, display="none", **limits)
    if log.status != "success":
        sys.exit(f"inspect_ai: {log.error}")
    return requests


def with_verifiers(url: str, episodes: int, concurrency: int) -> int:
    """verifiers with an environment that plays the game, and its results on disk."""
    import verifiers as vf
    from datasets import Dataset

    import gem_core

    class Player(vf.MultiTurnEnv):
        async def setup_state(self, state: Any) -> Any:
            state["game"], state["return"] = gem_core.make(GAME), 0.0
            observation, _ = state["game"].reset(seed=state["example_id"])
            state["prompt"] = [vf.UserMessage(content=observation)]
            return state

        async def env_response(self, messages: Any, state: Any, **options: Any) -> Any:
            observation, reward, terminated, truncated, _ = state["game"].step(messages[-1].content)
            state["return"] += reward
            shown = [vf.UserMessage(content=observation)]
            if terminated or truncated:
                state["final_env_response"] = shown
            return shown

    def total(state: Any, **options: Any) -> float:
        return state["return"]

    rows = Dataset.from_list([{"question": "play", "answer": ""} for _ in range(episodes)])
    env = Player(eval_dataset=rows, rubric=vf.Rubric(funcs=[total]))
    client = vf.ClientConfig(api_key_var="OPENAI_API_KEY", api_base_url=url)
    settings: Any = {"num_examples": episodes, "max_concurrent": concurrency, "on_progress": lambda *done: None}
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(env.evaluate(client, "stub", save_results=True, results_path=Path(folder), **settings))
    return round(found["metadata"]["avg_metrics"]["num_turns"] * episodes)


PLAYERS: Mapping[str, Callable[[str, int, int], int]] = {
    "gem_evaluation": ours,
    "openai": sdk_alone,
    "inspect_ai": with_inspect,
    "verifiers": with_verifiers,
}
"""By the package that plays."""


if __name__ == "__main__":
    main()
