"""A query's sound when its session is about to begin: marks, impairments, files that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.core.audio import Int16
from harness.core.errors import ConfigError
from scenarios.benchmarks.sound import WHOLE, FileSound, ImpairedSound, clip_of, length_of
from scenarios.clip import load_clip
from scenarios.impairments.impair import impair
from scenarios.impairments.spec import parse_specs
from tests.scenarios.benchmarks.made import KNOWLEDGE, opened, write_parquet, write_rows, write_sound

pytestmark = pytest.mark.unit


def read(source, text: str = "t"):
    return clip_of(source, "q", text, "zh")


def test_speech_is_marked_as_that_of_any_clip(tmp_path: Path, speech: Int16) -> None:
    path = write_sound(tmp_path / "a.wav", speech, 24_000)
    clip, same = read(FileSound(path)), load_clip(path)
    assert (clip.speech_start, clip.speech_end) == (same.speech_start, same.speech_end)
    assert (clip.sha256, clip.annotator, clip.text) == (same.sha256, same.annotator, "t")


def test_a_sound_without_speech_is_asked_whole(tmp_path: Path) -> None:
    clip = read(FileSound(write_sound(tmp_path / "a.wav", np.zeros(1600, np.int16))))
    assert (clip.speech_start, clip.speech_end, clip.annotator) == (0, 1600, WHOLE)


def test_an_impaired_recording_has_the_marks_of_the_clean_one(tmp_path: Path, speech: Int16) -> None:
    clean = FileSound(write_sound(tmp_path / "clean.wav", speech, 24_000))
    marks = read(clean)
    noise = np.random.default_rng(1).normal(0, 6000, len(speech) + 2400)
    noise[: len(speech)] += speech
    loud = write_sound(tmp_path / "loud.wav", np.clip(noise, -32768, 32767).astype(np.int16), 24_000)
    clip = read(FileSound(loud, clean))
    assert (clip.speech_start, clip.speech_end) == (marks.speech_start, marks.speech_end)
    half = write_sound(tmp_path / "half.wav", speech[::2], 12_000)  # the same at half the rate
    clip = read(FileSound(half, clean))
    assert (clip.speech_start, clip.speech_end) == (round(marks.speech_start / 2), round(marks.speech_end / 2))
    short = FileSound(write_sound(tmp_path / "short.wav", speech[: len(speech) // 2], 24_000), clean)
    assert read(short).speech_end <= len(speech) // 2  # another cut of it: its own marks


def test_generated_sound_is_the_seeded_impairment_and_always_the_same(tmp_path: Path, speech: Int16) -> None:
    clean = FileSound(write_sound(tmp_path / "clean.wav", speech, 24_000))
    voice = FileSound(write_sound(tmp_path / "voice.wav", speech[::-1].copy(), 24_000))
    source = ImpairedSound(clean=clean, specs="noise:white:snr=0", voices=())
    expected = impair(read(clean), parse_specs("noise:white:snr=0"), seed="vocalbench").clip
    assert read(source).sha256 == expected.sha256 == read(source).sha256
    assert read(source).impairment == "noise:white:snr=0"
    babble = ImpairedSound(clean=clean, specs="noise:babble:snr=0", voices=(voice,))
    assert read(babble).sha256 == read(babble).sha256 != expected.sha256


def test_a_file_that_cannot_be_read_becomes_a_reason(tmp_path: Path) -> None:
    write_rows(tmp_path, chinese_knowledge=KNOWLEDGE[:1])
    path = write_sound(tmp_path / KNOWLEDGE[0]["Audio"])
    path.write_bytes(path.read_bytes()[:100])
    (query,) = opened(tmp_path).queries
    loaded = query.loaded()
    assert loaded.source is None
    assert loaded.missing == f"{path}: truncated (92 of 6436 bytes)"
    assert loaded.item.question_samples == 0


def test_sound_in_parquet_that_is_none(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = [{"Qid": "chinese_knowledge-0000", "Question": "?", "audio": {"bytes": b"RIFF????", "path": "a.wav"}}]
    rows.append({"Qid": "chinese_knowledge-0001", "Question": "?", "audio": {"bytes": None, "path": "b.wav"}})
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "chinese_knowledge.parquet")
    first, second = (query.loaded().missing for query in opened(tmp_path).queries)
    assert first.startswith(f"{tmp_path / 'chinese_knowledge.parquet'}, a.wav: ")
    assert second == f"{tmp_path / 'chinese_knowledge.parquet'}: row 2 of group 1 holds no sound"


def test_the_length_is_read_from_the_header(tmp_path: Path) -> None:
    assert length_of(FileSound(write_sound(tmp_path / "a.wav"))) == (3200, 16_000)
    assert length_of(FileSound(tmp_path / "none.wav")) == (0, 0)
    write_parquet(tmp_path / "chinese_knowledge.parquet", KNOWLEDGE)
    source = opened(tmp_path).queries[2].source
    assert source is not None
    assert length_of(source) == (3200, 16_000)  # type: ignore[arg-type]


def test_what_was_never_loaded_has_no_sound(tmp_path: Path) -> None:
    write_rows(tmp_path, chinese_knowledge=KNOWLEDGE[:1])
    write_sound(tmp_path / KNOWLEDGE[0]["Audio"])
    (query,) = opened(tmp_path).queries
    with pytest.raises(RuntimeError, match="never loaded"):
        _ = query.samples
    with pytest.raises(ConfigError):
        clip_of(FileSound(tmp_path / "none.wav"), "q", "", "zh")
