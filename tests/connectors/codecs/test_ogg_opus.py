"""Ogg-Opus as a stream: read back by another library, cut anywhere, damaged anywhere."""

from __future__ import annotations

import io
import itertools
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.codecs import ogg
from connectors.codecs.ogg import OggReader, write_page
from connectors.codecs.ogg_opus import MAX_PUSH_S, OggOpusDecoder, OggOpusEncoder

pytestmark = pytest.mark.unit
RATE = 24_000


def sound(seconds: float, rate_hz: int = RATE) -> np.ndarray:
    """A soft tone, over its second half a louder one that rises from 400 Hz on."""
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    wave = 0.05 * np.sin(2 * np.pi * 300 * t) + (t >= seconds / 2) * 0.3 * np.sin(2 * np.pi * (400 + 900 * t) * t)
    return np.rint(wave * 32767).astype("<i2")


STREAM = OggOpusEncoder(RATE).push(sound(0.4).tobytes())
WHOLE = OggOpusDecoder(RATE).push(STREAM)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


def best_lag(sent: np.ndarray, got: np.ndarray, reach: int = 80) -> int:
    """Samples by which `got` lies behind `sent`."""
    begin, end = len(sent) // 2 - 200, len(sent) - 600
    a = sent[begin:end].astype(float)
    return max(range(-reach, reach + 1), key=lambda lag: float(np.dot(a, got[begin + lag : end + lag].astype(float))))


# --- pages ------------------------------------------------------------------------------------------------------


def test_checksum_of_a_page_of_another_library() -> None:
    """libogg's own page (through libsndfile): every page's checksum is the one that we compute."""
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros(4_800), RATE, format="OGG", subtype="OPUS")
    reader = OggReader()
    packets = reader.push(buffer.getvalue())
    assert packets[0].data[:8] == b"OpusHead"
    assert packets[0].first
    assert (reader.lost_bytes, reader.broken) == (0, False)


@given(sizes=st.lists(st.integers(0, 700), min_size=1, max_size=8), cuts=st.lists(st.integers(0, 9_999), max_size=8))
def test_lacing_is_undone_wherever_the_bytes_are_cut(sizes: list[int], cuts: list[int]) -> None:
    sent = [bytes((number,)) * size for number, size in enumerate(sizes)]
    reader = OggReader()
    page = write_page(sent, serial=7, sequence=0, granule=0, flags=ogg.FIRST)
    got = [packet.data for part in pieces(page, cuts) for packet in reader.push(part)]
    assert got == sent
    assert reader.lost_bytes == 0


