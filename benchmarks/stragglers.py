"""Environments with long-tailed latencies: how long sampler and trainer work, synchronous against asynchronous.

    python benchmarks/stragglers.py [--frameworks simulated trl verl openrlhf] [--lags 0 1 2 4] [--updates 8] \\
        [--python FRAMEWORK=PYTHON ...] [--seconds-per-token 0.04] [--at-once] [--json FILE]

A step of an environment takes a lognormal time (median 0.2 s, 99th percentile 10 s), as its seed says; an episode has 1
to 8 turns. A generation takes a fixed time per token, and an update a fixed time. All three are sleeps, so a busy
machine changes little, and different runs play the same episodes with the same latencies.

`simulated` has gem-core's collector and its thread, and sleeps as sampler and trainer. `trl`, `verl` and `openrlhf` are
real trainings of a tiny model, with the sleeps added; `verl_separate` is verl with a process of its own for sampling.
`--python` names the Python of their environments. Frameworks and lags run one after the other; `--at-once` runs all of
them at the same time, because they mostly wait.

A sampler works from the beginning to the end of a call; so does a trainer. The shares of the whole run are of the time
from the first call of the sampler to the end of the last update. The steady shares leave out the start and the end of a
run: they are of the time from the beginning of the first update to the beginning of the last one before which a batch
may still be begun. In `verl` both share the devices, so `either` says how long these work. Lag 0 is synchronous.
`first come` is the synchronous run with `min_generation_batch=1`.

Also printed: the Kolmogorov-Smirnov test of the lengths of episodes that reached training against those of all episodes
that were begun, and the tasks that were begun and finished and did not reach training.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

import gem_core
from gem_core import Env

ENV_ID = "bench:Straggler-v0"
QUICK = "game:Corridor-v0"
ENVS, TURNS, TOKENS = 32, 8, 8
MEDIAN, PERCENTILE_99 = 0.2, 10.0
SIGMA = math.log(PERCENTILE_99 / MEDIAN) / 2.3263
"""Of the lognormal latencies: 2.3263 is the 99th percentile of the standard normal distribution."""
SECONDS_PER_UPDATE = 5.0
FOLDER = "GEM_STRAGGLERS"
"""Environment variable with the folder of the logs, in all processes of a run."""
TOKEN = "GEM_STRAGGLERS_TOKEN"
"""Environment variable with the seconds that a token takes."""
SECONDS_PER_TOKEN = float(os.environ.get(TOKEN, "0.04"))


class Straggler(Env):
    """Takes a lognormal time for each step, as the seed says, and writes what it began and finished."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        """The first observation."""
        super().reset(seed=seed)
        self._dice = random.Random(seed)
        self._seed = seed
        self._turns = self._left = self._dice.randint(1, TURNS)
        note("begun", seed, self._turns)
        return "go", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Wait, then the same observation."""
        time.sleep(MEDIAN * math.exp(SIGMA * self._dice.gauss(0, 1)))
        self._left -= 1
        if not self._left:
            note("finished", self._seed, self._turns)
        return "go", float(self._dice.random() < 0.5), not self._left, False, {"success": True}

    def sample_random_action(self) -> str:
        """Any action."""
        return "go"


def note(name: str, *numbers: Any) -> None:
    """Write a line of numbers into the log of this name and process."""
    with (Path(os.environ[FOLDER]) / f"{name}-{os.getpid()}-{threading.get_ident()}").open("a") as file:
        file.write(json.dumps(numbers) + "\n")


def notes(folder: Path, name: str) -> Iterator[Any]:
    """The lines of all logs of this name."""
    for path in folder.glob(f"{name}-*"):
        yield from map(json.loads, path.read_text().splitlines())


@contextmanager
def at_work(name: str) -> Iterator[None]:
    """Note when the sampler or the trainer works."""
    started = time.time()
    yield
    note(name, started, time.time())


def slowed(method: Callable[..., Any], name: str, seconds: float) -> Callable[..., Any]:
    """A method that takes so much longer, and notes when it works."""

    @functools.wraps(method)
    def slow(*args: Any, **kwargs: Any) -> Any:
        with at_work(name):
            result = method(*args, **kwargs)
            time.sleep(seconds)
        return result

    return slow


