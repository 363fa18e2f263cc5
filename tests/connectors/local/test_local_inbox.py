"""The worker's inbox: orders in order, and what the reading thread asks of it while the model's thread takes."""

from __future__ import annotations

import sys
import threading

import pytest

from connectors.local.inbox import AUDIO_LIMIT, Inbox
from connectors.local.wire import Do
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Cancel

BLOCKS = [Do(session, AppendAudio(pcm=b"")) for session in range(1, 5)]


@pytest.fixture
def impatient():
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("impatient")
def test_the_reading_thread_may_look_while_the_other_takes():
    inbox, done = Inbox(SystemClock()), threading.Event()

    def take():
        while not done.is_set():
            for block in BLOCKS:
                inbox.put(block)
            for _ in BLOCKS:
                inbox.take(None)

    taking = threading.Thread(target=take)
    taking.start()
    try:
        assert not any(inbox.full for _ in range(60_000))
    finally:
        done.set()
        taking.join()


def test_full_is_of_one_session_and_only_of_audio():
    inbox = Inbox(SystemClock())
    for _ in range(AUDIO_LIMIT):
        inbox.put(BLOCKS[0])
        inbox.put(BLOCKS[1])
        inbox.put(Do(1, Cancel()))
    assert not inbox.full
    inbox.put(BLOCKS[0])
    assert inbox.full
    assert inbox.take(None) is BLOCKS[0]
    assert not inbox.full