def long_packet(size: int, *, lost: int | None = None, serial: int = 7) -> bytes:
    """A packet over as many pages as it needs, then a short one; page `lost` is left out."""
    body, out = b"x" * size, []
    for number, at in enumerate(range(0, size, 255 * 255)):
        part = body[at : at + 255 * 255]
        last = at + 255 * 255 >= size
        lacing = b"\xff" * (len(part) // 255) + (bytes((len(part) % 255,)) if last else b"")
        flags = ogg.FIRST if number == 0 else ogg.CONTINUED
        head = struct.pack("<4sBBqIIIB", b"OggS", 0, flags, -1, serial, number, 0, len(lacing)) + lacing
        page = bytearray(head + part)
        page[22:26] = ogg.checksum(bytes(page)).to_bytes(4, "little")
        out.append(bytes(page))
    out.append(write_page([b"short"], serial=serial, sequence=9, granule=0))
    return b"".join(page for number, page in enumerate(out) if number != lost)


def test_a_packet_may_span_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ogg, "MAX_PACKET_BYTES", 200_000)
    got = [packet.data for packet in OggReader().push(long_packet(150_000))]
    assert got == [b"x" * 150_000, b"short"]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_packet_with_a_page_missing_never_comes_out(monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    monkeypatch.setattr(ogg, "MAX_PACKET_BYTES", 200_000)
    got = [packet.data for packet in OggReader().push(long_packet(150_000, lost=lost))]
    assert got[-1] == b"short"
    assert b"x" * 150_000 not in got


def test_a_packet_without_end_does_not_fill_the_memory() -> None:
    reader = OggReader()
    assert [packet.data for packet in reader.push(long_packet(5_000_000))] == [b"short"]
    assert reader.lost_bytes > 4_000_000


@given(junk=st.binary(max_size=200))
def test_the_next_page_is_found_behind_junk(junk: bytes) -> None:
    reader = OggReader()
    page = write_page([b"hello"], serial=1, sequence=0, granule=0, flags=ogg.FIRST)
    data = junk.replace(b"O", b"o") + page
    assert [packet.data for packet in reader.push(data)] == [b"hello"]
    assert reader.lost_bytes == len(junk)


def test_a_stream_of_bad_pages_is_given_up() -> None:
    reader = OggReader()
    bad = bytearray(write_page([b"hello"], serial=1, sequence=0, granule=0))
    bad[22] ^= 1
    for _ in range(500):
        assert reader.push(bytes(bad)) == []
    assert reader.broken
    assert reader.lost_bytes == 500 * len(bad)


# --- sound ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 48_000])
def test_another_library_reads_what_we_write(rate_hz: int) -> None:
    sent = sound(1.0, rate_hz)
    encoder = OggOpusEncoder(rate_hz)
    got, declared = soundfile.read(io.BytesIO(encoder.push(sent.tobytes())), dtype="int16")
    assert declared == rate_hz
    assert len(got) == len(sent) - encoder.lookahead_samples
    assert best_lag(sent, got) == 0


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 48_000])
def test_we_read_what_another_library_writes(rate_hz: int) -> None:
    sent, buffer = sound(1.0, rate_hz), io.BytesIO()
    soundfile.write(buffer, sent, rate_hz, format="OGG", subtype="OPUS")
    decoder = OggOpusDecoder(rate_hz)
    got = np.frombuffer(decoder.push(buffer.getvalue()), "<i2")
    assert best_lag(sent, np.concatenate((got, np.zeros(600, np.int16)))) == 0
    assert decoder.lost_bytes == decoder.errors == 0


@pytest.mark.parametrize("rate_hz", [16_000, 24_000, 48_000])
def test_a_round_trip_moves_no_sample(rate_hz: int) -> None:
    sent = sound(1.0, rate_hz)
    encoder, decoder = OggOpusEncoder(rate_hz), OggOpusDecoder(rate_hz)
    got = np.frombuffer(decoder.push(encoder.push(sent.tobytes())), "<i2")
    assert decoder.skipped == encoder.lookahead_samples + (16 if rate_hz < 48_000 else 0)
    assert len(got) + decoder.skipped == len(sent)
    assert best_lag(sent, got) == 0


def test_the_filter_keeps_what_the_rate_can_carry_and_no_more() -> None:
    t = np.arange(48_000) / 48_000
    for hz, kept in ((3_000, True), (9_000, True), (15_000, False), (20_000, False)):
        tone = np.rint(8_000 * np.sin(2 * np.pi * hz * t)).astype("<i2")
        stream = OggOpusEncoder(48_000, bit_rate=128_000).push(tone.tobytes())
        got = np.frombuffer(OggOpusDecoder(RATE).push(stream), "<i2")[2_000:].astype(float)
        level = np.sqrt(np.mean(got**2)) / (8_000 / np.sqrt(2))
        assert (level > 0.9) if kept else (level < 0.01), (hz, level)


