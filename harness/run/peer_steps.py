"""The steps of one recorded turn, each held against what its peer's profile promises. Pure.

Each step is `ok`, `warn` (works, but a figure will be missing or odd), `failed`, or `skipped` (this peer has no such
step, or nothing is lost without it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, TypeVar

import msgspec

from harness.core.audibility import audible_spans
from harness.core.audio import NS_PER_MS, Int16, samples_to_ns
from harness.core.events import (
    AudioReceived,
    AudioSent,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    InputCommitted,
    Note,
    PeerError,
    ResponseDone,
    ResponseStarted,
    RtpReceived,
    SessionReady,
    StreamStarted,
    TextReceived,
    TurnStarted,
    UserSpeechStopped,
)
from harness.core.pace import fitting_rate, is_plausible, pace_of
from harness.core.session.header import Header

UNSAID = "not said by this peer"
State = Literal["ok", "warn", "failed", "skipped"]
E = TypeVar("E", bound=Event)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a turn. expected: in words, for the departure; seq: of the event that took it (-1: none did)."""

    name: str
    state: State
    detail: str = ""
    expected: str = ""
    seq: int = -1


class TurnEvents:
    """The events of the turn, looked up by kind."""

    def __init__(self, header: Header, events: Sequence[Event], agent: Int16) -> None:
        self.header, self.profile = header, header.profile
        self.events, self.agent = events, agent
        self.started = self.first(TurnStarted)
        stream = self.first(StreamStarted)
        self.speech_end_ns: int | None = None
        if self.started and stream:
            ahead = self.started.speech_end - stream.sample
            self.speech_end_ns = stream.t_ns + samples_to_ns(ahead, stream.rate_hz)
        self.uploaded_ns = next((e.t_ns for e in self.of(AudioSent) if not e.lost), None)
        self.answer = self._answer()
        ident = getattr(self.answer, "response", "")
        since = self.answer.seq if self.answer else len(events)
        mine = [e for e in events if e.seq >= since]
        if not self.profile.continuous:  # there, the audio belongs to no response
            mine = [e for e in mine if getattr(e, "response", ident) in (ident, "")]
        self.texts = [e for e in mine if isinstance(e, TextReceived) and e.text]
        self.packets = [e for e in mine if isinstance(e, AudioReceived) and e.samples > 0]
        self.done = next((e for e in mine if isinstance(e, ResponseDone)), None)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def first(self, kind: type[E], meets: Callable[[E], bool] = lambda event: True) -> E | None:
        return next((event for event in self.of(kind) if meets(event)), None)

    def phase(self, name: str) -> ConnectionPhase | None:
        return self.first(ConnectionPhase, lambda event: event.phase == name)

    def since_query(self, event: Event) -> str:
        """How long after the query, in words; empty where nobody knows."""
        name, end_ns = "the end of speech", self.speech_end_ns
        if self.profile.upload:
            name, end_ns = "the upload", self.uploaded_ns
        return "" if end_ns is None else f"{(event.t_ns - end_ns) / NS_PER_MS:.0f} ms after {name}"

    def _answer(self) -> ResponseStarted | TextReceived | AudioReceived | None:
        """What begins the answer: after the end of speech where there is such a one; it may be silent audio."""
        begins = [e for e in self.events if isinstance(e, ResponseStarted | TextReceived | AudioReceived)]
        end_ns = self.speech_end_ns if self.speech_end_ns is not None and not self.profile.upload else 0
        return next((e for e in begins if e.t_ns >= end_ns), begins[0] if begins else None)


# --- the steps --------------------------------------------------------------------------------------------------


def _reach(turn: TurnEvents) -> Step:
    phases = turn.of(ConnectionPhase)
    expected = "a connection (name, TCP, TLS, upgrade)"
    last = next((e for e in phases if e.phase in ("upgrade", "ready", "configured")), None)
    if last is None and turn.profile.upload and turn.started is not None:
        last = next((e for e in reversed(phases) if e.phase in ("tcp", "tls")), None)
    spans = pairwise(phases)
    parts = [f"{b.phase} {(b.t_ns - a.t_ns) / NS_PER_MS:.1f} ms" for a, b in spans if b.phase in _STEPS_OF_REACH]
    proxy = turn.first(Note, lambda note: note.code == "proxy")
    detail = ", ".join(parts) + (f"; {proxy.message}" if proxy else "")
    if last is None:
        return Step(name="reach", state="failed", detail=detail or "no connection", expected=expected)
    return Step(name="reach", state="ok", detail=detail, expected=expected, seq=last.seq)


_STEPS_OF_REACH = ("dns", "tcp", "tls", "upgrade")