# -- the frameworks ----------------------------------------------------------------------------------------------------


def simulated(folder: Path, lag: int, first_come: bool, updates: int) -> None:
    """The collector, and the thread that samples ahead; sampler and trainer only sleep."""
    from long_episodes import tokenizer

    from gem_train.ahead import SamplingThread
    from gem_train.rollout import BatchCollector, Completion, RolloutSettings

    def policy(prompts: Sequence[Any]) -> list[Completion]:
        with at_work("sampler"):
            time.sleep(TOKENS * SECONDS_PER_TOKEN)
        return [Completion([4] * TOKENS) for _ in prompts]

    vec = gem_core.make_vec(ENV_ID, ENVS, backend="thread", seed=0)
    min_batch = 1 if lag or first_come else None
    collector = BatchCollector(
        vec, policy, cast("Any", tokenizer()), RolloutSettings(max_response_tokens=TOKENS), min_batch=min_batch
    )
    thread = SamplingThread(collector, lag, updates) if lag else None
    for _ in range(updates):
        batch = collector.collect_round() if thread is None else thread.take()
        for episode in batch.episodes:
            note("trained", episode.seed, len(episode.turns))
        with at_work("trainer"):
            time.sleep(SECONDS_PER_UPDATE)
    if thread is not None:
        thread.close()
    collector.close()


def trl(folder: Path, lag: int, first_come: bool, updates: int) -> None:
    """TRL's trainer, with a copy of the weights where it samples ahead."""
    from gem_tiny import tiny_model, tiny_tokenizer
    from gem_trl import TurnGRPOConfig, TurnGRPOTrainer
    from gem_trl._ahead import PolicyCopy

    sampling = TOKENS * SECONDS_PER_TOKEN
    PolicyCopy.__call__ = slowed(PolicyCopy.__call__, "sampler", sampling)

    class Slow(TurnGRPOTrainer):
        _generate_single_turn = slowed(TurnGRPOTrainer._generate_single_turn, "sampler", sampling)
        # A training step begins with the rollout, so the loss is what is slowed.
        compute_loss = slowed(TurnGRPOTrainer.compute_loss, "trainer", SECONDS_PER_UPDATE)

        def rollout(self, count: int) -> dict[str, Any]:
            output = super().rollout(count)
            for episode in self._batch.episodes:
                note("trained", episode.seed, len(episode.turns))
            return output

    args = TurnGRPOConfig(
        str(folder / "run"),
        env=ENV_ID,
        max_staleness=lag,
        min_generation_batch=1 if first_come else None,
        per_device_train_batch_size=ENVS,
        gradient_accumulation_steps=1,
        max_steps=updates,
        max_completion_length=TOKENS,
        learning_rate=1e-4,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
    )
    made = tiny_tokenizer([QUICK])  # it plays its environments, and a straggler takes its time
    Slow(tiny_model(made, seed=0), args, made).train()


def save_model(folder: Path) -> None:
    """Save a tiny model and its tokenizer."""
    from gem_tiny import tiny_model, tiny_tokenizer

    made = tiny_tokenizer([QUICK])  # it plays its environments, and a straggler takes its time
    tiny_model(made, seed=0).save_pretrained(folder)
    made.save_pretrained(folder)


def verl(folder: Path, lag: int, first_come: bool, updates: int, *, own_devices: bool = False) -> None:
    """verl's trainer on a CPU. On shared devices, sampling stops during updates."""
    from gem_cpu.processes import python_path
    from gem_cpu.verl import separate

    save_model(folder / "model")
    settings = {
        "gem.env": ENV_ID,
        "gem.modules": "[stragglers]",
        "gem.max_staleness": lag,
        "gem.max_response_tokens": TOKENS,
        "gem.report": folder / "report",
        "actor_rollout_ref.model.path": folder / "model",
        "actor_rollout_ref.model.external_lib": "stragglers",  # in the servers, too
        "actor_rollout_ref.actor.ppo_mini_batch_size": ENVS,
        "data.max_prompt_length": 128,
        "data.max_response_length": 384,
        "data.train_batch_size": ENVS,
        "trainer.default_local_dir": folder / "checkpoints",
        "trainer.save_freq": -1,
        "trainer.total_training_steps": updates,
        "trainer.val_before_train": False,
    }
    flags = [*(f"{name}={value}" for name, value in settings.items()), *(separate() if own_devices else [])]
    command = [sys.executable, "-m", "gem_cpu.verl", "1", *flags]
    environment = {**os.environ, "PYTHONPATH": python_path(Path(__file__).parent)}
    subprocess.run(command, env=environment, check=True)


