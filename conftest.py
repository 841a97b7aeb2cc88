"""Shared by all tests: a second try for tests that cannot be certain, and no test that is in a hurry.

`@pytest.mark.uncertain("why")` marks a test that load or the luck of sampling can fail. If it fails, it runs once more,
with new fixtures of all scopes, because often a fixture is what failed: a training run. The end of the output names it.
"""

import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol  # pytest has no public way to run a test once more
from hypothesis import settings

# A shell that starts pytest in the background has Ctrl-C ignored in it, and in all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine makes no test wrong, and no test fails for the luck of its examples.
# `pytest --hypothesis-profile=new-examples` looks for others.
settings.register_profile("same-examples", deadline=None, derandomize=True)
settings.register_profile("new-examples", deadline=None)
settings.load_profile("same-examples")

RERUN = "rerun"
TIME_LIMIT = pytest.StashKey[Any]()


@pytest.fixture(scope="module", autouse=True)
def _grading_ends_with_its_tests() -> Iterator[None]:
    """Other tests look for processes that were left behind."""
    yield
    if grading := sys.modules.get("gem_grading._grading"):
        grading.close_server()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every marker has its reason."""
    for item in items:
        for marker in item.iter_markers("uncertain"):
            if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], str):
                raise pytest.UsageError(f"{item.nodeid}: write @pytest.mark.uncertain('why it can fail by chance')")


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Keep the time limit of a test for its second try."""
    item.stash[TIME_LIMIT] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run an uncertain test, and once more if it fails."""
    if not item.get_closest_marker("uncertain"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = [report for report in reports if report.failed]
    if failed:
        _log(item, [_as_rerun(report) for report in failed])
        ended = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(None), "teardown")
        if item.stash.get(TIME_LIMIT, None):  # the timer of the first try may have gone off
            item.config.hook.pytest_timeout_set_timer(item=item, settings=item.stash[TIME_LIMIT])
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if ended.excinfo:
            reports.append(item.ihook.pytest_runtest_makereport(item=item, call=ended))
    _log(item, reports)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _as_rerun(report: pytest.TestReport) -> pytest.TestReport:
    report.outcome = RERUN  # type: ignore[assignment]
    return report


def _log(item: pytest.Item, reports: list[pytest.TestReport]) -> None:
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    return (RERUN, "R", ("RERUN", {"yellow": True})) if report.outcome == RERUN else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the tests that ran once more, and show how they failed the first time."""
    reports = terminalreporter.stats.get(RERUN, [])
    if reports:
        terminalreporter.section("uncertain tests that failed and ran once more", yellow=True)
    for report in reports:
        terminalreporter.line(f"RERUN {report.nodeid} ({report.when})", yellow=True)
        report.toterminal(terminalreporter._tw)
