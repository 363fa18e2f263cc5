"""What a listener without a buffer hears of each answer, by the agent's own writes: for the truth log.

Where sound begins and ends is decided by energy on the clean samples (`harness.core.speech_edges`); no network, and
nothing that a codec does to it, takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from connectors.agent.plan import Plan, sound_edges
from harness.core.audio import ns_to_samples, samples_to_ns


class _Packet(NamedTuple):
    """Samples [first, end) of an answer, heard from `start_ns` on."""

    start_ns: int
    first: int
    end: int


class _Sounding(NamedTuple):
    plan: Plan
    packets: list[_Packet]

    @property
    def sent(self) -> int:
        return self.packets[-1].end if self.packets else 0

    def samples_at(self, t_ns: int) -> int:
        """How many samples have been heard by `t_ns`."""
        heard = 0
        for packet in self.packets:
            if packet.start_ns < t_ns:
                heard = min(packet.end, packet.first + ns_to_samples(t_ns - packet.start_ns, self.plan.rate_hz))
        return heard

    def instant_of(self, sample: int) -> int:
        packet = next(each for each in self.packets if sample < each.end)
        return packet.start_ns + samples_to_ns(sample - packet.first, self.plan.rate_hz)


class Heard:
    """The answers of session number `session`; several may be on their way to the ear. record: takes `heard` records.

    A packet is heard when it has been written and what was sent before has been heard.
    """

    def __init__(self, session: int, record: Callable[[tuple[Any, ...]], None]) -> None:
        self._session = session
        self._record = record
        self._sounding: dict[str, _Sounding] = {}
        self._end_ns = 0

    def begins(self, plan: Plan) -> None:
        """An answer that has no packet yet."""
        self._sounding[plan.response] = _Sounding(plan, [])

    def said(self, response: str, samples: int, length_ns: int, at_ns: int) -> None:
        """A packet was written at `at_ns`: `samples` of an answer and, where audio never stops, silence after them or
        alone."""
        start_ns = max(self._end_ns, at_ns)
        self._end_ns = start_ns + length_ns
        sounding = self._sounding.get(response)
        if sounding is not None and samples > 0:
            sounding.packets.append(_Packet(start_ns, sounding.sent, sounding.sent + samples))

    def samples_at(self, response: str, t_ns: int) -> int:
        """How many samples of this answer, if it is not over, have been heard by `t_ns`."""
        sounding = self._sounding.get(response)
        return 0 if sounding is None else sounding.samples_at(t_ns)

    def close(self, t_ns: int) -> None:
        """The listener is gone."""
        for response in list(self._sounding):
            self.over(response, cut_ns=t_ns)

    def over(self, response: str, *, cut_ns: int | None = None) -> None:
        """Nothing more of this answer will be written. cut_ns: the listener falls silent then."""
        sounding = self._sounding.pop(response, None)
        if sounding is None:
            return
        samples = sounding.sent
        if cut_ns is not None:
            samples = sounding.samples_at(cut_ns)
            self._end_ns = min(self._end_ns, cut_ns)
        plan = sounding.plan
        cut = samples < plan.samples
        edges = sound_edges(plan.sound[:samples], plan.rate_hz) if cut else plan.edges
        begin_ns = end_ns = None
        if edges is not None and 0 < samples <= sounding.sent:
            last = min(edges.end, samples) - 1  # sound that was not sent is not heard
            begin_ns, end_ns = sounding.instant_of(min(edges.start, last)), sounding.instant_of(last)
        self._record(("heard", self._session, response, begin_ns, end_ns, samples, cut))
