"""Ten thousand episodes of environments that raise, hang, spin and die. Nothing may be left afterwards.

    python benchmarks/soak.py [--episodes 10000] [--backend process] [--policy truncate] [--json out.json]

An episode's seed alone decides whether, how and in which call it fails, so the expected results are known beforehand.
1 % raise, 1 % hang (0.3 % while computing), 0.5 % kill their process; most of those that hang or die also leave a child
process behind. With `--policy retry` every failure happens only once, and no episode may be lost.

Exits with status 1 if an episode is missing, came twice or differs from the same episode played alone, if the
statistics disagree, or if threads, processes, file descriptors or memory are left.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn
from rich.table import Table

import gem_core
from gem_core.env import Env, ResetResult, StepResult
from gem_core.failures import FailurePolicy
from gem_core.seeding import derive_seed
from gem_core.vector import EnvStatistics, Transition, VectorEnv

ENV_ID = "bench:Soak-v0"
RUN_SEED = 20
FATES = {"raise": 0.01, "sleep": 0.007, "spin": 0.003, "kill": 0.005}
ERRORS = {"raise": "RuntimeError", "sleep": "TimeoutError", "spin": "TimeoutError", "kill": "ChildProcessError"}
"""The prefix of each fate's error."""
LOST = {"ActorDiedError": "ChildProcessError", "ActorUnavailableError": "ChildProcessError"}
"""Ray's errors for a process that died."""
POSSIBLE = {"sync": ("raise",), "thread": ("raise", "sleep")}
"""The fates that a backend can survive, if not all. Threads that spin hold Python's lock, so the thread that checks the
clock enforces time limits only roughly."""
TOKEN = "GEM_SOAK_RUN"
"""A variable that every process of this run inherits, however it is started and whoever adopts it."""
HANG_SECONDS = 3600.0
MEMORY_BOUND_MB = 10.0
STUCK_SECONDS = 60.0
SAMPLE_SECONDS = 0.25


@dataclass
class Options:
    episodes: int = 10_000
    """Episodes, rounded up to the same number for each environment."""
    backend: Literal["sync", "thread", "process", "ray"] = "process"
    """Where environments run. With threads, no environment spins or kills; with `sync`, none hangs either."""
    workers: int = 2
    """Threads, processes or actors."""
    envs: int = 32
    """Environments."""
    timeout: float = 0.5
    """Time limit of one call, in seconds."""
    trouble: float = 1.0
    """Multiplies the shares of failing episodes; with 0 every worker lives from start to end."""
    policy: Literal["truncate", "retry"] = "truncate"
    """What happens to failed episodes; with `retry` each fails only once."""
    json: Path | None = None
    """File for the figures."""


# -- the environment -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What happens in an episode."""

    turns: int
    fate: str
    """A key of `FATES`, or empty."""
    call: int
    """The failing call: 0 is the reset, `k` is turn `k`."""
    leaves_child: bool


def plan(seed: int, possible: tuple[str, ...], trouble: float) -> Plan:
    """What happens in the episode with this seed."""
    dice = random.Random(seed)
    turns, draw = dice.randint(1, 5), dice.random()
    fate, edge = "", 0.0
    for name, share in FATES.items():
        edge += share * trouble
        if not fate and draw < edge:
            fate = name
    leaves_child = dice.random() < 0.7
    return Plan(turns, fate if fate in possible else "", dice.randint(0, turns), leaves_child)


