"""The anchors of a turn: instants on the session's clock, each with its event, or why there is none."""

from __future__ import annotations

from functools import cached_property

from harness.core.events import CommandSent, TextReceived, UserSpeechStopped
from harness.core.scorer import Unscored
from scoring.timing.response import Response
from scoring.timing.timeline import Instant, Point
from scoring.timing.turn import NEVER_PUT, Turn

INPUT = ("connect", "stream_start", "speech_start", "speech_end", "speech_sent", "committed", "endpoint")
"""Anchors on the user's side. The first two are no start of any metric here; the matrix shows what they would give."""
OUTPUT = ("first_text", "first_packet", "first_audible", "last_packet", "done")
NAMES = INPUT + OUTPUT


class Anchors:
    """All anchors of one turn, each computed on first use."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._continuous = turn.session.header.profile.continuous

    def get(self, name: str) -> Point:
        """The anchor of that name. Raises AttributeError for a name outside `NAMES`."""
        point: Point = getattr(self, name)
        return point

    @cached_property
    def connect(self) -> Point:
        """The session's connection was begun."""
        return self.turn.recording.phases.get("started") or Unscored(reason="the connection's start was not recorded")

    @cached_property
    def stream_start(self) -> Point:
        """The stretch of stream that holds the speech began."""
        started = self.turn.started
        if started is None:
            return NEVER_PUT
        return self.turn.recording.timeline.segment_start(started.speech_start)

    @property
    def speech_start(self) -> Point:
        """First sample of the user's speech on the media timeline."""
        return self.turn.speech_start

    @property
    def speech_end(self) -> Point:
        """One past the last sample of the user's speech on the media timeline."""
        return self.turn.speech_end

    @property
    def speech_sent(self) -> Point:
        """The anchor packet's write was complete (upload: that of the last packet)."""
        return self.turn.speech_sent

    @cached_property
    def committed(self) -> Point:
        """The turn's `commit` was written; of several, the last before the answer began."""
        commits = [e for e in self.turn.session.of(CommandSent) if e.command == "commit" and self._ours(e)]
        before = [event for event in commits if event.seq <= self._answer_seq]
        if commits:
            event = before[-1] if before else commits[0]
            return Instant(t_ns=event.t_ns, seq=event.seq)
        if self.turn.session.header.mode != "manual":
            return Unscored(reason="only manual turns are committed")
        return Unscored(reason="the turn was not committed")

    @cached_property
    def endpoint(self) -> Point:
        """The peer's word that it heard the end of speech.

        The last such word at or before the answer's start, and not before `speech_end`; without an answer, the first
        after `speech_end`. A word inside the query is what the peer made of a pause, so it is no endpoint.
        """
        if self.turn.session.header.mode in ("manual", "upload"):
            return Unscored(reason="the peer does not look for the end of speech in this mode")
        if not isinstance(self.turn.speech_end, Instant):
            return self.turn.speech_end
        inside, found = False, None
        for event in self.turn.session.of(UserSpeechStopped):
            if not (self.turn.begin_ns <= event.t_ns < self.turn.end_ns) or event.seq > self._answer_seq:
                continue
            if event.t_ns < self.turn.speech_end.t_ns:
                inside = True
            elif found is None or self._answer is not None:
                found = event
        if found is not None:
            return Instant(t_ns=found.t_ns, seq=found.seq)
        if inside:
            return Unscored(reason="the peer heard an end of speech only inside the query")
        return Unscored(reason="the peer gave no word of the end of speech")

    @cached_property
    def first_text(self) -> Point:
        """First output text that is more than white space, or first generated token, of the answer."""
        texts = self._stream_texts() if self._continuous else (self._answer.texts if self._answer else [])
        for event in texts:
            if event.text.strip():
                return Instant(t_ns=event.t_ns, seq=event.seq)
        if self._continuous or self._answer is not None:
            return Unscored(reason="the answer has no text")
        return self._no_answer()

    @cached_property
    def first_packet(self) -> Point:
        """First packet of the answer with a decoded sample."""
        if self._continuous:
            return Unscored(reason="continuous peer: its audio never stops")
        if self._answer is None:
            return self._no_answer()
        packet = self._answer.packets[0]
        return Instant(t_ns=packet.t_ns, seq=packet.seq)

    @cached_property
    def first_audible(self) -> Point:
        """First audible sample of the answer in the zero-buffer playout."""
        if self._continuous:
            utterance = self.turn.utterance
            return utterance.start if utterance is not None else self._no_answer()
        if self._answer is None:
            return self._no_answer()
        return self.turn.recording.listener.first_audible(self._answer.packets)

    @cached_property
    def last_packet(self) -> Point:
        """Last audio packet of the answer."""
        if self._continuous:
            return Unscored(reason="continuous peer: its audio never stops")
        if self._answer is None:
            return self._no_answer()
        packet = max(self.turn.packets, key=lambda event: event.seq)
        return Instant(t_ns=packet.t_ns, seq=packet.seq)

    @cached_property
    def done(self) -> Point:
        """The peer's end-of-response event of the last used response."""
        if self._continuous:
            return Unscored(reason="continuous peer: no responses")
        if self._answer is None:
            return self._no_answer()
        event = self.turn.used[-1].done
        if event is None:
            return Unscored(reason="the peer did not say that the answer was over")
        return Instant(t_ns=event.t_ns, seq=event.seq)

    @property
    def output(self) -> Point:
        """The instant that the harness's own error is judged at: `first_packet`, else `first_audible`."""
        return self.first_packet if isinstance(self.first_packet, Instant) else self.first_audible

    @property
    def _answer(self) -> Response | None:
        return self.turn.used[0] if self.turn.used else None

    @cached_property
    def _answer_seq(self) -> int:
        """Events after this one do not lead to the answer."""
        if self._answer is not None:
            return self._answer.start.seq
        if self.turn.utterance is not None:
            return self.turn.utterance.start.seq
        return len(self.turn.session.events)

    def _ours(self, event: CommandSent) -> bool:
        if event.turn is not None:
            return event.turn == self.turn.number
        return self.turn.begin_ns <= event.t_ns < self.turn.end_ns

    def _stream_texts(self) -> list[TextReceived]:
        end = self.turn.speech_end
        if not isinstance(end, Instant):
            return []
        return [e for e in self.turn.session.of(TextReceived) if end.t_ns <= e.t_ns < self.turn.end_ns]

    def _no_answer(self) -> Unscored:
        if self.turn.started is None:
            return NEVER_PUT
        early = self.turn.early_utterances if self._continuous else self.turn.early
        if early and not self.turn.later:
            return Unscored(reason="early: the peer answered only before the query was over")
        return Unscored(reason="no answer with audio" if self.turn.later else "no answer")
