"""The `session` object of OpenAI Realtime, built and read in both dialects.

GA nests audio settings under `audio.input` and `audio.output`; beta keeps them flat. Reading takes either, since
compatible servers mix them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from connectors.codecs.openai_names import NAMES, Dialect
from connectors.codecs.pcm_stream import HIGHEST_RATE_HZ, LOWEST_RATE_HZ
from harness.core.commands import Configure

TRANSCRIPTION_MODELS: dict[Dialect, str] = {"ga": "gpt-4o-mini-transcribe", "beta": "whisper-1"}
PCM_NAMES = frozenset({"audio/pcm", "pcm16", "pcm24", "pcm"})
"""Format names that mean PCM16 (beta servers call it `pcm` or `pcm24` as well: sections 4.5, 4.6)."""


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
    configure: Configure, dialect: Dialect, *, input_rate_hz: int, output_rate_hz: int, transcription_model: str
) -> dict[str, Any]:
    """The object of a `session.update` that puts `configure` into force."""
    transcription: dict[str, Any] | None = None
    if configure.transcribe:
        transcription = {"model": transcription_model}
        if configure.language is not None:
            transcription["language"] = configure.language
    detection: dict[str, Any] | None = None
    if configure.turn == "vad":
        detection = {"type": "server_vad"}
        if configure.silence_ms is not None:
            detection["silence_duration_ms"] = configure.silence_ms
    session: dict[str, Any] = {} if dialect == "beta" else {"type": "realtime"}
    session[NAMES[dialect].modalities] = list(NAMES[dialect].spoken)
    if configure.instructions is not None:
        session["instructions"] = configure.instructions
    if dialect == "beta":
        session |= {"input_audio_format": "pcm16", "output_audio_format": "pcm16"}
        session |= {"input_audio_transcription": transcription, "turn_detection": detection}
        if configure.voice is not None:
            session["voice"] = configure.voice
    else:
        audio_in = {"format": {"type": "audio/pcm", "rate": input_rate_hz}}
        audio_out: dict[str, Any] = {"format": {"type": "audio/pcm", "rate": output_rate_hz}}
        if configure.voice is not None:
            audio_out["voice"] = configure.voice
        session["audio"] = {
            "input": audio_in | {"transcription": transcription, "turn_detection": detection},
            "output": audio_out,
        }
    return merge(session, configure.extra)


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
        rate = dig(form, key)
        if isinstance(rate, int) and not isinstance(rate, bool) and LOWEST_RATE_HZ <= rate <= HIGHEST_RATE_HZ:
            return rate
    return 0
