"""The three ways in which peers differ and which metrics must know: pacing, turn control, capabilities."""

from __future__ import annotations

from typing import Literal

import msgspec

Pacing = Literal["burst", "paced", "input_clocked"]
TurnControl = Literal["manual", "vad"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What a peer can do, as its connector declares it.

    pacing: `burst` (audio comes faster than real time), `paced` (in real time), `input_clocked` (only while input
    flows). turns: the turn modes that it has; the first is the default. continuous: its audio never stops (no turns
    on the wire), so `first_packet` is undefined. flush_on: event types that empty the listener's playout queue.
    text: the order of the text stream against the audio.
    chunk_ms: the chunk size that the peer wants (None: ours).
    unit_ms: length of the units in which an input-clocked peer takes audio and gives audio (None: it has none).
    unit_delay: units of input that it takes before the first unit of its output.
    encoder_lookahead_samples: how far user audio lies behind in its encoded packets, at the input rate.
    rtp: its audio comes as RTP packets, each with its own arrival.
    confirms_commit: it says that it took the audio of a manual turn. says_endpoint: in a turn that it ends itself, it
    says when it heard the user stop.
    """

    pacing: Pacing = "burst"
    turns: tuple[TurnControl, ...] = ("vad", "manual")
    continuous: bool = False
    input_rate_hz: int = 24_000
    output_rate_hz: int = 24_000
    chunk_ms: int | None = None
    unit_ms: int | None = None
    unit_delay: int = 0
    encoder_lookahead_samples: int = 0
    rtp: bool = False
    confirms_commit: bool = True
    says_endpoint: bool = True
    flush_on: tuple[str, ...] = ("user_speech_started", "interrupted")
    text: Literal["none", "before_audio", "with_audio", "text_after_audio"] = "before_audio"
    user_transcript: bool = False
    cancel: bool = False
    truncate: bool = False
    history: bool = False
    playback_state: bool = False
    upload: bool = False
    """The whole query goes up in one request; no listener waits for its end, so first_audible is null."""
