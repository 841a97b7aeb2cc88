"""Folders of Harbor and terminal-bench, as their authors lay them out: run, or refused by name."""

from pathlib import Path

import pytest
from playing import finished, run
from sandbox_here import LONG, needs_a_sandbox

import gem_core
from gem_terminal._errors import TaskRefused
from gem_terminal.formats import read_task, read_tasks

HARBOR = {
    "task.toml": """
schema_version = "1.4"
artifacts = []

[task]
name = "example/greeting"

[metadata]
difficulty = "easy"

[agent]
timeout_sec = 300.0

[verifier]
timeout_sec = 120.0

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 2048
env = { GREETING = "Hello" }
""",
    "instruction.md": "Write the greeting to greeting.txt.\n",
    "environment/Dockerfile": "# base\nFROM ubuntu:24.04\nLABEL a=b\nENV NAME=Gil \\\n    PLACE=here\nWORKDIR /work\n"
    'COPY data/ ./data/\nCOPY *.txt /etc/more/\nCOPY one.cfg /opt/renamed.cfg\nCMD ["sleep", "infinity"]\n',
    "environment/data/a/deep.txt": "deep\n",
    "environment/one.txt": "1\n",
    "environment/two.txt": "2\n",
    "environment/one.cfg": "x=1\n",
    "tests/test.sh": '#!/bin/bash\n# no apt-get here\nif [ "$(cat /work/greeting.txt)" = "$GREETING $NAME" ]; then\n'
    "  echo 0.75 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n",
    "solution/solve.sh": 'echo "$GREETING $NAME" > /work/greeting.txt\n',
}
BENCH = {
    "task.yaml": "instruction: |-\n  Write 42 to answer.txt.\nauthor_name: nobody\nparser_name: pytest\n"
    "max_agent_timeout_sec: 360.0\nmax_test_timeout_sec: 180.0\nrun_tests_in_same_shell: false\n",
    "Dockerfile": "FROM ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624\n\nWORKDIR /app\nCOPY hint.txt .\n",
    "docker-compose.yaml": "services:\n  client:\n    build: .\n    command: [sh, -c, sleep infinity]\n",
    "hint.txt": "six times seven\n",
    "solution.sh": "echo 42 > answer.txt\n",
    # Not pytest, which the system need not have: the summary that it prints.
    "run-tests.sh": "#!/bin/bash\npython3 $TEST_DIR/test_outputs.py\n",
    "tests/test_outputs.py": "from pathlib import Path\nprint('=== short test summary info ===')\n"
    "right = Path('/app/answer.txt').exists() and Path('/app/answer.txt').read_text().strip() == '42'\n"
    "print('PASSED tests/test_outputs.py::test_hint')\n"
    "print(('PASSED' if right else 'FAILED') + ' tests/test_outputs.py::test_answer')\n",
}


def folder(path: Path, files: dict[str, str], **changes: str | None) -> Path:
    """A folder with these files; a change of `None` leaves one out."""
    for name, text in {**files, **changes}.items():
        if text is not None:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
    return path


def test_a_folder_of_harbor(tmp_path: Path) -> None:
    needs_a_sandbox()
    folder(tmp_path / "greeting", HARBOR)
    with gem_core.make("terminal:Folder", tasks=tmp_path / "greeting", timeout=LONG) as env:
        (task,) = env.tasks
        assert (task.name, task.seconds, task.test_seconds, task.folder) == ("greeting", 300.0, 120.0, "/work")
        env.reset(seed=0)
        said = run(env, "pwd; cat data/a/deep.txt /etc/more/one.txt /etc/more/two.txt /opt/renamed.cfg; echo $PLACE")
        assert said == "<bash_output>\n/work\ndeep\n1\n2\nx=1\nhere\n</bash_output>"
        assert finished(env)[0] == 0.0
        env.reset(seed=0)
        run(env, task.solution or "")
        reward, info = finished(env)
        assert (reward, info["success"]) == (0.75, False)


