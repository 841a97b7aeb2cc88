# /// script
# dependencies = ["nox>=2026.1", "uv>=0.9", "tomli; python_version < '3.11'"]
# ///
"""Two commands do everything: `nox -s learn` trains an agent on the CPU, `nox -s tests` runs all tests.

uv makes each session's environment in `.nox/`, from its own cache. A package that needs one of its own has sessions
in its `package.toml`, a table each (`Session` has the keys). `core` and `plugins` test the others.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nox
from nox.project import load_toml

nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = not shutil.which("python3.11")  # others are skipped where they are missing
nox.options.sessions = ["tests"]

HERE = Path(__file__).parent
PYTHON, PYTHONS = "3.11", ["3.10", "3.11", "3.12", "3.13"]
EXAMPLE = "trl"  # the session with whose environment README's first command trains, and the types are checked
# pyenv's Pythons come last on the PATH.
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *map(str, Path.home().glob(".pyenv/versions/3.*/bin"))])
# uv reads none of pip's settings. Without a local folder of wheels it takes PyTorch's CPU builds; CUDA's are large.
UV = {"UV_FIND_LINKS": folder} if (folder := os.environ.get("PIP_FIND_LINKS")) else {"UV_TORCH_BACKEND": "cpu"}
TORCH = "torch==2.13.0"  # installed first: the local build sorts higher than PyPI's
# With Python's thresholds, garbage collections during imports take 3 % of the tests' CPU time, 8 % of verl's import.
RARER_COLLECTIONS = "import gc; gc.set_threshold(50_000, 20, 100)\n"
# Two at a time, as most tests wait; a file stays together, because some start Ray.
PARALLEL = ["-n", "2", "--dist", "loadfile"]
# Sessions at a time: most tests wait for processes, and the largest session takes up to 7 GB.
LANES = max(1, min(3, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (7 << 30)))
INTERRUPT_SECONDS = 20  # after Ctrl-C tests end the processes that they started


@dataclass
class Session:
    """A table of a `package.toml`.

    Attributes:
        name, folder, about: of the session; of its package; what it tests.
        minutes: how long it takes, if `nox -s tests` has it; the longest begin first. None: by hand.
        last: whether it begins once the adapters' sessions have ended.
        constraints: a file of the folder, or of constraints/.
        torch, steps: whether the CPU build of torch comes first; arguments of `uv pip install`, before the project.
        extras, groups: of pyproject.toml; with_shared: also those of the shared environment.
        debian, npm: command -> packages that bring it where it is missing and they can be installed.
        types: folders whose types are checked (those of `EXAMPLE`, in `lint`); with `clone`, where it names a clone.
        run: commands of Python, after which the session's arguments come unless there are tests.
        tests: files or folders for pytest, which `plugins` then leaves out; `parallel` if two at a time are safe.
    """

    name: str
    folder: Path
    about: str
    minutes: float | None = None
    last: bool = False
    python: str | list[str] = PYTHON
    constraints: str = "constraints.txt"
    torch: bool = False
    steps: list[list[str]] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=lambda: ["test"])
    with_shared: bool = False
    debian: dict[str, str] = field(default_factory=dict)
    npm: dict[str, str] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)
    clone: str = ""
    run: list[list[str]] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    parallel: bool = False

    def start(self, session: nox.Session) -> None:
        """Install the environment, and run everything in it."""
        need_programs(session, self.debian)
        self.install(session)
        add_npm(session, self.npm)
        clone = os.environ.get(self.clone, "")
        if self.types and self.name != EXAMPLE and (clone or not self.clone):
            pyright(session, *self.types, clone=clone)
        for command in self.run:
            run(session, *command, *([] if self.tests else session.posargs))
        if self.tests:
            run_tests(session, self.tests, *(PARALLEL if self.parallel else []))

    def install(self, session: nox.Session, *extras: str, groups: Sequence[str] = ()) -> None:
        """Make the environment, perhaps with more than the session needs."""
        own, shared = self.folder / self.constraints, HERE / "constraints" / self.constraints
        first = [TORCH] if self.torch else []
        steps = [first, *(step if "--no-deps" in step else [*first, *step] for step in self.steps)]
        more = [*self.extras, *(ENVIRONMENTS if self.with_shared else []), *extras]
        install(session, own if own.exists() else shared, more, [*self.groups, *groups], steps=[*filter(None, steps)])


FILES = {one.parent: load_toml(one) for one in [*HERE.glob("*/package.toml"), *sorted(HERE.glob("*/*/package.toml"))]}
TABLES = [(folder, name, table) for folder, file in FILES.items() for name, table in file.items()]
SESSIONS = {name: Session(name, folder, **table) for folder, name, table in TABLES if name != "package"}
# Files and folders of tests that sessions of packages run.
ELSEWHERE = [test for one in SESSIONS.values() if one.minutes is not None for test in one.tests]
PLUGINS = [path.relative_to(HERE) for path in sorted(HERE.glob("plugins/*"))]
SHARED = [path for path in PLUGINS if (path / "tests").exists() and str(path / "tests") not in ELSEWHERE]
EXTRAS = load_toml("pyproject.toml")["project"]["optional-dependencies"]
# The extras of the shared environment: those that a `package.toml` names, or the one with the folder's name.
NAMED = {path: FILES.get(HERE / path, {}).get("package", {}).get("shared", []) for path in PLUGINS}
DEFAULT = {path: [path.name.replace("_", "-")] for path in SHARED}
ENVIRONMENTS = [extra for path in PLUGINS for extra in NAMED[path] or DEFAULT.get(path, []) if extra in EXTRAS]
# The environment of the core and of most plugins.
COMMON = Session("common", HERE, "", constraints="core.txt", with_shared=True, groups=["test", "tokenizers", "servers"])


@nox.session(python=PYTHON)
def learn(session: nox.Session) -> None:
    """Teach a real language model on the CPU, or with `-- --model tiny` a tiny one; arguments go to the example."""
    name = "guess_the_number" if "tiny" in session.posargs else "smollm2"
    replace(SESSIONS[EXAMPLE], with_shared=False).install(session, "smollm2", "eval", "view")
    run(session, f"examples/{EXAMPLE}_{name}.py", *session.posargs, OMP_NUM_THREADS=str(os.cpu_count()))


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """Everything that must pass before a change lands, up to three sessions at a time; `-- --list` prints their names.

    On 3.10 and 3.13, `edges` runs what can show a difference. Other Pythons have shown no fault of a plugin that the
    type checker, which assumes 3.10, or `test_import.py` misses. GitHub's workflow runs all on these two.
    """
    minutes = {"plugins-3.11": 7.0, "core-3.11": 6.0, "lint": 2.5, "wheel": 2.0}
    minutes |= {name: one.minutes for name, one in SESSIONS.items() if one.minutes is not None}
    recording = {name for name in minutes if name in SESSIONS and SESSIONS[name].folder.parent.name == "adapters"}
    last = {name: recording for name, one in SESSIONS.items() if one.last}
    names = sorted(minutes, key=lambda name: (name in last, -minutes[name]))
    if "--list" in session.posargs:
        return print(json.dumps(names))
    os.environ["GEM_RECORDED_RUNS"] = str(HERE / ".nox" / "recorded-runs")  # where the adapters' tests leave their runs
    shutil.rmtree(os.environ["GEM_RECORDED_RUNS"], ignore_errors=True)
    side_by_side(session, names, last)


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Style, types, generated pages, and the imports between packages."""
    SESSIONS[EXAMPLE].install(session, groups=("lint",))
    run(session, "-m", "ruff", "check")
    run(session, "-m", "ruff", "format", "--check")
    pyright(session, "gem_core", "adapters/train/gem_train", "plugins/*/gem_*", *SESSIONS[EXAMPLE].types)
    run(session, "docs/pages.py", "--check")
    run(session, "docs/settings_tables.py", "--check")
    run_tests(session, ["tests/lint"])


