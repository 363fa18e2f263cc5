"""Rules for the whole suite: under CI a skipped test that is not on the project's list fails; exact tests run alone."""

from __future__ import annotations

import fnmatch
import functools
import gc
import json
import os
import signal
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.room import Room

LIST = Path(__file__).parent / "expected_skips.toml"
ROOM = pytest.StashKey[Room]()
GROUPS = "groups.json"
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


def pytest_collection_finish() -> None:
    """The suite itself is a large heap, and each measured session collects: it must not be walked every time."""
    gc.collect()
    gc.freeze()


# --- several workers (`pytest --numprocesses N`) ----------------------------------------------------------------


class Dealer(LoadScopeScheduling):
    """Deals tests out in the order of collection; a group, as the workers wrote it down, stays in one worker."""

    @functools.cached_property
    def _groups(self) -> dict[str, str]:
        groups: dict[str, str] = json.loads((self._folder / GROUPS).read_text("utf-8"))
        return groups

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._folder = Path(config.stash[FOLDER].name)

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid, nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealer:
    return Dealer(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker that is about to start where the room is."""
    node.workerinput["room"] = node.config.stash[FOLDER].name


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background: what we start would ignore it too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if (told := getattr(config, "workerinput", None)) is not None:
        config.stash[ROOM] = Room(Path(told["room"]))
    elif config.getoption("numprocesses", None):
        config.stash[FOLDER] = tempfile.TemporaryDirectory(prefix="firstpacket-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if (room := config.stash.get(ROOM, None)) is not None:
        room.close()
    if (folder := config.stash.get(FOLDER, None)) is not None:
        folder.cleanup()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Who begins, and which tests stay together in one worker.

    Exact tests stay together, so that the room is emptied for them once. Tests on the loopback mostly wait: they are
    dealt out one by one unless they share a fixture. All others stay with their module, for what that prepares.
    """
    if (room := config.stash.get(ROOM, None)) is None:
        return
    items.sort(key=lambda item: next((at for at, name in enumerate(ORDER) if _has(item, name)), len(ORDER)))
    groups: dict[str, str] = {}
    for item in items:
        if _has(item, "exact"):
            groups[item.nodeid] = "exact"
        elif (asked := item.get_closest_marker("xdist_group")) is not None:
            groups[item.nodeid] = asked.args[0]
        elif _has(item, "interop", "browser") or not _has(item, "loopback") or _shares(item):
            groups[item.nodeid] = item.nodeid.partition("::")[0]
    mine = room.folder / f"{config.workerinput['workerid']}.json"  # type: ignore[attr-defined]
    mine.write_text(json.dumps(groups), "utf-8")
    mine.replace(room.folder / GROUPS)  # the same from every worker


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


def _has(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) for name in names)


def _shares(item: Any) -> bool:
    """Whether the test has a fixture in common with others of its module."""
    found = item._fixtureinfo.name2fixturedefs.values()
    return any(fixture.scope in ("class", "module", "package") for fixtures in found for fixture in fixtures)
