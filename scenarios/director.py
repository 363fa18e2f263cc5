"""The director of one session: says which event of a script goes to which sample of the user's stream, and when.

Pure: fed with instants on the session's clock and with the position of the stream; sends, records and listens to
nothing itself. Whoever feeds it hears the agent ahead of playout, so the instants told may lie in the future.

An event is handed out only when its first sample is about to leave. Until then everything may change: the agent may
begin again, or what was going to be heard may be flushed. Its speech begins exactly `delay_ns` after the anchor if that
sample has not left yet; the silence before the speech in a clip is shortened where there is no time for it. Else the
speech begins with the next sample, and `offset_exact` is False.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from harness.core.audio import NS_PER_MS, NS_PER_S, Int16, audio_sha256, samples_to_ns
from harness.core.events import ScenarioEvent
from harness.core.scenario import EndRule
from scenarios.compiler import Script, ScriptEvent

NEW_START_NS = 300 * NS_PER_MS
"""The agent begins anew after being silent for so long, or after a flush; a shorter gap is a breath."""
OVER_MS = 600
"""Unless a run says otherwise, the agent's turn is over after a silence of this length (the gap that joins utterances
in the timing definitions) in which no text of its answer came, or as soon as the peer has said that it has ended."""
QUIET_NS = 1_500 * NS_PER_MS
"""Without `linger_ms` a session ends so long after the answer to the last event."""
LISTEN_NS = 4 * NS_PER_S
"""... and no sooner than this after an event that wants no answer: a false start takes its time."""
LONGEST_LINGER_NS = 15 * NS_PER_S
"""... and this long after the last event in any case."""


class Placement(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An event on the user's timeline. samples go to sample `clip_sample` of the stream. rule: how the anchor was
    known. missed: what of the agent was waited for in vain."""

    event: ScriptEvent
    samples: Int16
    clip_sample: int
    speech_start: int
    speech_end: int
    anchor_ns: int
    planned_delay_ns: int
    offset_exact: bool
    timed_out: bool
    rule: str = ""
    missed: str = ""

    def record(self, t_ns: int, *, category: str = "", tags: tuple[str, ...] = ()) -> ScenarioEvent:
        """What the session records. tags: of the scenario, put before the event's own."""
        plan = self.event.plan
        whole = len(self.samples) == len(self.event.clip.samples)
        return ScenarioEvent(
            t_ns=t_ns,
            event=plan.id,
            kind=plan.kind,
            expect=plan.expect,
            clip=plan.clip,
            clip_sample=self.clip_sample,
            clip_samples=len(self.samples),
            speech_start=self.speech_start,
            speech_end=self.speech_end,
            anchor=plan.at,
            anchor_ns=self.anchor_ns,
            planned_delay_ns=self.planned_delay_ns,
            offset_exact=self.offset_exact,
            timed_out=self.timed_out,
            anchor_rule=self.rule,
            category=category,
            tags=(*tags, *plan.tags),
            impairment=self.event.impairment,
            audio_sha256=self.event.audio_sha256 if whole else audio_sha256(self.samples),
        )


class _Plan(NamedTuple):
    """Where an event's speech is meant to begin, as things stand. missed: why that is not where it was to be."""

    speech_at: int
    anchor_ns: int
    delay_ns: int
    rule: str = ""
    missed: str = ""


class _End(NamedTuple):
    """When the agent's turn was over, and how that was known."""

    at_ns: int
    rule: str


class _Speech(msgspec.Struct):
    """A stretch of the agent's speech as heard. end_ns None: still going on. fresh: it followed a flush. final: the
    peer's word that nothing follows. wrote_ns: when the last text came before the next stretch."""

    start_ns: int
    end_ns: int | None = None
    fresh: bool = False
    final: EndRule = ""
    wrote_ns: int = 0