@nox.session(python=PYTHONS)
def core(session: nox.Session) -> None:
    """The core and what adapters share, on one of the supported Pythons."""
    COMMON.install(session)
    run_tests(session, ["tests/core", "adapters/train/tests"], *on(session))


@nox.session(python=PYTHONS)
def plugins(session: nox.Session) -> None:
    """The plugins that need no environment of their own, on one of the supported Pythons."""
    COMMON.install(session)
    left_out = [f"--ignore={path}" for path in ELSEWHERE]
    run_tests(session, [*(f"{path}/tests" for path in SHARED), "tests/together"], *on(session), *left_out)


@nox.session(python=PYTHON)
def wheel(session: nox.Session) -> None:
    """The wheel in an environment without the source tree: its files, its commands, and its install lines."""
    folder = HERE / ".nox" / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), external=True, env=UV)
    project = str(next(folder.glob("*.whl")))
    install(session, HERE / "constraints" / "core.txt", ENVIRONMENTS, ["test", "wheel"], project=project)
    # With -P and without the root's conftest.py, the source tree is not on the path.
    run(session, "-P", "-m", "pytest", "--confcutdir=tests/wheel", "tests/wheel", *session.posargs)


@nox.session(python=PYTHON)
def extras(session: nox.Session) -> None:
    """Extras of the wheel, each installed into an empty environment; minutes and large, so not part of `tests`."""
    with tempfile.TemporaryDirectory() as folder:
        session.run("uv", "build", "--quiet", "--wheel", "--out-dir", folder, external=True, env=UV)
        large = {
            extra for extra, needs in EXTRAS.items() if re.search("torch|trl|verl|rlhf|oat-|vllm|faiss", str(needs))
        }
        for extra in session.posargs or sorted({*EXTRAS} - large):
            python = f"{folder}/{extra}/bin/python"
            session.run("uv", "venv", "--quiet", "--seed", "-p", PYTHON, f"{folder}/{extra}", external=True)
            project = f"{next(Path(folder).glob('*.whl'))}[{extra}]"
            session.run("uv", "pip", "install", "--quiet", "-p", python, project, external=True, env=UV)
            session.run(python, "-P", "tests/wheel/installed_extra.py", extra, external=True)
            shutil.rmtree(f"{folder}/{extra}")


