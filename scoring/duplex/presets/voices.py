"""Silero's spans of both channels, unrefined: what harnesses that look at a stereo recording see.

The agent's channel is rendered as heard, on the user's stream, whole; spans lie on Silero's grid of 32 ms. For spans
refined to 10 ms, see `scoring.duplex.agent_speech`.
"""

from __future__ import annotations

import msgspec
import numpy as np

from harness.core.audio import NS_PER_S, Int16, int16_to_float, samples_to_ns
from harness.core.scorer import Unscored
from harness.engines.vad import speech_spans, vad_name
from scoring.duplex.agent_speech import heard_pieces
from scoring.duplex.spans import Span
from scoring.timing.recording import Recording
from scoring.timing.timeline import Instant

LONGEST_S = 3 * 3600
"""A channel longer than this is not rendered: it would not fit into memory."""


class Voices(msgspec.Struct, frozen=True, kw_only=True):
    """Spans of speech on the session's clock. origin_ns: where both channels begin. detector: engine and version."""

    user: tuple[Span, ...]
    agent: tuple[Span, ...]
    origin_ns: int
    detector: str


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """Mono int16, shape (n,); sample 0 lies at `origin_ns`."""

    samples: Int16
    rate_hz: int
    origin_ns: int


def agent_channel(recording: Recording) -> Channel | Unscored:
    """The agent as heard from the start of the user's stream to its last sound, silence in between.

    Unscored where nothing came, or samples of it are missing. Raises SessionFormatError for damaged audio.
    """
    packets = recording.packets
    if not packets:
        return Unscored(reason="no audio of the agent")
    rate_hz, origin_ns, agent = packets[0].rate_hz, recording.origin_ns, recording.session.agent
    if max(packet.sample + packet.samples for packet in packets) > len(agent):
        return Unscored(reason="the recording lacks samples of the agent")
    pieces = heard_pieces([recording.listener.played[packet.seq] for packet in packets], agent, rate_hz)
    places = [round((piece.start_ns - origin_ns) * rate_hz / NS_PER_S) for piece in pieces]
    ends = [place + len(piece.samples) for place, piece in zip(places, pieces, strict=True)]
    length = max(ends, default=0)
    if length > LONGEST_S * rate_hz:
        return Unscored(reason="the recording is too long to be rendered whole")
    samples = np.zeros(max(length, 0), dtype=np.int16)
    for place, piece in zip(places, pieces, strict=True):
        sound = piece.samples[max(0, -place) :]  # before the user's stream began: not on the recording
        samples[max(0, place) : max(0, place) + len(sound)] = sound
    return Channel(samples=samples, rate_hz=rate_hz, origin_ns=origin_ns)


def voices_of(recording: Recording) -> Voices | Unscored:
    """Both channels through Silero with its own thresholds."""
    if recording.session.header.mode == "upload":
        return Unscored(reason="upload: the query has no place on a media timeline")
    channel = agent_channel(recording)
    agent: tuple[Span, ...] = ()
    if isinstance(channel, Channel):
        agent = tuple(
            Span(
                channel.origin_ns + samples_to_ns(span.start, channel.rate_hz),
                channel.origin_ns + samples_to_ns(span.end, channel.rate_hz),
            )
            for span in speech_spans(int16_to_float(channel.samples), channel.rate_hz)
        )
    return Voices(
        user=tuple(_user(recording)), agent=agent, origin_ns=recording.origin_ns, detector=f"{vad_name()}, 32 ms grid"
    )


def _user(recording: Recording) -> list[Span]:
    session = recording.session
    found: list[Span] = []
    for span in speech_spans(int16_to_float(session.user), session.header.user.rate_hz):
        start, end = recording.timeline.start_of(span.start), recording.timeline.end_of(span.end)
        if isinstance(start, Instant) and isinstance(end, Instant) and end.t_ns > start.t_ns:
            found.append(Span(start.t_ns, end.t_ns))
    return found
