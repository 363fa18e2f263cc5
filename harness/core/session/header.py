"""`session.json`: who measured whom, how, on which machine, and what the harness knows of its own error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from harness.core.clock import WallAnchor
from harness.core.item import Item
from harness.core.profile import Profile

SCHEMA = 1
"""Version of the session directory. Version 1 holds turn peers, continuous peers (no turns), RTP packets and live
clock anchors. A change that is not purely additive bumps it and adds a migration."""
MAX_RATE_HZ = 768_000
"""Highest sample rate of any sound file or packet."""
MAX_SAMPLES = 2**31 - 1
"""Longest sound file: 12 hours at 48 kHz, all that a WAV file can hold."""

Count = Annotated[int, msgspec.Meta(ge=0)]
RateHz = Annotated[int, msgspec.Meta(ge=1, le=MAX_RATE_HZ)]
SoundName = Annotated[str, msgspec.Meta(pattern=r"^[^/\\:\x00-\x1f]+\.(wav|flac)\Z", max_length=120)]
"""A plain file name, so that a header cannot lead out of its directory."""
SessionName = Annotated[str, msgspec.Meta(pattern=r"^(?!\.{1,2}\Z)[^/\\\x00-\x1f]+\Z", max_length=200)]


class ClockInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    resolution_ns: int


class PeerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The peer as it was asked for. config: resolved options, without secrets."""

    kind: str
    label: str
    version: str
    config: dict[str, Any] = msgspec.field(default_factory=dict)


class AudioInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One audio file of the session: mono PCM16. sha256: over the little-endian samples."""

    file: SoundName
    rate_hz: RateHz
    samples: Annotated[int, msgspec.Meta(ge=0, le=MAX_SAMPLES)] = 0
    sha256: str = ""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a session that is not an event.

    mode: who ends the user's turn (`upload`: the whole query in one request). chunk_samples: size of the user chunks.
    commit_after: what a manual commit follows. queries: the turns that the runner set out to run, by id. warmup: left
    out of every figure. events, dropped: counts at the end; dropped > 0 taints every row. events_sha256: over the bytes
    of `events.jsonl` (empty: a session of before this field). complete: false until the writer has closed the session.
    imported: made from recordings of others, by this tool.
    """

    schema: int = SCHEMA
    session: SessionName
    peer: PeerInfo
    mode: Literal["manual", "vad", "upload", "none"]
    profile: Profile
    clock: ClockInfo
    anchor: WallAnchor
    machine: dict[str, Any] = msgspec.field(default_factory=dict)
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    chunk_samples: Count = 0
    commit_after: Literal["speech", "clip"] = "speech"
    queries: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    """Of the planned queries, in their order."""
    items: tuple[Item, ...] = ()
    """Of a benchmark's queries, in their order; empty for others."""
    repeat: int = 0
    warmup: bool = False
    user: AudioInfo
    agent: AudioInfo
    events: Count = 0
    events_sha256: str = ""
    dropped: Count = 0
    complete: bool = False
    imported: str = ""
    firstpacket: str = ""
