"""CPU beside the endpoint: what `gem-core eval` takes for a turn, beside the SDK alone and inspect_ai.

    python benchmarks/eval_overhead.py [--episodes 3000] [--concurrency 512] [--memory-episodes 0]

A stub in another process answers every chat after 50 ms with the same text. Figures are CPU milliseconds of this
process for each response, and its peak memory. inspect_ai is measured where it is installed, with one turn.
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
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENAI_API_KEY", "none")

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
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--concurrency", type=int, default=512)
    parser.add_argument("--memory-episodes", type=int, default=0)
    options = parser.parse_args()
    with subprocess.Popen([sys.executable, "-c", STUB], stdout=subprocess.PIPE, text=True) as stub:
        try:
            assert stub.stdout is not None
            url = f"http://127.0.0.1:{int(stub.stdout.readline())}/v1"
            ours(url, options.episodes, options.concurrency, "game:GuessTheNumber-v0-easy")
            ours(url, options.episodes, options.concurrency, "game:Corridor-v0")
            sdk_alone(url, options.episodes, options.concurrency)
            with_inspect(url, options.episodes, options.concurrency)
            for part in range(1, 6 if options.memory_episodes else 1):
                ours(url, options.memory_episodes * part // 5, options.concurrency, "game:GuessTheNumber-v0-easy")
        finally:
            stub.kill()


def measured(name: str, responses: Callable[[], int]) -> None:
    """Print the CPU of a function for each of the responses whose number it returns."""
    before, began = time.process_time(), time.monotonic()
    count = responses()
    cpu, seconds = time.process_time() - before, time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name}: {1000 * cpu / count:.2f} ms, {count / seconds:.0f}/s, {count} responses, peak {peak:.0f} MB",
        flush=True,
    )


def ours(url: str, episodes: int, concurrency: int, env_id: str) -> None:
    """`gem_evaluation` with a folder on disk."""
    from gem_evaluation import evaluate, load_model

    def play() -> int:
        model = load_model("stub", base_url=url, concurrency=concurrency)
        with tempfile.TemporaryDirectory() as folder:
            return evaluate(env_id, model, tasks=episodes, output=Path(folder) / "run").together.requests

    measured(f"gem-core eval, {env_id}, {episodes} episodes", play)


def sdk_alone(url: str, requests: int, concurrency: int) -> None:
    """The SDK's default client, and nothing else."""
    import openai

    async def ask() -> int:
        client, turns = openai.AsyncOpenAI(base_url=url, max_retries=0), asyncio.Semaphore(concurrency)

        async def one() -> None:
            async with turns:
                await client.chat.completions.create(model="stub", messages=[{"role": "user", "content": "x" * 200}])

        await asyncio.gather(*(one() for _ in range(requests)))
        return requests

    measured("the SDK's default client alone", lambda: asyncio.run(ask()))


def with_inspect(url: str, samples: int, concurrency: int) -> None:
    """inspect_ai, where it is installed, in a process of its own."""
    code = f"""
import json, resource, sys, tempfile, time
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
model = get_model("openai-api/stub/stub", base_url={url!r}, api_key="none", max_connections={concurrency})
task = Task(dataset=[Sample(input="x" * 200, target="7", id=n) for n in range({samples})], scorer=includes())
before, began = time.process_time(), time.monotonic()
with tempfile.TemporaryDirectory() as folder:
    limits = dict(max_samples={concurrency}, max_connections={concurrency})
    [log] = eval(task, model=model, log_dir=folder, display="none", **limits)
assert log.status == "success", log.error
cpu, seconds = time.process_time() - before, time.monotonic() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
figures = f"{{1000 * cpu / {samples}:.2f}} ms, {{{samples} / seconds:.0f}}/s, {samples} responses"
print(f"inspect_ai, one turn: {{figures}}, peak {{peak:.0f}} MB")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    print(done.stdout.strip() or f"inspect_ai: {json.dumps(done.stderr.strip()[-200:])}", flush=True)


if __name__ == "__main__":
    main()
