"""The sender of a live session's user audio: what a source hands on, at the peer's rate, in chunks, at once.

Between `open` and `close` samples flow; a closed stream resumes at the next sample of `user.wav`. Muted, silence
flows. What is resampled comes 20 to 30 ms later: its anchors say when it was captured, and the recording when it left.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from harness.core.audio import Int16, int16_to_pcm16, map_sample, samples_to_ns
from harness.core.clock import Clock
from harness.core.commands import AppendAudio
from harness.core.connector import Connection, Sink
from harness.core.events import AudioSent, MediaAnchor, StreamStarted, StreamStopped
from harness.engines.resample import StreamResampler
from harness.live.capture_clock import Anchor, CaptureClock
from harness.live.source import Source

Sent = Callable[[Int16, int], None]
"""Called with the samples of each chunk, int16 at the peer's rate, and the instant at which the first was captured."""


class OpenMicrophone:
    """Sends one session's live audio. Whatever fails closes it and is handed to `on_failure` once."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        record: Sink,
        on_failure: Callable[[Exception], None],
        on_sent: Sent,
        source: Source,
        rate_hz: int,
        chunk_samples: int,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._record = record
        self._on_failure = on_failure
        self._on_sent = on_sent
        self._source = source
        self._captured = CaptureClock(source.rate_hz, source.latency_ns)
        self._rate_hz = rate_hz
        self._chunk_samples = chunk_samples
        self._period_ns = samples_to_ns(chunk_samples, rate_hz)
        self._waiting = np.zeros(0, dtype=np.int16)
        self._resampler: StreamResampler | None = None
        self._begin = (0, 0)  # of this stretch: sample of the source, sample of user.wav
        self._starting = False
        self._undrained: dict[int, AudioSent] = {}
        self.position = 0
        """The first sample of `user.wav` that has not left."""
        self.muted = False

    @property
    def is_open(self) -> bool:
        return self._resampler is not None

    def open(self) -> None:
        """Samples flow from the next block on."""
        if self._resampler is None:
            self._resampler = StreamResampler(self._source.rate_hz, self._rate_hz)
            self._begin = (self._captured.position, self.position)
            self._starting = True

    def take(self, samples: Int16, handed_ns: int, *, lost: bool = False) -> None:
        """The source's next block, int16 of shape (n,), handed on at `handed_ns`. lost: some before it was lost."""
        anchors = self._captured.take(len(samples), handed_ns, lost=lost)
        if self._resampler is None:
            return
        if self._starting:
            self._start()
        self._anchor(anchors)
        flowing = np.zeros_like(samples) if self.muted else samples
        self._waiting = np.concatenate([self._waiting, self._resampler.push(flowing)])
        while len(self._waiting) >= self._chunk_samples and self.is_open:
            self._send(self._chunk_samples, handed_ns)

    def close(self) -> None:
        """What was taken leaves, and the stream stops."""
        if self._resampler is None:
            return
        resampler, handed_ns = self._resampler, self._clock.now_ns()
        self._waiting = np.concatenate([self._waiting, resampler.finish()])
        while len(self._waiting) and self.is_open:
            self._send(min(len(self._waiting), self._chunk_samples), handed_ns)
        self._anchor(self._captured.finish())
        end_ns = self._captured.instant_of(self._captured.position)
        if self.position > self._begin[1] and end_ns is not None:
            self._anchor([Anchor(self._captured.position, end_ns)])
        self._resampler = None
        self._record(StreamStopped(t_ns=self._clock.now_ns(), sample=self.position))

    def end(self) -> None:
        """Stop for good; what never left the write buffer is recorded as lost."""
        self._anchor(self._captured.finish())
        self._resampler = None
        lost, self._undrained = self._undrained, {}
        for event in lost.values():
            self._record(msgspec.structs.replace(event, t_ns=self._clock.now_ns(), lost=True))

    def _start(self) -> None:
        """The first block of a stretch is here. The first stretch's anchors lie after its first second, and hold for
        what was before."""
        self._starting = False
        begin, position = self._begin
        t_ns = self._captured.instant_of(begin)
        assert t_ns is not None
        self._record(StreamStarted(t_ns=t_ns, sample=position, rate_hz=self._rate_hz))
        if position:
            self._anchor([Anchor(begin, t_ns)])

    def _anchor(self, anchors: list[Anchor]) -> None:
        """Record those of this stretch, at the peer's rate."""
        begin, position = self._begin
        for anchor in anchors:
            if self.is_open and anchor.sample >= begin:
                sample = position + map_sample(anchor.sample - begin, self._source.rate_hz, self._rate_hz)
                self._record(MediaAnchor(t_ns=anchor.t_ns, side="user", sample=sample, source=self._source.anchor))

    def _captured_ns(self, sample: int) -> int:
        begin, position = self._begin
        t_ns = self._captured.instant_of(begin + map_sample(sample - position, self._rate_hz, self._source.rate_hz))
        assert t_ns is not None
        return t_ns

    def _send(self, n: int, handed_ns: int) -> None:
        samples, self._waiting = self._waiting[:n], self._waiting[n:]
        pcm, begin = int16_to_pcm16(samples), self.position
        self.position += n
        try:
            prepared = self._connection.prepare(AppendAudio(pcm=pcm))
            started_ns = self._clock.now_ns()
            pending = self._connection.send(prepared)
        except Exception as exc:  # noqa: BLE001 - handed on to the session, which raises what is no peer's fault
            self.end()
            self._on_failure(exc)
            return
        event = AudioSent(
            t_ns=self._clock.now_ns(),
            planned_ns=handed_ns,
            started_ns=started_ns,
            sample=begin,
            samples=n,
            late=started_ns - handed_ns > self._period_ns,
            pcm=pcm,
        )
        if pending:
            self._undrained[begin] = event
            self._connection.when_drained(lambda t_ns: self._drained(begin, t_ns))
        else:
            self._record(event)
        self._on_sent(samples, self._captured_ns(begin))

    def _drained(self, begin: int, t_ns: int) -> None:
        event = self._undrained.pop(begin, None)
        if event is not None:
            self._record(msgspec.structs.replace(event, t_ns=t_ns))