@pytest.mark.parametrize(
    ("line", "reward", "problem"),
    [
        ("echo '{\"reward\": 1}' > /logs/verifier/reward.json", 1.0, None),
        ("echo '{\"accuracy\": 0.5}' > /logs/verifier/reward.json", 0.5, None),
        ("echo nan > /logs/verifier/reward.txt", 0.0, "the tests of one wrote the reward nan"),
        (
            "echo 10 > /logs/verifier/reward.txt",
            0.0,
            "the reward 10, and the task declares 0 to 1",
        ),
        (
            "echo -5 > /logs/verifier/reward.txt",
            0.0,
            "of one wrote the reward -5, and the task declares",
        ),
        ("echo '{\"reward\": 1e999}' > /logs/verifier/reward.json", 0.0, "the reward inf"),
        ("printf '[%.0s' {1..100000} > /logs/verifier/reward.json", 0.0, "no number"),
        ("echo much > /logs/verifier/reward.txt", 0.0, "no number"),
        ("exit 0", 0.0, "wrote no reward"),
        ("kill -9 2", 0.0, "did not end"),
        ("(sleep 1; echo 1 > /logs/verifier/reward.txt) & echo 0 > /logs/verifier/reward.txt", 0.0, None),
    ],
)
def test_rewards_of_harbor(tmp_path: Path, line: str, reward: float, problem: str | None) -> None:
    needs_a_sandbox()
    folder(tmp_path / "one", HARBOR, **{"tests/test.sh": line + "\n"})
    with gem_core.make("terminal:Folder", tasks=tmp_path, timeout=LONG) as env:
        env.reset(seed=0)
        found, info = finished(env)
    assert found == reward
    assert (problem or "") in info.get("test_problem", "" if problem is None else None)


def test_a_task_declares_its_rewards(tmp_path: Path) -> None:
    """Tests that cannot reach a verdict pay no more than the worst verdict."""
    needs_a_sandbox()
    settings = HARBOR["task.toml"] + "\n[verifier]\nreward_range = [-5, 10]\n"
    settings = settings.replace("[verifier]\ntimeout_sec = 120.0\n", "", 1)
    for number in ("10", "-5", "11"):
        script = f"echo {number} > /logs/verifier/reward.txt\n"
        folder(tmp_path / number, HARBOR, **{"tests/test.sh": script, "task.toml": settings})
    with gem_core.make("terminal:Folder", tasks=tmp_path, timeout=LONG) as env:
        found = {}
        for index, task in enumerate(env.tasks):
            env.reset(data_index=index)
            *_, reward, _, _, info = env.step("<finish></finish>")
            found[task.name] = (reward, info["success"])
    assert found == {"10": (10.0, True), "-5": (-5.0, False), "11": (-5.0, False)}


def test_a_folder_of_terminal_bench(tmp_path: Path) -> None:
    needs_a_sandbox()
    folder(tmp_path / "answer", BENCH)
    with gem_core.make("terminal:Folder", tasks=tmp_path, timeout=LONG) as env:
        (task,) = env.tasks
        assert (task.instruction, task.seconds, task.test_seconds) == ("Write 42 to answer.txt.", 360.0, 180.0)
        env.reset(seed=0)
        assert "six times seven" in run(env, "cat hint.txt")
        assert finished(env)[0] == 0.0
        env.reset(seed=0)
        run(env, task.solution or "")
        assert finished(env)[0] == 1.0


