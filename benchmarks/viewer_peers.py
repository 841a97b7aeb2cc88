"""The same episodes in `gem-core view`, `inspect view` and trackio's dashboard: their files, and the time to a view.

Needs chromium and `pip install "gem-core[view,eval,inspect,trackio]" playwright`. Plays an evaluation with a function
that says random words, writes it in all three forms, starts each program in turn as its documentation says, and opens
it in chromium. Nothing may leave this machine: requests to other hosts are refused, and counted.

    python benchmarks/viewer_peers.py [--episodes 2000] [--turns 10]

`write_s` is CPU seconds that the form took beyond the evaluation's own folder; `server_s` is from the command to the
first answer of its server; `view_s` is from opening the address until the run's first numbers are seen, or in
inspect's the first episodes. Times are wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Error, Route, sync_playwright

import gem_core
from gem_core.env import Env, ResetResult, StepResult
from gem_core.episode import Source
from gem_evaluation import evaluate
from gem_train.records import read_episodes

ENV = "benchmark:Talk"
WORDS = 30
"""Of an observation, and of a response."""
BIN = Path(sys.executable).parent
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
SLOW = 60
"""Seconds after which a view is not waited for any more."""


class Talk(Env):
    """Says random words, and listens.

    Args:
        turns: until it ends.
    """

    def __init__(self, turns: int = 10) -> None:
        self.turns = turns

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Say the first words."""
        super().reset(seed=seed)
        self.turn = 0
        return words(self.rng), {}

    def step(self, action: str) -> StepResult:
        """Say more."""
        self.turn += 1
        ended = self.turn >= self.turns
        solved = ended and len(action) % 2 == 0
        return words(self.rng), float(solved), ended, False, {"success": solved}

    def sample_random_action(self) -> str:
        """Random words."""
        return words(self.rng)


def words(chance: random.Random) -> str:
    """Random words."""
    return " ".join("".join(chance.choices("abcdefghij", k=chance.randint(2, 8))) for _ in range(WORDS))


def main() -> None:
    """Play, write, open, and print a line of JSON for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run = folder / "evaluation"
        gem_core.register(ENV, Talk, kwargs={"turns": options.turns})
        chance = random.Random(0)
        evaluate(ENV, lambda _: words(chance), tasks=options.episodes // 4, repeats=4, output=run)
        print(json.dumps({**vars(options), "evaluation_mb": size(run)}), flush=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            for program in (static_page, own_server, inspect_view, trackio_dashboard):
                print(json.dumps({"program": program.__name__, **program(browser, run, folder)}), flush=True)
            browser.close()


def static_page(browser: Browser, run: Path, folder: Path) -> dict[str, Any]:
    """`gem-core view --export`."""
    page = folder / "page.html"
    wrote = spent([BIN / "gem-core", "view", run, "--export", page])
    return {"write_s": wrote, "mb": size(page), **viewed(browser, page.as_uri(), ".facts-table a")}


def own_server(browser: Browser, run: Path, folder: Path) -> dict[str, Any]:
    """`gem-core view`."""
    with started([BIN / "gem-core", "view", run, "--no-browser"]) as process:
        begin = time.perf_counter()
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        server = round(time.perf_counter() - begin, 2)
        return {"mb": size(run), "server_s": server, **viewed(browser, address, ".facts-table a")}


def inspect_view(browser: Browser, run: Path, folder: Path) -> dict[str, Any]:
    """`inspect view`: the samples of the log."""
    logs = folder / "logs"
    logs.mkdir()
    wrote = spent([BIN / "gem-core", "eval", "export", run, "--inspect", logs / "log.eval"])
    port = free_port()
    with started([BIN / "inspect", "view", "--log-dir", logs, "--port", str(port)]):
        address = f"http://127.0.0.1:{port}/"
        server = answered(address)
        shown = viewed(browser, f"{address}#/logs/log.eval/samples", ".sample-input")
    return {"write_s": wrote, "mb": size(logs / "log.eval"), "server_s": server, **shown}


def trackio_dashboard(browser: Browser, run: Path, folder: Path) -> dict[str, Any]:
    """`trackio show`: the curve of the run. Its traces are another page, which is not measured."""
    os.environ["TRACKIO_DIR"] = str(folder / "trackio")
    from gem_trackers.trackio import TrackioTracker

    begin = time.process_time()
    tracker = TrackioTracker(Source("0", "evaluation", "benchmark"))
    batch: list[Any] = []
    for step, one in enumerate(read_episodes(run)):
        batch.append(one.episode)
        if len(batch) == 100:
            tracker.add_metrics(step, {"success": sum(each.success for each in batch) / len(batch)})
            tracker.add_samples(step, batch)
            batch = []
    tracker.close()
    wrote = round(time.process_time() - begin, 2)
    port = free_port()
    with started([BIN / "trackio", "show", "--project", "gem-core"], GRADIO_SERVER_PORT=str(port)):
        address = f"http://127.0.0.1:{port}/"
        server = answered(address)
        shown = viewed(browser, f"{address}?project=gem-core", "text=success")
    return {"write_s": wrote, "mb": size(folder / "trackio"), "server_s": server, **shown}


def viewed(browser: Browser, address: str, selector: str) -> dict[str, Any]:
    """Seconds until something is seen, and the other hosts that the page asked."""
    others: set[str] = set()

    def here(route: Route) -> None:
        host = urlsplit(route.request.url).hostname
        if host in (None, "127.0.0.1", "localhost"):
            return route.continue_()
        others.add(host)
        return route.abort()

    context = browser.new_context(viewport={"width": 1300, "height": 900})
    try:
        tab = context.new_page()
        tab.route("**/*", here)
        begin = time.perf_counter()
        tab.goto(address, wait_until="commit")
        tab.locator(selector).first.wait_for(timeout=SLOW * 1000)
        found: dict[str, Any] = {"view_s": round(time.perf_counter() - begin, 2)}
    except Error as error:
        found = {"view_s": None, "error": str(error).splitlines()[0]}
    finally:
        context.close()
    return {**found, "other_hosts": sorted(others)}


@contextmanager
def started(command: Sequence[Any], **variables: str) -> Generator[subprocess.Popen[str]]:
    """A program, ended at the end."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "BROWSER": "true", **variables}
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def answered(address: str) -> float | None:
    """Seconds until a server answers; `None` if it does not."""
    begin = time.perf_counter()
    while time.perf_counter() < begin + SLOW:
        try:
            with urllib.request.urlopen(address, timeout=10):
                return round(time.perf_counter() - begin, 2)
        except OSError:
            time.sleep(0.05)
    return None


def spent(command: Sequence[Any]) -> float:
    """CPU seconds of a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def size(path: Path) -> float:
    """MB of 10^6 bytes of a file, or of all in a folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return round(sum(one.stat().st_size for one in files) / 1e6, 2)


if __name__ == "__main__":
    main()