def slow_verl() -> None:
    """In a process of verl: add the sleeps, before each token of a batch, which an update may interrupt."""
    from gem_cpu.sampling import Engine

    generate = Engine.generate

    def slow(self: Any, requests: Any, interrupted: Callable[[], bool] = lambda: False) -> Any:
        def after_a_token() -> bool:
            time.sleep(SECONDS_PER_TOKEN)
            return interrupted()

        with at_work("sampler"):
            return generate(self, requests, after_a_token)

    Engine.generate = slow
    if "gem_verl._trainer" in sys.modules:  # the process that has verl's loop
        from gem_verl._trainer import TurnTrainer

        TurnTrainer._update_actor = slowed(TurnTrainer._update_actor, "trainer", SECONDS_PER_UPDATE)


def openrlhf(folder: Path, lag: int, first_come: bool, updates: int) -> None:
    """OpenRLHF's trainers on a CPU: its queue where it samples ahead."""
    from gem_cpu.processes import python_path

    save_model(folder / "model")
    flags = {
        "--gem.env": ENV_ID,
        "--gem.steps": updates,
        "--gem.modules": "stragglers",
        "--gem.max_staleness": lag,
        "--actor.model_name_or_path": folder / "model",
        "--algo.kl.init_coef": 0,
        "--rollout.batch_size": ENVS,
        "--rollout.micro_batch_size": 8,
        "--rollout.max_new_tokens": TOKENS,
        "--data.max_len": 512,
        "--train.batch_size": ENVS,
        "--train.micro_batch_size": 8,
        "--ckpt.path": folder / "ckpt",
        "--ckpt.output_dir": folder / "final",
    }
    command = [sys.executable, "-m", "gem_cpu.openrlhf", "1", *(str(part) for pair in flags.items() for part in pair)]
    environment = {**os.environ, "PYTHONPATH": python_path(Path(__file__).parent)}
    subprocess.run([*command, *(["--train.partial_rollout_enable"] if lag else [])], env=environment, check=True)


def slow_openrlhf() -> None:
    """In a process of OpenRLHF: add the sleeps. Its engines serve prompts side by side, so each call sleeps alone."""
    import asyncio

    from gem_openrlhf._policy import EnginePolicy

    sample = EnginePolicy.__call__

    async def slow(self: Any, prompt: Any) -> Any:
        with at_work("sampler"):
            completion = await sample(self, prompt)
            await asyncio.sleep(TOKENS * SECONDS_PER_TOKEN)
        return completion

    EnginePolicy.__call__ = slow
    if "gem_openrlhf._workers" in sys.modules:  # the process that starts the training; workers are pickled by value
        from gem_openrlhf._actors import plain_class
        from gem_openrlhf._workers import TurnPolicyActor

        actor: Any = plain_class(TurnPolicyActor)
        actor.fit = slowed(actor.fit, "trainer", SECONDS_PER_UPDATE)


FRAMEWORKS: dict[str, Callable[[Path, int, bool, int], None]] = {
    "simulated": simulated,
    "trl": trl,
    "verl": verl,
    "verl_separate": functools.partial(verl, own_devices=True),
    "openrlhf": openrlhf,
}


# -- the figures -------------------------------------------------------------------------------------------------------


