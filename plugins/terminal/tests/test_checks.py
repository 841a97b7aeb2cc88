"""What a check sees and what sees the check: nothing that a policy has put where the system looks for code, and no
program under test."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from playing import finished, run
from sandbox_here import LONG, needs_a_sandbox

import gem_core
from gem_sandbox import Entry, Limits, LocalSandbox
from gem_terminal._judged import judged
from gem_terminal._task import JUDGED, TerminalTask
from gem_terminal._verification import SYSTEM_PATH, variables_of, verify
from gem_terminal.env import TerminalEnv

pytestmark = pytest.mark.long

MARK = "planted by a policy"
PLACES = r"""
import json, os, re, subprocess, sys

def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return ""

programs = {name for name in ("bash", "sh", "perl", "python3", "cat")}
folders = {*os.environ["PATH"].split(":"), *sys.argv[1].split(":")}
folders |= {f"/usr/local/{name}" for name in ("bin", "sbin")} | {"/usr/local/games", "/usr/games"}
found = {os.path.join(folder, name) for folder in folders for name in programs}
pythons = {os.path.join(folder, "python3") for folder in folders if os.path.exists(os.path.join(folder, "python3"))}
for python in pythons:
    asked = "import json, site, sys, sysconfig as c; print(json.dumps([sys.prefix, sys.base_prefix, sys.exec_prefix, "
    asked += "[*sys.path, *site.getsitepackages(), site.getusersitepackages(), *c.get_paths().values()]]))"
    *prefixes, path = json.loads(said(python, "-c", asked) or '["/usr", "/usr", "/usr", []]')
    packages = {folder for folder in path if folder}
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for above in prefixes:
        while above != "/":
            found |= {f"{above}/pyvenv.cfg", f"{above}/bin/pyvenv.cfg"}
            packages |= {f"{above}/lib/{version}", f"{above}/lib/{version}/dist-packages"}
            packages |= {f"{above}/lib/{version}/site-packages", f"{above}/lib/python3/dist-packages"}
            above = os.path.dirname(above)
    packages.add(f"/etc/{version}")
    names = ("a.pth", "sitecustomize.py", "usercustomize.py", "_distutils_hack.py", "os.py", "re.py", "pathlib.py")
    found |= {os.path.join(folder, name) for folder in packages if not folder.endswith(".zip") for name in names}
    found |= {folder for folder in packages if folder.endswith(".zip")}
for folder in said("perl", "-e", 'print join "\n", @INC').split():
    found |= {f"{folder}/{name}" for name in ("strict.pm", "warnings.pm", "sitecustomize.pl", "Config.pm")}
