"""The answers in a session: which text, audio and end belong to which response, and which audio came too late.

A response is known by its id. Output without an id belongs to the response that is open (begun, not over); with none
open, it is late output of the one before, unless something has come from the user's side since that one closed (a
turn, a commit, a word of the peer on the user's speech): then it opens a new response. The peer's end, our `cancel` and
the peer's `Interrupted` close a response; audio that comes afterwards is late and in no metric.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.core.events import (
    AudioReceived,
    CommandSent,
    Event,
    InputCommitted,
    Interrupted,
    Received,
    ResponseDone,
    ResponseStarted,
    TextReceived,
    TurnStarted,
    UserSpeechStarted,
    UserSpeechStopped,
)
from harness.core.session.reader import Session
from scoring.timing.timeline import Instant

_USER_SIDE = (TurnStarted, UserSpeechStarted, UserSpeechStopped, InputCommitted)
_COMMANDS = frozenset({"commit", "create_response"})


@dataclass(kw_only=True)
class Response:
    """One answer of the peer. start: its `ResponseStarted`, or the first of its output. packets: its audio that was
    not late, only packets with samples, in order of arrival. done: the peer's end-of-response. cut: the cancel or
    interruption that closed it before its end. late: audio packets after that."""

    id: str
    start: Instant
    texts: list[TextReceived] = field(default_factory=list)
    packets: list[AudioReceived] = field(default_factory=list)
    done: ResponseDone | None = None
    cut: Instant | None = None
    late: list[AudioReceived] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.done is None and self.cut is None

    @property
    def completed(self) -> bool:
        """The peer said all that it had to say."""
        return self.cut is None and self.done is not None and self.done.status == "completed"

    @property
    def cancelled(self) -> bool:
        return self.cut is not None or (self.done is not None and self.done.status == "cancelled")

    @property
    def failed(self) -> bool:
        return self.done is not None and self.done.status == "failed"


def responses_of(session: Session) -> list[Response]:
    """All responses of a session, in the order in which they started."""
    collector = _Collector()
    for event in session.events:
        collector.take(event)
    return collector.found


class _Collector:
    def __init__(self) -> None:
        self.found: list[Response] = []
        self._by_id: dict[str, Response] = {}
        self._user_spoke = True

    def take(self, event: Event) -> None:
        if isinstance(event, _USER_SIDE) or (isinstance(event, CommandSent) and event.command in _COMMANDS):
            self._user_spoke = True
        elif isinstance(event, ResponseStarted):
            self._begin(event)
        elif isinstance(event, TextReceived):
            self._owner(event, event.response).texts.append(event)
        elif isinstance(event, AudioReceived):
            self._audio(event)
        elif isinstance(event, ResponseDone):
            self._done(event)
        elif isinstance(event, Interrupted):
            self._cut(event, event.response)
        elif isinstance(event, CommandSent) and event.command == "cancel":
            self._cut(event, str(event.detail.get("response") or ""))

    def _begin(self, event: ResponseStarted) -> None:
        if not event.response or event.response not in self._by_id:
            self._new(event, event.response)

    def _done(self, event: ResponseDone) -> None:
        pending = next((response for response in reversed(self.found) if response.done is None), None)
        response = pending if pending is not None and not event.response else self._owner(event, event.response)
        if response.done is None:
            response.done = event
            self._user_spoke = False

    def _audio(self, event: AudioReceived) -> None:
        response = self._owner(event, event.response)
        if event.samples > 0:
            (response.packets if response.open else response.late).append(event)

    def _new(self, event: Received, name: str) -> Response:
        response = Response(id=name, start=Instant(t_ns=event.t_ns, seq=event.seq))
        self.found.append(response)
        if name:
            self._by_id[name] = response
        self._user_spoke = False
        return response

    def _owner(self, event: Received, name: str) -> Response:
        if name:
            return self._by_id.get(name) or self._new(event, name)
        last = self._open() or (self.found[-1] if self.found else None)
        if last is None or (not last.open and self._user_spoke):
            return self._new(event, "")
        return last

    def _open(self) -> Response | None:
        return next((response for response in reversed(self.found) if response.open), None)

    def _cut(self, event: Event, name: str) -> None:
        response = self._by_id.get(name) if name else self._open()
        if response is not None and response.open:
            response.cut = Instant(t_ns=event.t_ns, seq=event.seq)
            self._user_spoke = False
