"""Coval's benchmarks: from the last audio write to the first chunk, with the chunk's own silence added.

latency_ms = (first_packet - completed write of the query's last chunk) + leading silence, per answered turn; mean.

first_packet: arrival of the answer's first packet with samples. last write: of the chunk that holds the clip's last
sample, so that silence at the clip's end makes the answer look faster. Leading silence: samples before the first
audible one in the answer's own audio (this project's audibility rule: 10 ms windows, -40 dBFS, held for 50 ms), as if
it were played without a gap.
Source: Coval benchmarks, speech-to-speech; timing definitions, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.core.audibility import first_audible_sample
from harness.core.audio import NS_PER_MS, samples_to_ns
from harness.core.scorer import Unscored
from scoring.duplex.presets.material import Material
from scoring.duplex.presets.preset import Figure, Measured, Preset, Tally
from scoring.timing.anchors import Anchors
from scoring.timing.timeline import Instant
from scoring.timing.turn import LOST, NEVER_PUT, Turn

FIGURES = ("latency_ms",)


def compute(materials: Sequence[Material]) -> Measured:
    tally = Tally(FIGURES)
    for material in materials:
        if material.unstamped is not None:
            tally.add("latency_ms", material.unstamped, material=material)
            continue
        for turn, anchors in material.turns:
            tally.add("latency_ms", _latency_ms(turn, anchors), material=material, event=turn.query)
    return tally.measured()


def _latency_ms(turn: Turn, anchors: Anchors) -> Figure:
    first = anchors.first_packet
    if not isinstance(first, Instant):
        return first
    if turn.started is None:
        return NEVER_PUT
    last = turn.recording.packet_holding(turn.started.clip_sample + turn.started.clip_samples - 1)
    if last is None:
        return Unscored(reason="the query was not sent to its end")
    if last.lost:
        return LOST
    silence_ns = _leading_silence_ns(turn)
    if isinstance(silence_ns, Unscored):
        return silence_ns
    return (first.t_ns - last.t_ns + silence_ns) / NS_PER_MS


def _leading_silence_ns(turn: Turn) -> int | Unscored:
    packets, agent = turn.used[0].packets, turn.session.agent
    if max(packet.sample + packet.samples for packet in packets) > len(agent):
        return Unscored(reason="the recording lacks samples of this answer")
    samples = np.concatenate([agent[packet.sample : packet.sample + packet.samples] for packet in packets])
    index = first_audible_sample(samples, packets[0].rate_hz, turn.recording.rule)
    if index is None:
        return Unscored(reason="silent: the answer never becomes audible")
    return samples_to_ns(index, packets[0].rate_hz)


PRESET = Preset(
    name="coval",
    source="Coval benchmarks",
    says=(
        "From the last byte of the query written to the first chunk received plus that chunk's leading silence: "
        "silence at the end of the clip shortens it, and gaps while the answer plays are not seen."
    ),
    figures=FIGURES,
    compute=compute,
)
