"""A live session's turns as far as they are known while it runs: for the eye, not for the record.

Where speech begins and ends is told by the process that hears; figures follow the definitions of `scoring.timing` for
what is simple in them. The recording is scored afterwards, from its own marks.
"""

from __future__ import annotations

from collections import deque

import msgspec

from harness.core.audio import NS_PER_MS
from harness.core.events import AudioReceived, CommandSent, Event, ResponseStarted, TextReceived
from harness.core.profile import Profile, TurnControl
from harness.live.answer import Answer
from harness.live.turn_rule import JOIN_NS, goes_on
from harness.run.ear_channel import Concluded, FromEar, Started, Stopped
from harness.run.utterance_watch import UtteranceWatch

KEPT = 50
"""Turns, and answers, that are kept: a session of hours takes no more."""
RECENT = 500
"""Chunks whose departure is remembered: ten seconds."""


class TurnFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one turn, in ms; None: not yet, or never. barge_in_stop: of the answer that this turn cut.

    start_ns, end_ns: of the user's speech. sent_ns: when its last chunk left, or it was committed; TTFT and first
    packet count from there.
    """

    number: int
    speaking: bool
    start_ns: int
    end_ns: int | None = None
    sent_ns: int | None = None
    ttft_ms: float | None = None
    first_packet_ms: float | None = None
    first_audible_ms: float | None = None
    barge_in_stop_ms: float | None = None


class _Turn:
    def __init__(self, number: int, start_ns: int) -> None:
        self.number = number
        self.start_ns = start_ns
        self.end_ns: int | None = None
        self.sent_ns: int | None = None
        self.committed_ns: int | None = None


class LiveTurns:
    """`take` every event of the session, `left` every chunk of the user's; an ear of the `EarDesk` for the user."""

    def __init__(self, profile: Profile, turn: TurnControl) -> None:
        self._flush_on = frozenset(profile.flush_on)
        self._manual = turn == "manual"
        self._utterances = UtteranceWatch() if profile.continuous else None
        self._turns: deque[_Turn] = deque(maxlen=KEPT)
        self._answers: deque[Answer] = deque(maxlen=KEPT)
        self._left: deque[tuple[int, int]] = deque(maxlen=RECENT)
        self._texts: deque[int] = deque(maxlen=RECENT)
        self._play_end_ns = 0
        self.count = 0
        """Turns so far."""
        self.deaf = ""
        """Why no turns are found any more."""
        self.unheard = 0

    def left(self, captured_end_ns: int, sent_ns: int) -> None:
        """A chunk whose last sample was captured at `captured_end_ns` was handed to the transport."""
        self._left.append((captured_end_ns, sent_ns))

    def take(self, event: Event) -> None:
        """Learn from one event; returns at once."""
        if event.__struct_config__.tag in self._flush_on:
            self._flush(event.t_ns)
        if isinstance(event, AudioReceived):
            if event.samples > 0:
                self._hear(event)
        elif isinstance(event, ResponseStarted | TextReceived) and self._utterances is None:
            answer = self._answer(event.response, event.t_ns)
            if isinstance(event, TextReceived):
                answer.write(event)
        elif isinstance(event, TextReceived) and event.text.strip():
            self._texts.append(event.t_ns)
        elif isinstance(event, CommandSent) and event.command == "commit" and self._turns:
            turn = self._turns[-1]
            turn.committed_ns = turn.committed_ns or event.t_ns  # a second one: nothing was said since

    def told(self, message: FromEar) -> None:
        """The process that hears found where the user's speech begins or ends."""
        if isinstance(message, Started):
            self._started(message.t_ns, moved=message.again)
        elif isinstance(message, Stopped | Concluded) and message.t_ns is not None:
            self._stopped(message.t_ns)

    def lost(self, why: str) -> None:
        self.deaf = why

    def dropped(self) -> None:
        self.unheard += 1

    def rows(self, last: int = KEPT) -> list[TurnFigures]:
        """The last turns, in order."""
        turns = list(self._turns)[-last:]
        following = [*(turn.start_ns for turn in turns[1:]), None]
        return [self._figures(turn, until) for turn, until in zip(turns, following, strict=False)]

    def _started(self, t_ns: int, *, moved: bool) -> None:
        current = self._turns[-1] if self._turns else None
        if current is not None and moved and current.end_ns is None:
            if t_ns > current.start_ns - JOIN_NS:
                current.start_ns = min(current.start_ns, t_ns)
            return
        if current is not None:
            end_ns = current.end_ns if current.end_ns is not None else t_ns
            committed = current.committed_ns is not None and current.committed_ns <= t_ns
            answered = any(end_ns <= answer.begin_ns < t_ns for answer in self._answers if answer.sounded)
            if goes_on(t_ns - end_ns, answered=answered, committed=committed):
                current.end_ns = current.sent_ns = None
                return
        self.count += 1
        self._turns.append(_Turn(self.count, t_ns))

    def _stopped(self, t_ns: int) -> None:
        if not self._turns:
            return
        turn = self._turns[-1]
        turn.end_ns = t_ns
        turn.sent_ns = next((sent_ns for captured_ns, sent_ns in self._left if captured_ns >= t_ns), None)

    def _hear(self, event: AudioReceived) -> None:
        if self._utterances is None:
            answer = self._answer(event.response, event.t_ns)
            self._play_end_ns = answer.play(event, self._play_end_ns)
            return
        before = self._utterances.began_after(0)
        self._utterances.take(event)
        began_ns = self._utterances.began_after(0)
        if began_ns is not None and began_ns != before:
            self._answers.append(Answer("", began_ns, audible_ns=began_ns))
        if self._answers and self._utterances.quiet_s == 0:
            self._answers[-1].end_ns = event.t_ns

    def _answer(self, response: str, t_ns: int) -> Answer:
        for answer in reversed(self._answers):
            if answer.response == response and (response or not self._turn_since(answer.begin_ns)):
                return answer
        self._answers.append(Answer(response, t_ns))
        return self._answers[-1]

    def _turn_since(self, t_ns: int) -> bool:
        """Whether the user's turn ended after `t_ns`: what a peer without names for its answers says then is new."""
        return any(turn.end_ns is not None and turn.end_ns > t_ns for turn in self._turns)

    def _flush(self, t_ns: int) -> None:
        if self._play_end_ns > t_ns:
            self._play_end_ns = t_ns
            for answer in self._answers:
                answer.flush(t_ns)

    def _figures(self, turn: _Turn, until_ns: int | None) -> TurnFigures:
        answer = self._answer_to(turn, until_ns)
        sent_ns = turn.committed_ns if self._manual else turn.sent_ns
        text_ns = None if answer is None else answer.text_ns
        if self._utterances is not None and turn.end_ns is not None:
            text_ns = next((t for t in self._texts if t >= turn.end_ns and (until_ns is None or t < until_ns)), None)
        return TurnFigures(
            number=turn.number,
            speaking=turn.end_ns is None,
            start_ns=turn.start_ns,
            end_ns=turn.end_ns,
            sent_ns=sent_ns,
            ttft_ms=_ms(sent_ns, text_ns),
            first_packet_ms=_ms(sent_ns, None if answer is None else answer.packet_ns),
            first_audible_ms=_ms(turn.end_ns, None if answer is None else answer.audible_ns),
            barge_in_stop_ms=self._stop_ms(turn),
        )

    def _answer_to(self, turn: _Turn, until_ns: int | None) -> Answer | None:
        """The first answer with sound that began after the turn's speech and before the next turn's."""
        end_ns = turn.end_ns
        if end_ns is None:
            return None
        for answer in self._answers:
            if answer.sounded and answer.begin_ns >= end_ns and (until_ns is None or answer.begin_ns < until_ns):
                return answer
        return None

    def _stop_ms(self, turn: _Turn) -> float | None:
        """From the onset of the user's speech until the answers that were being heard are not any more."""
        ends = [answer.heard_until_ns for answer in self._answers if answer.heard_at(turn.start_ns)]
        return _ms(turn.start_ns, max(ends)) if ends else None


def _ms(from_ns: int | None, to_ns: int | None) -> float | None:
    return None if from_ns is None or to_ns is None else (to_ns - from_ns) / NS_PER_MS
