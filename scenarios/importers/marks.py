"""Where somebody speaks in a whole recording: stretches of speech for recordings that come without marks."""

from __future__ import annotations

from typing import NamedTuple

from harness.core.audio import int16_to_float, ms_to_samples
from harness.core.errors import ConfigError
from harness.engines.vad import speech_spans
from scenarios.annotator import annotate
from scenarios.importers.sessions import Track

JOIN_MS = 600
"""Shorter silences are pauses inside a stretch (timing definitions: utterances are joined across less than 600 ms)."""
REACH_MS = 150
"""What the annotator sees on either side of a stretch: more than the 100 ms in which it looks for the boundary."""


class Stretch(NamedTuple):
    """Samples [start, end) of the track."""

    start: int
    end: int


def stretches(track: Track) -> list[Stretch]:
    """Speech in `track`: Silero's spans, joined across gaps under 600 ms, each boundary set by annotator v1."""
    spans = speech_spans(int16_to_float(track.samples), track.rate_hz)
    join, reach = (ms_to_samples(ms, track.rate_hz) for ms in (JOIN_MS, REACH_MS))
    joined: list[Stretch] = []
    for span in spans:
        if joined and span.start - joined[-1].end < join:
            joined[-1] = Stretch(joined[-1].start, span.end)
        else:
            joined.append(Stretch(span.start, span.end))
    return [_refined(track, stretch, reach) for stretch in joined]


def _refined(track: Track, stretch: Stretch, reach: int) -> Stretch:
    first, last = max(0, stretch.start - reach), min(len(track.samples), stretch.end + reach)
    try:
        marks = annotate(track.samples[first:last], track.rate_hz)
    except ConfigError:  # out of its surroundings the network hears nothing in it
        return stretch
    return Stretch(first + marks.speech_start, first + marks.speech_end)
