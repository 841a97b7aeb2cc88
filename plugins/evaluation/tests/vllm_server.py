"""The same weights, evaluated here and over vLLM's own server on the CPU: `nox -s eval_vllm`.

    vllm_server.py [FOLDER]

FOLDER has a model that some training saved; without it, a tiny one is made.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from gem_evaluation import Entry, Summary, evaluate, load_model

GAME = "game:GuessTheNumber-v0-easy"
OPTIONS = {"temperature": 1.0, "max_tokens": 4}
SECONDS = 300.0
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


@contextmanager
def serving(folder: str) -> Iterator[str]:
    """The URL of vLLM's server with this model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        folder,
        "--served-model-name",
        "tiny",
    ]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    command += ["--max-model-len", "1024", "--max-num-seqs", "64"]
    server = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, start_new_session=True)
    try:
        deadline = time.monotonic() + SECONDS
        while not _answers(f"http://127.0.0.1:{port}/health"):
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def overlap(one: Summary, other: Summary) -> bool:
    """Whether the intervals of both success rates overlap."""
    assert one.success is not None
    assert other.success is not None
    return one.success.low <= other.success.high and other.success.low <= one.success.high


def main(folder: str | None = None) -> None:
    """Evaluate twice and compare."""
    with tempfile.TemporaryDirectory() as temporary:
        if folder is None:
            from gem_tiny import tiny_policy

            folder = temporary
            for part in tiny_policy(GAME, warm_start_steps=200, seed=0):
                part.save_pretrained(folder)
        entry = Entry(id=GAME, tasks=100, repeats=2)
        here = evaluate(entry, load_model(folder, options=OPTIONS)).together
        print("local weights:", here.success, flush=True)
        with serving(folder) as url:
            model = load_model("tiny", base_url=url, options=OPTIONS)
            there = evaluate(entry, model, progress=True).together
            print(
                "vLLM's server:", there.success, f"{there.requests} requests, {there.prompt_tokens} tokens of prompts"
            )
            full = evaluate(Entry(id=GAME, tasks=2, system_prompt="1 " * 3000), model).together
        assert there.episodes.finished == here.episodes.finished == 200
        assert overlap(here, there)
        assert full.stop_reasons == {"context_full": 2}, full
        print("a prompt that is too long:", full.stop_reasons)


if __name__ == "__main__":
    main(*sys.argv[1:])