class Soak(Env):
    """Shows its seed and its turn, so that mixed-up episodes are noticed.

    Args:
        possible: the possible fates.
        trouble: multiplies their shares.
        hang_seconds: how long a hanging call lasts.
        scars: a folder that records the episodes that met their fate, so that each meets it only once. Empty: every
            time.
    """

    def __init__(self, possible: tuple[str, ...], trouble: float, hang_seconds: float, scars: str) -> None:
        self.possible, self.trouble, self.hang_seconds, self.scars = possible, trouble, hang_seconds, scars

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode, or fail to."""
        super().reset(seed=seed)
        self.seed = seed or 0
        self.plan = plan(self.seed, self.possible, self.trouble)
        self.turn = 0
        self._meet_fate()
        return self._observation(), {"turns": self.plan.turns}

    def step(self, action: str) -> StepResult:
        """Play a turn, or fail to."""
        self.turn += 1
        self._meet_fate()
        ended = self.turn == self.plan.turns
        # Multiples of 1/64: their sums are exact in any order.
        reward = (derive_seed(self.seed, self.turn, action) % 129 - 64) / 64
        return self._observation(), reward, ended, False, {"success": ended and reward > 0}

    def sample_random_action(self) -> str:
        """A number."""
        return str(self.rng.randint(0, 9))

    def _observation(self) -> str:
        # Sometimes more than a socket holds at once.
        return f"{self.seed}:{self.turn}" * (20_000 if self.seed % 100 == self.turn else 1)

    def _meet_fate(self) -> None:
        fate = self.plan.fate
        if not fate or self.plan.call != self.turn or self._met_before():
            return
        if self.plan.leaves_child and "kill" in self.possible and fate != "raise":
            subprocess.Popen(["sleep", str(HANG_SECONDS)])
        if fate == "raise":
            raise RuntimeError(f"planned in {self.seed}")
        if fate == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        end = time.monotonic() + self.hang_seconds
        while fate == "spin" and time.monotonic() < end:
            pass
        time.sleep(max(0.0, end - time.monotonic()))

    def _met_before(self) -> bool:
        if not self.scars:
            return False
        try:
            Path(self.scars, str(self.seed)).touch(exist_ok=False)
        except FileExistsError:
            return True
        return False


# -- what must come back -------------------------------------------------------------------------------------------


@dataclass
class Episode:
    """What an episode showed, or what it must show."""

    observations: list[str]
    rewards: list[float] = field(default_factory=list)
    error: str = ""
    """The name of the error that ended it."""
    success: bool = False


def choose(seed: int, turn: int) -> str:
    """The policy: the action of this turn."""
    return str(derive_seed(seed, "action", turn) % 10)


def alone(seed: int, options: Options) -> Episode:
    """The expected episode, played here without a vector."""
    one = plan(seed, _possible(options.backend), options.trouble)
    fate = "" if options.policy == "retry" else one.fate
    env = Soak((), 0.0, 0.0, "")  # this environment never fails
    episode = Episode([])
    if fate and one.call == 0:
        return Episode([""], error=ERRORS[fate])
    episode.observations.append(env.reset(seed=seed)[0])
    for turn in range(1, one.turns + 1):
        if fate and one.call == turn:
            episode.error = ERRORS[fate]
            break
        observation, reward, _, _, info = env.step(choose(seed, turn))
        episode.observations.append(observation)
        episode.rewards.append(reward)
        episode.success = info["success"]
    return episode


def expected_statistics(options: Options) -> EnvStatistics:
    """The expected `vec.statistics`."""
    total = EnvStatistics()
    quota = _quota(options)
    for index in range(options.envs):
        for number in range(quota + 1):
            seed = derive_seed(RUN_SEED, number * options.envs + index)
            one = plan(seed, _possible(options.backend), options.trouble)
            if number == quota and not (one.fate and one.call == 0):
                continue  # opened without a failure, but not played
            episode = alone(seed, options)
            failed = bool(episode.error)
            total.failures += bool(one.fate)
            if number < quota or failed:
                total.end(
                    len(episode.rewards), sum(episode.rewards), success=episode.success, truncated=failed, failed=failed
                )
    return total


def _possible(backend: str) -> tuple[str, ...]:
    return POSSIBLE.get(backend, tuple(FATES))


def _quota(options: Options) -> int:
    return -(-options.episodes // options.envs)


# -- the run -------------------------------------------------------------------------------------------------------


class Ledger:
    """Follows every environment from episode to episode and records errors.

    Args:
        options: the options of the run.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.ended = 0
        self.errors: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.examples: list[str] = []
        self._number = [-1] * options.envs
        self._seed = [0] * options.envs
        self._now = [Episode([]) for _ in range(options.envs)]

    def open(self, index: int, observation: str, info: dict[str, Any]) -> None:
        """An episode begins."""
        self._number[index] += 1
        self._seed[index] = derive_seed(RUN_SEED, self._number[index] * len(self._now) + index)
        if (info.get("episode"), info.get("seed")) != (self._number[index], self._seed[index]):
            self._complain("opened another episode than the next", f"{index}: {info}, not {self._number[index]}")
        self._now[index] = Episode([observation])

    def action(self, index: int) -> str:
        """The next action of an environment."""
        return choose(self._seed[index], len(self._now[index].rewards) + 1)

    def played(self, index: int, transition: Transition) -> bool:
        """Record a turn; returns true while the environment has episodes left to play."""
        now, info = self._now[index], transition.info
        if not transition.done:
            now.observations.append(transition.observation)
            now.rewards.append(transition.reward)
            return True
        final = info["final_info"]
        if "error" in final:
            name: str = final["error"].partition(":")[0]
            now.error = LOST.get(name, name)
        else:
            now.observations.append(info["final_observation"])
            now.rewards.append(transition.reward)
            now.success = final["success"]
        self._compare(index, now)
        self.open(index, transition.observation, info)
        return self._number[index] < _quota(self.options)

    def _compare(self, index: int, now: Episode) -> None:
        self.ended += 1
        if now.error:
            self.errors[now.error] += 1
        expected = alone(self._seed[index], self.options)
        if now != expected:
            kind = f"error {now.error or 'none'} instead of {expected.error or 'none'}"
            if now.error == expected.error:
                kind = "rewards or observations"
            place = f"environment {index}, episode {self._number[index]}, seed {self._seed[index]}"
            self._complain(
                f"differs from the same episode alone: {kind}", f"{place}: {now.rewards}, {expected.rewards}"
            )

    def _complain(self, problem: str, example: str) -> None:
        self.problems[problem] += 1
        if len(self.examples) < 5:
            self.examples.append(f"{problem}: {example}"[:400])


