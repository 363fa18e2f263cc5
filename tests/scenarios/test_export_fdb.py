"""Sessions in Full-Duplex-Bench's layout: both sides to the sample, and back again with the same intervals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from harness.core.audio import Int16, int16_to_pcm16, samples_to_ns
from harness.core.clock import WallAnchor
from harness.core.errors import ConfigError, SessionFormatError
from harness.core.events import (
    AudioReceived,
    AudioSent,
    Event,
    Interrupted,
    ResponseStarted,
    ScenarioEvent,
    StreamStarted,
    TurnStarted,
)
from harness.core.profile import Profile
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.core.session.reader import Session
from harness.core.session.writer import SessionWriter
from scenarios.exporters.fdb import export_fdb
from scenarios.importers.fdb import import_fdb
from scoring.duplex.hearing import hear
from tests.scenarios.recorded import burst, clip, laid, only

pytestmark = pytest.mark.unit

RATE = 24_000
BASE_NS = 7_123_456_789_013
MS = 1_000_000
ONE, CUT = clip("en-q-03", "duplex-en"), clip("en-int-01", "duplex-en")
ANSWER = clip("en-long-01", "duplex-en")
AT_ONE, AT_CUT = 12_000, 130_001
LENGTH = 240_000


def header(name: str = "s0") -> Header:
    return Header(
        session=name,
        peer=PeerInfo(kind="test", label="test-peer", version="1"),
        mode="vad",
        profile=Profile(),
        clock=ClockInfo(name="virtual", resolution_ns=1),
        anchor=WallAnchor(wall_ns=0, monotonic_ns=BASE_NS),
        user=AudioInfo(file="user.flac", rate_hz=RATE),
        agent=AudioInfo(file="agent.flac", rate_hz=RATE),
        queries=("q",),
        languages=("en",),
    )


def record(run: Path, category: str, cut: dict[str, Any], events: list[Event]) -> Session:
    """A session of a burst peer: a question, an answer at once from 3.1 s on, `CUT` at 5.4 s with the given marks."""
    user = laid(LENGTH, (AT_ONE, ONE.samples), (AT_CUT, CUT.samples))
    writer = SessionWriter(run / "sessions", header())
    writer.append(StreamStarted(t_ns=BASE_NS, sample=0, rate_hz=RATE))
    writer.append(
        TurnStarted(
            t_ns=BASE_NS,
            turn=0,
            query="q",
            clip_sample=AT_ONE,
            clip_samples=len(ONE.samples),
            speech_start=AT_ONE + ONE.speech_start,
            speech_end=AT_ONE + ONE.speech_end,
            text=ONE.text,
            language="en",
        )
    )
    writer.append(said("e1", category, AT_ONE, ONE.speech_start, ONE.speech_end, "turn", "respond"))
    if cut:
        writer.append(said("e2", category, AT_CUT, CUT.speech_start, CUT.speech_end, **cut))
    writer.append(
        AudioSent(
            t_ns=BASE_NS + 10_000 * MS,
            planned_ns=BASE_NS + 10_000 * MS,
            started_ns=BASE_NS + 10_000 * MS,
            sample=0,
            samples=LENGTH,
            pcm=int16_to_pcm16(user),
        )
    )
    for event in events:
        writer.append(event)
    writer.close()
    return only(run)


def said(name: str, category: str, at: int, start: int, end: int, kind: str, expect: Any) -> ScenarioEvent:
    return ScenarioEvent(
        t_ns=BASE_NS,
        event=name,
        kind=kind,
        expect=expect,
        clip=name,
        clip_sample=at,
        clip_samples=end,
        speech_start=at + start,
        speech_end=at + end,
        anchor="session_start",
        anchor_ns=BASE_NS,
        planned_delay_ns=0,
        category=category,
    )


def audio(ms: float, samples: Int16, response: str = "r1") -> AudioReceived:
    t_ns = BASE_NS + round(ms * MS)
    return AudioReceived(t_ns=t_ns, samples=len(samples), rate_hz=RATE, response=response, pcm=int16_to_pcm16(samples))


def interrupted(ms: float, response: str = "r1") -> Interrupted:
    return Interrupted(t_ns=BASE_NS + round(ms * MS), response=response)


def read(path: Path) -> Int16:
    samples, rate_hz = soundfile.read(path, dtype="int16")
    assert rate_hz == RATE
    return samples


STOP = {"kind": "turn", "expect": "stop"}
ANSWERED = [ResponseStarted(t_ns=BASE_NS + 3100 * MS, response="r1"), audio(3100, ANSWER.samples)]


def test_both_sides_as_heard_on_one_clock(tmp_path: Path) -> None:
    """Two packets in a burst play one after the other; the flush at 5 s cuts; what comes after the end is late."""
    one, two = burst(24_000, RATE), burst(48_000, RATE, 700)
    events: list[Event] = [
        ResponseStarted(t_ns=BASE_NS + 3000 * MS, response="r1"),
        audio(3000, one),
        audio(3010, two),
        interrupted(5000),
        audio(5100, one),
        audio(7000, one, "r2"),
    ]
    record(tmp_path / "run", "user_interruption", STOP, events)
    made = export_fdb(tmp_path / "run", tmp_path / "out")
    assert made.samples == ("user_interruption/s0",)
    home = tmp_path / "out" / "user_interruption" / "s0"
    user, agent = read(home / "input.wav"), read(home / "output.wav")
    assert np.array_equal(user, laid(LENGTH, (AT_ONE, ONE.samples), (AT_CUT, CUT.samples)))
    wanted = laid(LENGTH, (3 * RATE, one), (4 * RATE, two[:RATE]), (7 * RATE, one))
    assert np.array_equal(agent, wanted)


def test_the_annotation_of_an_interruption(tmp_path: Path) -> None:
    record(tmp_path / "run", "user_interruption", STOP, ANSWERED)
    export_fdb(tmp_path / "run", tmp_path / "out")
    home = tmp_path / "out" / "user_interruption" / "s0"
    times = [(AT_CUT + CUT.speech_start) / RATE, (AT_CUT + CUT.speech_end) / RATE]
    assert json.loads((home / "interrupt.json").read_bytes()) == [
        {"context": ONE.text, "interrupt": "", "timestamp": times}
    ]
    assert json.loads((home / "metadata.json").read_bytes()) == {
        "context_text": ONE.text,
        "current_turn_text": "",
        "timestamps": times,
    }
    chunk = {"text": ONE.text, "timestamp": [(AT_ONE + ONE.speech_start) / RATE, (AT_ONE + ONE.speech_end) / RATE]}
    assert json.loads((home / "transcription.json").read_bytes()) == {"text": ONE.text, "chunks": [chunk]}


@pytest.mark.parametrize(
    ("category", "cut", "task", "files"),
    [
        ("smooth_turn_taking", {}, "smooth_turn_taking", {"turn_taking.json"}),
        ("self_correction", {}, "smooth_turn_taking", {"turn_taking.json"}),
        ("pause_in_turn", {}, "pause_handling", {"pause.json"}),
        ("nested_interruption", STOP, "user_interruption", {"interrupt.json", "metadata.json"}),
        ("", STOP, "user_interruption", {"interrupt.json", "metadata.json"}),
        ("user_backchannel", {"kind": "backchannel", "expect": "keep_talking"}, "user_backchannel", {"metadata.json"}),
        ("", {"kind": "non_directed", "expect": "keep_talking"}, "talking_to_other", {"metadata.json"}),
        ("noise/../x", {"kind": "noise", "expect": "keep_talking"}, "noise-..-x", {"metadata.json"}),
    ],
)
def test_each_category_has_its_task(tmp_path: Path, category: str, cut: Any, task: str, files: set[str]) -> None:
    record(tmp_path / "run", category, cut, ANSWERED)
    assert export_fdb(tmp_path / "run", tmp_path / "out").samples == (f"{task}/s0",)
    always = {"input.wav", "output.wav", "transcription.json", "firstpacket.json"}
    assert {path.name for path in (tmp_path / "out" / task / "s0").iterdir()} == always | files


@pytest.mark.parametrize("sidecar", [True, False])
def test_there_and_back_gives_the_same_intervals(tmp_path: Path, sidecar: bool) -> None:
    before = record(tmp_path / "run", "user_interruption", STOP, [*ANSWERED, interrupted(5900)])
    export_fdb(tmp_path / "run", tmp_path / "out")
    if not sidecar:
        (tmp_path / "out" / "user_interruption" / "s0" / "firstpacket.json").unlink()
    import_fdb(tmp_path / "out", tmp_path / "back", language="en")
    after = only(tmp_path / "back")
    wanted, found = hear(before).conversation, hear(after).conversation
    tolerance_ns = 0 if sidecar else 10 * MS  # without marks, the context's come from the annotator
    assert [(u.kind, u.expect, u.category) for u in found.user] == [(u.kind, u.expect, u.category) for u in wanted.user]
    for got, right in zip(found.user, wanted.user, strict=True):
        assert got.start_ns == pytest.approx(right.start_ns - BASE_NS, abs=tolerance_ns)
        assert got.end_ns == pytest.approx(right.end_ns - BASE_NS, abs=tolerance_ns)
    assert found.user[-1].start_ns == wanted.user[-1].start_ns - BASE_NS, "the interruption's marks are written down"
    assert len(found.agent) == len(wanted.agent) > 0
    for span, same in zip(found.agent, wanted.agent, strict=True):
        assert (span.start_ns, span.end_ns) == pytest.approx((same.start_ns - BASE_NS, same.end_ns - BASE_NS), abs=MS)


def test_an_import_exports_to_the_same_sound(tmp_path: Path) -> None:
    record(tmp_path / "run", "user_interruption", STOP, ANSWERED)
    export_fdb(tmp_path / "run", tmp_path / "out")
    import_fdb(tmp_path / "out", tmp_path / "back")
    export_fdb(tmp_path / "back", tmp_path / "again")
    one = tmp_path / "out" / "user_interruption" / "s0"
    (two,) = (tmp_path / "again" / "user_interruption").iterdir()
    for name in ("input.wav", "output.wav", "interrupt.json", "metadata.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_a_pause_is_found_in_the_sound(tmp_path: Path) -> None:
    """A pack's clip with 1.2 s of silence inside, exported with that silence as its annotation."""
    paused = clip("en-pause-01", "duplex-en")
    writer = SessionWriter(tmp_path / "run" / "sessions", header())
    writer.append(StreamStarted(t_ns=BASE_NS, sample=0, rate_hz=RATE))
    writer.append(said("e1", "pause_in_turn", 0, paused.speech_start, paused.speech_end, "turn", "respond"))
    writer.add_user_audio(int16_to_pcm16(paused.samples))
    writer.close()
    export_fdb(tmp_path / "run", tmp_path / "out")
    (row,) = json.loads((tmp_path / "out" / "pause_handling" / "s0" / "pause.json").read_bytes())
    start_s, end_s = row["timestamp"]
    assert end_s - start_s == pytest.approx(1.2, abs=0.2)
    assert paused.speech_start < start_s * RATE < end_s * RATE < paused.speech_end


