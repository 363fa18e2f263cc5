"""What became of a run's cues: met, late or timed out and why; and of scenarios that a peer took no part in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from harness.core.audio import NS_PER_MS, samples_to_ns
from harness.core.events import Note, PeerError, ScenarioEvent, StreamStarted
from harness.core.session.reader import Session

EXPLAINED = ("cue_timed_out", "deaf", "unheard", "scenario_cut")
"""Notes of a session that say why something was not as planned."""
NOT_RUN = "not_run"


class CueReport(msgspec.Struct, frozen=True, kw_only=True):
    """agent_cues: events that hang on the agent. late_ms: how much later than planned the speech of those began whose
    anchor was known too late, by session and event. rules: how the anchors were known. explained: a line for each thing
    that was not as planned. not_run: sessions by the reason why their scenario was not played."""

    agent_cues: int
    exact: int
    timed_out: int
    late_ms: dict[str, float]
    rules: dict[str, int]
    explained: tuple[str, ...]
    not_run: dict[str, int]

    @property
    def lines(self) -> Iterator[str]:
        """For a person; nothing where all went as planned."""
        for reason, sessions in self.not_run.items():
            yield f"not run: {sessions} {'scenario' if sessions == 1 else 'scenarios'}: {reason}"
        if self.agent_cues > self.exact:
            kinds = [f"{len(self.late_ms)} late"] * bool(self.late_ms)
            kinds += [f"{self.timed_out} timed out"] * bool(self.timed_out)
            yield f"{self.exact} of {self.agent_cues} cues on the agent met exactly; {', '.join(kinds)}"
        for name, late in self.late_ms.items():
            yield f"  {name}: {late:.0f} ms late"
        for line in self.explained:
            yield f"  {line}"


def cue_report(sessions: Iterable[Session]) -> CueReport:
    """The report of a run's sessions; warm-ups are left out."""
    late: dict[str, float] = {}
    rules: Counter[str] = Counter()
    not_run: Counter[str] = Counter()
    explained: list[str] = []
    exact = timed_out = 0
    for session in sessions:
        if session.header.warmup:
            continue
        name = session.header.session
        events = list(session.of(ScenarioEvent))
        refusal = next((error for error in session.of(PeerError) if error.fatal), None)
        if refusal is not None and not events:
            not_run[refusal.message or refusal.code] += 1
        for event in events:
            if not event.anchor.startswith("agent"):
                continue
            rules[event.anchor_rule] += 1
            exact += event.offset_exact
            timed_out += event.timed_out
            if not (event.offset_exact or event.timed_out):
                late[f"{name} {event.event}"] = _late_ms(session, event)
        for note in session.of(Note):
            if note.code == NOT_RUN:
                not_run[note.message] += 1
            elif note.code in EXPLAINED:
                explained.append(f"{name}: {note.message}")
    return CueReport(
        agent_cues=rules.total(),
        exact=exact,
        timed_out=timed_out,
        late_ms=late,
        rules=dict(rules),
        explained=tuple(explained),
        not_run=dict(not_run),
    )


def _late_ms(session: Session, event: ScenarioEvent) -> float:
    stream = next(session.of(StreamStarted))
    begins_ns = stream.t_ns + samples_to_ns(event.speech_start - stream.sample, stream.rate_hz)
    return round((begins_ns - event.anchor_ns - event.planned_delay_ns) / NS_PER_MS, 3)
