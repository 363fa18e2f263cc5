"""tau-voice's panel over ticks: events, their counts and the eight figures.

Segments are runs of ticks with speech. Windows are whole ticks. The rules, as their code has them (each differs a
little from what one would guess):

- A 1-tick user segment in the last tick of all is the user's stop signal and is dropped.
- A segment's action is that of its first tick. Whether the other side speaks at its start is read in its first tick,
  at its end in the tick after its last.
- Response: every user segment that is no backchannel and ends with the agent silent. It is answered if an agent
  segment starts no later than the next such user segment; with neither it is left out.
- A user segment that starts while the agent speaks is a backchannel, a vocal tic, non-directed speech or an
  interruption, in that order of priority. The agent yields if one of the first `window` ticks is silent (2.0 s for
  interruptions, 1.0 s for the others, for which yielding is the error).
- A tic or non-directed speech with the agent silent is an error if an agent segment starts from its start to 2.0 s
  after its end.
- The same two outside user speech, while the agent speaks: an error if that agent segment ends within 1.0 s; if not,
  no event at all, so that such a rate can only see errors.
- I_A: agent segments that start while the user speaks, over the number of responses.

Source: tau2-bench, `src/tau2/metrics/voice_interaction_metrics.py` 1.0; timing definitions, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from harness.core.audio import NS_PER_MS, NS_PER_S
from harness.core.scorer import Unscored
from harness.core.ticks import BACKCHANNEL, Effect, Tick, Trajectory

YIELD_WINDOW_NS = 2_000 * NS_PER_MS
"""An interrupted agent has this long to fall silent."""
KEEP_WINDOW_NS = 1_000 * NS_PER_MS
"""An agent that falls silent this soon after a backchannel, tic or non-directed speech gave way to it."""
SILENT_WINDOW_NS = 2_000 * NS_PER_MS
"""An agent that starts this soon after a tic or non-directed speech answered it."""
MIN_N = 10
"""Figures over fewer events are hidden, as on the leaderboard."""

Kind = Literal["response", "yield", "backchannel", "vocal_tic", "non_directed", "agent_interrupts"]


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Ticks [start, end) in which one side speaks; other_at_start, other_at_end: whether the other side does then."""

    start: int
    end: int
    other_at_start: bool
    other_at_end: bool
    action: str = ""
    effects: frozenset[str] = frozenset()


class TauEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event. good: the agent did what it should. latency_s: of responses and yields that happened."""

    trajectory: str
    kind: Kind
    tick: int
    good: bool
    latency_s: float | None = None


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    n_simulations: int = 0
    response_total: int = 0
    yield_total: int = 0
    backchannel_total: int = 0
    vocal_tic_total: int = 0
    non_directed_total: int = 0
    agent_interrupts_count: int = 0


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """The figures under tau-voice's own names; latencies in s, rates in [0, 1], None where nothing happened."""

    response_latency_mean: float | None
    yield_latency_mean: float | None
    response_rate: float | None
    yield_rate: float | None
    agent_interruption_rate: float | None
    selectivity_backchannel: float | None
    selectivity_vocal_tic: float | None
    selectivity_non_directed: float | None
    counts: Counts

    def shown(self) -> dict[str, float | Unscored]:
        """The figures by their symbols, those over fewer than `MIN_N` events hidden with their n."""
        return {symbol: self._shown(field, total) for symbol, (field, total) in SYMBOLS.items()}

    def n(self) -> dict[str, int]:
        """Events behind each figure, by symbol."""
        return {symbol: int(getattr(self.counts, total)) for symbol, (_, total) in SYMBOLS.items()}

    def _shown(self, field: str, total: str) -> float | Unscored:
        value, n = getattr(self, field), getattr(self.counts, total)
        if value is None:
            return Unscored(reason="nothing of the kind happened")
        if n < MIN_N:
            return Unscored(reason=f"hidden: n = {n}, fewer than {MIN_N}")
        return float(value)


SYMBOLS = {
    "L_R_s": ("response_latency_mean", "response_total"),
    "L_Y_s": ("yield_latency_mean", "yield_total"),
    "R_R": ("response_rate", "response_total"),
    "R_Y": ("yield_rate", "yield_total"),
    "I_A": ("agent_interruption_rate", "response_total"),
    "S_BC": ("selectivity_backchannel", "backchannel_total"),
    "S_VT": ("selectivity_vocal_tic", "vocal_tic_total"),
    "S_ND": ("selectivity_non_directed", "non_directed_total"),
}
"""Symbol: the field of the panel and the count that it is hidden by."""


def panel_of(trajectories: Sequence[Trajectory]) -> Panel:
    """The panel of all trajectories together: events pooled, not panels averaged."""
    events = [event for trajectory in trajectories for event in events_of(trajectory)]
    of: dict[Kind, list[TauEvent]] = {}
    for event in events:
        of.setdefault(event.kind, []).append(event)
    responses, interrupts = len(of.get("response", ())), len(of.get("agent_interrupts", ()))
    return Panel(
        response_latency_mean=_mean(event.latency_s for event in of.get("response", ())),
        yield_latency_mean=_mean(event.latency_s for event in of.get("yield", ())),
        response_rate=_rate(of.get("response", ())),
        yield_rate=_rate(of.get("yield", ())),
        agent_interruption_rate=interrupts / responses if responses else None,
        selectivity_backchannel=_rate(of.get("backchannel", ())),
        selectivity_vocal_tic=_rate(of.get("vocal_tic", ())),
        selectivity_non_directed=_rate(of.get("non_directed", ())),
        counts=Counts(
            n_simulations=len(trajectories),
            response_total=responses,
            yield_total=len(of.get("yield", ())),
            backchannel_total=len(of.get("backchannel", ())),
            vocal_tic_total=len(of.get("vocal_tic", ())),
            non_directed_total=len(of.get("non_directed", ())),
            agent_interrupts_count=interrupts,
        ),
    )


