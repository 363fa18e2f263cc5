"""ServiceNow EVA: turn taking by audio, with a score.

latency_ms = assistant audio start - user audio end, per turn; mean. Audio, not speech: the user's clip ends with its
last sample, silence included, and the assistant begins with the playout of its first packet (a continuous peer: its
first audible sound). An assistant that begins before gives a negative latency.

score = 0 at -500 ms and below, rising to 1 at 500 ms, 1 up to 2000 ms, falling to 0 at 3500 ms; mean over turns.

Their turns with an interruption are scored by overlap and yield instead, which this preset leaves to `tau` and `fdb`.
Source: ServiceNow EVA, `turn_taking.py`; timing definitions, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.audio import NS_PER_MS
from harness.core.scorer import Unscored
from scoring.duplex.presets.material import NO_SESSION, Material
from scoring.duplex.presets.preset import Figure, Measured, Preset, Tally
from scoring.timing.timeline import Instant
from scoring.timing.turn import NEVER_PUT, Turn

FIGURES = ("latency_ms", "score")
EARLY_MS = -500.0
SWEET_FROM_MS = 500.0
SWEET_TO_MS = 2000.0
LATE_MS = 3500.0


def compute(materials: Sequence[Material]) -> Measured:
    tally = Tally(FIGURES)
    for material in materials:
        if material.recording is None:
            for figure in FIGURES:
                tally.add(figure, NO_SESSION, material=material)
        for turn, _ in material.turns:
            latency = _latency_ms(turn)
            score = latency if isinstance(latency, Unscored) else score_of(latency)
            tally.add("latency_ms", latency, material=material, event=turn.query)
            tally.add("score", score, material=material, event=turn.query)
    return tally.measured()


def score_of(latency_ms: float) -> float:
    """A turn's score in [0, 1]."""
    if latency_ms <= EARLY_MS or latency_ms >= LATE_MS:
        return 0.0
    if latency_ms < SWEET_FROM_MS:
        return (latency_ms - EARLY_MS) / (SWEET_FROM_MS - EARLY_MS)
    if latency_ms <= SWEET_TO_MS:
        return 1.0
    return (LATE_MS - latency_ms) / (LATE_MS - SWEET_TO_MS)


def _latency_ms(turn: Turn) -> Figure:
    if turn.started is None or not isinstance(turn.speech_start, Instant):
        return turn.speech_start if isinstance(turn.speech_start, Unscored) else NEVER_PUT
    end = turn.recording.timeline.end_of(turn.started.clip_sample + turn.started.clip_samples)
    if not isinstance(end, Instant):
        return end
    start_ns = _start_ns(turn, turn.speech_start.t_ns)
    if start_ns is None:
        return Unscored(reason="no audio of the assistant in this turn")
    return (start_ns - end.t_ns) / NS_PER_MS


def _start_ns(turn: Turn, from_ns: int) -> int | None:
    """When the assistant's first audio of the turn is heard, early or not."""
    played = turn.recording.listener.played
    heard = [played[packet.seq] for response in turn.responses for packet in response.packets]
    starts = [packet.start_ns for packet in heard if packet.end_ns > packet.start_ns]
    spoken = [*turn.early_utterances, *([turn.utterance] if turn.utterance is not None else [])]
    starts += [utterance.start.t_ns for utterance in spoken]
    return min((start for start in starts if start >= from_ns), default=None)


PRESET = Preset(
    name="eva",
    source="ServiceNow EVA, turn taking",
    says=(
        "From the end of the user's audio file to the start of the assistant's audio, silence at either end included, "
        "and a score that is full from 0.5 to 2 s: a faster answer counts as less good."
    ),
    figures=FIGURES,
    compute=compute,
)
