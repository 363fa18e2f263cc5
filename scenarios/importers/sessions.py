"""Writing recordings of others as session directories and a run directory around them.

The session's clock is the recording's own axis: instant 0 is its first sample. What a recording does not say is not in
the session: no sends (`AudioSent`), no arrival stamps, no words of the peer. An `AudioReceived` stands at the instant
at which its first sample is heard, so that the zero-buffer playout gives the recorded timeline back; nothing flushes.

With the agent's sound the peer is `continuous`: its utterances are found in the sound. Without it (intervals, ticks)
each interval is one response with one packet, whose samples nobody has and of whose end nothing is said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

import harness
from harness.core.audio import NS_PER_S, Int16, int16_to_pcm16, ns_to_samples, samples_to_ns
from harness.core.clock import SystemClock, WallAnchor, wall_anchor
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioReceived,
    Event,
    Note,
    ResponseStarted,
    ScenarioEvent,
    StreamStarted,
    StreamStopped,
    TurnStarted,
)
from harness.core.profile import Profile
from harness.core.run_directory import RunDirectory, RunInfo, slug
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.core.session.writer import SessionWriter

Format = Literal["fdb", "tau2", "stereo", "intervals"]
Expect = Literal["respond", "stop", "keep_talking", "stay_silent", ""]
TURN_EXPECTS = ("respond", "stop", "")


class Track(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One side's sound: mono int16, shape (n,), its first sample at instant 0."""

    samples: Int16
    rate_hz: int


class UserSound(msgspec.Struct, frozen=True, kw_only=True):
    """Something on the user's channel: samples [start, end) at the user's rate. kind, expect: as in `ScenarioEvent`.
    expect "": nobody said what the agent should do.
    marks: who found start and end (an annotator, or the recording's own words)."""

    id: str
    start: int
    end: int
    kind: str = "turn"
    expect: Expect = ""
    category: str = ""
    text: str = ""
    tags: tuple[str, ...] = ()
    marks: str = ""


class Interval(msgspec.Struct, frozen=True, order=True):
    """A stretch of the agent's channel without its sound: [start_ns, end_ns)."""

    start_ns: int
    end_ns: int


