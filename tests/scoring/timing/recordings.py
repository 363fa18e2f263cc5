"""Sessions written by hand through the real writer: every instant is chosen, so that every figure can be worked out
on paper. Times are ms from the start of the user's stream; the clock begins at an odd `BASE_NS`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.core.audio import Int16, float_to_int16, int16_to_pcm16, samples_to_ns
from harness.core.clock import WallAnchor
from harness.core.events import (
    AudioReceived,
    AudioSent,
    CommandSent,
    ConnectionPhase,
    Event,
    ResponseDone,
    ResponseStarted,
    StreamStarted,
    StreamStopped,
    TextReceived,
    TurnEnded,
    TurnStarted,
    UserSpeechStarted,
    UserSpeechStopped,
)
from harness.core.profile import Profile
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.core.session.reader import Session, load_session
from harness.core.session.writer import SessionWriter
from scoring.timing.rows import session_rows

MS = 1_000_000
BASE_NS = 7_123_456_789_013
RATE = 24_000
CHUNK_MS = 20


def tone(ms: float, rate_hz: int = RATE, level: float = 0.3, hz: float = 1000.0) -> Int16:
    """A sine of `ms`, loud from its first window on."""
    n = round(ms * rate_hz / 1000)
    return float_to_int16(level * np.sin(2 * np.pi * hz * (np.arange(n) + 0.5) / rate_hz))


def silence(ms: float, rate_hz: int = RATE) -> Int16:
    return np.zeros(round(ms * rate_hz / 1000), dtype=np.int16)


def header(**changes: Any) -> Header:
    """A VAD session with a burst peer, unless told otherwise."""
    fields: dict[str, Any] = {
        "session": "s0",
        "peer": PeerInfo(kind="test", label="test-peer", version="1"),
        "mode": "vad",
        "profile": Profile(),
        "clock": ClockInfo(name="virtual", resolution_ns=1),
        "anchor": WallAnchor(wall_ns=1_800_000_000_000_000_000, monotonic_ns=BASE_NS),
        "user": AudioInfo(file="user.wav", rate_hz=RATE),
        "agent": AudioInfo(file="agent.wav", rate_hz=RATE),
        "queries": ("q0",),
        "chunk_samples": CHUNK_MS * RATE // 1000,
    }
    return Header(**{**fields, **changes})


class Script:
    """Events of one session in the making; `ms` arguments are on the stream's own axis."""

    def __init__(self, rate_hz: int = RATE, out_rate_hz: int = RATE, base_ns: int = BASE_NS) -> None:
        self.rate_hz = rate_hz
        self.out_rate_hz = out_rate_hz
        self.base_ns = base_ns
        self.events: list[Event] = []

    def at(self, ms: float) -> int:
        return self.base_ns + round(ms * MS)

    def sample(self, ms: float) -> int:
        return round(ms * self.rate_hz / 1000)

    def add(self, event: Event) -> Script:
        self.events.append(event)
        return self

    def connected(self, ready_ms: float = -100.0) -> Script:
        """started, dns 2 ms, tcp 3 ms, tls 10 ms, upgrade 5 ms later each; then ready."""
        t = ready_ms - 50
        for phase, step in (("started", 0), ("dns", 2), ("tcp", 3), ("tls", 10), ("upgrade", 5)):
            t += step
            self.add(ConnectionPhase(t_ns=self.at(t), phase=phase))
        return self.add(ConnectionPhase(t_ns=self.at(ready_ms), phase="ready"))

    def stream(self, ms: float = 0.0, sample_ms: float | None = None) -> Script:
        """The stream starts at `ms` with the sample that lies at `sample_ms` of user.wav (default: the same)."""
        at = self.sample(ms if sample_ms is None else sample_ms)
        return self.add(StreamStarted(t_ns=self.at(ms), sample=at, rate_hz=self.rate_hz))

    def stop(self, ms: float, sample_ms: float) -> Script:
        return self.add(StreamStopped(t_ns=self.at(ms), sample=self.sample(sample_ms)))

    def turn(
        self, turn: int, start_ms: float, end_ms: float, *, t_ms: float | None = None, clip_ms: tuple[float, float]
    ) -> Script:
        """Speech from `start_ms` to `end_ms` of user.wav inside a clip [from, to)."""
        return self.add(
            TurnStarted(
                t_ns=self.at(clip_ms[0] if t_ms is None else t_ms),
                turn=turn,
                query=f"q{turn}",
                clip_sample=self.sample(clip_ms[0]),
                clip_samples=self.sample(clip_ms[1]) - self.sample(clip_ms[0]),
                speech_start=self.sample(start_ms),
                speech_end=self.sample(end_ms),
                language="en",
                annotator="manifest",
            )
        )

    def send(
        self,
        from_ms: float,
        to_ms: float,
        *,
        shift_ms: float = 0.0,
        late_ms: float = 0.1,
        write_ms: float = 0.05,
        chunk_ms: float = CHUNK_MS,
    ) -> Script:
        """Chunks for user.wav [from, to); each leaves `late_ms` after its last sample; wire time = sample + shift."""
        position = from_ms
        while position < to_ms:
            end = min(position + chunk_ms, to_ms)
            first, after = self.sample(position), self.sample(end)
            planned = self.at(shift_ms) + samples_to_ns(after, self.rate_hz)
            started = planned + round(late_ms * MS)
            self.add(
                AudioSent(
                    t_ns=started + round(write_ms * MS),
                    planned_ns=planned,
                    started_ns=started,
                    sample=first,
                    samples=after - first,
                    pcm=int16_to_pcm16(np.zeros(after - first, dtype=np.int16)),
                )
            )
            position = end
        return self

    def commit(self, ms: float, turn: int = 0) -> Script:
        return self.add(CommandSent(t_ns=self.at(ms), started_ns=self.at(ms) - 1000, command="commit", turn=turn))

    def cancel(self, ms: float, response: str = "") -> Script:
        detail = {"response": response} if response else {}
        return self.add(CommandSent(t_ns=self.at(ms), started_ns=self.at(ms), command="cancel", detail=detail))

    def heard_start(self, ms: float) -> Script:
        return self.add(UserSpeechStarted(t_ns=self.at(ms)))

    def heard_stop(self, ms: float) -> Script:
        return self.add(UserSpeechStopped(t_ns=self.at(ms)))

    def begin(self, ms: float, response: str = "r0") -> Script:
        return self.add(ResponseStarted(t_ns=self.at(ms), response=response))

    def text(self, ms: float, text: str = "hello", response: str = "r0") -> Script:
        return self.add(TextReceived(t_ns=self.at(ms), text=text, response=response))

    def audio(self, ms: float, sound: Int16, response: str = "r0", rate_hz: int | None = None) -> Script:
        return self.add(
            AudioReceived(
                t_ns=self.at(ms),
                samples=len(sound),
                rate_hz=rate_hz or self.out_rate_hz,
                response=response,
                pcm=int16_to_pcm16(sound),
            )
        )

    def done(self, ms: float, response: str = "r0", status: str = "completed", **more: Any) -> Script:
        return self.add(ResponseDone(t_ns=self.at(ms), response=response, status=status, **more))

    def ended(self, ms: float, outcome: str = "answered", turn: int = 0, reason: str = "") -> Script:
        return self.add(TurnEnded(t_ns=self.at(ms), turn=turn, outcome=outcome, reason=reason))

    def write(self, sessions: Path, made: Header | None = None, dropped: int = 0) -> Session:
        """Write the session in order of time (as it would be recorded) and load it again."""
        writer = SessionWriter(sessions, made or header())
        for event in self.events:
            writer.append(event)
        finished = writer.close(dropped=dropped)
        return load_session(sessions / finished.session)

    def rows(self, tmp: Path, **changes: Any) -> list[dict[str, Any]]:
        """Write, load and score; changes: of the header. `dropped` as there."""
        dropped = changes.pop("dropped", 0)
        return session_rows(self.write(tmp, header(**changes), dropped))

    def row(self, tmp: Path, **changes: Any) -> dict[str, Any]:
        """The only row."""
        (found,) = self.rows(tmp, **changes)
        return found

    def shifted(self, by_ns: int) -> Script:
        """The same session at another time: every instant moved."""
        other = Script(self.rate_hz, self.out_rate_hz, self.base_ns + by_ns)
        for event in self.events:
            moved = {
                name: getattr(event, name) + by_ns
                for name in ("t_ns", "planned_ns", "started_ns", "first_byte_ns", "produced_ns")
                if getattr(event, name, 0)
            }
            other.add(msgspec.structs.replace(event, **moved))
        return other


def vad_turn(answer_ms: float = 1200.0) -> Script:
    """One answered VAD turn: speech 300-1000 ms, endpoint 1400, response created 1401, text 1500, then three packets:
    100 ms of silence at 1600, 200 ms of tone at 1610, 100 ms of tone at 1620; done 1630. The stream flows to 2000.
    """
    script = Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200))
    script.send(0, 1400).heard_stop(1400).begin(1401).text(1500)
    script.audio(1600, silence(100)).audio(1610, tone(200)).audio(1620, tone(100)).done(1630)
    return script.send(1400, 2000).ended(1640)