@dataclass
class Memory:
    """Resident memory over the run, in MB."""

    share: list[float] = field(default_factory=list)
    """The finished share of the run at each sample."""
    main: list[float] = field(default_factory=list)
    workers: list[float] = field(default_factory=list)
    """Memory of the largest worker or other child process."""

    def sample(self, share: float) -> None:
        """Record the memory of this process and its children."""
        self.share.append(share)
        self.main.append(resident_mb(os.getpid()))
        self.workers.append(max((resident_mb(pid) for pid in relatives()), default=0.0))

    def growth(self, series: list[float]) -> float:
        """From the second tenth of the run to the last one, medians."""
        early = [mb for share, mb in zip(self.share, series, strict=True) if 0.1 <= share < 0.2]
        late = [mb for share, mb in zip(self.share, series, strict=True) if share >= 0.9]
        return statistics.median(late) - statistics.median(early) if early and late else 0.0


def play(vec: VectorEnv, ledger: Ledger, memory: Memory, advance: Callable[[int], None]) -> None:
    """Play every environment's share of the episodes with `send` and `recv`."""
    observations, infos = vec.reset()
    for index, (observation, info) in enumerate(zip(observations, infos, strict=True)):
        ledger.open(index, observation, info)
    vec.send({index: ledger.action(index) for index in range(vec.num_envs)})
    active, total, last = vec.num_envs, vec.num_envs * _quota(ledger.options), 0.0
    while active:
        answers = vec.recv(at_least=1, timeout=STUCK_SECONDS)
        if not answers:
            raise TimeoutError(f"no environment answered within {STUCK_SECONDS:g} s: {vec!r}")
        going = [index for index, transition in answers.items() if ledger.played(index, transition)]
        active -= len(answers) - len(going)
        vec.send({index: ledger.action(index) for index in going})
        if time.monotonic() - last > SAMPLE_SECONDS:
            last = time.monotonic()
            memory.sample(ledger.ended / total)
            advance(ledger.ended)
    memory.sample(1.0)
    advance(ledger.ended)


