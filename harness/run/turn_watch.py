"""Is the answer to a turn over? Pure: fed with events, asked by the runner. Decides no metric.

The rule follows the scoring's: a response that starts before the user's speech has ended is early and answers
nothing; the turn goes on until a later response is done, the connection is gone, or the peer reports an error after
which nothing can come.
"""

from __future__ import annotations

from typing import Literal

from harness.core.audio import samples_to_ns
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    Event,
    PeerError,
    PlaybackState,
    Received,
    ResponseDone,
    ResponseStarted,
    TextReceived,
)
from harness.run.utterance_watch import UtteranceWatch

SILENT_S = 2.0
"""A continuous peer that says its response is done, and stays quiet for so long, has answered with silence."""

FORGOTTEN_S = 6.0
"""A continuous peer that is quiet for so long has answered, even if it has not said that its response is done."""

Outcome = Literal["answered", "closed", "error"]


class TurnWatch:
    """Watches one turn whose speech ends at `speech_end_ns`. earlier: responses of the turns before, which end nothing.

    utterances: for a continuous peer, whose answer is over when it has been quiet long enough after it spoke.
    outcome: set as soon as the turn is over. playout_end_ns: when a listener without a buffer has heard everything.
    failing_ns: when a peer error came while nothing was under way; an answer may still follow it for a moment.
    """

    def __init__(
        self, speech_end_ns: int, earlier: frozenset[str] = frozenset(), utterances: UtteranceWatch | None = None
    ) -> None:
        self.speech_end_ns = speech_end_ns
        self._utterances = utterances
        self._earlier = earlier - {""}
        self.outcome: Outcome | None = None
        self.reason = ""
        self.playout_end_ns = 0
        self.failing_ns: int | None = None
        self.first_audio_ns: int | None = None
        self._playing = False
        self._started: dict[str, int] = {}
        self._done: set[str] = set()

    def take(self, event: Event) -> None:
        """Learn from one event of the session."""
        if getattr(event, "response", "") in self._earlier:
            return
        if self._utterances is not None and isinstance(event, AudioReceived):
            self._listen(event)
            return
        if isinstance(event, ConnectionClosed):
            self._end("closed", event.reason or f"closed by {event.by}" + (f" ({event.code})" if event.code else ""))
        elif isinstance(event, PeerError):
            self._error(event)
        elif isinstance(event, ResponseStarted | TextReceived | AudioReceived):
            self._started.setdefault(event.response, event.t_ns)
            self.failing_ns = None
            if isinstance(event, AudioReceived) and event.samples and event.response not in self._done:
                self._play(event)
        elif isinstance(event, ResponseDone):
            self._response_done(event)
        elif isinstance(event, PlaybackState):
            self._playing = event.state == "started"

    def _listen(self, event: AudioReceived) -> None:
        assert self._utterances is not None
        self._utterances.take(event)
        self.playout_end_ns = event.t_ns
        began_ns = self._utterances.began_after(self.speech_end_ns)
        if began_ns is not None:
            self.failing_ns = None
            self.first_audio_ns = self.first_audio_ns or began_ns
            if self._utterances.over and (not self._unfinished() or self._utterances.quiet_s >= FORGOTTEN_S):
                self._end("answered", "")
        elif self._done - self._early_names() and self._utterances.quiet_s >= SILENT_S:
            self._end("answered", "")

    def _unfinished(self) -> bool:
        """Whether the peer's own words say that the answer goes on: its playout, or a named response not done."""
        return self._playing or bool(self._started.keys() - self._done - self._early_names() - {""})

    def _early_names(self) -> set[str]:
        return {name for name, t_ns in self._started.items() if t_ns < self.speech_end_ns}

    @property
    def responses(self) -> frozenset[str]:
        """Every response that this turn, or one before it, has seen."""
        return self._earlier | self._started.keys() | self._done

    def _play(self, event: AudioReceived) -> None:
        begin_ns = max(self.playout_end_ns, event.t_ns)
        self.playout_end_ns = begin_ns + samples_to_ns(event.samples, event.rate_hz)
        if self.first_audio_ns is None and not self._early(event):
            self.first_audio_ns = event.t_ns

    def _response_done(self, event: ResponseDone) -> None:
        self._done.add(event.response)
        if self._early(event):
            return
        if event.status == "failed":
            self._end("error", event.reason or "the response failed")
        elif self._utterances is not None or (event.status == "cancelled" and self.first_audio_ns is None):
            return
        else:
            self._end("answered", "")

    def _error(self, event: PeerError) -> None:
        said = f"{event.code}: {event.message}" if event.code else event.message
        if event.fatal:
            self._end("error", said)
        elif not set(self._started) - self._done and event.t_ns >= self.speech_end_ns:
            self.failing_ns = event.t_ns
            self.reason = said

    def _early(self, event: Received) -> bool:
        response = getattr(event, "response", "")
        return self._started.get(response, event.t_ns) < self.speech_end_ns

    def _end(self, outcome: Outcome, reason: str) -> None:
        if self.outcome is None:
            self.outcome, self.reason = outcome, reason
