"""The sender of one session's user audio: behaves like a microphone on absolute deadlines, or uploads a clip whole.

A chunk leaves when its last sample exists. The next chunk is taken, encoded and framed right after the one before
has left, so at the deadline only a write is left to do. A late chunk leaves at once; the schedule never shifts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from harness.core.audio import Int16, int16_to_pcm16, samples_to_ns
from harness.core.commands import AppendAudio, CreateResponse
from harness.core.connector import Connection, Prepared, Sink
from harness.core.events import AudioSent, StreamStarted, StreamStopped
from harness.run.pacer import Deadline, Pacer, Slots
from harness.run.user_stream import UserStream

START_MARGIN_NS = 2_000_000
"""Time to prepare the first chunk before a stream begins."""


class Cue(NamedTuple):
    """`then` runs right after the write of the chunk that ends at or holds sample `sample - 1`. stop: the stream ends
    there, its last chunk cut to fit; else silence flows on."""

    sample: int
    then: Callable[[], None]
    stop: bool = True


class _Chunk(NamedTuple):
    prepared: Prepared
    pcm: bytes
    begin: int
    samples: int


class Microphone:
    """Sends one session's user audio. `say` adds a clip; between clips flows silence until it is stopped.

    Samples count from the stream's first start; a stopped stream resumes at the next sample with a new
    `StreamStarted`. Whatever fails while sending stops the stream and is handed to `on_failure` once.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        pacer: Pacer,
        slots: Slots,
        record: Sink,
        on_failure: Callable[[Exception], None],
        rate_hz: int,
        chunk_samples: int,
    ) -> None:
        self._connection = connection
        self._pacer = pacer
        self._clock = pacer.clock
        self._slots = slots
        self._record = record
        self._on_failure = on_failure
        self.rate_hz = rate_hz
        self.chunk_samples = chunk_samples
        self._period_ns = samples_to_ns(chunk_samples, rate_hz)
        self._stream = UserStream()
        self._slot: int | None = None
        self._segment = (0, 0)
        self._cue: Cue | None = None
        self._deadline: Deadline | None = None
        self._next: _Chunk | None = None
        self._undrained: dict[int, AudioSent] = {}
        self.before_chunk: Callable[[], None] | None = None
        """Called before each chunk is taken: the last chance to say something in it."""

    @property
    def running(self) -> bool:
        return self._deadline is not None

    @property
    def position(self) -> int:
        """The first sample that is not on its way yet."""
        return self._stream.position

    def say(self, samples: Int16, at: int | None = None) -> int:
        """Place a clip at sample `at`, by default and at the earliest the first that is not on its way yet; return
        where."""
        return self._stream.put(samples, at)

    def instant_of(self, sample: int) -> int:
        """When sample `sample` of the running segment is (or will be) captured."""
        begin, t_ns = self._segment
        return t_ns + samples_to_ns(sample - begin, self.rate_hz)

    def start(self, cue: Cue | None = None) -> int:
        """Begin (or resume) the stream on this session's slot; return the instant of its first sample."""
        self._release()
        start_ns, self._slot = self._slots.take(self._period_ns, self._clock.now_ns() + START_MARGIN_NS)
        self._segment = (self._stream.position, start_ns)
        self._cue = cue
        self._record(StreamStarted(t_ns=start_ns, sample=self._stream.position, rate_hz=self.rate_hz))
        self._prepare()
        return start_ns

    def upload(self, samples: int) -> int:
        """Send the next `samples` at once, with the wish for an answer, as one request; return when that was begun.

        No stream starts: what is uploaded has no place on a media timeline. Raises ConnectorError.
        """
        begin = self._stream.position
        pcm = int16_to_pcm16(self._stream.take(samples))
        prepared = [self._connection.prepare(command) for command in (AppendAudio(pcm=pcm), CreateResponse())]
        started_ns = self._clock.now_ns()
        pending = sum(self._connection.send(each) for each in prepared)
        event = AudioSent(
            t_ns=self._clock.now_ns(),
            planned_ns=started_ns,
            started_ns=started_ns,
            sample=begin,
            samples=samples,
            pcm=pcm,
        )
        if pending:
            self._undrained[begin] = event
            self._connection.when_drained(lambda t_ns: self._drained(begin, t_ns))
        else:
            self._record(event)
        return started_ns

    def cue(self, cue: Cue) -> None:
        """Set what happens at a sample of the running stream that is not on its way yet."""
        self._cue = cue

    def stop(self) -> None:
        """Stop for good: what was prepared is not sent, what never left the write buffer is recorded as lost."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._release()
        lost, self._undrained = self._undrained, {}
        for event in lost.values():
            self._record(msgspec.structs.replace(event, t_ns=self._clock.now_ns(), lost=True))

    def _release(self) -> None:
        if self._slot is not None:
            self._slots.give_back(self._period_ns, self._slot)
            self._slot = None

    def _prepare(self) -> None:
        if self.before_chunk is not None:
            self.before_chunk()
        begin, n = self._stream.position, self.chunk_samples
        if self._cue is not None and self._cue.stop:
            n = min(n, self._cue.sample - begin)
        if n <= 0:
            self._reach()
            return
        pcm = int16_to_pcm16(self._stream.take(n))
        self._next = _Chunk(self._connection.prepare(AppendAudio(pcm=pcm)), pcm, begin, n)
        self._deadline = self._pacer.call_at(self.instant_of(begin + n), lambda: self._guard(self._fire))

    def _fire(self) -> None:
        if self._next is None or self._deadline is None:
            return
        chunk, planned_ns = self._next, self._deadline.t_ns
        self._next = None
        started_ns = self._clock.now_ns()
        pending = self._connection.send(chunk.prepared)
        event = AudioSent(
            t_ns=self._clock.now_ns(),
            planned_ns=planned_ns,
            started_ns=started_ns,
            sample=chunk.begin,
            samples=chunk.samples,
            late=started_ns - planned_ns > self._period_ns,
            pcm=chunk.pcm,
        )
        if pending:
            self._undrained[chunk.begin] = event
            self._connection.when_drained(lambda t_ns: self._drained(chunk.begin, t_ns))
        if self._cue is not None and self._stream.position >= self._cue.sample:
            if not pending:
                self._record(event)
            if self._reach():
                return
            self._pacer.defer(lambda: self._guard(self._go_on))
        else:
            # Other sessions' chunks that are due leave before this one is recorded and the next one prepared.
            self._pacer.defer(lambda: self._guard(lambda: self._go_on(None if pending else event)))

    def _go_on(self, event: AudioSent | None = None) -> None:
        if event is not None:
            self._record(event)
        if self._deadline is not None:
            self._prepare()

    def _drained(self, begin: int, t_ns: int) -> None:
        event = self._undrained.pop(begin, None)
        if event is not None:
            self._record(msgspec.structs.replace(event, t_ns=t_ns))

    def _reach(self) -> bool:
        """The cue's chunk has left: what follows it (a commit) leaves in the same breath. Whether the stream ends."""
        cue, self._cue = self._cue, None
        assert cue is not None
        if cue.stop:
            self._deadline = None
            self._stream.forget()
        cue.then()
        if cue.stop:
            self._record(StreamStopped(t_ns=self._clock.now_ns(), sample=self._stream.position))
        return cue.stop

    def _guard(self, step: Callable[[], None]) -> None:
        """Run a step of the clockwork; a failure ends the stream and is told, never swallowed."""
        try:
            step()
        except Exception as exc:  # noqa: BLE001 - handed on to the session, which raises what is no peer's fault
            self.stop()
            self._on_failure(exc)
