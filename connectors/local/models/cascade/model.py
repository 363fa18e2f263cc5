"""The model `local:cascade`: VAD, speech recognition, a language model and a voice, one after the other, streamed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Literal, cast

import numpy as np

from connectors.local.device import cpu_threads
from connectors.local.model import Declaration, LocalModel, Output, Session
from connectors.local.models.cascade.answer import Answer
from connectors.local.models.cascade.clauses import is_chinese
from connectors.local.models.cascade.ears import RATE_HZ, Ears
from connectors.local.models.cascade.llm import LlmOptions, Message, make_llm
from connectors.local.models.cascade.presets import preset as settings_of
from connectors.local.models.cascade.tts import RATE_HZ as OUTPUT_RATE_HZ
from connectors.local.models.cascade.tts import TtsOptions, make_voice
from harness.core.audio import Float32, Int16
from harness.core.errors import ConfigError
from harness.engines.asr import simplified
from harness.engines.clip_engine import BatchRecognizer, Clip
from harness.engines.registry import make_engine, parse_spec
from harness.engines.vad import FRAME_SAMPLES, vad_name

PROMPT = (
    "You are a friendly voice assistant. Your answers are read aloud: one or two short sentences of plain words, "
    "no lists, no markup. Answer in the language of the question."
)
LOAD_LIMIT_S = 3600.0
"""The first start may download gigabytes."""
LEAST_TURN_S = 0.2
"""A shorter turn holds no word."""


class Cascade(LocalModel):
    """asr: `ENGINE[:MODEL]` of `harness.engines.registry`. llm, tts: see `llm.LlmOptions`, `tts.TtsOptions`.

    language: what the recognizer is told; auto lets it decide for each turn. silence_ms: silence that ends a turn.
    history: turns of the conversation that the language model is shown. threads: of each engine on a CPU (0: all cores
    but one).
    """

    def __init__(
        self,
        *,
        preset: str = "small",
        asr: str = "",
        llm: str = "",
        llm_model: str = "",
        llm_key_env: str = "",
        tts: str = "",
        tts_model: str = "",
        tts_key_env: str = "",
        tts_rate_hz: int = OUTPUT_RATE_HZ,
        tts_prompt_audio: str = "",
        tts_prompt_text: str = "",
        voice: str = "",
        language: Literal["auto", "en", "zh"] = "auto",
        prompt: str = PROMPT,
        silence_ms: int = 500,
        max_tokens: int = 96,
        temperature: float = 0.0,
        history: int = 4,
        device: str = "auto",
        dtype: str = "auto",
        threads: int = 0,
    ) -> None:
        if min(silence_ms, history, threads) < 0 or max_tokens < 1 or temperature < 0:
            raise ConfigError("silence_ms, history, threads and temperature cannot be negative, max_tokens is above 0")
        known = settings_of(preset)
        threads = cpu_threads(threads)
        spec = parse_spec(
            f"asr:{asr or known['asr']}",
            language=None if language == "auto" else language,
            device=_engine_device(device),
            threads=threads,
        )
        self._recognizer: BatchRecognizer = make_engine(spec)
        self._llm = make_llm(
            LlmOptions(
                spec=llm or known["llm"],
                model=llm_model,
                key_env=llm_key_env,
                max_tokens=max_tokens,
                temperature=temperature,
                device=device,
                dtype=dtype,
                threads=threads,
            )
        )
        self._voice = make_voice(
            TtsOptions(
                spec=tts or known["tts"],
                model=tts_model or known.get("tts_model", ""),
                voice=voice,
                key_env=tts_key_env,
                rate_hz=tts_rate_hz,
                prompt_audio=tts_prompt_audio,
                prompt_text=tts_prompt_text,
                device=device,
                threads=threads,
            )
        )
        self._preset = preset
        self._prompt = prompt
        self._silence_ms = silence_ms
        self._history = history
        self._busy = (threading.Lock(), threading.Lock())
        self._session = Session(turn="vad")
        self._ears = Ears(ends_turns=True, silence_ms=silence_ms)
        self._conversation: list[Message] = []

    @property
    def declaration(self) -> Declaration:
        return Declaration(
            input_rate_hz=RATE_HZ,
            output_rate_hz=OUTPUT_RATE_HZ,
            unit_samples=FRAME_SAMPLES,
            user_transcript=True,
            load_limit_s=LOAD_LIMIT_S,
        )

    @property
    def facts(self) -> dict[str, Any]:
        found = {
            "preset": self._preset,
            "vad": vad_name(),
            "asr": self._recognizer.name,
            "asr_fingerprint": self._recognizer.fingerprint,
            **self._llm.facts,
            **self._voice.facts,
        }
        return found | ({"weights": "random"} if "weights: random" in self._recognizer.name else {})

    def load(self) -> None:
        self._recognizer.load()
        self._llm.load()
        self._voice.load()

    def warm_up(self) -> None:
        """One turn through all three engines."""
        silence = np.zeros(RATE_HZ, dtype=np.float32)
        self._recognizer.run([Clip(silence, RATE_HZ)])
        warm = Answer(lambda: "Hello.", self._llm, self._voice, self._opening(), voice_name=None, busy=self._busy)
        for _ in warm.outputs():
            pass

    def start(self, session: Session) -> None:
        self._session = session
        silence_ms = self._silence_ms if session.silence_ms is None else session.silence_ms
        self._ears = Ears(ends_turns=session.turn == "vad", silence_ms=silence_ms)
        self._conversation = []

    def push_audio(self, pcm: Int16) -> list[Output]:
        return self._ears.push(pcm)

    def end_turn(self) -> Iterator[Output]:
        # Taken now: audio that waits is heard before the generator's first step.
        return self._answer(self._ears.take())

    def _answer(self, turn: Float32) -> Iterator[Output]:
        answer = Answer(
            lambda: self._transcript(turn),
            self._llm,
            self._voice,
            [*self._opening(), *self._conversation],
            voice_name=self._session.voice,
            busy=self._busy,
        )
        try:
            yield from answer.outputs()
        finally:  # what was written before an interruption was said, as far as anybody knows here
            if answer.asked and answer.text:
                self._conversation += [
                    {"role": "user", "content": answer.asked},
                    {"role": "assistant", "content": answer.text},
                ]
                self._conversation = self._conversation[-2 * self._history :] if self._history else []

    def _transcript(self, turn: Float32) -> str:
        if len(turn) < LEAST_TURN_S * RATE_HZ:
            return ""
        text = self._recognizer.run([Clip(turn, RATE_HZ)])[0].text
        return simplified(text) if is_chinese(text) else text

    def _opening(self) -> list[Message]:
        return [{"role": "system", "content": self._session.instructions or self._prompt}]


def _engine_device(device: str) -> Literal["auto", "cpu", "cuda"]:
    """The device as the recognizers take it: the first GPU, or none."""
    kind = device.partition(":")[0]
    return cast(Literal["auto", "cpu", "cuda"], kind) if kind in ("auto", "cpu", "cuda") else "cpu"
