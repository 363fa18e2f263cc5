"""The paced sender behaves like a microphone: on the virtual clock every instant can be told in advance."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.audio import int16_to_pcm16, samples_to_ns
from harness.core.errors import ConnectorError
from harness.core.events import AudioSent, StreamStarted, StreamStopped
from harness.run.microphone import Cue, Microphone
from harness.run.pacer import Pacer, Slots
from harness.run.user_stream import UserStream
from harness.run.virtual import run_virtual, virtual_timer
from tests.run.fakes import FakeConnection, ToneQuery


def run_microphone(body, *, rate_hz: int = 24_000, chunk_samples: int = 480):
    """Run `body(microphone, pacer, connection, clock)` virtually; return (events, connection, failures)."""

    async def main(clock):
        pacer = Pacer(clock, virtual_timer)
        connection, events, failures = FakeConnection(clock), [], []
        microphone = Microphone(
            connection,
            pacer=pacer,
            slots=Slots(),
            record=events.append,
            on_failure=failures.append,
            rate_hz=rate_hz,
            chunk_samples=chunk_samples,
        )
        await body(microphone, pacer, connection, clock)
        microphone.stop()
        return events, connection, failures

    return run_virtual(main)


def test_a_chunk_leaves_exactly_when_its_last_sample_exists() -> None:
    async def body(microphone, pacer, connection, clock) -> None:
        microphone.start()
        await pacer.until(1_000_000_000)

    events, _, _ = run_microphone(body)
    start = next(e for e in events if isinstance(e, StreamStarted))
    sent = [e for e in events if isinstance(e, AudioSent)]
    assert len(sent) >= 48
    for chunk in sent:
        exists_ns = start.t_ns + samples_to_ns(chunk.sample + chunk.samples - start.sample, 24_000)
        assert chunk.planned_ns == chunk.started_ns == chunk.t_ns == exists_ns
        assert not chunk.late


def test_ten_minutes_do_not_drift_by_a_nanosecond() -> None:
    async def body(microphone, pacer, connection, clock) -> None:
        microphone.start()
        await pacer.until(602_000_000_000)

    events, _, _ = run_microphone(body, chunk_samples=480)
    start = next(e for e in events if isinstance(e, StreamStarted))
    sent = [e for e in events if isinstance(e, AudioSent)]
    assert len(sent) > 30_000
    last = sent[-1]
    assert last.started_ns - (start.t_ns + samples_to_ns(last.sample + last.samples, 24_000)) == 0


@given(
    ms=st.integers(5, 700),
    chunk=st.sampled_from([160, 441, 480, 960, 4800]),
    rate=st.sampled_from([16_000, 24_000, 44_100, 48_000]),
)
@settings(max_examples=30, deadline=None)
def test_what_is_sent_is_the_clip_and_the_tail_is_paced(ms: int, chunk: int, rate: int) -> None:
    """Trap 2: the tail chunk, however short, waits for its own last sample before the turn is committed."""
    clip = (np.arange(rate * ms // 1000) % 1000).astype(np.int16)
    stopped: list[int] = []

    async def body(microphone, pacer, connection, clock) -> None:
        microphone.say(clip)
        microphone.start(Cue(len(clip), lambda: stopped.append(clock.now_ns())))
        await pacer.until(2_000_000_000)

    events, connection, _ = run_microphone(body, rate_hz=rate, chunk_samples=chunk)
    assert connection.audio == int16_to_pcm16(clip)
    start = next(e for e in events if isinstance(e, StreamStarted))
    assert stopped == [start.t_ns + samples_to_ns(len(clip), rate)]
    assert [e.sample for e in events if isinstance(e, StreamStopped)] == [len(clip)]


def test_a_held_up_sender_catches_up_and_says_so() -> None:
    """Late chunks leave at once, the schedule does not move, lateness over a chunk is marked (trap 2)."""

    async def body(microphone, pacer, connection, clock) -> None:
        start = microphone.start()
        pacer.call_at(start + 101_000_000, lambda: clock.advance_to(clock.now_ns() + 70_000_000))
        await pacer.until(start + 400_000_000)

    events, _, _ = run_microphone(body)
    sent = [e for e in events if isinstance(e, AudioSent)]
    late = [e.sample // 480 for e in sent if e.late]
    assert late == [5, 6]
    gaps = {b.planned_ns - a.planned_ns for a, b in pairwise(sent)}
    assert gaps == {20_000_000}
    assert all(e.started_ns == e.planned_ns for e in sent[9:])


def test_resumed_stream_continues_its_samples() -> None:
    clip = ToneQuery().samples

    async def body(microphone, pacer, connection, clock) -> None:
        for _ in range(2):
            begin = microphone.say(clip)
            microphone.start(Cue(begin + len(clip), lambda: None))
            await pacer.until(clock.now_ns() + 1_500_000_000)

    events, connection, _ = run_microphone(body)
    starts = [e for e in events if isinstance(e, StreamStarted)]
    assert [e.sample for e in starts] == [0, len(clip)]
    assert connection.audio == int16_to_pcm16(clip) * 2


def test_a_clip_cut_by_its_commit_does_not_run_into_the_next_turn() -> None:
    clip = ToneQuery(ms=500, lead_ms=0).samples

    async def body(microphone, pacer, connection, clock) -> None:
        microphone.say(clip)
        microphone.start(Cue(4_800, lambda: None))
        await pacer.until(clock.now_ns() + 1_500_000_000)
        quiet = np.zeros(2_400, dtype=np.int16)
        begin = microphone.say(quiet)
        microphone.start(Cue(begin + len(quiet), lambda: None))
        await pacer.until(clock.now_ns() + 1_500_000_000)

    _, connection, _ = run_microphone(body)
    assert connection.audio == int16_to_pcm16(clip[:4_800]) + bytes(2 * 2_400)


def test_back_pressure_completes_the_stamp_later() -> None:
    async def body(microphone, pacer, connection, clock) -> None:
        connection.pending = 100
        start = microphone.start(Cue(480, lambda: None))
        await pacer.until(start + 30_000_000)
        connection.waiting[0](clock.now_ns())

    events, _, _ = run_microphone(body)
    (chunk,) = [e for e in events if isinstance(e, AudioSent)]
    assert chunk.t_ns - chunk.started_ns == 10_000_000


def test_a_failed_send_stops_the_stream_once() -> None:
    async def body(microphone, pacer, connection, clock) -> None:
        microphone.start()
        await pacer.until(100_000_000)
        connection.error = ConnectorError("gone", kind="connect")
        await pacer.until(300_000_000)
        assert not microphone.running

    _, _, failures = run_microphone(body)
    assert [str(error) for error in failures] == ["gone"]


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 200)), max_size=6), st.integers(1, 97))
def test_user_stream_mixes_like_adding_arrays(clips: list[tuple[int, int]], step: int) -> None:
    stream, expected = UserStream(), np.zeros(600, dtype=np.int64)
    for at, n in clips:
        samples = np.full(n, 20_000, dtype=np.int16)
        assert stream.put(samples, at) == at
        expected[at : at + n] += 20_000
    taken = []
    while stream.position < 600:
        taken.append(stream.take(min(step, 600 - stream.position)))
    assert np.array_equal(np.concatenate(taken), np.clip(expected, -32768, 32767))


def test_a_cue_without_stop_lets_silence_flow_on() -> None:
    """A peer that is clocked by its input needs silence after the commit."""
    reached: list[int] = []

    async def body(microphone, pacer, connection, clock) -> None:
        microphone.say(ToneQuery(ms=300, lead_ms=0).samples)
        start = microphone.start(Cue(5_000, lambda: reached.append(clock.now_ns()), stop=False))
        await pacer.until(start + 1_000_000_000)
        assert reached == [start + samples_to_ns(5_280, 24_000)]  # the chunk that holds sample 4,999 ends at 5,280
        assert microphone.running

    events, _, _ = run_microphone(body)
    assert sum(isinstance(event, AudioSent) for event in events) >= 49
    assert not [event for event in events if isinstance(event, StreamStopped)]


def test_started_is_before_the_write_and_completed_after() -> None:
    async def body(microphone, pacer, connection, clock) -> None:
        send = connection.send

        def slow(prepared) -> int:
            clock.advance_to(clock.now_ns() + 3_000_000)
            return send(prepared)

        connection.send = slow
        start = microphone.start(Cue(960, lambda: None))
        await pacer.until(start + 100_000_000)

    events, _, _ = run_microphone(body)
    for chunk in (e for e in events if isinstance(e, AudioSent)):
        assert chunk.started_ns == chunk.planned_ns
        assert chunk.t_ns == chunk.started_ns + 3_000_000


def test_what_never_left_the_buffer_is_recorded_as_lost() -> None:
    async def body(microphone, pacer, connection, clock) -> None:
        connection.pending = 100
        start = microphone.start()
        await pacer.until(start + 70_000_000)
        connection.waiting[0](clock.now_ns())

    events, _, _ = run_microphone(body)
    sent = [e for e in events if isinstance(e, AudioSent)]
    assert [(e.sample, e.lost) for e in sent] == [(0, False), (480, True), (960, True)]


def test_a_fault_of_our_own_is_handed_on_and_not_swallowed() -> None:
    async def body(microphone, pacer, connection, clock) -> None:
        start = microphone.start()
        await pacer.until(start + 50_000_000)
        connection.prepare = lambda command: 1 / 0
        await pacer.until(start + 200_000_000)
        assert not microphone.running

    _, _, failures = run_microphone(body)
    assert [type(error) for error in failures] == [ZeroDivisionError]
