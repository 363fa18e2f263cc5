"""Full-Duplex-Bench samples as sessions: each task's annotation, and every way to get one wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import soundfile

from harness.core.audio import Int16
from harness.core.errors import ConfigError
from harness.core.events import ScenarioEvent
from harness.core.run_directory import RunDirectory
from scenarios.importers.fdb import import_fdb
from tests.scenarios.recorded import clip, laid, only

pytestmark = pytest.mark.unit

RATE = 16_000
ONE, TWO = clip("en-01", rate_hz=RATE), clip("en-04", rate_hz=RATE)
AT_ONE, AT_TWO = 4_001, 90_003
LENGTH = 9 * RATE
"""The user's sound: two questions in 9 s."""


def sample(folder: Path, **annotations: object) -> Path:
    """A sample folder with both questions, an answer between them at 24 kHz, and annotation files."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "input.wav", laid(LENGTH, (AT_ONE, ONE.samples), (AT_TWO, TWO.samples)), RATE)
    write(folder / "output.wav", laid(10 * 24_000, (100_000, clip("en-12").samples)), 24_000)
    for name, content in annotations.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def write(path: Path, samples: Int16, rate_hz: int) -> None:
    soundfile.write(path, samples, rate_hz, subtype="PCM_16")


def s(samples: int) -> float:
    return samples / RATE


def events(run: Path) -> list[tuple[str, str, str, int, int]]:
    return [(e.category, e.kind, e.expect, e.speech_start, e.speech_end) for e in only(run).of(ScenarioEvent)]


END_ONE, END_TWO = AT_ONE + ONE.speech_end, AT_TWO + TWO.speech_end
START_ONE, START_TWO = AT_ONE + ONE.speech_start, AT_TWO + TWO.speech_start
CLOSE = RATE // 100
"""The annotator's reach in other surroundings: 10 ms."""


def test_smooth_turn_taking(tmp_path: Path) -> None:
    rows = [{"text": "weather", "timestamp": [s(END_ONE), s(START_TWO - 500)]}]
    sample(tmp_path / "in", turn_taking=rows)
    import_fdb(tmp_path / "in", tmp_path / "run", language="en")
    first, rest = events(tmp_path / "run")
    assert first[:3] == ("smooth_turn_taking", "turn", "respond")
    assert first[3] == pytest.approx(START_ONE, abs=CLOSE)
    assert first[4] == END_ONE, "the end is the annotation's, to the sample"
    assert rest[:3] == ("smooth_turn_taking", "turn", "")
    assert rest[3:] == pytest.approx((START_TWO, END_TWO), abs=CLOSE)
    session = only(tmp_path / "run")
    assert len(session.user) == LENGTH
    assert len(session.agent) == 240_000
    assert session.header.config["files"].keys() == {"input.wav", "output.wav", "turn_taking.json"}
    assert max(event.t_ns for event in session.events) == 10_000_000_000, "the longer side ends the recording"


def test_pauses_lie_in_one_turn(tmp_path: Path) -> None:
    sample(tmp_path / "in", pause=[{"text": "[PAUSE]", "timestamp": [s(END_ONE), s(START_TWO)]}])
    import_fdb(tmp_path / "in", tmp_path / "run")
    ((category, kind, expect, start, end),) = events(tmp_path / "run")
    assert (category, kind, expect) == ("pause_in_turn", "turn", "respond")
    assert (start, end) == pytest.approx((START_ONE, END_TWO), abs=CLOSE)
    assert only(tmp_path / "run").header.config["pauses"] == [[END_ONE, START_TWO]]