# -- what is left --------------------------------------------------------------------------------------------------


def children() -> list[int]:
    """Children of this process, zombies included."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(folder.name))
    return found


def relatives() -> list[int]:
    """Other processes of this run: children, and all processes that inherited the token."""
    found = set(children())
    wanted = f"{TOKEN}={os.environ[TOKEN]}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return sorted(found - {os.getpid()})


def open_files() -> Counter[str]:
    """The file descriptors of this process, counted by kind."""
    files: Counter[str] = Counter()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            files[os.readlink(link).partition(":[")[0].rpartition("/")[2]] += 1
    return files


def resident_mb(pid: int) -> float:
    """Resident memory of a process; 0 if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


@dataclass
class Leftovers:
    """Resources that a run could leave behind."""

    threads: list[str]
    processes: list[int]
    files: Counter[str]

    @classmethod
    def now(cls) -> Leftovers:
        """The current resources."""
        gc.collect()
        return cls(sorted(thread.name for thread in threading.enumerate()), relatives(), open_files())


def settled(before: Leftovers, seconds: float) -> Leftovers:
    """The current resources, once they are no more than before, or after the given number of seconds."""
    end = time.monotonic() + seconds
    while (now := Leftovers.now()) != before and time.monotonic() < end:
        time.sleep(0.1)
    return now


# -- the whole -----------------------------------------------------------------------------------------------------


@dataclass
class Check:
    """A condition that must hold."""

    what: str
    expected: Any
    found: Any
    good: bool


def main(options: Options) -> None:
    logging.getLogger("gem_core.vector").setLevel(logging.CRITICAL)  # failures are expected here
    console = Console(width=None if sys.stdout.isatty() else 150)
    os.environ[TOKEN] = str(os.getpid())
    expected = expected_statistics(options)
    ledger, memory = Ledger(options), Memory()
    with contextlib.ExitStack() as stack:
        before = Leftovers.now()
        vec_kwargs = _vec_kwargs(options, stack)
        begin, cpu = time.monotonic(), os.times()
        problem, closing, found = _run(vec_kwargs, ledger, memory, console)
        seconds = time.monotonic() - begin
    # A hanging thread is abandoned, and ends by itself.
    after = settled(before, 5 + (vec_kwargs["env_kwargs"]["hang_seconds"] if options.backend == "thread" else 0.0))
    used = os.times()
    checks = _checks(options, ledger, memory, expected, found, before, after, problem)
    own = used.user + used.system - cpu.user - cpu.system
    theirs = used.children_user + used.children_system - cpu.children_user - cpu.children_system
    figures = {
        "seconds": seconds,
        "closing seconds": closing,
        "CPU seconds, main process": own,
        "CPU seconds, its children": theirs,
        "episodes per second": ledger.ended / seconds,
        "main process MB": memory.main[-1] if memory.main else 0.0,
        "largest worker MB": max(memory.workers, default=0.0),
    }
    _show(console, checks, figures, ledger)
    if options.json:
        report = {"options": {**vars(options), "json": str(options.json)}, "figures": figures}
        report["checks"] = [asdict(check) for check in checks]
        options.json.write_text(json.dumps(report, indent=1, default=str))
    sys.exit(not all(check.good for check in checks))


def _vec_kwargs(options: Options, stack: contextlib.ExitStack) -> dict[str, Any]:
    """Arguments of `make_vec`."""
    gem_core.register(ENV_ID, Soak)
    retry = options.policy == "retry"
    scars = stack.enter_context(tempfile.TemporaryDirectory()) if retry else ""
    # A hanging thread cannot be stopped, so it must end by itself.
    hang = 3 * options.timeout if options.backend == "thread" else HANG_SECONDS
    if options.backend == "ray":
        _start_ray(options.workers, stack)
    possible = _possible(options.backend)
    return {
        "num_envs": options.envs,
        "backend": options.backend,
        "workers": None if options.backend == "sync" else options.workers,
        "seed": RUN_SEED,
        "env_kwargs": {"possible": possible, "trouble": options.trouble, "hang_seconds": hang, "scars": scars},
        # Planned failures stay far below this share; many more failures stop the run.
        "failures": FailurePolicy(
            timeout=None if options.backend == "sync" else options.timeout,
            retries=int(retry),
            max_failure_share=min(0.9, 0.2 * max(1.0, options.trouble)),
            window=100,
        ),
    }


