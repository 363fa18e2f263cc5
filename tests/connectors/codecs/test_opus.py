"""Opus packets: one for 20 ms, the look-ahead as declared, nothing raises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs.opus import LOOKAHEAD_SAMPLES, PACKET_SAMPLES, OpusDecoder, OpusEncoder
from harness.core.audio import int16_to_pcm16, pcm16_to_int16

pytestmark = pytest.mark.unit


def test_the_look_ahead_is_what_correlation_finds() -> None:
    noise = np.random.default_rng(0).normal(0, 3000, 50 * PACKET_SAMPLES).astype(np.int16)
    encoder, decoder = OpusEncoder(), OpusDecoder()
    packets = encoder.encode(int16_to_pcm16(noise))
    assert len(packets) == 50
    heard = pcm16_to_int16(b"".join(decoder.decode(packet) or b"" for packet in packets)).astype(float)
    assert len(heard) == len(noise)
    span = slice(10_000, 40_000)
    match = [np.dot(noise[span].astype(float), heard[10_000 + lag : 40_000 + lag]) for lag in range(1000)]
    assert int(np.argmax(match)) == LOOKAHEAD_SAMPLES


def test_a_short_rest_is_filled_up() -> None:
    (packet,) = OpusEncoder().encode(bytes(100))
    assert len(OpusDecoder().decode(packet) or b"") == 2 * PACKET_SAMPLES
    assert OpusEncoder().encode(b"") == []


@given(st.binary(max_size=400))
def test_any_bytes_decode_to_samples_or_nothing(data: bytes) -> None:
    pcm = OpusDecoder().decode(data)
    assert pcm is None or len(pcm) % 2 == 0
    assert pcm is None or len(pcm) <= 2 * 6 * PACKET_SAMPLES
