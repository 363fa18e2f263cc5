"""What a preset may look at: one recording, its conversation, the words and the Silero spans of its channels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from harness.core.events import ScenarioEvent, TurnStarted
from harness.core.scorer import Unscored
from harness.core.session.reader import Session
from scoring.duplex.presets.voices import Voices, voices_of
from scoring.duplex.presets.words import NO_WORDS, Words
from scoring.duplex.spans import Conversation, Span, UserSpan
from scoring.timing.anchors import Anchors
from scoring.timing.recording import Recording
from scoring.timing.turn import Turn, turns_of

NO_SESSION = Unscored(reason="there is no session, only a conversation")
IMPORTED = Unscored(reason="imported: nobody stamped its packets")
NO_CONVERSATION = Unscored(reason="the session has no conversation")


class Material:
    """One recording, read-only; each property is computed on first use.

    recording: the session. conversation: its spans as heard. words: of the agent as heard. voices: Silero's spans,
    computed from the session where not given. backchannels: when people backchannel,
    as weights over a turn (for `fdb`).
    """

    def __init__(
        self,
        *,
        recording: Recording | None = None,
        conversation: Conversation | None = None,
        words: Words | Unscored = NO_WORDS,
        voices: Voices | None = None,
        backchannels: Sequence[float] = (),
        name: str = "",
    ) -> None:
        self.recording = recording
        self.conversation = conversation
        self.words = words
        self.backchannels = tuple(backchannels)
        self.name = name or (recording.session.header.session if recording is not None else "")
        self._voices = voices

    @cached_property
    def turns(self) -> list[tuple[Turn, Anchors]]:
        """The session's turns with their anchors: of a scenario, those of `user_turns`; none where there is no
        session."""
        if self.recording is None:
            return []
        said = _said(self.recording.session)
        return [(turn, Anchors(turn)) for turn in turns_of(self.recording, said)]

    @property
    def unstamped(self) -> Unscored | None:
        """Why there are no sends and arrivals to look at, if there are none."""
        if self.recording is None:
            return NO_SESSION
        return IMPORTED if self.recording.session.header.imported else None

    @cached_property
    def user_turns(self) -> tuple[UserSpan, ...]:
        """The user's turns that ask for the agent, in order: spans of kind `turn` that it should not sit out."""
        if self.conversation is None:
            return ()
        turns = [span for span in self.conversation.user if _asks(span.kind, span.expect)]
        return tuple(sorted(turns, key=lambda span: span.start_ns))

    @cached_property
    def voices(self) -> Voices | Unscored:
        """Silero's own spans of both channels; those of the conversation where there is no audio to look at."""
        if self._voices is not None:
            return self._voices
        if self.recording is not None and not self._soundless:
            return voices_of(self.recording)
        if self.conversation is None:
            return NO_SESSION if self.recording is None else NO_CONVERSATION
        user = tuple(Span(s.start_ns, s.end_ns) for s in self.conversation.user if s.kind != "noise")
        name = "spans of the conversation"
        return Voices(user=user, agent=self.conversation.agent, origin_ns=self.conversation.begin_ns, detector=name)

    @property
    def _soundless(self) -> bool:
        """Imported intervals: when a side speaks is known, its sound is not."""
        header = self.recording.session.header if self.recording is not None else None
        return header is not None and bool(header.imported) and not (header.user.samples and header.agent.samples)


def _asks(kind: str, expect: str) -> bool:
    return kind == "turn" and expect not in ("stay_silent", "keep_talking")


def _said(session: Session) -> list[TurnStarted]:
    """The turns of a scenario, as a session of queries would tell them."""
    events = [event for event in session.of(ScenarioEvent) if _asks(event.kind, event.expect)]
    return [
        TurnStarted(
            seq=event.seq,
            t_ns=event.t_ns,
            turn=number,
            query=event.event,
            clip_sample=event.clip_sample,
            clip_samples=event.clip_samples,
            speech_start=event.speech_start,
            speech_end=event.speech_end,
        )
        for number, event in enumerate(sorted(events, key=lambda event: event.speech_start))
    ]
