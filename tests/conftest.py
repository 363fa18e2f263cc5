"""Rules for the whole suite: under CI a skipped test that is not on the project's list fails; exact tests run alone."""

from __future__ import annotations

import fnmatch
import os
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.room import Room

LIST = Path(__file__).parent / "expected_skips.toml"
ROOM = pytest.StashKey[Room]()
FOLDER = pytest.StashKey[tempfile.TemporaryDirectory[str]]()
ORDER = ("exact", "interop", "browser", "loopback")
"""Markers of the tests that take longest, in the order in which several workers begin them; all others follow."""


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
        if unlisted(_ungrouped(report.nodeid), reason, _expected()):
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


# --- several workers (`pytest --numprocesses N --dist loadgroup`) -------------------------------------------------


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker that is about to start where the room is."""
    config = node.config
    if FOLDER not in config.stash:
        config.stash[FOLDER] = tempfile.TemporaryDirectory(prefix="firstpacket-tests-")
    node.workerinput["room"] = config.stash[FOLDER].name


def pytest_configure(config: pytest.Config) -> None:
    if (told := getattr(config, "workerinput", None)) is not None:
        config.stash[ROOM] = Room(Path(told["room"]))


def pytest_unconfigure(config: pytest.Config) -> None:
    if (room := config.stash.get(ROOM, None)) is not None:
        room.close()
    if (folder := config.stash.get(FOLDER, None)) is not None:
        folder.cleanup()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Which tests stay together in one worker, and who begins.

    Exact tests stay together, so that the room is emptied for them once. Tests on the loopback mostly wait and share
    nothing: they are dealt out one by one. Everything else stays with its module, for the sake of what that prepares.
    """
    if ROOM not in config.stash:
        return
    for item in items:
        if _has(item, "exact"):
            item.add_marker(pytest.mark.xdist_group("exact"))
        elif not _has(item, "xdist_group") and (_has(item, "interop", "browser") or not _has(item, "loopback")):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: next((at for at, name in enumerate(ORDER) if _has(item, name)), len(ORDER)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Around everything else, so that waiting for the room counts on no test's time limit."""
    if (room := item.config.stash.get(ROOM, None)) is None:
        return (yield)
    room.enter(alone=_has(item, "exact"))
    try:
        return (yield)
    finally:
        room.leave(next_alone=nextitem is not None and _has(nextitem, "exact"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Names a test as one may call it, without the group that xdist writes behind."""
    if hasattr(report, "node"):
        report.nodeid = _ungrouped(report.nodeid)


def _has(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def _ungrouped(nodeid: str) -> str:
    """`nodeid` without `@group`; an `@` inside of a parameter stays."""
    at = nodeid.rfind("@")
    return nodeid[:at] if at > max(nodeid.rfind("]"), nodeid.rfind("::")) else nodeid
