"""Has a continuous peer spoken, and is it quiet again? Packet by packet, for the runner only; scoring decides nothing
by it: there, audible spans of the recording count."""

from __future__ import annotations

from harness.core.audibility import DEFAULT
from harness.core.audio import db_to_power, ms_to_samples, pcm16_to_int16, window_power
from harness.core.events import AudioReceived

JOIN_S = 0.6
"""Utterances across shorter gaps are one (timing definitions, section 1)."""
OVER_S = 1.2
"""Quiet for so long: the answer is over. Twice the gap that joins utterances, so that a breath ends nothing."""


class UtteranceWatch:
    """Follows one session's received audio. Quiet is counted in samples: a stream that stalls is not quiet."""

    def __init__(self) -> None:
        self._began_ns: int | None = None
        self.quiet_s = 0.0

    def take(self, event: AudioReceived) -> None:
        """Learn from one packet; its 10 ms windows are judged alone."""
        if not event.samples:
            return
        if _loud(event):
            if self._began_ns is None or self.quiet_s >= JOIN_S:
                self._began_ns = event.t_ns
            self.quiet_s = 0.0
        else:
            self.quiet_s += event.samples / event.rate_hz

    def began_after(self, t_ns: int) -> int | None:
        """When the newest utterance began, if that was at or after `t_ns`."""
        return self._began_ns if self._began_ns is not None and self._began_ns >= t_ns else None

    @property
    def over(self) -> bool:
        """Whether the newest utterance has ended."""
        return self._began_ns is not None and self.quiet_s >= OVER_S


def _loud(event: AudioReceived) -> bool:
    window = ms_to_samples(DEFAULT.window_ms, event.rate_hz)
    power = window_power(pcm16_to_int16(event.pcm), min(window, event.samples), window, remove_mean=True)
    return bool((power >= db_to_power(DEFAULT.threshold_db)).any())