def events_of(trajectory: Trajectory) -> list[TauEvent]:
    """All events of one trajectory, in order of their tick."""
    scene = _Scene(trajectory)
    found = [*scene.responses(), *scene.overlaps(), *scene.silent_segments(), *scene.stray_effects()]
    return sorted(found, key=lambda event: event.tick)


class _Scene:
    def __init__(self, trajectory: Trajectory) -> None:
        self._name = trajectory.name
        self._tick_ns = trajectory.tick_ns
        self._ticks = _without_stop_signal(trajectory.ticks)
        self._user = _segments(self._ticks, user=True)
        self._agent = _segments(self._ticks, user=False)

    def responses(self) -> Iterator[TauEvent]:
        owed = [s for s in self._user if s.action != BACKCHANNEL and not s.other_at_end]
        for index, segment in enumerate(owed):
            following = owed[index + 1] if index + 1 < len(owed) else None
            answer = next((s.start for s in self._agent if s.start >= segment.end), None)
            if answer is not None and (following is None or answer <= following.start):
                yield self._event("response", segment.end, good=True, ticks=answer - segment.end)
            elif following is not None:
                yield self._event("response", segment.end, good=False)

    def overlaps(self) -> Iterator[TauEvent]:
        for segment in self._user:
            if not segment.other_at_start:
                continue
            kind = _kind(segment)
            window = self._whole(YIELD_WINDOW_NS if kind == "yield" else KEEP_WINDOW_NS)
            heard = self._ticks[segment.start : segment.start + window]
            silent = next((index for index, tick in enumerate(heard) if not tick.agent), None)
            if kind == "yield":
                yield self._event(kind, segment.start, good=silent is not None, ticks=silent)
            else:
                yield self._event(kind, segment.start, good=silent is None)
        for segment in self._agent:
            if segment.other_at_start:
                yield self._event("agent_interrupts", segment.start, good=False)

    def silent_segments(self) -> Iterator[TauEvent]:
        for segment in self._user:
            kind = _kind(segment)
            if not segment.other_at_start and kind in ("vocal_tic", "non_directed"):
                yield self._event(kind, segment.start, good=not self._answered(segment.start, segment.end))

    def stray_effects(self) -> Iterator[TauEvent]:
        for effect, start, end in _outside_speech(self._ticks):
            kind: Kind = "vocal_tic" if effect.kind == "vocal_tic" else "non_directed"
            speaking = next((s for s in self._agent if s.start <= start < s.end), None)
            if speaking is None:
                yield self._event(kind, start, good=not self._answered(start, end))
            elif speaking.end - start <= self._whole(KEEP_WINDOW_NS):
                yield self._event(kind, start, good=False)

    def _answered(self, start: int, end: int) -> bool:
        last = end + self._whole(SILENT_WINDOW_NS)
        return any(start <= segment.start <= last for segment in self._agent)

    def _whole(self, window_ns: int) -> int:
        return window_ns // self._tick_ns

    def _event(self, kind: Kind, tick: int, *, good: bool, ticks: int | None = None) -> TauEvent:
        latency_s = None if ticks is None else ticks * self._tick_ns / NS_PER_S
        return TauEvent(trajectory=self._name, kind=kind, tick=tick, good=good, latency_s=latency_s)


def _without_stop_signal(ticks: Sequence[Tick]) -> Sequence[Tick]:
    if len(ticks) >= 2 and ticks[-1].user and not ticks[-2].user:
        return ticks[:-1]
    return ticks


def _segments(ticks: Sequence[Tick], *, user: bool) -> list[Segment]:
    found: list[Segment] = []
    start = None
    for index in range(len(ticks) + 1):
        speaks = index < len(ticks) and (ticks[index].user if user else ticks[index].agent)
        if speaks and start is None:
            start = index
        elif not speaks and start is not None:
            first, after = ticks[start], ticks[index] if index < len(ticks) else Tick()
            effects = {effect.kind for tick in ticks[start:index] for effect in tick.effects} if user else set()
            found.append(
                Segment(
                    start=start,
                    end=index,
                    other_at_start=first.agent if user else first.user,
                    other_at_end=after.agent if user else after.user,
                    action=first.action if user else "",
                    effects=frozenset(effects),
                )
            )
            start = None
    return found


def _kind(segment: Segment) -> Kind:
    if segment.action == BACKCHANNEL:
        return "backchannel"
    if "vocal_tic" in segment.effects:
        return "vocal_tic"
    return "non_directed" if "non_directed" in segment.effects else "yield"


def _outside_speech(ticks: Sequence[Tick]) -> list[tuple[Effect, int, int]]:
    """Tics and non-directed speech outside user segments: the effect and its ticks [start, end); the same one in
    consecutive ticks is one."""
    found: list[tuple[Effect, int, int]] = []
    for index, tick in enumerate(ticks):
        if tick.user:
            continue
        for effect in tick.effects:
            if effect.kind not in ("vocal_tic", "non_directed"):
                continue
            going = next((n for n, (known, _, end) in enumerate(found) if known == effect and end == index), None)
            if going is None:
                found.append((effect, index, index + 1))
            else:
                found[going] = (effect, found[going][1], index + 1)
    return found


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _rate(events: Sequence[TauEvent]) -> float | None:
    return sum(event.good for event in events) / len(events) if events else None
