"""Pipecat's user-to-bot latency observer.

latency_ms = first_packet - (VAD stop - hangover), per answered turn; mean.

VAD stop: when a Silero that runs along has counted its hangover of 0.2 s; it counts in whole frames, round(0.2 / 0.032)
= 6 of 32 ms, so the stop comes 192 ms after the last speech frame and taking off 200 ms lands 8 ms *before* its end.
Bot started: its first audio leaves the pipeline, heard or not: for a remote peer, the arrival of the first packet.
Their detector also wants confidence 0.7 and a least volume; here it is this project's Silero, as recorded in the notes.
Source: pipecat, `UserBotLatencyObserver`, `VADParams.stop_secs`; timing definitions, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.audio import NS_PER_MS
from harness.core.scorer import Unscored
from scoring.duplex.presets.aiewf import user_end_ns
from scoring.duplex.presets.material import Material
from scoring.duplex.presets.preset import Figure, Measured, Preset, Tally
from scoring.duplex.presets.voices import Voices
from scoring.duplex.spans import Span
from scoring.timing.anchors import Anchors
from scoring.timing.timeline import Instant

FIGURES = ("latency_ms",)
STOP_NS = 200 * NS_PER_MS
"""Pipecat's default hangover."""
FRAME_NS = 32 * NS_PER_MS


def compute(materials: Sequence[Material]) -> Measured:
    tally = Tally(FIGURES)
    notes: list[str] = []
    for material in materials:
        if material.unstamped is not None:
            tally.add("latency_ms", material.unstamped, material=material)
            continue
        voices = material.voices
        if isinstance(voices, Unscored):
            tally.add("latency_ms", voices, material=material)
            continue
        notes.append(f"VAD: {voices.detector}")
        for turn, anchors in material.turns:
            tally.add("latency_ms", _latency_ms(voices, anchors), material=material, event=turn.query)
    return tally.measured(notes)


def _latency_ms(voices: Voices, anchors: Anchors) -> Figure:
    first, begin, end = anchors.first_packet, anchors.speech_start, anchors.speech_end
    if not isinstance(first, Instant):
        return first
    if not isinstance(begin, Instant):
        return begin
    if not isinstance(end, Instant):
        return end
    silent_ns = user_end_ns(voices, Span(begin.t_ns, end.t_ns))
    if isinstance(silent_ns, Unscored):
        return silent_ns
    stop_ns = silent_ns + round(STOP_NS / FRAME_NS) * FRAME_NS
    return (first.t_ns - (stop_ns - STOP_NS)) / NS_PER_MS


PRESET = Preset(
    name="pipecat",
    source="pipecat, UserBotLatencyObserver",
    says=(
        "From the VAD's stop minus its hangover, which is 8 ms before its last speech frame's end, to the first audio "
        "that leaves the bot: silence at the head of the answer counts as speech."
    ),
    figures=FIGURES,
    compute=compute,
)
