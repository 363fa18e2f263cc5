"""Stereo files: left the user, right the agent, every sample at its instant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.core.audibility import first_audible_sample
from harness.core.audio import samples_to_ns
from harness.core.errors import ConfigError
from harness.core.events import AudioReceived, AudioSent, Note, ScenarioEvent, TurnStarted
from harness.core.playout import Packet, play
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session
from scenarios.importers import sound
from scenarios.importers.sessions import file_sha256
from scenarios.importers.stereo import import_stereo
from scoring.timing.scorer import TimingScorer
from tests.scenarios.recorded import burst, clip, laid, only

pytestmark = pytest.mark.unit

RATE = 44_100
"""Not a whole number of samples a millisecond."""


def heard(session: Session) -> list[tuple[int, int, int]]:
    """(instant, first sample, samples) of each packet in the zero-buffer playout."""
    packets = [
        Packet(arrival_ns=e.t_ns, samples=e.samples, rate_hz=e.rate_hz, sample_start=e.sample)
        for e in session.of(AudioReceived)
    ]
    return [(p.start_ns, p.packet.sample_start, p.packet.samples) for p in play(packets)]


@pytest.fixture
def tones(tmp_path: Path) -> Path:
    """Two bursts a side in 3.7 s, at odd samples."""
    length = RATE * 37 // 10
    user = laid(length, (1_001, burst(20_000, RATE)), (90_007, burst(9_999, RATE)))
    agent = laid(length, (44_099, burst(30_001, RATE, 700)), (130_003, burst(5_000, RATE, 700)))
    path = tmp_path / "call.wav"
    soundfile.write(path, np.stack([user, agent], axis=1), RATE, subtype="PCM_16")
    return path


def test_every_sample_of_the_agent_is_heard_at_its_instant(tones: Path, tmp_path: Path) -> None:
    made = import_stereo(tones, tmp_path / "run")
    assert (made.sessions, made.skipped) == (("call",), ())
    session = only(tmp_path / "run")
    both, _ = soundfile.read(tones, dtype="int16")
    assert np.array_equal(session.user, both[:, 0])
    assert np.array_equal(session.agent, both[:, 1])
    for start_ns, first, samples in heard(session):
        for sample in (first, first + 1, first + samples - 1):
            assert start_ns + samples_to_ns(sample - first, RATE) == samples_to_ns(sample, RATE)
    assert sum(samples for _, _, samples in heard(session)) == len(both)


def test_the_header_says_what_it_is(tones: Path, tmp_path: Path) -> None:
    import_stereo(tones, tmp_path / "run")
    session = only(tmp_path / "run")
    header = session.header
    assert (header.imported, header.peer.kind, header.mode) == ("stereo", "import", "none")
    assert header.profile.continuous
    assert header.profile.flush_on == ()
    assert header.config["imported"] is True
    assert header.config["files"] == {"call.wav": file_sha256(tones)}
    assert list(session.of(AudioSent)) == []
    notes = [note.message for note in session.of(Note)]
    assert any("no send or arrival stamps" in said for said in notes)
    assert any("no speech was found" in said for said in notes), "tones are no speech"
    info = RunDirectory(tmp_path / "run").info()
    assert (info.peer, info.planned, info.config["imported"]) == ("import/stereo", ("call",), True)


def test_turns_of_real_speech_are_found_and_scored(tmp_path: Path) -> None:
    one, two = clip("en-01"), clip("en-04")
    answer = clip("en-12")
    rate = one.rate_hz
    at_one, at_answer, at_two = 12_345, 140_000, 300_001
    length = at_two + len(two.samples) + 50_000
    user = laid(length, (at_one, one.samples), (at_two, two.samples))
    agent = laid(length, (at_answer, answer.samples))
    path = tmp_path / "talk.flac"
    soundfile.write(path, np.stack([user, agent], axis=1), rate, subtype="PCM_16")
    import_stereo(path, tmp_path / "run", language="en")
    session = only(tmp_path / "run")
    marks = [(event.speech_start, event.speech_end) for event in session.of(ScenarioEvent)]
    wanted = [(at + each.speech_start, at + each.speech_end) for at, each in ((at_one, one), (at_two, two))]
    for found, right in zip(marks, wanted, strict=True):
        assert found == pytest.approx(right, abs=rate // 100)
    assert [turn.speech_end for turn in session.of(TurnStarted)] == [end for _, end in marks]
    first, last = TimingScorer().score(RunDirectory(tmp_path / "run")).rows
    onset = first_audible_sample(answer.samples, rate)
    assert onset is not None
    audible_ms = 1000 * (at_answer + onset - wanted[0][1]) / rate
    assert first["status"] == "ok"
    assert first["first_audible_ms"] == pytest.approx(audible_ms, abs=11)
    assert first["first_packet_ms"] is None
    assert last["status"] == "silent"


def test_the_same_file_gives_the_same_bytes(tones: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        import_stereo(tones, tmp_path / name)
    one, two = (tmp_path / name / "sessions" / "call" for name in ("one", "two"))
    for file in ("events.jsonl", "session.json"):
        assert (one / file).read_bytes() == (two / file).read_bytes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "cannot be read as sound"),
        (b"not sound at all", "cannot be read as sound"),
    ],
)
def test_what_is_no_sound(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "x.wav"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"^{path}: .*{said}") as caught:
        import_stereo(path, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_more_sound_than_memory_is_refused_before_it_is_read(
    tones: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = soundfile.info(tones).frames
    monkeypatch.setattr(sound, "MOST_SAMPLES", 2 * frames - 1)
    with pytest.raises(ConfigError, match=f"2 channels of {frames} samples are too much sound"):
        import_stereo(tones, tmp_path / "run")
    monkeypatch.setattr(sound, "MOST_SAMPLES", 2 * frames)
    assert import_stereo(tones, tmp_path / "run").sessions


def test_one_channel_is_not_two(tmp_path: Path) -> None:
    path = tmp_path / "mono.wav"
    soundfile.write(path, burst(1000, 16_000), 16_000)
    with pytest.raises(ConfigError, match=r"1 channel\(s\), not two"):
        import_stereo(path, tmp_path / "run")


def test_a_cut_file_and_a_taken_directory(tones: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.wav"
    cut.write_bytes(tones.read_bytes()[:-1000])
    with pytest.raises(ConfigError, match="truncated"):
        import_stereo(cut, tmp_path / "run")
    with pytest.raises(ConfigError, match="is not empty"):
        import_stereo(tones, tmp_path)