class Recording(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One conversation of others. agent: its sound, or intervals in order that do not overlap. user_rate_hz: of the
    positions in `sounds` (the user track's own, where there is one). end_ns: where the recording ends. files: what it
    was read from. unknown: what cannot be known, for the reader. detail: into the header's config."""

    id: str
    sounds: tuple[UserSound, ...]
    agent: Track | tuple[Interval, ...]
    end_ns: int
    user: Track | None = None
    user_rate_hz: int = 48_000
    agent_rate_hz: int = 48_000
    files: tuple[Path, ...] = ()
    unknown: tuple[str, ...] = ()
    language: str = ""
    detail: dict[str, Any] = msgspec.field(default_factory=dict)


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import made. sessions: their ids. skipped: what was left out, with the reason."""

    run: Path
    sessions: tuple[str, ...]
    skipped: tuple[str, ...] = ()


def write_run(
    recordings: Sequence[Recording], out: Path, *, form: Format, source: Path, skipped: Sequence[str] = ()
) -> Imported:
    """Write one session a recording below `out` and the run directory around them.

    Raises ConfigError where `out` is taken or cannot be written to, or two recordings share an id.
    """
    refuse_taken(out)
    names: list[str] = []
    for recording in recordings:
        name = slug(recording.id)
        if name in names:
            raise ConfigError(f"{source}: two recordings would share the session id {name!r}")
        names.append(name)
    run = begin_run(out, names, form=form, source=source, suite=slug(source.stem), detail={"skipped": list(skipped)})
    try:
        for name, recording in zip(names, recordings, strict=True):
            write_session(run.sessions, name, recording, form=form)
    except OSError as exc:
        raise ConfigError(f"{out}: cannot be written ({exc.strerror or exc})") from exc
    return Imported(run=out, sessions=tuple(names), skipped=tuple(skipped))


def refuse_taken(out: Path) -> None:
    """Raises ConfigError where something stands already."""
    if RunDirectory(out).exists() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise ConfigError(f"--out {out}: is not empty; name a directory that does not exist yet")


def begin_run(
    out: Path, names: Sequence[str], *, form: str, source: Path, suite: str, detail: dict[str, Any], peer: str = ""
) -> RunDirectory:
    """Make the run directory of an import. Raises ConfigError, PrerequisiteError."""
    run = RunDirectory(out)
    wall_s = wall_anchor(SystemClock()).wall_ns / 1e9
    run.write_info(
        RunInfo(
            peer=peer or f"import/{form}",
            suite=suite,
            created=datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            firstpacket=harness.__version__,
            config={"imported": True, "format": form, "source": source.name, **detail},
            planned=tuple(names),
        )
    )
    return run


def write_session(sessions: Path, name: str, recording: Recording, *, form: Format) -> None:
    """One session directory. Raises OSError."""
    writer = SessionWriter(sessions, _header(name, recording, form))
    if recording.user is not None:
        writer.add_user_audio(int16_to_pcm16(recording.user.samples))
    for event in _events(recording):
        writer.append(event)
    writer.close()


def file_sha256(path: Path) -> str:
    """sha256 of a file's bytes. Raises ConfigError."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc


def _header(name: str, recording: Recording, form: Format) -> Header:
    sound = isinstance(recording.agent, Track)
    user_hz, agent_hz = _user_rate(recording), _agent_rate(recording)
    turns = _turns(recording)
    return Header(
        session=name,
        peer=PeerInfo(kind="import", label=f"import/{form}", version=harness.__version__),
        mode="none",
        profile=Profile(
            pacing="paced",
            turns=("vad",),
            continuous=sound,
            input_rate_hz=user_hz,
            output_rate_hz=agent_hz,
            flush_on=(),
            text="none",
        ),
        clock=ClockInfo(name="recording", resolution_ns=samples_to_ns(1, max(user_hz, agent_hz))),
        anchor=WallAnchor(wall_ns=0, monotonic_ns=0),
        config={
            "imported": True,
            "format": form,
            "files": {path.name: file_sha256(path) for path in recording.files},
            "unknown": list(recording.unknown),
            **recording.detail,
        },
        queries=tuple(each.id for each in turns),
        languages=tuple(recording.language for _ in turns),
        user=AudioInfo(file="user.flac", rate_hz=user_hz),
        agent=AudioInfo(file="agent.flac", rate_hz=agent_hz),
        imported=form,
        firstpacket=harness.__version__,
    )


def _events(recording: Recording) -> list[Event]:
    """All events in order of time; what begins together: stream, user, agent, end."""
    rate_hz = _user_rate(recording)
    begin: list[Event] = [
        StreamStarted(t_ns=0, sample=0, rate_hz=rate_hz),
        *(Note(t_ns=0, code="imported", message=said) for said in recording.unknown),
    ]
    events = sorted([*_user_events(recording, rate_hz), *_agent_events(recording)], key=lambda event: event.t_ns)
    last_ns = max([recording.end_ns, *(event.t_ns for event in events)])
    samples = len(recording.user.samples) if recording.user else -(-last_ns * rate_hz // NS_PER_S)
    return [*begin, *events, StreamStopped(t_ns=last_ns, sample=samples)]


def _user_events(recording: Recording, rate_hz: int) -> list[Event]:
    turns = {sound.id: number for number, sound in enumerate(_turns(recording))}
    events: list[Event] = []
    for sound in recording.sounds:
        t_ns = samples_to_ns(sound.start, rate_hz)
        events.append(
            ScenarioEvent(
                t_ns=t_ns,
                event=sound.id,
                kind=sound.kind,
                expect=sound.expect,
                clip="",
                clip_sample=sound.start,
                clip_samples=sound.end - sound.start,
                speech_start=sound.start,
                speech_end=sound.end,
                anchor="session_start",
                anchor_ns=0,
                planned_delay_ns=t_ns,
                category=sound.category,
                tags=sound.tags,
            )
        )
        if sound.id in turns:
            events.append(
                TurnStarted(
                    t_ns=t_ns,
                    turn=turns[sound.id],
                    query=sound.id,
                    clip_sample=sound.start,
                    clip_samples=sound.end - sound.start,
                    speech_start=sound.start,
                    speech_end=sound.end,
                    text=sound.text,
                    language=recording.language,
                    annotator=sound.marks,
                )
            )
    return events


def _agent_events(recording: Recording) -> list[Event]:
    agent = recording.agent
    if isinstance(agent, Track):
        return list(_packets(agent))
    rate_hz, events = recording.agent_rate_hz, list[Event]()
    sample = 0
    for number, interval in enumerate(agent, start=1):
        name = f"a{number}"
        samples = ns_to_samples(interval.end_ns - interval.start_ns, rate_hz)
        events += [
            ResponseStarted(t_ns=interval.start_ns, response=name),
            AudioReceived(t_ns=interval.start_ns, samples=samples, rate_hz=rate_hz, sample=sample, response=name),
        ]
        sample += samples
    return events


def _packets(agent: Track) -> list[AudioReceived]:
    """Packets of one second, which is a whole number of ns and samples at every rate: no rounding adds up."""
    step = agent.rate_hz
    return [
        AudioReceived(
            t_ns=samples_to_ns(start, agent.rate_hz),
            samples=len(piece),
            rate_hz=agent.rate_hz,
            pcm=int16_to_pcm16(piece),
        )
        for start in range(0, len(agent.samples), step)
        if len(piece := agent.samples[start : start + step])
    ]


def _turns(recording: Recording) -> list[UserSound]:
    return [sound for sound in recording.sounds if sound.kind == "turn" and sound.expect in TURN_EXPECTS]


def _user_rate(recording: Recording) -> int:
    return recording.user.rate_hz if recording.user else recording.user_rate_hz


def _agent_rate(recording: Recording) -> int:
    return recording.agent.rate_hz if isinstance(recording.agent, Track) else recording.agent_rate_hz