def _start_ray(workers: int, stack: contextlib.ExitStack) -> None:
    import ray

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gr", dir="/tmp", ignore_cleanup_errors=True))
    ray.init(num_cpus=workers, include_dashboard=False, _temp_dir=folder, log_to_driver=False)
    stack.callback(ray.shutdown)


def _run(
    vec_kwargs: dict[str, Any], ledger: Ledger, memory: Memory, console: Console
) -> tuple[str, float, EnvStatistics]:
    """Play. Returns the error that stopped the run, the duration of `close`, and the vector's statistics."""
    problem = ""
    vec = gem_core.make_vec(ENV_ID, **vec_kwargs)
    columns = (*Progress.get_default_columns()[:-1], TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"{ledger.options.backend}", total=vec.num_envs * _quota(ledger.options))
        try:
            play(vec, ledger, memory, lambda done: progress.update(task, completed=done))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
    begin = time.monotonic()
    vec.close()
    return problem, time.monotonic() - begin, vec.statistics[ENV_ID]


def _checks(
    options: Options,
    ledger: Ledger,
    memory: Memory,
    expected: EnvStatistics,
    found: EnvStatistics,
    before: Leftovers,
    after: Leftovers,
    problem: str,
) -> list[Check]:
    planned = _planned_errors(options)
    checks = [
        Check("stopped by", "", problem, not problem),
        _equal("episodes", options.envs * _quota(options), ledger.ended),
        *(_equal(f"  ended by {name}", planned[name], ledger.errors[name]) for name in sorted(planned | ledger.errors)),
        *(Check(f"  {what}", 0, count, False) for what, count in ledger.problems.items()),
        *(
            _equal(f"statistics: {name}", value, vars(found)[name])
            for name, value in vars(expected).items()
            if name != "failures" or options.policy == "truncate"
        ),
    ]
    if options.policy == "retry":  # without failures that a lost worker could not report
        near = 0.9 * expected.failures <= found.failures <= expected.failures
        checks.append(Check("statistics: failures", expected.failures, found.failures, near))
    checks += [
        _equal("threads", before.threads, after.threads),
        _equal("processes", before.processes, after.processes),
    ]
    if options.backend != "ray":  # Ray keeps some descriptors after its shutdown
        checks.append(_equal("file descriptors", dict(before.files), dict(after.files)))
    for name, series in (("main process", memory.main), ("largest worker", memory.workers)):
        growth = memory.growth(series)
        checks.append(Check(f"growth of the {name}, MB", f"< {MEMORY_BOUND_MB:g}", growth, growth < MEMORY_BOUND_MB))
    return checks


def _planned_errors(options: Options) -> Counter[str]:
    errors: Counter[str] = Counter()
    for index in range(options.envs):
        for number in range(_quota(options)):
            error = alone(derive_seed(RUN_SEED, number * options.envs + index), options).error
            if error:
                errors[error] += 1
    return errors


def _equal(what: str, expected: Any, found: Any) -> Check:
    return Check(what, expected, found, expected == found)


def _show(console: Console, checks: list[Check], figures: dict[str, float], ledger: Ledger) -> None:
    table = Table("check", "expected", "found", "")
    for check in checks:
        verdict = "[green]good[/]" if check.good else "[red]wrong[/]"
        table.add_row(check.what, _text(check.expected), _text(check.found), verdict)
    console.print(table)
    console.print(", ".join(f"{name} {value:.1f}" for name, value in figures.items()))
    for example in ledger.examples:
        console.print(example, markup=False)


def _text(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main(tyro.cli(Options))
