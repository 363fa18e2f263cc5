"""Reading a session directory: header, events and audio, through the migrations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.core.audio import Int16
from harness.core.errors import SessionFormatError
from harness.core.events import Event, decode_event
from harness.core.session.audio_file import read_audio
from harness.core.session.header import Header
from harness.core.session.migrations import event_lift, lift_header, version_of
from harness.core.session.writer import PARTIAL

E = TypeVar("E", bound=Event)


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

    Raises SessionFormatError for a directory that is none, is damaged, incomplete, or newer than this version.
    """
    try:
        raw = msgspec.json.decode((path / "session.json").read_bytes())
    except FileNotFoundError as exc:
        raise SessionFormatError(f"{path}: no session.json, so this is not a session directory") from exc
    except (OSError, msgspec.DecodeError) as exc:
        raise SessionFormatError(f"{path}/session.json: cannot be read ({exc})") from exc
    if not isinstance(raw, dict):
        raise SessionFormatError(f"{path}/session.json: not an object")
    version = version_of(raw)
    try:
        header = msgspec.convert(lift_header(raw), Header)
    except msgspec.ValidationError as exc:
        raise SessionFormatError(f"{path}/session.json: {exc}") from exc
    events = tuple(_events(path / "events.jsonl", version))
    if not header.complete:
        raise SessionFormatError(f"{path}: the session was never finished")
    if len(events) != header.events:
        raise SessionFormatError(f"{path}/events.jsonl: {len(events)} events, session.json counts {header.events}")
    return Session(path, header, events)


def _events(path: Path, version: int) -> Iterator[Event]:
    lift = event_lift(version)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as exc:
        raise SessionFormatError(f"{path}: cannot be read ({exc})") from exc
    for number, line in enumerate(lines, start=1):
        try:
            if lift:
                line = msgspec.json.encode(lift(msgspec.json.decode(line)))
            yield decode_event(line)
        except (msgspec.DecodeError, TypeError, ValueError) as exc:
            raise SessionFormatError(f"{path}, line {number}: {exc}") from exc


def session_paths(sessions: Path) -> list[Path]:
    """All finished session directories below `sessions`, by name; partials are left out."""
    if not sessions.is_dir():
        return []
    return sorted(p for p in sessions.iterdir() if p.is_dir() and not p.name.endswith(PARTIAL))
