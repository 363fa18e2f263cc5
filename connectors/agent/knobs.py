"""Every way in which the agent can be told to behave, in one frozen record; units are in the names.

`--set name=value` on the command line. Each combination is either possible or refused with one clear line.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Literal

import msgspec

from connectors.settings import read_settings
from harness.core.errors import ConfigError


class Knobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the agent does. The defaults are a well-behaved, quick peer."""

    # --- finding the end of the user's turn ---
    endpointer: Literal["silero", "scripted"] = "silero"
    """Who ends a turn in server-VAD mode: Silero on what is heard, or a known sample (for calibration)."""
    endpoint_ms: int | None = None
    """Silence after speech that ends a turn; None: the client's `silence_duration_ms` (500 if it names none)."""
    endpoint_sample: int | None = None
    """Scripted: the turn ends with this sample (a count at the input rate, since the last commit)."""
    scripted_turns: int = 1
    """Scripted: how many turns of a session end by themselves; afterwards the silence that flows on ends none."""
    pause_answer: bool = False
    """Take a short pause (96 ms) inside the query for its end."""
    early_answer_ms: int | None = None
    """Begin an answer, without thinking, this long after speech started; the rest of the speech then cuts it off."""

    # --- conversational policy ---
    policy: Literal["none", "stubborn", "hesitant", "polite", "resuming", "eager", "chatty", "greeter"] = "none"
    """A named set of the knobs below (`PRESETS`); what is set beside it wins."""
    yields: bool = True
    """Fall silent when the user speaks over an answer; else finish it and answer the user then."""
    stop_delay_ms: int = 0
    """From the decision to yield to falling silent."""
    min_interruption_ms: int = 0
    """Speech over an answer that lasts less than this is no interruption: it is ignored, and so is what it said."""
    resume_ms: int | None = None
    """Yield to any speech at once; go on with the answer this long after it turned out to be no interruption."""
    greet_ms: int | None = None
    """Speak first: begin an answer to nothing this long after the session stands, unless the user has begun."""
    backchannel_after_ms: int | None = None
    """Say "mm-hm" this long after the user began to speak; if he pauses then, when he goes on."""
    backchannel_every_ms: int | None = None
    """And again each time this long after the last one; None: once."""

    # --- the answer's sound ---
    language: str = "en"
    """Language of the answer when the client's transcription settings name none."""
    answer_s: float | None = None
    """Cut or loop the spoken answer to this length."""
    leading_silence_ms: int = 0
    """Digital silence before the speech, in packets like the rest."""
    tail_s: float = 0.0
    """Digital silence after the speech."""
    silent_answer: bool = False
    """Replace the speech by digital silence of the same length."""
    empty_packets: int = 0
    """Audio deltas without a sample (a WAV header alone with `wav_headers`), before the first one with samples."""
    audio_rate_hz: int = 24_000
    """Rate at which the answer's samples are made, and declared unless `declare_rate_hz` says otherwise."""
    declare_rate_hz: int | None = None
    """Rate that the session declares (GA; a beta session has no place for it)."""

    # --- its delivery ---
    think_ms: int = 300
    """From the end of the turn (commit or endpoint) to the first audio delta."""
    chunk_ms: int = 100
    """Audio in one delta."""
    delivery: Literal["burst", "paced"] = "burst"
    """`paced`: a delta each `chunk_ms`; `burst`: `burst_x` times as fast."""
    burst_x: float = 8.0
    """Times real time of a burst; 0: everything at once."""
    text: Literal["before", "after", "none"] = "before"
    """Transcript deltas before the first audio delta, after the last one, or not at all."""
    text_lead_ms: int = 100
    """`text=before`: how long before the first audio delta the first transcript delta leaves (at most `think_ms`)."""
    jitter_ms: int = 0
    """Each delta is late by up to this much (uniform, seeded); the order is kept."""
    seed: int = 0
    """Seed of everything random."""
    stall_at_ms: int = 0
    """Position in the answer's audio from which deltas are delayed by `stall_ms`."""
    stall_ms: int = 0
    """Length of the gap in the delivery."""
    odd_bytes: bool = False
    """Cut the audio at odd byte positions, in the middle of samples."""
    wav_headers: bool = False
    """Put a WAV header before each delta's samples."""
    late_delta_ms: int | None = None
    """Send one more audio delta this long after `response.done`, that of a cancelled response included."""
    usage: bool = True
    """Put token counts (made up from lengths) into `response.done`."""
    user_transcript: str = ""
    """What the agent claims to have understood, sent after the commit; nothing is recognised here."""

    # --- failures ---
    never_answer: bool = False
    """Take the turn and answer nothing."""
    error: Literal["none", "rate_limit", "server_error"] = "none"
    """Instead of an answer: a response that fails with `rate_limit_exceeded`, or an `error` event alone."""
    refuse_with: int | None = None
    """HTTP status (400-599) that refuses the upgrade: 401, 429, ..."""
    close_after_ms: int | None = None
    """Close the connection in mid-answer, this long after the first audio delta."""
    close_code: int = 1011
    """Close code of `close_after_ms`; 0: drop the TCP connection without a word."""
    goaway_ms: int | None = None
    """End the session this long after it opened: error `session_expired`, then close 1001."""
    session_limit: int | None = None
    """Sessions at a time; one more gets error `session_limit_reached` and close 1008."""
    slow_ready_ms: int = 0
    """Delay of `session.created`."""
    broken_json: bool = False
    """Send a frame with broken JSON just before the first audio delta."""
    flood: int = 0
    """Events of an unknown type before the first audio delta."""
    no_pong: bool = False
    """Never answer a WebSocket ping."""
    ping_delay_ms: int = 0
    """Answer a WebSocket ping this much later."""
    stall_read_ms: int = 0
    """Stop reading the socket for this long (back-pressure), once a session."""
    stall_read_at_ms: int = 500
    """Position in the received audio at which reading stops."""

    # --- the wire ---
    dialect: Literal["auto", "ga", "beta"] = "auto"
    """`auto`: beta for a client with the header `OpenAI-Beta: realtime=v1`, else GA."""

    @property
    def declared_rate_hz(self) -> int:
        """Rate that the session declares for the answers."""
        return self.declare_rate_hz or self.audio_rate_hz


