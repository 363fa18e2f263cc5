"""The agent's speech as heard: Silero on the heard timeline, refined to 10 ms by energy.

Heard sound comes in islands, parted by at least 500 ms of digital silence; each is rendered from its first sample that
is not zero, so that neither another time nor more silence around it changes a span. In an island:

- Silero's spans (its threshold, 64 ms of speech to begin, 100 ms of silence to end).
- start = first 10 ms window (hop 1 ms, own mean removed) from 100 ms before the span's start on that is loud, and if
  that is the very first one, the first of those that are loud without a gap before it, up to 250 ms before the span;
  end = end of the last loud window up to 100 ms after its end. Loud: at or above max(-50 dBFS, loudest window of the
  span - 35 dB), the rule of the clips' annotator. Neither reaches beyond the middle of the silence between two spans.
- A span without a loud window is no speech. A boundary that lies in a packet known to be silent (no window of it at or
  above -50 dBFS), or where playout had run dry, moves to the nearest sounding packet inside the span: a window that
  reaches into a silent packet by its edge, or a network that runs ahead, is no sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from harness.core.audio import (
    NS_PER_MS,
    NS_PER_S,
    Int16,
    float_to_int16,
    int16_to_float,
    ms_to_samples,
    ns_to_samples,
    samples_to_ns,
)
from harness.core.playout import Played
from harness.core.speech_edges import REACH_MS, RUN_ON_MS, is_silent, speech_edges
from harness.engines.resample import resample
from harness.engines.vad import THRESHOLD, speech_spans
from scoring.duplex.spans import Span, merge

ISLAND_GAP_MS = 500


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What is heard of one packet: `samples`, int16 of shape (n,), from `start_ns` on."""

    start_ns: int
    samples: Int16
    silent: bool


@dataclass(kw_only=True)
class _Island:
    """Sound without a long silence in it. start_ns: instant of its first sample."""

    start_ns: int
    end_ns: int
    pieces: list[Piece] = field(default_factory=list)


def heard_pieces(played: Sequence[Played], agent: Int16, rate_hz: int) -> list[Piece]:
    """The heard part of each packet, in order of playout. agent: received samples, shape (n,); packets at another rate
    than `rate_hz` are resampled."""
    pieces: list[Piece] = []
    for packet in played:
        if packet.end_ns <= packet.start_ns:
            continue
        whole = agent[packet.packet.sample_start : packet.packet.sample_start + packet.packet.samples]
        heard = whole[: ns_to_samples(packet.end_ns - packet.start_ns, packet.packet.rate_hz)]
        if packet.packet.rate_hz != rate_hz:
            heard = float_to_int16(resample(int16_to_float(heard), packet.packet.rate_hz, rate_hz))
        pieces.append(Piece(start_ns=packet.start_ns, samples=heard, silent=is_silent(heard, rate_hz)))
    return pieces


def agent_spans(pieces: Sequence[Piece], rate_hz: int, *, threshold: float = THRESHOLD) -> tuple[Span, ...]:
    """Spans of speech on the session's clock."""
    found: list[Span] = []
    for island in _islands(pieces, rate_hz):
        found += _island_spans(island, rate_hz, threshold)
    return merge(found)


def _islands(pieces: Sequence[Piece], rate_hz: int) -> list[_Island]:
    islands: list[_Island] = []
    for piece in pieces:
        for first, last in _sounding(piece.samples, ms_to_samples(ISLAND_GAP_MS, rate_hz)):
            start_ns = piece.start_ns + samples_to_ns(first, rate_hz)
            if not islands or start_ns - islands[-1].end_ns >= ISLAND_GAP_MS * NS_PER_MS:
                islands.append(_Island(start_ns=start_ns, end_ns=start_ns))
            part = Piece(start_ns=start_ns, samples=piece.samples[first:last], silent=piece.silent)
            islands[-1].pieces.append(part)
            islands[-1].end_ns = start_ns + samples_to_ns(last - first, rate_hz)
    return islands


def _sounding(samples: Int16, gap: int) -> list[tuple[int, int]]:
    """[first, last) of each stretch that is not zero, where runs of fewer than `gap` zeros part nothing."""
    nonzero = np.flatnonzero(samples)
    if len(nonzero) == 0:
        return []
    breaks = np.flatnonzero(np.diff(nonzero) > gap)
    firsts = nonzero[np.concatenate(([0], breaks + 1))]
    lasts = nonzero[np.concatenate((breaks, [len(nonzero) - 1]))] + 1
    return [(int(a), int(b)) for a, b in zip(firsts, lasts, strict=True)]


def _island_spans(island: _Island, rate_hz: int, threshold: float) -> list[Span]:
    places = [round((piece.start_ns - island.start_ns) * rate_hz / NS_PER_S) for piece in island.pieces]
    signal = np.zeros(max(at + len(piece.samples) for at, piece in zip(places, island.pieces, strict=True)), np.int16)
    sounding: list[tuple[int, int]] = []
    for at, piece in zip(places, island.pieces, strict=True):
        signal[at : at + len(piece.samples)] = piece.samples
        if not piece.silent:
            sounding.append((at, at + len(piece.samples)))
    neural = speech_spans(int16_to_float(signal), rate_hz, threshold=threshold)
    bounds = [0, *((a.end + b.start) // 2 for a, b in pairwise(neural)), len(signal)]
    reach = ms_to_samples(REACH_MS, rate_hz)
    found: list[Span] = []
    for index, span in enumerate(neural):
        low, high = max(bounds[index], span.start - reach), min(bounds[index + 1], span.end + reach)
        back = max(bounds[index], span.start - ms_to_samples(RUN_ON_MS, rate_hz))
        refined = speech_edges(signal, rate_hz, low, high, back=back)
        inside = _inside(sounding, refined) if refined else None
        if inside is not None:
            start_ns = island.start_ns + samples_to_ns(inside[0], rate_hz)
            found.append(Span(start_ns, island.start_ns + samples_to_ns(inside[1], rate_hz)))
    return found


def _inside(sounding: Sequence[tuple[int, int]], span: tuple[int, int]) -> tuple[int, int] | None:
    """The span without what lies outside the sounding packets at either end."""
    held = [(max(a, span[0]), min(b, span[1])) for a, b in sounding if a < span[1] and b > span[0]]
    return (held[0][0], held[-1][1]) if held else None