def _session(turn: TurnEvents) -> Step:
    ready, said = turn.phase("ready"), turn.first(SessionReady)
    expected = "the peer's word that the session exists"
    found = said or ready
    if found is None:
        return Step(name="session", state=_unless_upload(turn), expected=expected)
    model = f"model {said.model}" if said and said.model else ""
    return Step(name="session", state="ok", detail=model, expected=expected, seq=found.seq)


def _configured(turn: TurnEvents) -> Step:
    expected = "the peer's word that our settings are in force"
    found = turn.phase("configured")
    if found is None:
        return Step(name="configured", state=_unless_upload(turn), expected=expected)
    note = turn.first(Note, lambda note: note.code in ("unconfirmed", "rate"))
    state: State = "warn" if note else "ok"
    return Step(name="configured", state=state, detail=note.message if note else "", expected=expected, seq=found.seq)


def _sent(turn: TurnEvents) -> Step:
    expected = "the query's audio, taken to the end of its speech"
    packets = turn.of(AudioSent)
    if turn.started is None or not packets:
        return Step(name="audio sent", state="failed", detail="none was sent", expected=expected)
    end = turn.started.speech_end
    whole = next((e for e in packets if e.sample + e.samples >= end and not e.lost), None)
    if whole is None:
        return Step(name="audio sent", state="failed", detail="not to its end", expected=expected)
    seconds = (end - turn.started.clip_sample) / turn.header.user.rate_hz
    return Step(name="audio sent", state="ok", detail=f"{seconds:.1f} s", expected=expected, seq=whole.seq)


def _endpoint(turn: TurnEvents) -> Step:
    manual = turn.header.mode == "manual"
    name = "commit confirmed" if manual else "end of speech heard"
    expected = "the peer's word that it took the commit" if manual else "the peer's word that the user stopped speaking"
    since = turn.started.seq if turn.started else 0
    kinds = (InputCommitted,) if manual else (UserSpeechStopped, InputCommitted)
    found = next((e for e in turn.events if isinstance(e, kinds) and e.seq > since), None)
    if found is not None:
        return Step(name=name, state="ok", detail=turn.since_query(found), expected=expected, seq=found.seq)
    says = turn.profile.confirms_commit if manual else turn.profile.says_endpoint
    if not says or turn.profile.continuous or turn.profile.upload or turn.header.mode not in ("manual", "vad"):
        return Step(name=name, state="skipped", detail=UNSAID, expected=expected)
    if turn.answer is None:
        return Step(name=name, state="failed", expected=expected)
    if manual:
        detail = "answered without it: the answer may not depend on the query"
        return Step(name=name, state="warn", detail=detail, expected=expected)
    return Step(name=name, state="skipped", detail="not said: endpoint_ms will be empty", expected=expected)


def _started(turn: TurnEvents) -> Step:
    expected = "an answer"
    if turn.profile.continuous:
        begun = turn.first(ResponseStarted, lambda event: event.t_ns >= (turn.speech_end_ns or 0))
        if begun is None:
            return Step(name="answer begun", state="skipped", detail=UNSAID, expected=expected)
        said = turn.since_query(begun)
        return Step(name="answer begun", state="ok", detail=said, expected=expected, seq=begun.seq)
    if turn.answer is None:
        return Step(name="answer begun", state="failed", expected=expected)
    detail = turn.since_query(turn.answer)
    early = turn.speech_end_ns is not None and turn.answer.t_ns < turn.speech_end_ns and not turn.profile.upload
    if early:
        detail = "before the query was over: it answers something else, or cuts users short"
    state: State = "warn" if early else "ok"
    return Step(name="answer begun", state=state, detail=detail, expected=expected, seq=turn.answer.seq)


def _text(turn: TurnEvents) -> Step:
    expected = {
        "none": "no text",
        "before_audio": "text before the first audio",
        "with_audio": "text along with the audio",
        "text_after_audio": "text after the audio",
    }[turn.profile.text]
    if turn.profile.text == "none":
        return Step(name="text", state="skipped", detail="this peer has none", expected=expected)
    if not turn.texts:
        return Step(name="text", state="warn", detail="none came: ttft_ms will be empty", expected=expected)
    first = turn.texts[0]
    late = turn.profile.text == "before_audio" and turn.packets and turn.packets[0].seq < first.seq
    late = late and not turn.profile.continuous
    detail = turn.since_query(first)
    if late:
        behind_ms = (first.t_ns - turn.packets[0].t_ns) / NS_PER_MS
        detail = f"{behind_ms:.0f} ms after the first audio: ttft_ms does not lead first_packet_ms here"
    return Step(name="text", state="warn" if late else "ok", detail=detail, expected=expected, seq=first.seq)