@nox.session(python=False)
def adapters(session: nox.Session) -> None:
    """By hand: a file of tests of all adapters that have it: `-- killed.py`, `staleness.py` or `two_nodes.py`."""
    file, *options = session.posargs or ["?"]
    if not (found := sorted(HERE.glob(f"adapters/*/tests/{file}"))):
        session.error(f"no adapter has the tests {file}. Next: nox -s adapters -- killed.py")
    for path in found:
        session.notify(path.parents[1].name, [str(path.relative_to(HERE)), "-s", *options])


def on(session: nox.Session) -> list[str]:
    """Options of pytest: what takes minutes runs on one Python for all."""
    return [*PARALLEL, *([] if session.python == PYTHON else ["-m", "not long"])]


def install(
    session: nox.Session, pins: Path, extras: list[str], groups: list[str], *, steps: Any = (), project: str = ""
) -> None:
    """Install the steps, then the project with extras and groups; a wheel of it, or else the source tree."""
    pip = ["--quiet", "-c", str(pins)]
    for step in steps:
        session.install(*pip, *step, env=UV)
    what = [f"{project}[{','.join(extras)}]"] if project else ["-e", f".[{','.join(extras)}]"]
    session.install(*pip, *(f"--group={one}" for one in groups), *what, "-e", "tests/support", env=UV)
    for packages in Path(session.virtualenv.location).glob("lib/python*/site-packages"):
        packages.joinpath("rarer_collections.pth").write_text(RARER_COLLECTIONS)


def run(session: nox.Session, *arguments: str, **environment: str) -> None:
    """Run Python with one thread: more threads compete for the cores."""
    # Bytecode is kept, whatever the caller prefers: each of the many processes would compile the project again.
    environment = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "", "NO_MKDOCS_2_WARNING": "1", **environment}
    session.run("python", *arguments, env=environment, interrupt_timeout=INTERRUPT_SECONDS)


def run_tests(session: nox.Session, tests: list[str], *options: str) -> None:
    """Run pytest on these, or on the files that the session's arguments name."""
    named = any("/tests" in one and Path(one.partition("::")[0]).exists() for one in session.posargs)
    run(session, "-m", "pytest", *options, *([] if named else tests), *session.posargs)


