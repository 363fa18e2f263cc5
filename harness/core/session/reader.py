"""Reading a session directory: header, events and audio, through the migrations."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.core.audio import Int16
from harness.core.errors import SessionFormatError
from harness.core.events import AnyEvent, AudioReceived, Event, decode_event
from harness.core.session.audio_file import inside, read_audio
from harness.core.session.header import MAX_RATE_HZ, Header
from harness.core.session.migrations import event_lift, lift_header, version_of
from harness.core.session.writer import PARTIAL

E = TypeVar("E", bound=Event)
MAX_DEPTH = 100
"""Objects in objects: more than any peer's message has, and few enough for whoever walks through them."""
_MAX_NS = 2**62
"""Instants and durations, either way: the difference of two fits into 64 bits."""
_MAX_POSITION = 2**40
_POSITIONS = frozenset({"sample", "samples", "clip_sample", "clip_samples", "speech_start", "speech_end"})

Bounds = tuple[tuple[str, int, int], ...]


def _bounds(kind: type[Event]) -> Bounds:
    """(field, lowest, highest) of the numbers that scoring calculates with."""
    found = []
    for field in kind.__struct_fields__:
        if field.endswith("_ns"):
            found.append((field, -_MAX_NS, _MAX_NS))
        elif field == "rate_hz":
            found.append((field, 1, MAX_RATE_HZ))
        elif field in _POSITIONS:
            # The user's timeline may begin before its first sample; received sound and lengths may not.
            least = 0 if kind is AudioReceived or field.endswith("samples") else -_MAX_POSITION
            found.append((field, least, _MAX_POSITION))
    return tuple(found)


_BOUNDS: dict[type[Event], Bounds] = {kind: _bounds(kind) for kind in AnyEvent.__args__}
_NESTED = {
    kind: tuple(name for name in ("usage", "detail", "data") if name in kind.__struct_fields__)
    for kind in AnyEvent.__args__
}


class Session:
    """One recorded session, read-only. `user` and `agent` are mono int16 arrays, loaded on first use."""

    def __init__(self, path: Path, header: Header, events: tuple[Event, ...]) -> None:
        self.path = path
        self.header = header
        self.events = events

    @cached_property
    def user(self) -> Int16:
        """What was sent, shape (n,), at `header.user.rate_hz`; index 0 is the stream's first sample."""
        return read_audio(self.path, self.header.user)

    @cached_property
    def agent(self) -> Int16:
        """What was received, concatenated, shape (n,), at `header.agent.rate_hz`; events map packets to ranges."""
        return read_audio(self.path, self.header.agent)

    def of(self, kind: type[E]) -> Iterator[E]:
        """The events of one type, in order."""
        return (event for event in self.events if isinstance(event, kind))


def load_session(path: Path) -> Session:
    """Read a finished session directory.

    Raises SessionFormatError for a directory that is none, is damaged, changed, incomplete, holds what no session can,
    or is newer than this version.
    """
    header, version = _header(path)
    if not header.complete:
        raise SessionFormatError(f"{path}: the session was never finished")
    file = path / "events.jsonl"
    try:
        data = inside(path, file.name).read_bytes()
    except (OSError, MemoryError) as exc:
        raise SessionFormatError(f"{file}: cannot be read ({exc})") from exc
    events = tuple(_events(file, data, version))
    if len(events) != header.events:
        raise SessionFormatError(f"{file}: {len(events)} events, session.json counts {header.events}")
    if header.events_sha256 and hashlib.sha256(data).hexdigest() != header.events_sha256:
        raise SessionFormatError(f"{file}: sha256 differs from session.json, the file was changed")
    return Session(path, header, events)


def _header(path: Path) -> tuple[Header, int]:
    """The header, and the schema version that the directory was written in."""
    file = path / "session.json"
    if not os.path.exists(file):
        raise SessionFormatError(f"{path}: no session.json, so this is not a session directory")
    try:
        raw = msgspec.json.decode(inside(path, file.name).read_bytes())
        if not isinstance(raw, dict):
            raise SessionFormatError(f"{file}: not an object")
        _check_depth(raw, MAX_DEPTH)
        version = version_of(raw)
        return msgspec.convert(lift_header(raw), Header), version
    except SessionFormatError as exc:
        said = str(exc)
        raise SessionFormatError(said if said.startswith(str(path)) else f"{path}: {said}") from exc
    except (OSError, ValueError, TypeError, RecursionError, MemoryError) as exc:  # msgspec's errors are ValueErrors
        raise SessionFormatError(f"{file}: cannot be read ({exc})") from exc


def _events(path: Path, data: bytes, version: int) -> Iterator[Event]:
    lift = event_lift(version)
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            if lift:
                line = msgspec.json.encode(lift(msgspec.json.decode(line)))
            event = decode_event(line)
            _check(event, number - 1)
            yield event
        except (TypeError, ValueError, OverflowError, RecursionError) as exc:  # msgspec's errors are ValueErrors
            raise SessionFormatError(f"{path}, line {number}: {exc}") from exc


def _check(event: Event, seq: int) -> None:
    """Raises ValueError for what no writer writes: a wrong number, or figures beyond all measure."""
    if event.seq != seq:
        raise ValueError(f"has the number {event.seq}, not {seq}: lines are missing or in another order")
    kind = type(event)
    for name, low, high in _BOUNDS[kind]:
        if not low <= getattr(event, name) <= high:
            raise ValueError(f"`{name}` of this event cannot be")
    for name in _NESTED[kind]:
        _check_depth(getattr(event, name), MAX_DEPTH)


def _check_depth(value: Any, left: int) -> None:
    if left == 0:
        raise ValueError(f"more than {MAX_DEPTH} objects inside each other")
    if isinstance(value, dict):
        for each in value.values():
            _check_depth(each, left - 1)
    elif isinstance(value, list):
        for each in value:
            _check_depth(each, left - 1)


def session_paths(sessions: Path) -> list[Path]:
    """All finished session directories below `sessions`, by name; partials are left out."""
    if not sessions.is_dir():
        return []
    return sorted(p for p in sessions.iterdir() if p.is_dir() and not p.name.endswith(PARTIAL))