class Director:
    """Drives one session whose user stream began at `start_ns` and runs without a break.

    ahead_samples: how long before its first sample leaves an event is handed out; at least the time between two calls
    of `advance`, in samples. over_ms: the silence after which the agent's turn is over.
    """

    def __init__(self, script: Script, start_ns: int, *, ahead_samples: int, over_ms: int = OVER_MS) -> None:
        self._script = script
        self._start_ns = start_ns
        self._ahead = ahead_samples
        self._over_ns = over_ms * NS_PER_MS
        self._writes = False
        self._behind_ns = 0
        self._waiting = list(script.events)
        self._placed: dict[str, Placement] = {}
        self._agent: list[_Speech] = []
        self._flushed = False

    def instant_of(self, sample: int) -> int:
        """When sample `sample` of the user's stream is captured."""
        return self._start_ns + samples_to_ns(sample, self._script.rate_hz)

    # --- what the agent does ------------------------------------------------------------------------------------

    def agent_started(self, heard_ns: int) -> None:
        """The agent's speech is (or will be) heard from `heard_ns` on; told again, it began there after all."""
        if self._agent and self._agent[-1].end_ns is None:
            before_ns = self._agent[-2].end_ns if len(self._agent) > 1 else None
            self._agent[-1].start_ns = heard_ns if before_ns is None else max(heard_ns, before_ns)
            return
        self._agent.append(_Speech(heard_ns, fresh=self._flushed))
        self._flushed = False

    def agent_stopped(self, heard_ns: int, *, final: EndRule = "") -> None:
        """It is (or will be) heard until `heard_ns`. final: the peer's word that nothing follows it."""
        if not self._agent:
            return
        speech = self._agent[-1]
        if speech.end_ns is None:
            speech.end_ns = max(heard_ns, speech.start_ns)
        speech.final = speech.final or final

    def agent_wrote(self, t_ns: int) -> None:
        """Text of the agent's answer came: a silence that it falls into is a pause."""
        self._writes = True
        if self._agent:
            self._agent[-1].wrote_ns = t_ns

    def agent_flushed(self, heard_ns: int) -> None:
        """Playout was emptied: nothing that was going to be heard from `heard_ns` on will be. Sound that comes after it
        is told by a new `agent_started`."""
        kept = [speech for speech in self._agent if speech.start_ns < heard_ns]
        cut = len(kept) < len(self._agent)
        if kept and (kept[-1].end_ns is None or kept[-1].end_ns > heard_ns):
            kept[-1].end_ns, kept[-1].final = heard_ns, ""
            cut = True
        self._agent = kept
        self._flushed = self._flushed or cut

    # --- what the user does -------------------------------------------------------------------------------------

    def advance(self, now_ns: int, position: int, *, behind_ns: int = 0) -> list[Placement]:
        """The events to put now. position: the first sample of the stream that can still be changed. behind_ns: how
        far whoever feeds it may be behind: a silence has to be so much older to count."""
        self._behind_ns = behind_ns
        placed: list[Placement] = []
        again = True
        while again:  # what has just been placed may be the anchor of what begins with it
            again = False
            for event in list(self._waiting):
                plan = self._plan(event, now_ns)
                if plan is None:
                    continue
                target = max(plan.speech_at, self._mouth_free(event))
                if target - event.clip.speech_start > position + self._ahead:
                    continue
                placed.append(self._put(event, plan, target, position))
                self._waiting.remove(event)
                again = True
        return placed

    def over(self, now_ns: int) -> bool:
        """Whether the session may end: everything was said and the rest listened to."""
        if self._waiting:
            return False
        ends = {name: self.instant_of(placed.speech_end) for name, placed in self._placed.items()}
        last_ns = max(ends.values())
        linger_ms = self._script.scenario.linger_ms
        if linger_ms is not None:
            return now_ns >= last_ns + linger_ms * NS_PER_MS
        if now_ns >= last_ns + LONGEST_LINGER_NS:
            return True
        wanted = [p for p in self._placed.values() if p.event.plan.expect in ("respond", "stop")]
        unwanted = [ends[name] for name, p in self._placed.items() if p not in wanted]
        if now_ns < max(unwanted, default=last_ns - LISTEN_NS) + LISTEN_NS:
            return False
        if wanted and self._answer(max(wanted, key=lambda p: p.speech_end)) is None:
            return False
        silent_ns = self._agent[-1].end_ns if self._agent else last_ns
        return silent_ns is not None and now_ns >= max(silent_ns, last_ns) + QUIET_NS

    # --- how ----------------------------------------------------------------------------------------------------

    def _plan(self, event: ScriptEvent, now_ns: int) -> _Plan | None:
        plan = event.plan
        if plan.at == "session_start":
            return self._after(self._start_ns, event.delay_ns)
        after = self._placed.get(plan.after)
        if after is None:
            return None
        if plan.at == "user_end":
            # In samples, so that no instant's rounding moves the speech.
            delay = round(event.delay_ns * self._script.rate_hz / NS_PER_S)
            return _Plan(after.speech_end + delay, self.instant_of(after.speech_end), event.delay_ns)
        first = self._answer(after)
        if first is not None and plan.at == "agent_start":
            return self._after(first, event.delay_ns, rule="speech")
        end = None if first is None else self._end_of(first, now_ns)
        if end is not None:
            return self._after(end.at_ns, event.delay_ns, rule=end.rule)
        deadline_ns = self.instant_of(after.speech_end) + plan.timeout_ms * NS_PER_MS
        if now_ns < deadline_ns:
            return None
        what = "no answer was heard" if first is None else "the answer was not over"
        missed = f"{plan.id}: {what} within {plan.timeout_ms} ms of the end of {plan.after}"
        return self._after(deadline_ns, 0, rule="timeout", missed=missed)

    def _after(self, anchor_ns: int, delay_ns: int, *, rule: str = "", missed: str = "") -> _Plan:
        sample = round((anchor_ns + delay_ns - self._start_ns) * self._script.rate_hz / NS_PER_S)
        return _Plan(sample, anchor_ns, delay_ns, rule, missed)

    def _answer(self, after: Placement) -> int | None:
        """When the agent began to answer: its first new start after the event's speech, or one during that speech that
        is still going on at its end."""
        begin_ns, end_ns = self.instant_of(after.speech_start), self.instant_of(after.speech_end)
        quiet_since_ns: int | None = None
        for speech in self._agent:
            new = speech.fresh or quiet_since_ns is None or speech.start_ns - quiet_since_ns >= NEW_START_NS
            lasts = speech.end_ns is None or speech.end_ns >= end_ns
            if new and (speech.start_ns >= end_ns or (speech.start_ns > begin_ns and lasts)):
                return speech.start_ns
            quiet_since_ns = speech.end_ns
        return None

    def _end_of(self, first_ns: int, now_ns: int) -> _End | None:
        """When the agent's turn that began at `first_ns` was over, None while it is not known to be."""
        ends: _Speech | None = None
        for speech in self._agent:
            if speech.start_ns < first_ns:
                continue
            if ends is not None and ends.end_ns is not None:
                silent_since_ns = max(ends.end_ns, ends.wrote_ns)
                if speech.start_ns >= silent_since_ns + self._over_ns:
                    break
            ends = speech
        if ends is None or ends.end_ns is None:
            return None
        if ends.final:
            return _End(ends.end_ns, ends.final)
        if now_ns < max(ends.end_ns, ends.wrote_ns) + self._over_ns + self._behind_ns:
            return None
        return _End(ends.end_ns, "silence_and_text" if self._writes else "silence")

    def _mouth_free(self, event: ScriptEvent) -> int:
        """The first sample at which the user, who has one mouth, can say something."""
        if event.plan.source != "say":
            return 0
        return max((p.speech_end for p in self._placed.values() if p.event.plan.source == "say"), default=0)

    def _put(self, event: ScriptEvent, plan: _Plan, target: int, position: int) -> Placement:
        clip = event.clip
        cut = min(max(position - (target - clip.speech_start), 0), clip.speech_start)
        clip_sample = max(target - clip.speech_start + cut, position)
        speech_start = clip_sample + clip.speech_start - cut
        placement = Placement(
            event=event,
            samples=clip.samples[cut:],
            clip_sample=clip_sample,
            speech_start=speech_start,
            speech_end=speech_start + event.speech_samples,
            anchor_ns=plan.anchor_ns,
            planned_delay_ns=plan.delay_ns,
            offset_exact=speech_start == plan.speech_at and not plan.missed,
            timed_out=bool(plan.missed),
            rule=plan.rule,
            missed=plan.missed,
        )
        self._placed[event.plan.id] = placement
        return placement