PRESETS: dict[str, dict[str, Any]] = {
    "none": {},
    "stubborn": {"yields": False},
    "hesitant": {"stop_delay_ms": 400},
    "polite": {"min_interruption_ms": 800},
    "resuming": {"min_interruption_ms": 800, "resume_ms": 500},
    "eager": {"pause_answer": True, "think_ms": 100, "stop_delay_ms": 1000},
    "chatty": {"backchannel_after_ms": 800, "backchannel_every_ms": 2000},
    "greeter": {"greet_ms": 500},
}
"""What each `policy` sets."""
FIELDS = {field.name: field for field in msgspec.structs.fields(Knobs)}
_LEAST: dict[str, float] = {
    "chunk_ms": 10,
    "scripted_turns": 1,
    "endpoint_sample": 1,
    "endpoint_ms": 32,
    "backchannel_every_ms": 200,
}
_LEAST |= {"audio_rate_hz": 8_000, "declare_rate_hz": 8_000, "seed": -(2**31), "session_limit": 0, "answer_s": 0.05}
_MOST: dict[str, float] = {"chunk_ms": 10_000, "audio_rate_hz": 48_000, "declare_rate_hz": 48_000, "answer_s": 600}
_MOST |= {"close_code": 4999, "flood": 100_000, "empty_packets": 10_000, "refuse_with": 599, "tail_s": 600}


def read_knobs(pairs: Mapping[str, str]) -> Knobs:
    """Knobs from `name=value` strings, the policy's with those that are given put over them.

    Raises ConfigError with one line for an unknown name or an impossible value.
    """
    given = read_settings(Knobs, pairs, "the agent has no knob")
    named = {name: getattr(given, name) for name in pairs if name != "policy"}
    return check_knobs(Knobs(**PRESETS[given.policy] | named))


def check_knobs(knobs: Knobs) -> Knobs:
    """The same knobs, a policy spelt out: where a knob has its default, the policy's value holds.

    Raises ConfigError for values that are out of range or exclude each other.
    """
    if knobs.policy != "none":
        preset = {k: v for k, v in PRESETS[knobs.policy].items() if getattr(knobs, k) == FIELDS[k].default}
        knobs = msgspec.structs.replace(knobs, policy="none", **preset)
    for name in FIELDS:
        value = getattr(knobs, name)
        if isinstance(value, bool | str) or value is None:
            continue
        least, most = _LEAST.get(name, 0), _MOST.get(name, 86_400_000)
        if not least <= value <= most:
            raise ConfigError(f"{name}={value}: must lie between {least:.10g} and {most:.10g}")
    for wrong, line in _conflicts(knobs):
        if wrong:
            raise ConfigError(line)
    return knobs


def _conflicts(knobs: Knobs) -> list[tuple[Any, str]]:
    scripted = knobs.endpointer == "scripted"
    code = knobs.close_code
    return [
        (scripted and knobs.endpoint_sample is None, "endpointer=scripted needs endpoint_sample"),
        (not scripted and knobs.endpoint_sample is not None, "endpoint_sample needs endpointer=scripted"),
        (scripted and knobs.early_answer_ms is not None, "early_answer_ms needs endpointer=silero"),
        (scripted and knobs.pause_answer, "pause_answer needs endpointer=silero"),
        (
            knobs.pause_answer and knobs.endpoint_ms is not None,
            "pause_answer sets the endpointing time: no endpoint_ms",
        ),
        (not knobs.yields and knobs.stop_delay_ms, "yields=false never stops, so stop_delay_ms has nothing to delay"),
        (
            not knobs.yields and knobs.min_interruption_ms,
            "yields=false takes nothing for an interruption: no min_interruption_ms",
        ),
        (
            knobs.resume_ms is not None and not knobs.min_interruption_ms,
            "resume_ms needs min_interruption_ms: shorter speech is no interruption",
        ),
        (
            knobs.backchannel_every_ms is not None and knobs.backchannel_after_ms is None,
            "backchannel_every_ms needs backchannel_after_ms",
        ),
        (scripted and knobs.min_interruption_ms, "min_interruption_ms needs endpointer=silero"),
        (scripted and knobs.backchannel_after_ms is not None, "backchannel_after_ms needs endpointer=silero"),
        (knobs.no_pong and knobs.ping_delay_ms, "no_pong answers no ping, so ping_delay_ms has nothing to delay"),
        (
            code and not (code in (1000, 1001, 1008, 1011, 1012, 1013) or code >= 3000),
            f"close_code={code}: not allowed",
        ),
        (
            knobs.refuse_with is not None and (knobs.refuse_with < 400 or not _is_status(knobs.refuse_with)),
            f"refuse_with={knobs.refuse_with}: must be an HTTP error status, such as 401 or 429",
        ),
    ]


def _is_status(code: int) -> bool:
    return code in {int(status) for status in HTTPStatus}
