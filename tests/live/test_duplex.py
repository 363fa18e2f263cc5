"""A session at a simulated sound device: half an hour of it, and everything that a device does wrong."""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_right
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from harness.core.audio import int16_to_pcm16
from harness.core.commands import AppendAudio
from harness.core.events import (
    AudioReceived,
    AudioSent,
    MediaAnchor,
    Note,
    ResponseDone,
    ResponseStarted,
    StreamStarted,
    TextReceived,
)
from harness.core.session.reader import load_session
from harness.live.duplex import Duplex
from harness.live.echo import Guard, Headphones
from harness.run.ear_channel import Started, Stopped
from harness.run.session_plan import SessionOptions
from tests.live.room import RATE, Shelf, hold
from tests.live.simulated import SimulatedDevice
from tests.run.fakes import FakeConnection, InlineDesk, ToneQuery

pytestmark = pytest.mark.unit
MS, S = 1_000_000, 1_000_000_000


class Talkative:
    """A peer that answers every ten seconds and remembers nothing."""

    def __init__(self, clock, sink) -> None:
        self.clock, self.sink, self.taken, self.answers = clock, sink, 0, 0
        self.tone = int16_to_pcm16(ToneQuery(ms=1000, lead_ms=0).samples)

    def prepare(self, command):
        return command

    def send(self, prepared) -> int:
        if isinstance(prepared, AppendAudio):
            before, self.taken = self.taken, self.taken + len(prepared.pcm) // 2
            if before // (10 * RATE) < self.taken // (10 * RATE):
                self.answer()
        return 0

    def answer(self) -> None:
        self.answers += 1
        now_ns, name = self.clock.now_ns(), f"r{self.answers}"
        self.sink(ResponseStarted(t_ns=now_ns, response=name))
        self.sink(TextReceived(t_ns=now_ns, text="beep " * 40, response=name))
        self.sink(AudioReceived(t_ns=now_ns, samples=RATE, rate_hz=RATE, response=name, pcm=self.tone))
        self.sink(ResponseDone(t_ns=now_ns, response=name))

    def when_drained(self, callback) -> None:
        callback(self.clock.now_ns())

    def ping(self) -> None:
        pass

    async def close(self) -> None:
        pass


class Anchors(Shelf):
    """Keeps the anchors only."""

    def append(self, number, event) -> None:
        if isinstance(event, MediaAnchor | StreamStarted | Note):
            super().append(number, event)


def at_device(
    device_of, *, seconds: float, sessions=None, shelf=None, connect=None, echo=None, desk=None, chunk_ms=None
):
    """Hold a session at `device_of(pacer)` for so long, or until it ends. (result, device, duplex, shelf, said)."""
    seen = SimpleNamespace(said=[], rss=[])

    async def speak(live, rig) -> None:
        seen.device = device_of(rig.pacer)
        seen.duplex = Duplex(seen.device, live, echo or Headphones(), rig.pacer, seen.said.append)
        seen.session = live
        running = asyncio.ensure_future(seen.duplex.run())
        end_ns = rig.clock.now_ns() + round(seconds * S)
        while rig.clock.now_ns() < end_ns and not live.over:
            await rig.pacer.until(rig.clock.now_ns() + 10 * S if seconds > 60 else end_ns)
            live.turns.told(Started(0, 0, rig.clock.now_ns() - 9 * S))
            live.turns.told(Stopped(0, 0, rig.clock.now_ns() - 8 * S, False))
            seen.rss.append(_rss())
        live.stop()
        await running

    source = SimulatedDevice(None).facts.source("headphones")
    result, session, shelf = hold(
        connect or (lambda clock, sink: FakeConnection(clock)),
        speak,
        source=source,
        shelf=shelf,
        sessions=sessions,
        desk=desk or InlineDesk(silent=True),
        options=SessionOptions(chunk_ms=chunk_ms),
    )
    return result, seen, session, shelf


def _rss() -> int:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


class Deaf(InlineDesk):
    """Hears nothing and remembers nothing."""

    def send(self, message) -> None:
        pass


