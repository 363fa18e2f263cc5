"""The WAV header that we write, read by Python's own reader."""

from __future__ import annotations

import io
import wave

import pytest

from connectors.codecs.wav import wav_header

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("rate_hz", "pcm"), [(8_000, b""), (24_000, b"\1\2\3\4"), (384_000, bytes(2_000))])
def test_another_reader_understands_it(rate_hz: int, pcm: bytes) -> None:
    with wave.open(io.BytesIO(wav_header(rate_hz, len(pcm)) + pcm)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (rate_hz, 1, 2)
        assert file.readframes(10_000) == pcm
