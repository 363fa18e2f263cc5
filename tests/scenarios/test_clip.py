"""Clips: any file that libsndfile reads, marks that survive resampling, one clear line for bad input."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from harness.core.audio import Int16, audio_sha256, float_to_int16, window_power
from harness.core.errors import ConfigError
from scenarios.annotator import _powers
from scenarios.clip import Clip, load_clip, load_sound

pytestmark = pytest.mark.unit

RATE = 24_000


def make_clip(samples: Int16, rate_hz: int, start: int, end: int) -> Clip:
    return Clip(
        id="c",
        text="",
        language="en",
        voice="",
        sha256=audio_sha256(samples),
        rate_hz=rate_hz,
        samples=samples,
        speech_start=start,
        speech_end=end,
        source="c.wav",
    )


@given(
    length=st.integers(2_000, 60_000),
    cut=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    rate_in=st.sampled_from([8_000, 16_000, 22_050, 24_000, 44_100, 48_000]),
    rate_out=st.sampled_from([8_000, 16_000, 24_000, 48_000]),
)
def test_marks_map_by_rounding_and_stay_inside(
    length: int, cut: tuple[float, float], rate_in: int, rate_out: int
) -> None:
    start, end = sorted(int(part * (length - 200)) for part in cut)
    end += 200
    clip = make_clip(np.zeros(length, np.int16), rate_in, start, end)
    out = clip.at_rate(rate_out)
    assert out.rate_hz == rate_out
    assert out.speech_start == round(start * rate_out / rate_in)
    assert abs(out.speech_end - end * rate_out / rate_in) <= 0.5 + 1e-9 or out.speech_end == len(out.samples)
    assert 0 <= out.speech_start < out.speech_end <= len(out.samples)
    assert abs(len(out.samples) - length * rate_out / rate_in) <= 1
    assert out.sha256 == clip.sha256
    assert out.at_rate(rate_out) is out


@pytest.mark.parametrize("rate_out", [8_000, 16_000, 48_000])
def test_a_click_at_the_mark_is_at_the_mark_after_resampling(rate_out: int) -> None:
    samples = np.zeros(RATE, np.int16)
    samples[9_000:9_003] = 20_000
    out = make_clip(samples, RATE, 9_001, RATE).at_rate(rate_out)
    assert abs(int(np.argmax(np.abs(out.samples.astype(np.int32)))) - out.speech_start) <= 1


def test_samples_are_closed_to_writing(tmp_path: Path, speech: Int16) -> None:
    soundfile.write(tmp_path / "a.wav", speech, RATE)
    clip = load_clip(tmp_path / "a.wav")
    for samples in (clip.samples, clip.at_rate(16_000).samples):
        with pytest.raises(ValueError, match="read-only"):
            samples[0] = 1


@pytest.mark.parametrize(
    ("suffix", "subtype"),
    [("wav", "PCM_16"), ("flac", "PCM_16"), ("wav", "PCM_24"), ("wav", "FLOAT"), ("aiff", "PCM_16"), ("au", "PCM_16")],
)
def test_lossless_formats_give_the_same_samples(tmp_path: Path, speech: Int16, suffix: str, subtype: str) -> None:
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, speech / 32768.0, RATE, subtype=subtype)
    clip = load_clip(path, text="hi", language="en")
    np.testing.assert_array_equal(clip.samples, speech)
    assert clip.sha256 == audio_sha256(speech)
    assert (clip.id, clip.text, clip.language, clip.source, clip.rate_hz) == ("a", "hi", "en", path.name, RATE)
    assert clip.duration_s == len(speech) / RATE


@pytest.mark.parametrize(("suffix", "subtype"), [("ogg", "VORBIS"), ("mp3", "MPEG_LAYER_III"), ("opus", "OPUS")])
def test_lossy_formats_keep_the_marks_near(tmp_path: Path, speech: Int16, suffix: str, subtype: str) -> None:
    soundfile.write(tmp_path / "a.wav", speech, RATE)
    soundfile.write(
        tmp_path / f"b.{suffix}", speech / 32768.0, RATE, format="OGG" if suffix == "opus" else None, subtype=subtype
    )
    exact, lossy = load_clip(tmp_path / "a.wav"), load_clip(tmp_path / f"b.{suffix}")
    assert abs(lossy.speech_end / lossy.rate_hz - exact.speech_end / RATE) < 0.06


def test_stereo_is_averaged(tmp_path: Path, speech: Int16) -> None:
    soundfile.write(tmp_path / "s.wav", np.stack([speech, speech], axis=1), RATE)
    np.testing.assert_array_equal(load_sound(tmp_path / "s.wav").samples, speech)
    soundfile.write(tmp_path / "l.wav", np.stack([speech & ~1, np.zeros_like(speech)], axis=1), RATE)
    np.testing.assert_array_equal(load_sound(tmp_path / "l.wav").samples, (speech & ~1) // 2)


def test_any_number_of_channels_is_averaged_block_by_block(tmp_path: Path) -> None:
    path = tmp_path / "eight.flac"
    sound = np.random.default_rng(1).integers(-32768, 32768, (200_000, 8), dtype=np.int16)
    soundfile.write(path, sound, RATE)
    whole = float_to_int16(soundfile.read(path, dtype="float32")[0].mean(axis=1, dtype=np.float64))
    np.testing.assert_array_equal(load_sound(path).samples, whole)


def test_a_file_of_many_channels_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "eight.flac"
    soundfile.write(path, np.zeros((3_000_000, 8), dtype=np.int16), 48_000)
    tracemalloc.start()
    try:
        samples = load_sound(path).samples
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(samples) == 3_000_000
    assert peak < 30e6  # twice the samples, and a block; all channels as floats would be 96 MB


def test_annotation_in_stretches_gives_the_same_levels() -> None:
    samples = np.random.default_rng(2).integers(-9_000, 9_000, 24 * 70_003, dtype=np.int16)
    for length in (0, 100, 240, 24 * 30_000, 24 * 30_000 + 240, len(samples)):
        expected = window_power(samples[:length], 240, 24)
        np.testing.assert_array_equal(_powers(samples[:length], 240, 24), expected)


def test_given_marks_win(tmp_path: Path, speech: Int16) -> None:
    soundfile.write(tmp_path / "a.wav", speech, RATE)
    clip = load_clip(tmp_path / "a.wav", speech_start=100, speech_end=200)
    assert (clip.speech_start, clip.speech_end) == (100, 200)


def write_bad(kind: str, path: Path, speech: Int16) -> None:
    good = path.with_suffix(".good.wav")
    soundfile.write(good, speech, RATE)
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("not audio at all\n" * 100)
    elif kind == "cut wav":
        path.write_bytes(good.read_bytes()[: 44 + 10_000])
    elif kind == "cut flac":
        soundfile.write(path, speech, RATE, format="FLAC", subtype="PCM_16")
        path.write_bytes(path.read_bytes()[:8_000])
    elif kind == "header only":
        soundfile.write(path, speech[:0], RATE, format="WAV", subtype="PCM_16")
    elif kind == "zeros":
        soundfile.write(path, np.zeros(RATE, np.int16), RATE, format="WAV", subtype="PCM_16")
    elif kind == "hiss":
        hiss = np.random.default_rng(1).integers(-60, 60, 2 * RATE, dtype=np.int16)
        soundfile.write(path, hiss, RATE, format="WAV", subtype="PCM_16")
    elif kind == "folder":
        path.mkdir()
    elif kind == "eleven minutes":
        soundfile.write(path, np.zeros(660 * 8_000, np.int16), 8_000, format="FLAC", subtype="PCM_16")
    elif kind == "slow":
        soundfile.write(path, speech, 100, format="WAV", subtype="PCM_16")
    elif kind == "fast":
        soundfile.write(path, speech, 500_000, format="WAV", subtype="PCM_16")
    elif kind == "33 channels":
        soundfile.write(path, np.zeros((100, 33), np.int16), RATE, format="WAV", subtype="PCM_16")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("missing", "no such file"),
        ("folder", "not a file"),
        ("empty", "empty file"),
        ("text", "unknown audio format"),
        ("cut wav", "truncated"),
        ("cut flac", "truncated"),
        ("header only", "empty, no samples"),
        ("zeros", "no speech to time"),
        ("hiss", "no speech to time"),
        ("eleven minutes", "660 s long, a clip has at most 600 s"),
        ("slow", "100 Hz is no sample rate of speech"),
        ("fast", "500000 Hz is no sample rate of speech"),
        ("33 channels", "33 channels, at most 32"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, speech: Int16, kind: str, reason: str) -> None:
    path = tmp_path / "bad.wav"
    write_bad(kind, path, speech)
    with pytest.raises(ConfigError, match=reason) as caught:
        load_clip(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_that_no_file_can_have_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        load_clip(tmp_path / ("x" * 5_000))
    assert "\n" not in str(caught.value)


def test_a_file_without_a_header_is_no_known_format(tmp_path: Path, speech: Int16) -> None:
    (tmp_path / "a.raw").write_bytes(speech.tobytes())
    with pytest.raises(ConfigError, match=r"unknown audio format.*convert it to WAV or FLAC"):
        load_clip(tmp_path / "a.raw")


@pytest.mark.parametrize("marks", [(-1, 10), (10, 10), (20, 10), (0, 10**9)])
def test_marks_outside_the_clip(tmp_path: Path, speech: Int16, marks: tuple[int, int]) -> None:
    soundfile.write(tmp_path / "a.wav", speech, RATE)
    with pytest.raises(ConfigError, match="do not lie in a clip"):
        load_clip(tmp_path / "a.wav", speech_start=marks[0], speech_end=marks[1])


def test_streamed_wav_without_a_length_is_taken(tmp_path: Path, speech: Int16) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, speech, RATE)
    raw = bytearray(path.read_bytes())
    raw[4:8] = raw[40:44] = b"\xff\xff\xff\xff"
    path.write_bytes(raw)
    np.testing.assert_array_equal(load_sound(path).samples, speech)
