"""Quiet: the collector's hold is counted, priority tells what it got, run delay is read or absent."""

from __future__ import annotations

import gc
import os
import weakref

import pytest

from harness.run.quiet import CollectionHold, RunDelay, priority

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def collector():
    """Begin with nothing frozen; the suite's own heap is frozen again afterwards (`tests/conftest.py`)."""
    gc.unfreeze()
    yield
    gc.enable()
    gc.collect()
    gc.freeze()


class Knot:
    def __init__(self):
        self.me = self


def test_hold_is_counted_and_collects_when_the_last_one_leaves():
    hold = CollectionHold()
    with hold:
        knot = weakref.ref(Knot())
        with hold:
            assert not gc.isenabled()
            assert hold.depth == 2
        assert not gc.isenabled()
        assert hold.held_since_collection == 1
        assert knot() is not None
        assert gc.get_freeze_count() > 0
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert knot() is None
    assert hold.held_since_collection == 0


def test_hold_leaves_a_collector_off_that_was_off():
    gc.disable()
    with CollectionHold():
        pass
    assert not gc.isenabled()


def test_hold_leaves_frozen_what_was_frozen_before():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with CollectionHold():
        knot = weakref.ref(Knot())
        assert gc.get_freeze_count() == frozen
    assert gc.get_freeze_count() == frozen
    assert knot() is None
    assert gc.isenabled()


def test_hold_survives_an_error():
    hold = CollectionHold()
    with pytest.raises(ZeroDivisionError), hold:
        raise ZeroDivisionError
    assert gc.isenabled()
    assert hold.depth == 0


def test_normal_priority_touches_nothing():
    with priority("normal") as got:
        assert (got.got, got.detail) == ("normal", "as started")


@pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="Linux only")
@pytest.mark.parametrize("asked", ["nice", "realtime"])
def test_priority_says_what_it_got_and_goes_back(asked):
    before = (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
    with priority(asked) as got:
        assert got.asked == asked
        policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
        assert (got.got == "realtime") == (policy == os.SCHED_FIFO)
        if got.got == "nice":
            assert os.getpriority(os.PRIO_PROCESS, 0) == -20
    assert (os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, os.getpriority(os.PRIO_PROCESS, 0)) == before


@pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="Linux only")
def test_a_refused_priority_is_told_not_raised(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with priority("realtime") as got:
        assert got.got == "normal"
        assert "SCHED_FIFO: Operation not permitted" in got.detail
        assert "nice -20: Operation not permitted" in got.detail


def test_run_delay_reads_the_second_field(tmp_path):
    path = tmp_path / "schedstat"
    path.write_text("100 4242 7\n")
    with RunDelay(path) as delay:
        assert delay.read_ns() == 4242
        path.write_text("100 5000 8\n")
        assert delay.read_ns() == 5000


@pytest.mark.parametrize("content", [None, "", "12\n", "a b c\n"])
def test_run_delay_is_absent_where_the_system_does_not_tell(tmp_path, content):
    path = tmp_path / "schedstat"
    if content is not None:
        path.write_text(content)
    with RunDelay(path) as delay:
        assert delay.read_ns() is None
