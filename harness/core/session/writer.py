"""Writing one session directory. Lives in the writer process while measuring; importers use it directly.

The directory is called `<id>.partial` until `close` has put everything on disk, then it is renamed: whatever stands
under its final name is whole, and a killed run leaves only partials behind.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import BinaryIO

import msgspec

from harness.core.events import AudioReceived, AudioSent, Event, WireFrame, encode_event
from harness.core.session.audio_file import AudioWriter
from harness.core.session.header import AudioInfo, Header

PARTIAL = ".partial"


class SessionWriter:
    """Appends events, in the order in which they come, and the audio that they carry.

    Raises OSError when the disk fails; the partial directory then stays for a look.
    """

    def __init__(self, sessions: Path, header: Header) -> None:
        self.final = sessions / header.session
        self.partial = sessions / (header.session + PARTIAL)
        self._header = header
        self._seq = 0
        self._hash = hashlib.sha256()
        if self.partial.exists():
            shutil.rmtree(self.partial)
        self.partial.mkdir(parents=True)
        self._write_header(header)
        self._events = (self.partial / "events.jsonl").open("wb", buffering=1 << 16)
        self._user: AudioWriter | None = None
        self._agent: AudioWriter | None = None
        self._wire: BinaryIO | None = None

    def append(self, event: Event) -> None:
        """Write one event; number it; move its audio into the file and its sample range into the line."""
        if isinstance(event, WireFrame):
            self._wire = self._wire or (self.partial / "wire.jsonl").open("wb", buffering=1 << 16)
            self._wire.write(encode_event(event) + b"\n")
            return
        if isinstance(event, AudioSent):
            if event.pcm:
                self._user = self._user or self._audio(self._header.user)
                self._user.append(event.pcm)
            event = msgspec.structs.replace(event, seq=self._seq, pcm=b"")
        elif isinstance(event, AudioReceived):
            start = event.sample
            if event.pcm:
                if self._agent is None:
                    info = msgspec.structs.replace(self._header.agent, rate_hz=event.rate_hz)
                    self._agent = self._audio(info)
                start = self._agent.append(event.pcm)
            event = msgspec.structs.replace(event, seq=self._seq, sample=start, pcm=b"")
        else:
            event = msgspec.structs.replace(event, seq=self._seq)
        line = encode_event(event) + b"\n"
        self._events.write(line)
        self._hash.update(line)
        self._seq += 1

    def add_user_audio(self, pcm: bytes) -> int:
        """Append user audio that belongs to no event (a recording of others has no sends); return its first sample."""
        self._user = self._user or self._audio(self._header.user)
        return self._user.append(pcm)

    def flush(self) -> None:
        self._events.flush()

    def close(self, dropped: int = 0) -> Header:
        """Put all on disk, write the final header and give the directory its name."""
        self._events.flush()
        os.fsync(self._events.fileno())
        self._events.close()
        if self._wire is not None:
            self._wire.close()
        user = self._user.close() if self._user else self._header.user
        agent = self._agent.close() if self._agent else self._header.agent
        header = msgspec.structs.replace(
            self._header,
            user=user,
            agent=agent,
            events=self._seq,
            events_sha256=self._hash.hexdigest(),
            dropped=dropped,
            complete=True,
        )
        self._write_header(header)
        if self.final.exists():
            shutil.rmtree(self.final)
        self.partial.rename(self.final)
        return header

    def _audio(self, info: AudioInfo) -> AudioWriter:
        return AudioWriter(self.partial / info.file, info.rate_hz)

    def _write_header(self, header: Header) -> None:
        path = self.partial / "session.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(header), indent=1) + b"\n")
        temporary.replace(path)
