"""The `session` object of OpenAI Realtime, built in the shape of a dialect and read in any.

GA nests audio settings under `audio.input` and `audio.output`; beta keeps them flat, others mix. Reading takes all,
since compatible servers do.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from connectors.codecs.openai_dialects import Dialect, dialect_of
from connectors.codecs.openai_names import NAMES
from connectors.codecs.pcm_stream import usable_rate
from harness.core.commands import Configure

PCM_NAMES = frozenset({"audio/pcm", "pcm16", "pcm24", "pcm"})
"""Format names that mean PCM16 (beta servers call it `pcm` or `pcm24` as well: sections 4.5, 4.6)."""
READABLE_NAMES = PCM_NAMES | {"wav", "audio/wav", "wav16", "wav24", "wav48", "pcm16_8000hz", "pcm16_16000hz"}
"""Format names that can be read: PCM16, also at a rate that the name tells or a WAV header (sections 4.2, 4.6, 5.3)."""
_NAMED_RATE = re.compile(r"_(8000|16000)hz$")


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What a session object says. Rates in Hz, 0 where it says none; output_format: empty where it says none."""

    session: str = ""
    model: str = ""
    input_rate_hz: int = 0
    output_rate_hz: int = 0
    output_format: str = ""


def merge(base: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """`base` with `update` laid over it: objects are merged key by key, everything else is replaced."""
    merged = dict(base)
    for key, value in update.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def dig(value: Any, *path: str) -> Any:
    """The value at `path` of nested objects, or None where the path ends early."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def configure_session(
    configure: Configure,
    dialect: str | Dialect,
    *,
    input_rate_hz: int = 0,
    output_rate_hz: int = 0,
    transcription_model: str | None = None,
    binary: bool = False,
) -> dict[str, Any]:
    """The object of a `session.update` that puts `configure` into force.

    Rates in Hz, 0: the dialect's default. transcription_model: None for the dialect's own. binary: audio goes as
    binary messages both ways (dialects that have it).
    """
    row = dialect_of(dialect)
    if row.shape == "unmute":
        return merge(_unmute(configure), configure.extra)
    rate_in, rate_out = input_rate_hz or row.input_rates_hz[0], output_rate_hz or row.output_rates_hz[0]
    session: dict[str, Any] = merge({}, row.session)
    if row.modalities:
        session[NAMES[row.names].modalities] = list(row.modalities)
    if configure.instructions is not None:
        session["instructions"] = configure.instructions
    if row.model_place == "session" and configure.model is not None:
        session["model"] = configure.model
    voice = {} if configure.voice is None else {"voice": configure.voice}
    hears = _hears(configure, row, transcription_model or row.transcription_model)
    if row.shape == "flat":
        session |= {"input_audio_format": row.input_format, "output_audio_format": row.output_format}
        session |= {f"input_audio_{key}" if key == "transcription" else key: value for key, value in hears.items()}
        session |= {row.input_rate_key: rate_in} if row.input_rate_key else {}
        return merge(session | voice, configure.extra)
    audio_in: dict[str, Any] = {"format": {"type": "audio/pcm", "rate": rate_in}}
    audio_out: dict[str, Any] = {"format": {"type": "audio/pcm", "rate": rate_out}}
    if binary:
        audio_in["transport"] = audio_out["transport"] = "binary"
    if row.shape == "split":
        session |= {key: hears.pop(key) for key in ("turn_detection",) if key in hears} | voice
        voice = {}
    session["audio"] = {"input": audio_in | hears, "output": audio_out | voice}
    return merge(session, configure.extra)


def _hears(configure: Configure, row: Dialect, model: str) -> dict[str, Any]:
    """The keys `transcription` and `turn_detection`, as far as the dialect has them."""
    hears: dict[str, Any] = {}
    if model:
        hears["transcription"] = None
        if configure.transcribe:
            hears["transcription"] = {"model": model}
            if configure.language is not None and row.language_key:
                hears["transcription"][row.language_key] = configure.language
    if configure.turn == "vad":
        hears["turn_detection"] = {"type": "server_vad"}
        if configure.silence_ms is not None:
            hears["turn_detection"]["silence_duration_ms"] = configure.silence_ms
    elif row.manual == "client_vad":
        hears["turn_detection"] = {"type": "client_vad"}
    elif row.manual == "null":
        hears["turn_detection"] = None
    return hears


def _unmute(configure: Configure) -> dict[str, Any]:
    """Section 5.4: all three keys are expected, instructions are an object."""
    instructions: dict[str, Any] | None = None
    if configure.instructions is not None:
        instructions = {"type": "constant", "text": configure.instructions}
        if configure.language is not None:
            instructions["language"] = configure.language
    return {"instructions": instructions, "voice": configure.voice, "allow_recording": False}


def declared(session: dict[str, Any]) -> Declared:
    """Read a session object of either dialect; anything odd counts as not said."""
    output_format = dig(session, "audio", "output", "format", "type") or session.get("output_audio_format")
    return Declared(
        session=_text(session.get("id")),
        model=_text(session.get("model")),
        input_rate_hz=_rate(session, "input"),
        output_rate_hz=_rate(session, "output"),
        output_format=_text(output_format),
    )


def turn_detection(session: dict[str, Any]) -> dict[str, Any] | None:
    """The turn detector in force, or None for manual turns; either dialect."""
    nested = dig(session, "audio", "input", "turn_detection")
    found = session.get("turn_detection") if nested is None else nested
    return found if isinstance(found, dict) else None


def transcription(session: dict[str, Any]) -> dict[str, Any] | None:
    """The transcription settings in force, or None when the user's speech is not transcribed; either dialect."""
    found = dig(session, "audio", "input", "transcription") or session.get("input_audio_transcription")
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _rate(session: dict[str, Any], side: str) -> int:
    form = dig(session, "audio", side, "format")
    for key in ("rate", "sample_rate"):
        rate_hz = usable_rate(dig(form, key))
        if rate_hz:
            return rate_hz
    named = _NAMED_RATE.search(_text(session.get(f"{side}_audio_format")))
    return int(named[1]) if named else 0
