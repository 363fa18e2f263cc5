"""A recorded session as two signals on one axis: the user at media time, the agent as the playout model plays it.

Zero is the start of the user's stream, or of the agent's first sound where that comes before it. Where nothing plays
there are zeros. The agent's packets are placed to the nearest sample, cut at the profile's flushes; audio that came
after its response was over is late, and nobody heard it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.core.audio import NS_PER_S, Int16, ns_to_samples
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioReceived,
    CommandSent,
    Interrupted,
    MediaAnchor,
    ResponseDone,
    StreamStarted,
    StreamStopped,
)
from harness.core.playout import Packet, Played, play
from harness.core.session.reader import Session

LONGEST_NS = 12 * 3600 * NS_PER_S


class Piece(NamedTuple):
    """Samples [sample, sample + length) of a file, the first of which sounds at `t_ns`."""

    t_ns: int
    sample: int
    length: int


class HeardSession:
    """Both sides of a session on one axis. user, agent: int16, shape (n,), each at its own rate and of one length.

    Raises ConfigError for a session whose user audio has no place in time (uploads), that lacks the sound of a side, or
    that is too long.
    """

    def __init__(self, session: Session) -> None:
        header = session.header
        if header.mode == "upload":
            raise ConfigError(f"{session.path}: an upload has no user audio on a timeline")
        self.user_rate_hz, self.agent_rate_hz = header.user.rate_hz, header.agent.rate_hz
        self._user = _user_pieces(session)
        if not self._user:
            raise ConfigError(f"{session.path}: no user audio was recorded")
        agent = _agent_pieces(session)
        if agent and not header.agent.samples:
            raise ConfigError(f"{session.path}: the recording has no sound of the agent")
        self.origin_ns = min(piece.t_ns for piece in [*self._user, *agent])
        ends = [_end_ns(piece, self.user_rate_hz) for piece in self._user]
        ends += [_end_ns(piece, self.agent_rate_hz) for piece in agent]
        self.length_ns = max(ends) - self.origin_ns
        if self.length_ns > LONGEST_NS:
            raise ConfigError(f"{session.path}: longer than {LONGEST_NS // (3600 * NS_PER_S)} hours")
        self.user = self._laid(self._user, session.user, self.user_rate_hz)
        self.agent = self._laid(agent, session.agent, self.agent_rate_hz)

    def place(self, sample: int) -> int:
        """Where sample `sample` of `user.wav` lies in `user`."""
        piece = next((each for each in reversed(self._user) if each.sample <= sample), self._user[0])
        return self._index(piece.t_ns, self.user_rate_hz) + sample - piece.sample

    def _index(self, t_ns: int, rate_hz: int) -> int:
        return round((t_ns - self.origin_ns) * rate_hz / NS_PER_S)

    def _laid(self, pieces: list[Piece], samples: Int16, rate_hz: int) -> Int16:
        signal = np.zeros(-(-self.length_ns * rate_hz // NS_PER_S), dtype=np.int16)
        for piece in pieces:
            at = self._index(piece.t_ns, rate_hz)
            source = samples[piece.sample : piece.sample + min(piece.length, len(signal) - at)]
            signal[at : at + len(source)] = source
        return signal


def _end_ns(piece: Piece, rate_hz: int) -> int:
    return piece.t_ns + piece.length * NS_PER_S // rate_hz


def _user_pieces(session: Session) -> list[Piece]:
    """Stretches of the user's stream: each begins at a `StreamStarted` (live audio: at an anchor)."""
    total, found = session.header.user.samples, list[Piece]()
    starts = {event.sample: event.t_ns for event in session.of(StreamStarted)}
    starts |= {event.sample: event.t_ns for event in session.of(MediaAnchor) if event.side == "user"}
    stops = sorted(event.sample for event in session.of(StreamStopped))
    marks = sorted(starts.items())
    for index, (sample, t_ns) in enumerate(marks):
        after = marks[index + 1][0] if index + 1 < len(marks) else total
        end = min([after, total, *(stop for stop in stops if stop > sample)])
        if end > sample >= 0:
            found.append(Piece(t_ns, sample, end - sample))
    return found


def _agent_pieces(session: Session) -> list[Piece]:
    return [
        Piece(played.start_ns, played.packet.sample_start, _heard_samples(played))
        for played in _played(session)
        if played.end_ns > played.start_ns
    ]


def _heard_samples(played: Played) -> int:
    rate_hz = played.packet.rate_hz
    return min(played.packet.samples, ns_to_samples(played.end_ns - played.start_ns, rate_hz))


def _played(session: Session) -> list[Played]:
    closed: set[str] = set()
    packets: list[Packet] = []
    for event in session.events:
        if isinstance(event, AudioReceived):
            if event.samples > 0 and event.response not in closed:
                packets.append(
                    Packet(
                        arrival_ns=event.t_ns, samples=event.samples, rate_hz=event.rate_hz, sample_start=event.sample
                    )
                )
        elif isinstance(event, ResponseDone | Interrupted) and event.response:
            closed.add(event.response)
        elif isinstance(event, CommandSent) and event.command == "cancel" and event.detail.get("response"):
            closed.add(str(event.detail["response"]))
    kinds = frozenset(session.header.profile.flush_on)
    flushes = sorted(event.t_ns for event in session.events if event.__struct_config__.tag in kinds)
    return play(packets, flushes_ns=flushes)
