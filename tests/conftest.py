"""Rules for the whole suite: under CI, a skipped test that is not on the project's list fails."""

from __future__ import annotations

import fnmatch
import os
import tomllib
from pathlib import Path

import pytest

LIST = Path(__file__).parent / "expected_skips.toml"


def _expected() -> list[tuple[str, str]]:
    """(pattern of test ids, pattern of the reason) of every skip that CI accepts."""
    entries = tomllib.loads(LIST.read_text()).get("skip", [])
    return [(entry["test"], entry["reason"]) for entry in entries]


def unlisted(nodeid: str, reason: str, expected: list[tuple[str, str]]) -> bool:
    """Whether a skip is missing on the list."""
    return not any(fnmatch.fnmatch(nodeid, test) and fnmatch.fnmatch(reason, why) for test, why in expected)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    longrepr = report.longrepr
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ")


def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = _reason(report)
        if unlisted(report.nodeid, reason, _expected()):
            report.outcome = "failed"
            report.longrepr = f"skipped under CI and not listed in {LIST.name}: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    _fail(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    _fail(report)
    return report
