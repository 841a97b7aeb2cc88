"""Tests that cannot be certain run once more, and CONTRIBUTING.md lists them with the reason."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BEGIN = "<!-- The list of uncertain tests, as tests/lint/test_uncertain.py prints it. -->\n"


def listed() -> str:
    """The list of CONTRIBUTING.md: each reason, and below it the tests by file."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for path in sorted([*REPOSITORY.glob("tests/**/*.py"), *REPOSITORY.glob("*/*/tests/**/*.py")]):
        for reason, test in marked(ast.parse(path.read_text())):
            file = str(path.relative_to(REPOSITORY))
            reasons.setdefault(reason, {}).setdefault(file, []).append(test)
    lines: list[str] = []
    for reason in sorted(reasons):
        lines.append(f"- {reason}:")
        for file, tests in reasons[reason].items():
            lines.append(f"  - `{file}`: {', '.join(tests)}")
    return "\n".join(lines) + "\n"


def marked(module: ast.Module) -> Iterator[tuple[str, str]]:
    """The reason and the name of each marked test of a file; of a marked file, "all"."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            places, name = node.decorator_list, f"`{node.name}`"
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            places, name = [node.value], "all"
        else:
            continue
        for place in places:
            for call in ast.walk(place):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.uncertain":
                    yield ast.literal_eval(call.args[0]), name


def test_contributing_lists_all_of_them() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text()
    found = page.partition(BEGIN)[2].partition("\n## ")[0]
    assert found.strip() == listed().strip(), f"write this below {BEGIN}\n{listed()}"


TESTS = """
import pytest

tries = []

@pytest.fixture(scope="module")
def run():
    tries.append(1)
    return len(tries)

@pytest.mark.uncertain("the first run fails")
def test_lucky(run):
    assert run == 2

@pytest.mark.timeout(1)
@pytest.mark.uncertain("it never ends")
def test_hopeless(run):
    while True:
        pass

def test_certain(run):
    assert run == 2
"""


def run_pytest(folder: Path, tests: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    shutil.copy(REPOSITORY / "conftest.py", folder)
    (folder / "tests" / "test_these.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "--timeout-method", "signal", "--tb", "line", *arguments, "tests"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("arguments", [[], ["-n", "1"]])
def test_an_uncertain_test_has_a_second_try_with_new_fixtures(arguments: list[str], tmp_path: Path) -> None:
    done = run_pytest(tmp_path, TESTS, *arguments)
    assert done.returncode == 1
    assert "RERUN tests/test_these.py::test_lucky (call)" in done.stdout
    assert "RERUN tests/test_these.py::test_hopeless (call)" in done.stdout
    assert "FAILED tests/test_these.py::test_lucky" not in done.stdout
    assert "FAILED tests/test_these.py::test_hopeless" in done.stdout, "each try has the time limit of the test"
    # The second try of `test_hopeless` made the run of the file anew.
    assert "FAILED tests/test_these.py::test_certain - assert 3 == 2" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2 failed, 1 passed, 2 rerun in ")


def test_a_marker_has_its_reason(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "import pytest\n\n@pytest.mark.uncertain\ndef test_it(): ...\n")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_it: write @pytest.mark.uncertain('why it can fail by chance')" in done.stderr
