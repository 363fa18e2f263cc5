"""The process that hears: found across the pipe as beside it, never waited for, and missed aloud when it is gone."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core.audio import NS_PER_MS, int16_to_pcm16
from harness.core.clock import SystemClock
from harness.run.ear_channel import Conclude, Concluded, Flush, Forget, Sound, Started, for_ear, from_ear
from harness.run.ear_desk import STARTS, EarDesk
from harness.run.ear_process import Room
from harness.run.pacer import Pacer
from scenarios.pack import load_pack
from tests.run.fakes import InlineDesk

RATE = 24_000
SHORT = np.zeros(480, dtype=np.int16)


class Ear:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.why = ""
        self.drops = 0
        self.changed = asyncio.Event()

    def told(self, message: object) -> None:
        self.calls.append(message)
        self.changed.set()

    def lost(self, why: str) -> None:
        self.why = why
        self.changed.set()

    def dropped(self) -> None:
        self.drops += 1

    async def until(self, done) -> None:
        async with asyncio.timeout(60):
            while not done():
                self.changed.clear()
                await self.changed.wait()


def sound(number: int, samples: np.ndarray, start_ns: int = 0) -> Sound:
    return Sound(number, 0, RATE, len(samples), start_ns, True, int16_to_pcm16(samples))


def with_desk(main, **options) -> None:
    async def run() -> None:
        pacer = Pacer(SystemClock())
        desk = EarDesk(pacer, **options)
        try:
            await desk.start()
            await main(desk, pacer)
        finally:
            await desk.end()
            pacer.close()

    asyncio.run(run())


def test_what_the_process_finds_is_what_a_listener_beside_us_finds() -> None:
    clip = next(each for each in load_pack("queries").clips if each.id == "en-14").at_rate(RATE)
    messages = [sound(0, clip.samples, 7 * NS_PER_MS), Conclude(0, 0, 7 * NS_PER_MS + 10**10, True)]
    beside, inline = Ear(), InlineDesk()
    inline.open(beside)
    for each in messages:
        inline.send(each)

    async def main(desk: EarDesk, pacer: Pacer) -> None:
        ear = Ear()
        assert desk.open(ear) == 0
        for each in messages:
            desk.send(each)
        assert desk.behind_ns() > 0
        await ear.until(lambda: any(isinstance(each, Concluded) for each in ear.calls))
        assert ear.calls == beside.calls
        assert isinstance(ear.calls[0], Started)
        desk.close(0)
        async with asyncio.timeout(60):
            while desk.behind_ns():
                await pacer.until(pacer.clock.now_ns() + 20 * NS_PER_MS)

    with_desk(main)


def test_a_process_that_dies_leaves_its_ears_deaf_and_the_next_session_gets_another() -> None:
    async def main(desk: EarDesk, pacer: Pacer) -> None:
        for start in range(STARTS):
            ear = Ear()
            number = desk.open(ear)
            assert desk.pid is not None
            os.kill(desk.pid, signal.SIGKILL)
            await ear.until(lambda ear=ear: bool(ear.why))
            assert "hears the agent" in ear.why
            desk.send(sound(number, SHORT))
            desk.close(number)
            before = desk.pid
            await desk.start()
            assert (desk.pid != before) is (start + 1 < STARTS)
        ear = Ear()
        desk.open(ear)
        assert "hears the agent" in ear.why

    with_desk(main)


def test_a_process_that_hangs_is_not_waited_for_and_what_it_misses_is_counted() -> None:
    """100 KiB may be under way, in the pipe or before it: a packet of 10 ms makes about 500 bytes of it."""

    async def main(desk: EarDesk, pacer: Pacer) -> None:
        ear = Ear()
        number = desk.open(ear)
        assert desk.pid is not None
        os.kill(desk.pid, signal.SIGSTOP)
        try:
            for at in range(1_000):
                desk.send(sound(number, SHORT[:240], at * 10 * NS_PER_MS))
            assert 750 <= ear.drops <= 850
            await pacer.until(pacer.clock.now_ns() + 30 * NS_PER_MS)
            assert desk.behind_ns() >= 30 * NS_PER_MS
            drops = ear.drops
            desk.send(Flush(number, 1))  # is no sound: never dropped
            assert ear.drops == drops
        finally:
            os.kill(desk.pid, signal.SIGCONT)
        async with asyncio.timeout(60):
            while desk.behind_ns():
                await pacer.until(pacer.clock.now_ns() + 20 * NS_PER_MS)
        desk.send(sound(number, SHORT))
        assert ear.drops == drops

    with_desk(main, limit_bytes=100 << 10)


def test_a_desk_without_a_process_says_so() -> None:
    ear = Ear()
    EarDesk(None).open(ear)
    assert ear.why == "no process hears"


def test_a_system_that_starts_no_process_leaves_the_run_going(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_args, **_options):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)

    async def main(desk, pacer) -> None:
        ear = Ear()
        desk.open(ear)
        assert "could not be started" in ear.why
        assert desk.pid is None

    with_desk(main)


def test_what_is_played_first_is_heard_first_and_progress_stops_at_the_oldest_that_waits() -> None:
    """A burst of 500 ms from 0 on, and 100 ms of another session from 200 ms on: 16 blocks, 6 (32 ms) before those."""
    room = Room()
    room.take(sound(0, np.zeros(RATE // 2, np.int16)))
    room.take(sound(1, np.zeros(RATE // 10, np.int16), 200 * NS_PER_MS))
    assert room.done == 0
    room.take(Flush(2, 0))  # has nothing to hear but the silence before its first word, which can wait
    orders = []
    while room.busy:
        room.hear()
        orders.append(room.done)
    prime = 16
    # Message 0 stays the oldest to the end of its 16 blocks, and all of message 1 (4 blocks) is done by then.
    assert orders[: prime + prime + 16 + 3] == [0] * (prime + prime + 16 + 3)
    assert orders[prime + prime + 16 + 4 - 1 :] == [3] * (prime + 1)
    room.take(sound(0, SHORT))
    assert room.done == 3
    room.take(Forget(0))
    assert room.done == 5
    assert not room.busy
    assert room.hear() == []


def test_messages_survive_the_pipe() -> None:
    for message, read in ((sound(3, SHORT, 5), for_ear), (Forget(3), for_ear), (Concluded(1, 2, None, True), from_ear)):
        assert read(msgspec.msgpack.encode(message)) == message


def test_the_measuring_loop_loads_no_network() -> None:
    """Only the process that hears makes a `StreamingVad`; the ear and the desk do not reach the listener."""
    folder = Path(__file__).parents[2] / "harness" / "run"
    for name in ("agent_ear", "ear_desk", "ear_link", "scenario_session"):
        text = (folder / f"{name}.py").read_text()
        assert "StreamingVad" not in text, name
        assert "listener import" not in text, name
