"""How fast audio came against how long it plays, and what that says of its declared sample rate. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from harness.core.audio import NS_PER_S
from harness.core.events import AudioReceived

LEAST_NS = 2 * NS_PER_S
"""Less audio tells nothing: network jitter and a head start weigh too much."""
STEPS = 4
"""The packets that are compared lie a quarter of the audio apart: far above jitter, and a stall touches few pairs."""
LEAST_PAIRS = 3
RATES_HZ = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
FACTOR = 1.25
"""A pace that fits no usual sample rate is remarkable beyond this, either way; less may be a head start or jitter."""
NEAR = 0.03
"""How near the implied rate must lie to one of `RATES_HZ`; the closest two differ by a tenth."""


def pace_of(packets: Sequence[AudioReceived]) -> float | None:
    """Seconds of audio for each second in which they came: 1 for a peer that sends in real time.

    packets: of one answer, in order of arrival. The median over pairs of packets some way apart, so that a head
    start, a stall and the burst after it do not move it; infinite when everything came at once. None for less than two
    seconds of audio, or too few packets.
    """
    arrivals: list[int] = []
    played_ns: list[int] = []
    total_ns = 0
    for packet in packets:
        if packet.samples > 0 and packet.rate_hz > 0:
            arrivals.append(packet.t_ns)
            played_ns.append(total_ns)
            total_ns += packet.samples * NS_PER_S // packet.rate_hz
    if total_ns < LEAST_NS:
        return None
    slopes: list[float] = []
    other = 0
    for index, arrival in enumerate(arrivals):
        other = max(other, index + 1)
        while other < len(arrivals) and played_ns[other] - played_ns[index] < total_ns // STEPS:
            other += 1
        if other == len(arrivals):
            break
        came_ns = arrivals[other] - arrival
        slopes.append((played_ns[other] - played_ns[index]) / came_ns if came_ns > 0 else float("inf"))
    return median(slopes) if len(slopes) >= LEAST_PAIRS else None


def fitting_rate(declared_hz: int, pace: float) -> int | None:
    """The usual sample rate that fits the pace of a peer which sends in real time; None where none does.

    The declared rate itself, when that is the one.

    >>> fitting_rate(16_000, 1.5)
    24000
    """
    if not 0 < pace < 16:
        return None
    implied = declared_hz * pace
    nearest = min((declared_hz, *RATES_HZ), key=lambda rate: abs(rate - implied))
    return nearest if abs(nearest - implied) <= NEAR * nearest else None


def is_plausible(declared_hz: int, pace: float) -> bool:
    """Whether a peer that sends in real time may well have meant the rate that it declared."""
    fitting = fitting_rate(declared_hz, pace)
    return fitting == declared_hz or (fitting is None and 1 / FACTOR < pace < FACTOR)