def test_half_an_hour_at_a_drifting_device_keeps_time_and_memory() -> None:
    """200 ppm and the jitter of a loaded machine: every sample's instant within 5 ms; the process grows no more."""
    result, seen, session, shelf = at_device(
        lambda pacer: SimulatedDevice(pacer, ppm=200, jitter_ms=6, block_ms=40),
        seconds=1800,
        shelf=Anchors(),
        connect=Talkative,
        desk=Deaf(),
        chunk_ms=40,
    )
    assert result.error is None
    anchors = shelf.of(MediaAnchor)
    assert len(anchors) > 1600
    samples = [anchor.sample for anchor in anchors]
    worst = 0.0
    for sample in range(0, samples[-1], RATE // 3):
        at = min(max(0, bisect_right(samples, sample) - 1), len(anchors) - 2)
        one, two = anchors[at], anchors[at + 1]
        if sample < one.sample:
            t_ns = one.t_ns - (one.sample - sample) * S / RATE
        else:
            t_ns = one.t_ns + (sample - one.sample) * (two.t_ns - one.t_ns) / (two.sample - one.sample)
        worst = max(worst, abs(t_ns - seen.device.captured_ns(2 * sample)))
    assert worst < 5 * MS
    # At the nominal rate the last sample would be 200 ppm of half an hour off: 360 ms.
    assert samples[-1] * S / RATE - anchors[-1].t_ns + seen.device.start_ns > 350 * MS
    assert session.turns.count > 150
    assert len(session.turns.rows()) == 50
    after_five, at_end = seen.rss[30], seen.rss[-1]
    assert at_end - after_five < 4 << 20


def test_what_the_device_plays_is_the_answer_and_the_guard_shuts_the_microphone() -> None:
    loud = np.full(480, 9000, np.int16)
    made = []

    def connect(clock, sink):
        made.append(FakeConnection(clock))
        made[0].sink = sink
        return made[0]

    def device_of(pacer):
        device = SimulatedDevice(pacer, captured=lambda at, n: loud[:n])
        device.keep_played = True
        pacer.call_at(pacer.clock.now_ns() + S, lambda: Talkative(pacer.clock, made[0].sink).answer())
        return device

    _, seen, _, _ = at_device(device_of, seconds=4, connect=connect, echo=Guard(48_000, 35))
    played = np.concatenate(seen.device.played)
    heard = np.flatnonzero(np.abs(played.astype(int)) > 100) / 48_000
    assert heard[0] == pytest.approx(1.0, abs=0.03)
    assert heard[-1] == pytest.approx(2.0, abs=0.05)
    sent = np.frombuffer(made[0].audio, "<i2")
    shut = np.flatnonzero(np.abs(sent.astype(int)) < 100) / RATE
    shut = shut[shut > 0.1]
    assert shut[0] == pytest.approx(1.0, abs=0.05)
    assert shut[-1] == pytest.approx(2.0 + 0.435, abs=0.05)
    assert len(shut) == pytest.approx((shut[-1] - shut[0]) * RATE, rel=0.01)


def test_a_stream_that_dies_without_a_word_ends_the_session_and_the_recording_is_whole(tmp_path: Path) -> None:
    _, seen, _, _ = at_device(lambda pacer: SimulatedDevice(pacer, silent_from=200), seconds=30, sessions=tmp_path)
    assert "no sound came from it for 1 s" in seen.duplex.failure
    assert "what was recorded is kept" in seen.said[-1]
    session = load_session(tmp_path / "00000-live")
    assert len(session.user) == pytest.approx(2 * RATE, abs=RATE // 10)
    assert "sound_device" in {note.code for note in session.of(Note)}
    # Found a second after the last block, within the time between two looks.
    dead = next(note.t_ns for note in session.of(Note) if "without a word" in note.message)
    assert dead - session.events[0].t_ns < 3.6 * S


def test_an_unplugged_device_that_says_so_ends_the_session_at_once(tmp_path: Path) -> None:
    _, seen, _, _ = at_device(lambda pacer: SimulatedDevice(pacer, ended_from=100), seconds=30, sessions=tmp_path)
    assert "unplugged" in seen.duplex.failure
    assert len(load_session(tmp_path / "00000-live").user) == pytest.approx(RATE, abs=RATE // 10)


def test_lost_blocks_are_told_and_time_stays_right() -> None:
    lost = frozenset(range(300, 305))
    _, seen, _, shelf = at_device(lambda pacer: SimulatedDevice(pacer, lost=lost), seconds=8)
    assert any("overflow" in line for line in seen.said)
    assert "1 times captured sound was lost (overflow)" in [note.message for note in shelf.of(Note)]
    anchors = shelf.of(MediaAnchor)
    last = anchors[-1]
    # Five blocks of 10 ms are missing before it.
    assert last.t_ns == pytest.approx(seen.device.captured_ns(2 * last.sample) + 50 * MS, abs=MS)
    at = 300 * 240
    assert [round((a.t_ns - seen.device.captured_ns(2 * at)) / MS) for a in anchors if a.sample == at] == [0, 50]


def test_a_device_that_runs_at_another_rate_is_told() -> None:
    _, seen, _, shelf = at_device(lambda pacer: SimulatedDevice(pacer, true_hz=44_100), seconds=8)
    (line,) = seen.said
    assert "44,100" in line
    assert line in [note.message for note in shelf.of(Note)]
    assert sum(event.samples for event in shelf.of(AudioSent)) > 7 * RATE * 0.9