def _audio(turn: TurnEvents) -> Step:
    expected = "audio"
    if not turn.packets:
        return Step(name="audio", state="failed", expected=expected)
    first = turn.packets[0]
    seconds = sum(packet.samples / packet.rate_hz for packet in turn.packets)
    detail = f"{seconds:.1f} s at {first.rate_hz} Hz in {len(turn.packets)} packets"
    since = turn.since_query(first)
    detail += f", first {since}" if since else ""
    doubt = _rate_doubt(turn)
    expected += " at a rate that fits its arrival"
    state: State = "warn" if doubt else "ok"
    return Step(name="audio", state=state, detail=doubt or detail, expected=expected, seq=first.seq)


def _rate_doubt(turn: TurnEvents) -> str:
    rate_hz = turn.packets[0].rate_hz
    if turn.profile.rtp or turn.first(RtpReceived):  # its packets have a clock of their own
        return ""
    if turn.profile.pacing == "burst" and not turn.profile.continuous:
        return ""
    pace = pace_of(turn.packets)
    if pace is None or is_plausible(rate_hz, pace):
        return ""
    fits = fitting_rate(rate_hz, pace)
    said = f", as {fits} Hz would" if fits else ""
    return f"it came {pace:.2f} times as fast as it plays at the declared {rate_hz} Hz{said}"


def _audible(turn: TurnEvents) -> Step:
    expected = "something to hear"
    if not turn.packets:
        return Step(name="audible", state="failed", detail="no audio", expected=expected)
    first = turn.packets[0]
    spans = audible_spans(turn.agent[first.sample :], turn.header.agent.rate_hz)
    if not spans:
        return Step(name="audible", state="failed", detail="silence only", expected=expected)
    at = first.sample + spans[0][0]
    holding = next((p for p in reversed(turn.packets) if p.sample <= at), first)
    detail = f"after {spans[0][0] * 1000 // turn.header.agent.rate_hz} ms of its audio"
    return Step(name="audible", state="ok", detail=detail, expected=expected, seq=holding.seq)


def _done(turn: TurnEvents) -> Step:
    expected = "the peer's word that the answer is complete"
    if turn.profile.continuous and turn.done is None:
        return Step(name="done", state="skipped", detail=UNSAID, expected=expected)
    if turn.done is None:
        return Step(name="done", state="failed", expected=expected)
    if turn.done.status not in ("completed", "incomplete"):
        why = f" ({turn.done.reason})" if turn.done.reason else ""
        return Step(name="done", state="failed", detail=f"it is {turn.done.status}{why}", expected=expected)
    late = [packet for packet in turn.packets if packet.seq > turn.done.seq]
    if late and not turn.profile.continuous:
        detail = f"and {len(late)} packets after it, which no figure counts"
        return Step(name="done", state="warn", detail=detail, expected=expected, seq=turn.done.seq)
    state: State = "ok" if turn.done.status == "completed" else "warn"
    return Step(name="done", state=state, detail=turn.done.status, expected=expected, seq=turn.done.seq)


def _usage(turn: TurnEvents) -> Step:
    usage = turn.done.usage if turn.done else None
    if not usage:
        return Step(name="usage", state="skipped", detail="not reported", expected="token counts")
    totals = ", ".join(f"{key} {value}" for key, value in usage.items() if isinstance(value, int | float))
    return Step(
        name="usage", state="ok", detail=totals, expected="token counts", seq=turn.done.seq if turn.done else -1
    )


def _close(turn: TurnEvents) -> Step:
    expected = "the connection stays until we close it"
    closed = turn.first(ConnectionClosed)
    if closed is None:
        return Step(name="close", state="skipped", detail="no connection to close", expected=expected)
    if closed.by == "us":
        return Step(name="close", state="ok", detail="by us", expected=expected, seq=closed.seq)
    state: State = "failed" if turn.done is None and not turn.profile.continuous else "warn"
    return Step(name="close", state=state, detail=closing(closed), expected=expected, seq=closed.seq)


def _unless_upload(turn: TurnEvents) -> State:
    """A protocol of single requests sets nothing up."""
    return "skipped" if turn.profile.upload else "failed"


def closing(closed: ConnectionClosed) -> str:
    """Who closed the connection, with code and reason."""
    code = f" ({closed.code})" if closed.code else ""
    return f"closed by the {closed.by}{code}" + (f": {closed.reason}" if closed.reason else "")


def said_by(error: PeerError) -> str:
    """The peer's code and words."""
    return ": ".join(part for part in (error.code, error.message) if part) or "without words"


LOOKS: tuple[Callable[[TurnEvents], Step], ...] = (
    _reach,
    _session,
    _configured,
    _sent,
    _endpoint,
    _started,
    _text,
    _audio,
    _audible,
    _done,
    _usage,
    _close,
)
"""In the order of a turn."""
