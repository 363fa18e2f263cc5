"""The header of a WAV file of mono PCM16, as small as it can be. Reading one: `pcm_stream.py`."""

from __future__ import annotations

import struct

from harness.core.audio import PCM16_BYTES

_FORM = struct.Struct("<4sI8sIHHIIHH4sI")
_PCM = 1
_MONO = 1
_FORM_BYTES = 16
_BEHIND_RIFF = _FORM.size - 8
"""Bytes of the header behind the length that counts them."""


def wav_header(rate_hz: int, data_bytes: int) -> bytes:
    """What stands before `data_bytes` bytes of samples."""
    return _FORM.pack(
        b"RIFF",
        _BEHIND_RIFF + data_bytes,
        b"WAVEfmt ",
        _FORM_BYTES,
        _PCM,
        _MONO,
        rate_hz,
        rate_hz * PCM16_BYTES,
        PCM16_BYTES,
        8 * PCM16_BYTES,
        b"data",
        data_bytes,
    )