def pyright(session: nox.Session, *folders: str, clone: str = "") -> None:
    """Check the types in these folders."""
    found = sorted(str(path) for folder in folders for path in Path().glob(folder))
    options = ["--project", "pyproject.toml", "--pythonpath", str(Path(session.bin, "python"))]
    run(session, "-m", "pyright", *options, *found, PYTHONPATH=clone)


def need_programs(session: nox.Session, debian: dict[str, str]) -> None:
    """Install missing programs as root on Debian, or skip the session."""
    for program, packages in debian.items():
        if not shutil.which(program) and os.geteuid() == 0 and shutil.which("apt-get"):
            wait = ["-o", "DPkg::Lock::Timeout=600"]
            for command in (["update"], ["install", "-y", "--no-install-recommends", *packages.split()]):
                session.run("apt-get", *wait, *command, external=True, silent=True, success_codes=range(256))
        if not shutil.which(program):
            session.skip(f"no {program} here. Next: apt-get install {packages}")


def add_npm(session: nox.Session, npm: dict[str, str]) -> None:
    """Put programs from npm on the PATH. Without npm, their tests are skipped."""
    folder = HERE / ".nox" / "npm"
    for program, package in npm.items():
        if shutil.which("npm") and not (folder / "node_modules" / ".bin" / program).exists():
            # --ignore-scripts: what they would build is for connections over SSH.
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
            session.run("npm", "install", *options, package, external=True, silent=True, success_codes=range(256))
        os.environ["PATH"] = f"{folder}/node_modules/.bin{os.pathsep}{os.environ['PATH']}"


def side_by_side(session: nox.Session, names: list[str], after: dict[str, set[str]]) -> None:
    """Run sessions in `LANES` lanes, some after others have ended. All of them run, even if one fails."""
    # Also in the background, where shells ignore Ctrl-C, and on SIGTERM: nothing is lost or left behind.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
    ended = {name: threading.Event() for name in names}
    running: list[subprocess.Popen[bytes]] = []
    stopped, results = threading.Event(), list[str]()

    def one(name: str) -> bool:
        for other in after.get(name, ()):
            ended[other].wait()
        with tempfile.TemporaryFile() as output:
            began, command = time.monotonic(), [sys.executable, "-m", "nox", "-f", __file__, "-s", name]
            if stopped.is_set():
                return False
            # In a group of its own, which can be interrupted as Ctrl-C does.
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd=HERE, start_new_session=True)
            running.append(process)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = code = os.waitstatus_to_exitcode(status)
            running.remove(process)
            output.seek(0)
            text = output.read().decode(errors="replace")
        print(f"\n{f' {name} ':=^120}\n{text}", flush=True)
        notable = re.findall(r"^RERUN .*|^nox > Session .* skipped.*", text, re.MULTILINE)
        minutes, cpu = (time.monotonic() - began) / 60, used.ru_utime + used.ru_stime  # with all that was waited for
        results.extend([f"{name}: exit code {code}, {minutes:.1f} minutes, {cpu:.0f} CPU seconds", *notable])
        ended[name].set()
        return code == 0

    with ThreadPoolExecutor(LANES) as lanes:
        try:
            passed = [*lanes.map(one, names)]
        except KeyboardInterrupt:
            stopped.set()
            for event in ended.values():
                event.set()
            for process in [*running]:
                stop_group(process)
            raise
    session.log("\n".join(["all sessions:", *results]))
    if failed := [name for name, fine in zip(names, passed, strict=True) if not fine]:
        session.error(f"failed: {', '.join(failed)}")


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a session like Ctrl-C, and kill it if this takes longer than a test may need to clean up."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        for _ in range(20 * INTERRUPT_SECONDS):
            if process.returncode is not None:  # its lane, which has its CPU time, has waited for it
                return
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)


def declare(one: Session) -> None:
    """Add the session of a package."""

    def declared(session: nox.Session) -> None:
        one.start(session)

    declared.__doc__ = one.about
    nox.session(declared, python=one.python, name=one.name)


for _one in SESSIONS.values():
    declare(_one)
