"""What happened in a session: one frozen, tagged record an event, one JSON line each in `events.jsonl`.

`t_ns` is the instant on the session's clock: for what was sent, the completed write; for what came, the socket read
that completed the message. `seq` is the line's number, given by the writer. Fields that end in `_samples` or are
called `sample` count samples of `user.wav` or `agent.wav`. A type that this version does not know loads as
`Unknown`. Additive changes keep the schema version; anything else bumps it and brings a migration.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Phase = Literal["started", "dns", "tcp", "tls", "upgrade", "ready", "configured"]
ClosedBy = Literal["us", "peer", "network"]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of all events."""

    seq: int = -1
    t_ns: int


# --- connection -------------------------------------------------------------------------------------------------


class ConnectionPhase(Event, frozen=True, kw_only=True, tag="connection_phase"):
    """One step of setting up was finished at `t_ns`; `started` opens the sequence.

    `ready`: the peer said that the session exists; `configured`: our settings are in force.
    """

    phase: Phase


class ConnectionClosed(Event, frozen=True, kw_only=True, tag="connection_closed"):
    """The connection is gone. by: who closed it."""

    by: ClosedBy
    code: int | None = None
    reason: str = ""


class RoundTrip(Event, frozen=True, kw_only=True, tag="round_trip"):
    """A keep-alive answer arrived `rtt_ns` after its question was written."""

    rtt_ns: int


# --- the user's side --------------------------------------------------------------------------------------------


class StreamStarted(Event, frozen=True, kw_only=True, tag="stream_started"):
    """Paced user audio (re)starts: sample `sample` of `user.wav` begins at `t_ns`. Until the next one, exact."""

    sample: int
    rate_hz: int


class StreamStopped(Event, frozen=True, kw_only=True, tag="stream_stopped"):
    """Paced user audio stops before sample `sample` (manual turns: no silence flows)."""

    sample: int


class MediaAnchor(Event, frozen=True, kw_only=True, tag="media_anchor"):
    """Live or received audio: sample `sample` of `side` was captured (or arrived) at `t_ns`; linear in between."""

    side: Literal["user", "agent"]
    sample: int
    source: str = ""


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn_started"):
    """A query was put on the user's timeline. Samples are positions in `user.wav`.

    clip_sample, clip_samples: where the clip starts and how long it is. speech_start, speech_end: first and one past
    the last sample of speech. impairment, audio_sha256: as in `ScenarioEvent`, of an impaired query.
    """

    turn: int
    query: str
    clip_sample: int
    clip_samples: int
    speech_start: int
    speech_end: int
    text: str = ""
    language: str = ""
    annotator: str = ""
    impairment: str = ""
    audio_sha256: str = ""


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn_ended"):
    """The runner stopped waiting for turn `turn`. outcome: what it saw, for a person; scoring decides the status.

    moved_to: the session in which the query was said instead, as the peer had ended this one (outcome `not_run`).
    """

    turn: int
    outcome: Literal["answered", "timeout", "closed", "error", "interrupted", "not_run"]
    reason: str = ""
    moved_to: str = ""


class ScenarioEvent(Event, frozen=True, kw_only=True, tag="scenario_event"):
    """One event of a scenario was put on the user's timeline. Samples are positions in `user.wav`.

    event: its id in the scenario. clip_sample, clip_samples: where what was put begins and how long it is.
    speech_start, speech_end: first and one past the last sample of speech (or of the sound that a noise is).
    anchor_ns: the instant that the event is relative to, as the user side knew it when it placed the event (with
    `timed_out`, the instant at which it stopped waiting). planned_delay_ns: from the anchor to `speech_start`, jitter
    included. offset_exact: `speech_start` lies where it was planned; not so when the anchor was known too late.
    anchor_rule: how an agent's anchor was known: `speech` (it was heard to begin), `response_done` or
    `playback_stopped` (it said so), `silence` (it was silent for long), `silence_and_text` (and no text came either),
    `timeout`; "" for the user's own anchors.
    impairment: specs of what was done to the clean clip, joined by `+`. audio_sha256: of the samples that were put.
    """

    event: str
    kind: str
    expect: Literal["respond", "stop", "keep_talking", "stay_silent", ""] = ""
    clip: str
    clip_sample: int
    clip_samples: int
    speech_start: int
    speech_end: int
    anchor: Literal["session_start", "user_end", "agent_start", "agent_end"]
    anchor_ns: int
    planned_delay_ns: int
    offset_exact: bool = True
    timed_out: bool = False
    anchor_rule: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    impairment: str = ""
    audio_sha256: str = ""