def test_an_agent_that_spoke_first_shifts_both_sides(tmp_path: Path) -> None:
    record(tmp_path / "run", "smooth_turn_taking", {}, [audio(-500, burst(1_000, RATE))])
    export_fdb(tmp_path / "run", tmp_path / "out")
    home = tmp_path / "out" / "smooth_turn_taking" / "s0"
    assert np.array_equal(read(home / "output.wav")[:1_000], burst(1_000, RATE))
    assert np.array_equal(read(home / "input.wav")[RATE // 2 + AT_ONE :][: len(ONE.samples)], ONE.samples)
    (row,) = json.loads((home / "turn_taking.json").read_bytes())
    assert row["timestamp"][0] == (RATE // 2 + AT_ONE + ONE.speech_end) / RATE


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(SessionFormatError, match="not a run directory"):
        export_fdb(tmp_path / "nowhere", tmp_path / "out")
    record(tmp_path / "run", "noise", {}, [])
    writer = SessionWriter(tmp_path / "empty" / "sessions", header())
    writer.append(StreamStarted(t_ns=BASE_NS, sample=0, rate_hz=RATE))
    writer.close()
    with pytest.raises(ConfigError, match=r"nothing to export: .*no user audio was recorded"):
        export_fdb(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "x").write_text("x")
    with pytest.raises(ConfigError, match="is not empty"):
        export_fdb(tmp_path / "run", tmp_path / "taken")


def test_the_axis_is_the_streams(tmp_path: Path) -> None:
    """A stream that stops and starts again: silence in between, marks moved with it."""
    gap_ns = 1_500 * MS
    writer = SessionWriter(tmp_path / "two" / "sessions", header())
    writer.append(StreamStarted(t_ns=BASE_NS, sample=0, rate_hz=RATE))
    writer.append(StreamStarted(t_ns=BASE_NS + samples_to_ns(24_000, RATE) + gap_ns, sample=24_000, rate_hz=RATE))
    writer.append(said("e1", "self_correction", 24_000, 100, 9_000, "turn", "respond"))
    writer.add_user_audio(int16_to_pcm16(burst(48_000, RATE)))
    writer.close()
    export_fdb(tmp_path / "two", tmp_path / "out")
    home = tmp_path / "out" / "smooth_turn_taking" / "s0"
    sound = burst(48_000, RATE)
    assert np.array_equal(read(home / "input.wav"), laid(84_000, (0, sound[:24_000]), (60_000, sound[24_000:])))
    (row,) = json.loads((home / "turn_taking.json").read_bytes())
    assert row["timestamp"] == [69_000 / RATE, 84_000 / RATE]