def figures(folder: Path, lag: int, updates: int) -> dict[str, float]:
    """The figures of a finished run.

    Args:
        folder: of its logs.
        lag: its bound.
        updates: how many it made.
    """
    from scipy.stats import ks_2samp

    spans = {name: np.array(sorted(notes(folder, name))) for name in ("sampler", "trainer")}
    spans["either"] = np.array(sorted([*spans["sampler"].tolist(), *spans["trainer"].tolist()]))
    begin, end = spans["sampler"][0, 0], spans["trainer"][:, 1].max()
    begun, finished = (dict(notes(folder, name)) for name in ("begun", "finished"))
    trained = dict(notes(folder, "trained")) or finished
    shares = {name: share(one, begin, end) for name, one in spans.items()}
    first, last = spans["trainer"][0, 0], spans["trainer"][updates - 1 - lag, 0]
    return {
        **shares,
        **{f"steady_{name}": share(one, first, last) for name, one in spans.items()},
        "seconds_per_update": (end - begin) / updates,
        "ks_p": float(ks_2samp([*trained.values()], [*begun.values()]).pvalue),
        "trained": len(trained),
        "begun": len(begun),
        "lost": len(finished.keys() - trained.keys()),
    }


def share(spans: np.ndarray[Any, Any], begin: float, end: float) -> float:
    """Share of the time from `begin` to `end` in which there is a span: (spans, 2), sorted by their beginnings."""
    total, reached = 0.0, begin
    for first, last in np.clip(spans, begin, end):
        total += max(0.0, last - max(first, reached))
        reached = max(reached, last)
    return total / (end - begin)


def measure(
    python: str, framework: str, lag: int, first_come: bool, updates: int, seconds_per_token: float
) -> dict[str, Any]:
    """One run in a process of its own, of this Python."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, __file__, "--run", framework, str(lag), str(int(first_come)), str(updates), folder]
        environment = {**os.environ, FOLDER: folder, TOKEN: str(seconds_per_token)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{framework} at lag {lag} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return {
            "framework": framework,
            "lag": lag,
            "first_come": first_come,
            **figures(Path(folder), lag, updates),
        }


def main() -> None:
    """Measure each framework at each lag, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=["simulated"])
    parser.add_argument("--python", nargs="+", default=[], metavar="FRAMEWORK=PYTHON")
    parser.add_argument("--lags", nargs="+", type=int, default=[0, 1, 2, 4])
    parser.add_argument("--updates", type=int, default=8)
    parser.add_argument("--seconds-per-token", type=float, default=SECONDS_PER_TOKEN)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--run", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        framework, lag, first_come, updates, folder = options.run
        FRAMEWORKS[framework](Path(folder), int(lag), first_come == "1", int(updates))
        return
    if options.updates < max(options.lags) + 2:
        parser.error(f"--updates {options.updates}: a lag of {max(options.lags)} needs {max(options.lags) + 2} or more")
    wanted = [
        (framework, lag, first_come)
        for framework in options.frameworks
        for lag in options.lags
        for first_come in ((False, True) if lag == 0 and framework in ("simulated", "trl") else (False,))
    ]
    pythons = dict(pair.split("=", 1) for pair in options.python)

    def run(one: tuple[str, int, bool]) -> dict[str, Any]:
        return measure(pythons.get(one[0], sys.executable), *one, options.updates, options.seconds_per_token)

    with ThreadPoolExecutor(len(wanted) if options.at_once else 1) as pool:
        lines = [*pool.map(run, wanted)]
    print(
        "| | lag | steady: sampler works | trainer | either | whole run: sampler | trainer | either | s per update |",
        end="",
    )
    print(" KS p | trained of begun | finished, not trained |")
    print("| --- " * 12 + "|")
    names = ("steady_sampler", "steady_trainer", "steady_either", "sampler", "trainer", "either")
    for line in lines:
        lag = f"{line['lag']}{', first come' if line['first_come'] else ''}"
        shares = " | ".join(f"{line[name]:.0%}" for name in names)
        episodes = f"{line['ks_p']:.2f} | {line['trained']} of {line['begun']} | {line['lost']}"
        print(f"| {line['framework']} | {lag} | {shares} | {line['seconds_per_update']:.1f} | {episodes} |")
    if options.json:
        options.json.write_text(json.dumps(lines))


if FOLDER in os.environ:
    gem_core.register(ENV_ID, Straggler)
    if __name__ != "__main__" and "verl" in sys.modules:
        slow_verl()
    elif __name__ != "__main__" and "ray" in sys.modules:
        slow_openrlhf()


if __name__ == "__main__":
    main()