class AudioSent(Event, frozen=True, kw_only=True, tag="audio_sent"):
    """A chunk of user audio. planned: its absolute deadline; started: before the write; `t_ns`: the write buffer was
    empty again. late: it left more than a chunk after the plan. lost: the connection went before the buffer was empty,
    `t_ns` is when that was noticed. pcm: the samples on their way to the writer (never in the JSON line)."""

    planned_ns: int
    started_ns: int
    sample: int
    samples: int
    late: bool = False
    lost: bool = False
    pcm: bytes = b""


class CommandSent(Event, frozen=True, kw_only=True, tag="command_sent"):
    """A message that is not audio was written. Manual turns end at the `commit`."""

    command: str
    started_ns: int
    turn: int | None = None
    detail: dict[str, Any] = msgspec.field(default_factory=dict)


class PlaybackCut(Event, frozen=True, kw_only=True, tag="playback_cut"):
    """A person's own client emptied its playout queue (push-to-talk: the key was pressed while the agent was heard).
    Stands in `flush_on` of the profile in the session's header."""


# --- the peer's side --------------------------------------------------------------------------------------------


class Received(Event, frozen=True, kw_only=True):
    """Base of what came over the wire. first_byte_ns: the read that brought the message's first byte (0: the same as
    `t_ns`). wire_bytes: length of the message. produced_ns: a local model's own stamp on the same clock (0: none)."""

    first_byte_ns: int = 0
    wire_bytes: int = 0
    produced_ns: int = 0


class SessionReady(Received, frozen=True, kw_only=True, tag="session_ready"):
    """The peer's word on the session (created or updated) with the settings that it declares."""

    phase: Literal["created", "updated"]
    peer_session: str = ""
    model: str = ""
    input_rate_hz: int = 0
    output_rate_hz: int = 0


class UserSpeechStarted(Received, frozen=True, kw_only=True, tag="user_speech_started"):
    """The peer heard the user begin. audio_ms: its own position in our audio, if it says."""

    audio_ms: int | None = None
    item: str = ""


class UserSpeechStopped(Received, frozen=True, kw_only=True, tag="user_speech_stopped"):
    """The peer heard the end of the user's speech: the `endpoint`."""

    audio_ms: int | None = None
    item: str = ""


class InputCommitted(Received, frozen=True, kw_only=True, tag="input_committed"):
    """The peer took the user's audio as a turn."""

    item: str = ""


class UserTranscript(Received, frozen=True, kw_only=True, tag="user_transcript"):
    """What the peer understood. Never output text."""

    text: str
    final: bool = False
    item: str = ""


class ResponseStarted(Received, frozen=True, kw_only=True, tag="response_started"):
    response: str = ""


class TextReceived(Received, frozen=True, kw_only=True, tag="text_received"):
    """A piece of the answer's text. kind: `text` (the model's text), `transcript` (of its audio), `token`."""

    text: str
    kind: Literal["text", "transcript", "token"] = "text"
    response: str = ""
    item: str = ""


class AudioReceived(Received, frozen=True, kw_only=True, tag="audio_received"):
    """A packet of the answer's audio: samples [sample, sample + samples) of `agent.wav` at `rate_hz`.

    skipped: decoded samples before these that are no sound (an Opus stream's pre-skip) and go into no file.
    pcm: PCM16 on its way to the writer, which strips it and fills in `sample` (never in the JSON line).
    """

    samples: int
    rate_hz: int
    sample: int = 0
    skipped: int = 0
    response: str = ""
    item: str = ""
    pcm: bytes = b""


class RtpReceived(Received, frozen=True, kw_only=True, tag="rtp_received"):
    """One RTP datagram, at its read, before any jitter buffer."""

    ssrc: int
    sequence: int
    timestamp: int
    payload_type: int = 0
    marker: bool = False


class RtpBuffered(Event, frozen=True, kw_only=True, tag="rtp_buffered"):
    """What our receiver did with a session's RTP audio, once, at its end. No arrival stamp has any of this in it.

    wait_ns: how long a packet waits at most for one that is missing before it. lost: given up; late: came after that;
    reordered: came out of order, in time. held_ns, max_held_ns: waiting of the delivered packets, summed and the
    longest. filled_samples: silence put into gaps; skipped_samples: sound-free ones left out to catch up.
    """

    wait_ns: int
    received: int
    delivered: int = 0
    lost: int = 0
    late: int = 0
    duplicates: int = 0
    reordered: int = 0
    held_ns: int = 0
    max_held_ns: int = 0
    unreadable: int = 0
    filled_samples: int = 0
    skipped_samples: int = 0


