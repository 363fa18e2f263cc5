"""Any OpenAI-compatible speech endpoint as the voice: `POST …/audio/speech`, its sound taken as it streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import soxr

from connectors.codecs.pcm_stream import PcmStream
from connectors.local.models.cascade.endpoint import Endpoint
from connectors.local.models.cascade.tts import RATE_HZ, Language, TtsOptions
from harness.core.audio import Float32, int16_to_float, pcm16_to_int16
from harness.core.errors import ConfigError


class EndpointVoice:
    """Asks for PCM16; a server that sends WAV says its rate itself. voice: one name, or `english,chinese`."""

    def __init__(self, options: TtsOptions) -> None:
        if not options.model:
            raise ConfigError(f"tts={options.spec}: an endpoint needs the model's name, --set tts_model=NAME")
        self._options = options
        self.endpoint = Endpoint("tts", options.spec, options.key_env)
        english, _, chinese = options.voice.partition(",")
        self._voices: dict[Language, str] = {"en": english, "zh": chinese or english}

    @property
    def facts(self) -> dict[str, Any]:
        return {"tts": f"{self._options.model} at {self.endpoint.base}"}

    def load(self) -> None:
        """Nothing: the server has loaded."""

    def speak(self, text: str, language: Language, voice: str | None, stop: threading.Event) -> Iterator[Float32]:
        name = voice or self._voices[language]
        body = {"model": self._options.model, "input": text, "response_format": "pcm"}
        body |= {"voice": name} if name else {}
        stream, resampler = PcmStream(), None
        for data in self.endpoint.post("/audio/speech", body, stop):
            sound = int16_to_float(pcm16_to_int16(stream.push(data)))
            rate_hz = stream.rate_hz or self._options.rate_hz
            if rate_hz != RATE_HZ:
                resampler = resampler or soxr.ResampleStream(rate_hz, RATE_HZ, 1, dtype="float32")
                sound = resampler.resample_chunk(sound)
            if len(sound):
                yield sound
        if resampler is not None and not stop.is_set():
            yield resampler.resample_chunk(int16_to_float(pcm16_to_int16(b"")), last=True)