loader = next((f"/lib64/{name}" for name in ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")), "")
for folder in re.findall(r'="(/[^"]*)"', said(loader, "--list-diagnostics")):
    found |= {os.path.join(folder, name) for name in ("libc.so.6", "libm.so.6", "libz.so.1", "libexpat.so.1")}
found |= {f"/etc/{name}" for name in ("ld.so.preload", "ld.so.cache", "ld.so.conf", "profile", "bash.bashrc",
          "inputrc", "environment", "nsswitch.conf", "gai.conf", "ssl/openssl.cnf", "locale.alias")}
found |= {f"/root/{name}" for name in (".bashrc", ".profile", ".bash_profile", ".bash_login", ".inputrc", ".perldb")}
found |= {"/usr/lib/ssl/openssl.cnf", "/usr/share/perl/strict.pm", "/usr/local/lib/libc.so.6", "/usr/python311.zip"}
print(json.dumps(sorted(found)))
"""
"""Prints where the interpreters, the loader and the shells of a root look for code, or for what chooses it."""
PLANT = r"""
import json, os, sys
places, texts = json.load(open("/tmp/places.json")), json.load(open("/tmp/texts.json"))
done = []
for place in places:
    text = next(text for ending, text in texts if place.endswith(ending))
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.lexists(place):
            os.remove(place)
        with open(place, "w") as file:
            file.write(text)
        os.chmod(place, 0o755)
        done.append(place)
    except OSError:
        pass
print(json.dumps(done))
"""
TEXTS = [
    (".pth", f"import posix; posix._exit(0)  # {MARK}\n"),
    (".py", f"import posix; posix._exit(0)  # {MARK}\n"),
    (".zip", MARK),
    ("pyvenv.cfg", f"home = /app/bin\n# {MARK}\n"),
    (".pm", f"exit 0; # {MARK}\n"),
    (".pl", f"exit 0; # {MARK}\n"),
    ("ld.so.preload", f"/app/evil.so # {MARK}\n"),
    ("", f"#!/bin/sh\nexit 0 # {MARK}\n"),
]
SCRIPT = """#!/bin/bash
python3 -I -B /tests/check.py || exit 1
perl -e 'use strict; use warnings; exit(-e "/app/done" ? 0 : 3)' || exit 1
sh -c '[ -e /app/done ]' || exit 1
cat /app/done
"""
FOLDER = {
    "task.toml": '[verifier]\nreward = "exit code"\n',
    "instruction.md": "Make /app/done.\n",
    "tests/test.sh": SCRIPT,
    "tests/check.py": "import os, re, pathlib, sqlite3, ssl\nassert os.path.exists('/app/done')\n",
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def played(folder: Path, *commands: str, **options: object) -> tuple[float, dict[str, object]]:
    """The reward and the info of the only task in a folder after these commands."""
    needs_a_sandbox()
    with gem_core.make("terminal:Folder", tasks=folder, timeout=LONG, **options) as env:
        env.reset(seed=0)
        for command in commands:
            run(env, command)
        return finished(env)


def planted(env: TerminalEnv) -> list[str]:
    """Plant in each place that can be written to, and return those."""
    for name, text in {"places.py": PLACES, "plant.py": PLANT, "texts.json": json.dumps(TEXTS)}.items():
        run(env, f"printf %s {shlex.quote(text)} > /tmp/{name}")
    run(env, f"python3 /tmp/places.py {SYSTEM_PATH} > /tmp/places.json")
    run(
        env,
        "/usr/bin/env python3 -I -S /tmp/plant.py > /tmp/planted.json; rm /tmp/*.py /tmp/texts.json /tmp/places.json",
    )
    shell = env._shell
    assert shell is not None
    places = json.loads(shell.take("/tmp")["/tmp/planted.json"].content)
    assert len(places) > 40, places
    assert {"/etc/ld.so.preload", "/usr/pyvenv.cfg", "/root/.bashrc", "/etc/bash.bashrc"} <= {*places}
    assert any(place.endswith("dist-packages/a.pth") for place in places)
    return places


def test_what_is_planted_where_the_system_looks_pays_nothing(tmp_path: Path) -> None:
    """And does not undo work either: none of it is there in the root of the tests but what lies in judged folders."""
    needs_a_sandbox()
    written(tmp_path, FOLDER)
    with gem_core.make("terminal:Folder", tasks=tmp_path, timeout=LONG) as env:
        assert isinstance(env, TerminalEnv)
        for work, reward in (("true", 0.0), ("touch /app/done", 1.0)):
            env.reset(seed=0)
            run(env, work)
            places = planted(env)
            seen = Root(env)
            assert finished(env)[0] == reward
            there = {path for path, entry in seen.entries.items() if MARK.encode() in entry.content}
            assert not [path for path in there if not path.startswith(tuple(f"{folder}/" for folder in JUDGED))]
            assert [path for path in places if path.startswith("/usr/")], "there was something to carry over"


class Root:
    """What the root of the tests is given, seen on its way there."""

    def __init__(self, env: TerminalEnv) -> None:
        self.entries: dict[str, Entry] = {}
        fresh = env._fresh

        def watched() -> object:
            shell = fresh()
            put = shell.put

            def seen(entries: dict[str, Entry]) -> None:
                self.entries.update(entries)
                put(entries)

            shell.put = seen  # pyright: ignore[reportAttributeAccessIssue]
            return shell

        env._fresh = watched  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "os.execv('/bin/true', ['true'])", "os.kill(0, 9)"])
def test_a_check_that_does_not_come_to_its_end_proves_nothing(tmp_path: Path, end: str) -> None:
    check = f"import os, sys\n{end}\n"
    written(tmp_path, {**FOLDER, "task.toml": '[verifier]\nreward = "check"\n', "tests/check.py": check})
    assert played(tmp_path)[0] == 0.0


def test_a_check_proves_its_end(tmp_path: Path) -> None:
    """With what it prints, with data classes, and isolated."""
    check = (
        "import dataclasses, os, sys\n@dataclasses.dataclass\nclass A:\n    x: int = 1\nassert __name__ == '__main__'\n"
        "assert sys.flags.isolated and sys.flags.no_site and sys.argv == [__file__] == ['/tests/check.py']\n"
        "print('x' * 3_000_000)\nos.close(0)\n"
    )
    written(tmp_path, {**FOLDER, "task.toml": '[verifier]\nreward = "check"\n', "tests/check.py": check})
    assert played(tmp_path) == (1.0, {"success": True, "parsed_action": "<finish></finish>"})


THIEF = r"""
import os, re, sys
for pid in [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
    for name in ("environ", "cmdline", *(f"fd/{number}" for number in range(20))):
        try:
            file = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_NONBLOCK)
            text = os.read(file, 1 << 20)
        except OSError:
            continue
        for word in re.findall(rb"(?:want:)?[0-9a-f]{24,32}", text):
            print(word.decode(), flush=True)
    try:
        memory = open(f"/proc/{pid}/mem", "rb", buffering=0)
        for line in open(f"/proc/{pid}/maps"):
            first, last = (int(one, 16) for one in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                memory.seek(first)
                for word in re.findall(rb"(?:want:)?[0-9a-f]{24,32}", memory.read(last - first)):
                    print(word.decode(), flush=True)
    except (OSError, ValueError, OverflowError):
        pass
"""
FORGER = r"""
import os
text = b"".join(b"%d 0\n" % number for number in range(1, 50))
for pid in [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
    for number in range(300):
        try:
            file = os.open(f"/proc/{pid}/fd/{number}", os.O_WRONLY | os.O_NONBLOCK)
            os.write(file, text)
        except OSError:
            pass
"""
READER = {
    **FOLDER,
    "tests/check.py": "import os, shutil, subprocess\nshutil.rmtree('/tests')\nword = os.urandom(12).hex()\n"
    "os.environ['WANTED'] = wanted = 'want:' + word\nkept = open('/tmp/wanted', 'w+'); os.remove('/tmp/wanted')\n"
    "print(wanted, file=kept, flush=True)\nclean = {k: v for k, v in os.environ.items() if k != 'WANTED'}\n"
    "ran = subprocess.run(['python3', '/app/answer.py'], capture_output=True, text=True, timeout=120, env=clean)\n"
    "assert wanted in ran.stdout or os.path.exists('/app/honest')\n",
}
RULES = {"exit code": "exec python3 -I -B /tests/check.py\n", "check": ""}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("program", [THIEF, FORGER], ids=["reads", "writes"])
def test_a_program_under_test_does_not_reach_its_check(tmp_path: Path, rule: str, program: str) -> None:
    task = {"task.toml": f'[verifier]\nreward = "{rule}"\n', "tests/test.sh": RULES[rule]}
    written(tmp_path, {**READER, **task})
    put = f"printf %s {shlex.quote(program)} > /app/answer.py"
    assert played(tmp_path, put)[0] == 0.0
    assert played(tmp_path, put, "touch /app/honest")[0] == 1.0


def test_a_program_under_test_cannot_prove_in_place_of_its_check(tmp_path: Path) -> None:
    """It prints all it finds to where the check prints, and ends the check."""
    check = "import subprocess\nsubprocess.run(['python3', '/app/answer.py'], timeout=120)\nassert False\n"
    written(tmp_path, {**FOLDER, "task.toml": '[verifier]\nreward = "check"\n', "tests/check.py": check})
    kills = "import signal\nos.kill(os.getppid(), signal.SIGTERM)\n"
    assert played(tmp_path, f"printf %s {shlex.quote(THIEF + kills)} > /app/answer.py")[0] == 0.0


def test_a_task_names_what_it_judges(tmp_path: Path) -> None:
    script = "[ -e /usr/local/bin/tool ] && [ -e /etc/tool.conf ] && [ ! -e /app/x ] && [ ! -e /etc/other ]\n"
    settings = '[verifier]\nreward = "exit code"\njudged = ["/usr/local/bin/tool", "/etc/tool.conf", "/none"]\n'
    written(tmp_path, {**FOLDER, "task.toml": settings, "tests/test.sh": script})
    work = "mkdir -p /usr/local/bin; touch /usr/local/bin/tool /usr/local/bin/python3 /etc/tool.conf /etc/other /app/x"
    assert played(tmp_path, work)[0] == 1.0
    assert played(tmp_path, "true")[0] == 0.0


def test_the_files_of_the_start_are_judged_wherever_they_lie(tmp_path: Path) -> None:
    """And those in the system's folders are as they were."""
    dockerfile = "FROM debian\nCOPY a.conf /etc/a.conf\nCOPY tool /usr/local/bin/tool\nCOPY data /data/deep\n"
    script = '[ "$(cat /etc/a.conf /data/deep)" = "new new" ] && [ "$(cat /usr/local/bin/tool)" = old ]\n'
    files = {f"environment/{name}": "old" for name in ("a.conf", "tool", "data")}
    written(tmp_path, {**FOLDER, **files, "environment/Dockerfile": dockerfile, "tests/test.sh": script})
    assert played(tmp_path, "printf 'new ' > /etc/a.conf; printf new | tee /data/deep > /usr/local/bin/tool")[0] == 1.0


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    """A judged folder that has become a link, and one above it, carry nothing to another place."""
    written(tmp_path, {**FOLDER, "tests/test.sh": "[ ! -e /usr/local/lib/new ] && [ ! -e /etc/new ]\n"})
    moved = (
        "mkdir -p /usr/local/lib; touch /usr/local/lib/new /etc/new; rm -rf /srv /opt /home; ln -s /usr/local/lib /srv"
    )
    assert played(tmp_path, f"{moved}; ln -s /etc /opt; ln -s /usr/local /home")[0] == 1.0


def test_what_is_judged_by_default() -> None:
    assert judged(None, "/app", (), "x") == JUDGED
    assert judged(None, "/work", ("/work/a", "/etc/b", "/usr/c", "/data/d"), "x") == (
        *JUDGED[:1], "/data/d", "/etc/b", *JUDGED[1:], "/work",
    )  # fmt: skip
    assert judged(None, "/usr/src/app", (), "x") == (*JUDGED[:-2], *JUDGED[-2:-1], "/usr/src/app", JUDGED[-1])
    assert judged(["/"], "", (), "x", containers=True) == ("/",)


def test_variables_that_choose_code_are_not_of_the_tests() -> None:
    own = {"GREETING": "a", "PATH": "/app", "LANG": "C", "ENVIRONMENT": "b", "LDAP": "c"}
    others = dict.fromkeys(
        ("PYTHONPATH", "PYTHONHOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "PERL5LIB", "PERL5OPT"), "/app"
    )
    task = TerminalTask("x", "", {}, {}, "/tests/test.sh", "exit code", variables={**own, **others})
    assert variables_of(task) == {**own, "PYTHONNOUSERSITE": "1"}


def test_a_summary_that_was_cut_is_none(tmp_path: Path) -> None:
    """Tests that print more than is kept could hide a failure in what is left out."""
    long = "head -c 800000 /dev/zero | tr '\\0' x; echo"
    script = f"echo PASSED a; {long}; echo FAILED b; {long}\n"
    bench = {"task.yaml": "instruction: x\nparser_name: pytest\n", "run-tests.sh": script, "tests/x": ""}
    written(tmp_path, bench)
    reward, info = played(tmp_path)
    assert reward == 0.0
    assert "printed more than" in str(info["test_problem"])


@pytest.fixture
def sandbox() -> Iterator[LocalSandbox]:
    needs_a_sandbox()
    with LocalSandbox(limits=Limits(wall=LONG)) as one:
        yield one


def test_a_shell_that_has_ended_gets_no_verdict_of_the_tests(sandbox: LocalSandbox) -> None:
    """Neither a failure of the environment."""
    task = TerminalTask("x", "", {}, {"/tests/check.py": Entry(b"")}, "/tests/check.py", "check")
    with sandbox.shell() as shell:
        shell.run("kill -9 2")
        verdict = verify(task, shell, lambda: sandbox.shell(guarded=True, variables={"PATH": SYSTEM_PATH}))
    assert (verdict.reward, verdict.solved) == (0.0, False)
    assert "has ended" in str(verdict.problem)