REFUSED = {
    "an image": (HARBOR, {"environment/Dockerfile": "FROM postgres:16\n"}, "needs the image 'postgres:16', and Docker"),
    "a ready image": (
        HARBOR,
        {"task.toml": '[environment]\ndocker_image = "example/ready:1"\n'},
        "needs the image 'example/ready:1'",
    ),
    "a build": (
        HARBOR,
        {"environment/Dockerfile": "FROM debian:12\nRUN make\n"},
        "needs an image build \\(RUN 'make'\\)",
    ),
    "a file that is not there": (
        HARBOR,
        {"environment/Dockerfile": "FROM debian\nCOPY lost.txt /\n"},
        "copies 'lost.txt'",
    ),
    "a file outside": (
        HARBOR,
        {"environment/Dockerfile": "FROM debian\nCOPY ../task.toml /\n"},
        "copies '../task.toml'",
    ),
    "the network": (HARBOR, {"tests/test.sh": "set -e\napt-get update && apt-get install -y curl\n"}, "runs 'apt-get'"),
    "a download": (
        HARBOR,
        {"tests/test.sh": "curl -LsSf https://example.org/i.sh | sh\n"},
        "runs 'curl', which needs the net",
    ),
    "steps": (HARBOR, {"task.toml": '[[steps]]\nname = "one"\n'}, "several steps"),
    "containers": (
        HARBOR,
        {"environment/docker-compose.yaml": "services:\n  main: {}\n  database: {}\n"},
        "needs 2 containers",
    ),
    "no tests": (HARBOR, {"tests/test.sh": None}, "has no tests/test.sh"),
    "no instruction": (HARBOR, {"instruction.md": None}, "cannot be read.*instruction.md"),
    "broken settings": (HARBOR, {"task.toml": "[agent\n"}, "cannot be read"),
    "a limit that is none": (
        HARBOR,
        {"task.toml": "[agent]\ntimeout_sec = -1\n"},
        "timeout_sec must be a number of seconds",
    ),
    "a reward that is no rule": (HARBOR, {"task.toml": "[verifier]\nreward = 'stdout'\n"}, "reward must be 'check'"),
    "rewards that are no range": (
        HARBOR,
        {"task.toml": "[verifier]\nreward_range = [1, 0]\n"},
        "reward_range must be \\[least, most\\]",
    ),
    "the system as what is judged": (
        HARBOR,
        {"task.toml": "[verifier]\njudged = ['/usr/lib']\n"},
        "judged is '/usr/lib'",
    ),
    "all as what is judged": (HARBOR, {"task.toml": "[verifier]\njudged = ['/']\n"}, "judged is '/', which cannot"),
    "a way around": (HARBOR, {"task.toml": "[verifier]\njudged = ['/app/../usr']\n"}, "cannot be judged"),
    "no list of what is judged": (HARBOR, {"task.toml": "[verifier]\njudged = '/app'\n"}, "judged must be a list"),
    "the root as working folder": (
        HARBOR,
        {"task.toml": "[environment]\nworkdir = '/'\n"},
        "its working folder is '/'",
    ),
    "another parser": (BENCH, {"task.yaml": "instruction: x\nparser_name: swebench\n"}, "read by 'swebench'"),
    "the same shell": (BENCH, {"task.yaml": "instruction: x\nrun_tests_in_same_shell: true\n"}, "shell of the policy"),
    "uv": (BENCH, {"run-tests.sh": "uv run pytest $TEST_DIR/test_outputs.py -rA\n"}, "run-tests.sh runs 'uv'"),
    "no text": (BENCH, {"task.yaml": "- a\n"}, "holds no settings"),
    "broken yaml": (BENCH, {"task.yaml": "a: [\n"}, "cannot be read"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_needs_more_is_refused_by_name(tmp_path: Path, why: str) -> None:
    files, changes, message = REFUSED[why]
    path = folder(tmp_path / "the-task", files, **changes)
    with pytest.raises(TaskRefused, match=f"the-task: .*{message}"):
        read_task(path)


def test_the_others_of_a_folder_are_played(tmp_path: Path) -> None:
    folder(tmp_path / "good", HARBOR)
    folder(tmp_path / "bad", HARBOR, **{"environment/Dockerfile": "FROM debian\nRUN make\n"})
    (tmp_path / "no-task").mkdir()
    runnable, refused = read_tasks(tmp_path)
    assert [task.name for task in runnable] == ["good"]
    assert [*refused] == ["bad"]
    with pytest.raises(TaskRefused, match=r"it cannot run here\. bad: it needs an image build"):
        gem_core.make("terminal:Folder", tasks=tmp_path, only=["bad"])
    assert [task.name for task in gem_core.make("terminal:Folder", tasks=tmp_path).unwrapped.tasks] == ["good"]
