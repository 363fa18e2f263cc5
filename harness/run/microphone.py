"""The paced sender of one session: behaves like a microphone on absolute deadlines.

A chunk leaves when its last sample exists. The next chunk is taken, encoded and framed right after the one before
has left, so at the deadline only a write is left to do. A late chunk leaves at once; the schedule never shifts.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.core.audio import Int16, int16_to_pcm16, samples_to_ns
from harness.core.commands import AppendAudio
from harness.core.connector import Connection, Prepared, Sink
from harness.core.errors import ConnectorError
from harness.core.events import AudioSent, StreamStarted, StreamStopped
from harness.run.pacer import Deadline, Pacer, Slots
from harness.run.user_stream import UserStream

START_MARGIN_NS = 2_000_000
"""Time to prepare the first chunk before a stream begins."""


class Microphone:
    """Sends one session's user audio. `say` adds a clip; between clips flows silence until it is stopped.

    Samples count from the stream's first start; a stopped stream resumes at the next sample with a new
    `StreamStarted`. A failed send stops the stream and calls `on_failure` once.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        pacer: Pacer,
        slots: Slots,
        record: Sink,
        on_failure: Callable[[ConnectorError], None],
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
        self._stop_at: int | None = None
        self._on_stop: Callable[[], None] | None = None
        self._deadline: Deadline | None = None
        self._next: tuple[Prepared, bytes, int, int] | None = None

    @property
    def running(self) -> bool:
        return self._deadline is not None

    def say(self, samples: Int16) -> int:
        """Place a clip at the first sample that is not on its way yet; return that sample's index."""
        return self._stream.put(samples)

    def instant_of(self, sample: int) -> int:
        """When sample `sample` of the running segment is (or will be) captured."""
        begin, t_ns = self._segment
        return t_ns + samples_to_ns(sample - begin, self.rate_hz)

    def start(self, *, stop_at: int | None = None, then: Callable[[], None] | None = None) -> int:
        """Begin (or resume) the stream on this session's slot; return the instant of its first sample.

        stop_at: stop before this sample, the last chunk cut to fit; `then` runs right after that chunk's write.
        """
        self._release()
        start_ns, self._slot = self._slots.take(self._period_ns, self._clock.now_ns() + START_MARGIN_NS)
        self._segment = (self._stream.position, start_ns)
        self._stop_at, self._on_stop = stop_at, then
        self._record(StreamStarted(t_ns=start_ns, sample=self._stream.position, rate_hz=self.rate_hz))
        self._prepare()
        return start_ns

    def stop(self) -> None:
        """Stop for good, at the end of a session; what was prepared is not sent."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._release()

    def _release(self) -> None:
        if self._slot is not None:
            self._slots.give_back(self._period_ns, self._slot)
            self._slot = None

    def _prepare(self) -> None:
        begin, n = self._stream.position, self.chunk_samples
        if self._stop_at is not None:
            n = min(n, self._stop_at - begin)
        if n <= 0:
            self._stopped()
            return
        pcm = int16_to_pcm16(self._stream.take(n))
        self._next = (self._connection.prepare(AppendAudio(pcm=pcm)), pcm, begin, n)
        self._deadline = self._pacer.call_at(self.instant_of(begin + n), self._fire)

    def _fire(self) -> None:
        if self._next is None or self._deadline is None:
            return
        (prepared, pcm, begin, n), planned_ns = self._next, self._deadline.t_ns
        self._next = None
        started_ns = self._clock.now_ns()
        try:
            pending = self._connection.send(prepared)
        except ConnectorError as exc:
            self.stop()
            self._on_failure(exc)
            return
        done_ns = self._clock.now_ns()

        def sent(t_ns: int) -> None:
            self._record(
                AudioSent(
                    t_ns=t_ns,
                    planned_ns=planned_ns,
                    started_ns=started_ns,
                    sample=begin,
                    samples=n,
                    late=started_ns - planned_ns > self._period_ns,
                    pcm=pcm,
                )
            )

        if pending:
            self._connection.when_drained(sent)
        if self._stop_at is not None and self._stream.position >= self._stop_at:
            if not pending:
                sent(done_ns)
            self._stopped()
            return

        def finish() -> None:
            if not pending:
                sent(done_ns)
            if self._deadline is not None:
                self._prepare()

        self._pacer.defer(finish)  # other sessions' chunks that are due leave first

    def _stopped(self) -> None:
        """The last chunk has left: whatever follows it (a commit) leaves in the same breath."""
        then, self._on_stop = self._on_stop, None
        self._deadline = None
        self._stream.forget()
        if then is not None:
            then()
        self._record(StreamStopped(t_ns=self._clock.now_ns(), sample=self._stream.position))