def test_packets_leave_as_they_are_complete() -> None:
    encoder, decoder = OggOpusEncoder(RATE), OggOpusDecoder(RATE)
    assert encoder.push(b"").count(b"OggS") == 2
    assert encoder.push(bytes(2 * 479)) == b""
    assert encoder.push(bytes(2)).count(b"OggS") == 1
    assert encoder.push(bytes(2 * 480 * 3 + 1)).count(b"OggS") == 3
    assert encoder.push(bytes(2 * 480 - 1)).count(b"OggS") == 1
    assert decoder.push(STREAM[: len(STREAM) // 2]) != b""


@settings(deadline=None, max_examples=60)
@given(cuts=st.lists(st.integers(0, 99_999), max_size=40))
def test_any_cut_of_the_bytes_gives_the_same_sound(cuts: list[int]) -> None:
    decoder = OggOpusDecoder(RATE)
    assert b"".join(decoder.push(part) for part in pieces(STREAM, cuts)) == WHOLE


@settings(deadline=None, max_examples=40)
@given(cuts=st.lists(st.integers(0, 99_999), max_size=40))
def test_any_cut_of_the_sound_gives_the_same_bytes(cuts: list[int]) -> None:
    encoder = OggOpusEncoder(RATE)
    assert b"".join(encoder.push(part) for part in pieces(sound(0.4).tobytes(), cuts)) == STREAM


@settings(deadline=None, max_examples=100)
@given(at=st.integers(0, len(STREAM) - 1), value=st.integers(0, 255))
def test_one_wrong_byte_costs_at_most_a_page(at: int, value: int) -> None:
    damaged = bytearray(STREAM)
    damaged[at] = value
    decoder = OggOpusDecoder(RATE)
    # Zeros end a page whose damaged length asks for more bytes than will come.
    got = decoder.push(bytes(damaged)) + decoder.push(bytes(70_000))
    head = STREAM.index(b"OggS", 1)
    if at >= head:
        assert len(got) >= len(WHOLE) - 2 * 480
    assert not decoder.broken


@settings(deadline=None, max_examples=100)
@given(parts=st.lists(st.binary(max_size=300) | st.just(STREAM) | st.just(STREAM[:400]), max_size=6))
def test_nothing_raises(parts: list[bytes]) -> None:
    decoder = OggOpusDecoder(RATE)
    for part in parts:
        assert len(decoder.push(part)) % 2 == 0


@settings(deadline=None, max_examples=100)
@given(packets=st.lists(st.binary(max_size=80), max_size=12))
def test_packets_that_are_no_opus_are_counted(packets: list[bytes]) -> None:
    decoder = OggOpusDecoder(RATE)
    decoder.push(OggOpusEncoder(RATE).push(b""))
    for packet in packets:
        decoder.push(write_page([packet], serial=1, sequence=2, granule=0))
    before = decoder.errors
    tail = OggOpusEncoder(RATE).push(sound(0.1).tobytes())
    assert len(decoder.push(tail)) == 2 * (2_400 - 76)
    assert decoder.errors == before <= len(packets)


def test_sound_before_any_header_is_not_played() -> None:
    second_page = STREAM.index(b"OggS", 1)
    decoder = OggOpusDecoder(RATE)
    assert decoder.push(STREAM[second_page:]) == b""
    assert not decoder.started


def test_a_stream_of_another_kind_beside_ours_is_left_alone() -> None:
    head, rest = STREAM[: STREAM.index(b"OggS", 1)], STREAM[STREAM.index(b"OggS", 1) :]
    other = write_page([b"\x01video"], serial=99, sequence=0, granule=0, flags=ogg.FIRST)
    more = write_page([b"frame"], serial=99, sequence=1, granule=0)
    assert OggOpusDecoder(RATE).push(head + other + more + rest) == WHOLE


def test_a_chained_stream_goes_on() -> None:
    assert OggOpusDecoder(RATE).push(STREAM + STREAM) == WHOLE + WHOLE


def test_a_few_bytes_that_mean_hours_are_cut_short() -> None:
    decoder = OggOpusDecoder(RATE)
    # Code 3, 48 frames of 2.5 ms, each empty: 120 ms from two bytes (RFC 6716, section 3.2.5).
    bomb = write_page([bytes((0b11100011, 48))] * 200, serial=1, sequence=2, granule=0)
    got = decoder.push(OggOpusEncoder(RATE).push(b"") + bomb * 200)
    assert decoder.broken
    assert 0 < len(got) < 2 * RATE * (MAX_PUSH_S + 1)
    assert decoder.push(STREAM) == b""


@pytest.mark.parametrize("rate_hz", [0, 22_050, 44_100])
def test_rates_that_opus_has_not(rate_hz: int) -> None:
    with pytest.raises(ValueError, match="no rate"):
        OggOpusEncoder(rate_hz)
    with pytest.raises(ValueError, match="no rate"):
        OggOpusDecoder(rate_hz)