class AudioDone(Received, frozen=True, kw_only=True, tag="audio_done"):
    response: str = ""


class ResponseDone(Received, frozen=True, kw_only=True, tag="response_done"):
    """The peer's end-of-response. status in the peer's words: completed, cancelled, failed, incomplete."""

    response: str = ""
    status: str = "completed"
    reason: str = ""
    usage: dict[str, Any] | None = None


class Interrupted(Received, frozen=True, kw_only=True, tag="interrupted"):
    """The peer says that the user interrupted it."""

    reason: str = ""
    response: str = ""


class PlaybackState(Received, frozen=True, kw_only=True, tag="playback_state"):
    """The peer's word on its playout (output_audio_buffer.started and the like)."""

    state: str
    response: str = ""


class ToolCall(Received, frozen=True, kw_only=True, tag="tool_call"):
    call: str
    name: str
    arguments: str = ""


class GoAway(Received, frozen=True, kw_only=True, tag="go_away"):
    """The peer will close the session soon."""

    time_left_ms: int | None = None


class PeerError(Received, frozen=True, kw_only=True, tag="peer_error"):
    """The peer reported an error, or sent what cannot be read (code `unreadable`)."""

    code: str = ""
    message: str = ""
    fatal: bool = False


class RawReceived(Received, frozen=True, kw_only=True, tag="raw_received"):
    """A message with no meaning for the measurement; name: its wire type. usage: what it says of the session's cost
    so far (continuous peers, whose responses have no end on the wire)."""

    name: str
    usage: dict[str, Any] | None = None


# --- the harness itself -----------------------------------------------------------------------------------------


class LoopLag(Event, frozen=True, kw_only=True, tag="loop_lag"):
    """The measuring loop's lateness in one window that ends at `t_ns`: greatest lag of its ticks, and the time that
    the process waited for a core (field 2 of schedstat)."""

    window_ns: int
    max_lag_ns: int
    run_delay_ns: int = 0


class Note(Event, frozen=True, kw_only=True, tag="note"):
    """Something a reader must know (a declared rate that differs, dropped records); shown with the results."""

    code: str
    message: str


class WireFrame(Event, frozen=True, kw_only=True, tag="wire_frame"):
    """One raw text message, for protocol debugging: goes to `wire.jsonl`, never to `events.jsonl`."""

    direction: Literal["in", "out"]
    text: str


class Unknown(Event, frozen=True, kw_only=True, tag="unknown"):
    """An event written by a newer version: kept whole."""

    name: str
    data: dict[str, Any] = msgspec.field(default_factory=dict)


AnyEvent = (
    ConnectionPhase
    | ConnectionClosed
    | RoundTrip
    | StreamStarted
    | StreamStopped
    | MediaAnchor
    | TurnStarted
    | TurnEnded
    | ScenarioEvent
    | AudioSent
    | CommandSent
    | PlaybackCut
    | SessionReady
    | UserSpeechStarted
    | UserSpeechStopped
    | InputCommitted
    | UserTranscript
    | ResponseStarted
    | TextReceived
    | AudioReceived
    | RtpReceived
    | RtpBuffered
    | AudioDone
    | ResponseDone
    | Interrupted
    | PlaybackState
    | ToolCall
    | GoAway
    | PeerError
    | RawReceived
    | LoopLag
    | Note
    | WireFrame
    | Unknown
)

_decoder = msgspec.json.Decoder(AnyEvent)
_encoder = msgspec.json.Encoder()
_tags = frozenset(str(kind.__struct_config__.tag) for kind in AnyEvent.__args__)


def decode_event(line: bytes | str) -> Event:
    """Read one line of `events.jsonl`. An unknown type becomes `Unknown`; broken JSON raises msgspec.DecodeError."""
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        raw = msgspec.json.decode(line)
        if isinstance(raw, dict) and raw.get("type") not in _tags and isinstance(raw.get("t_ns"), int):
            name = str(raw.pop("type", ""))
            return Unknown(seq=int(raw.pop("seq", -1)), t_ns=raw.pop("t_ns"), name=name, data=raw)
        raise


def encode_event(event: Event) -> bytes:
    """One JSON line without its newline. An `Unknown` is written back as it was read."""
    if isinstance(event, Unknown):
        return _encoder.encode({"type": event.name, "seq": event.seq, "t_ns": event.t_ns, **event.data})
    return _encoder.encode(event)