def test_an_interruption_after_its_context(tmp_path: Path) -> None:
    rows = [{"context": "weather?", "interrupt": "seventeen?", "timestamp": [s(START_TWO), s(END_TWO)]}]
    sample(tmp_path / "in", interrupt=rows)
    import_fdb(tmp_path / "in", tmp_path / "run")
    context, interruption = events(tmp_path / "run")
    assert context[:3] == ("user_interruption", "turn", "respond")
    assert context[3:] == pytest.approx((START_ONE, END_ONE), abs=CLOSE)
    assert interruption == ("user_interruption", "turn", "stop", START_TWO, END_TWO)


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        ("user_interruption", ("user_interruption", "turn", "stop")),
        ("user_backchannel", ("user_backchannel", "backchannel", "keep_talking")),
        ("talking_to_other", ("talking_to_other", "non_directed", "keep_talking")),
        ("background_speech", ("background_speech", "other_speaker", "keep_talking")),
    ],
)
def test_the_tasks_of_v1_5(tmp_path: Path, task: str, wanted: tuple[str, str, str]) -> None:
    metadata = {"context_text": "a", "current_turn_text": "b", "timestamps": [s(START_TWO), s(END_TWO)]}
    folder = sample(tmp_path / "in" / task / "7", metadata=metadata)
    for name in ("clean_input", "clean_output"):
        write(folder / f"{name}.wav", laid(LENGTH, (AT_ONE, ONE.samples)), RATE)
    made = import_fdb(tmp_path / "in", tmp_path / "run")
    assert made.sessions == (f"{task}-7", f"{task}-7-clean")
    dirty, clean = RunDirectory(tmp_path / "run").load()
    *_, over = dirty.of(ScenarioEvent)
    assert (over.category, over.kind, over.expect, over.speech_start, over.speech_end) == (*wanted, START_TWO, END_TWO)
    (alone,) = clean.of(ScenarioEvent)
    assert (alone.kind, alone.expect, alone.tags) == ("turn", "respond", ("clean",))


def test_without_an_annotation_the_user_is_listened_to(tmp_path: Path) -> None:
    sample(tmp_path / "in" / "icc_backchannel" / "1", transcription={"text": "", "chunks": []})
    import_fdb(tmp_path / "in", tmp_path / "run")
    assert [event[:3] for event in events(tmp_path / "run")] == [("agent_backchannel", "turn", "")] * 2


def test_samples_without_an_answer_are_skipped_and_named(tmp_path: Path) -> None:
    sample(tmp_path / "in" / "1", pause=[{"timestamp": [1, 2]}])
    sample(tmp_path / "in" / "2", pause=[{"timestamp": [1, 2]}])
    (tmp_path / "in" / "2" / "output.wav").unlink()
    made = import_fdb(tmp_path / "in", tmp_path / "run")
    assert (made.sessions, made.skipped) == (("1",), ("2: no output.wav",))
    (tmp_path / "in" / "1" / "output.wav").unlink()
    with pytest.raises(ConfigError, match=r"none of 2 samples has an output\.wav"):
        import_fdb(tmp_path / "in", tmp_path / "other")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("pause", "{", r"pause\.json: not as Full-Duplex-Bench"),
        ("pause", {"timestamp": [1, 2]}, "not as Full-Duplex-Bench"),
        ("pause", [], r"pause\.json: no entries"),
        ("pause", [{"timestamp": [1]}], "not as Full-Duplex-Bench"),
        ("pause", [{"timestamp": [2, 1]}], r"\[2, 1\] s does not lie in input\.wav \(9\.00 s\)"),
        ("pause", [{"timestamp": [1, 99]}], r"\[1, 99\] s does not lie"),
        ("pause", [{"timestamp": [-1, 1]}], r"\[-1, 1\] s does not lie"),
        ("turn_taking", [{"timestamp": [0.01, 0.02]}], "entry 1: no speech before its start"),
        ("metadata", {"timestamps": [1, 2]}, "the task is told by a folder's name"),
        ("firstpacket", {"session": "x", "rate_hz": 24000}, "marks at 24000 Hz, input.wav has 16000 Hz"),
        ("firstpacket", {"session": "x", "rate_hz": 16000, "schema": 9}, "schema 9, this version reads 1"),
        (
            "firstpacket",
            {"session": "x", "rate_hz": 16000, "sounds": [{"id": "a", "start": 5, "end": 5}]},
            r"marks \[5, 5\) of 'a'",
        ),
        (
            "firstpacket",
            {"session": "x", "rate_hz": 16000, "sounds": [{"id": "a", "start": at, "end": at + 5} for at in (0, 9)]},
            "two sounds share an id",
        ),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, name: str, content: object, said: str) -> None:
    folder = sample(tmp_path / "in" / "1", **{name: content})
    with pytest.raises(ConfigError, match=said) as caught:
        import_fdb(tmp_path / "in", tmp_path / "run")
    assert str(caught.value).startswith(str(folder / f"{name}.json"))
    assert "\n" not in str(caught.value)


def test_no_samples_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no input\.wav"):
        import_fdb(tmp_path, tmp_path / "run")
    with pytest.raises(ConfigError, match="no such folder"):
        import_fdb(tmp_path / "nowhere", tmp_path / "run")
