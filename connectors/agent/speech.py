"""What the agent can say: recorded answers by language, cut, padded and resampled as the knobs ask."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import soundfile

from connectors.agent.knobs import Knobs
from harness.core.audio import Int16, float_to_int16, int16_to_float, ms_to_samples
from harness.core.errors import PrerequisiteError
from harness.engines.resample import resample

BUNDLED = Path(__file__).parent / "answers"
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One spoken answer: mono int16 samples, shape (n,), at `rate_hz`."""

    id: str
    text: str
    language: str
    rate_hz: int
    samples: Any

    @property
    def pieces(self) -> list[str]:
        """The text as a model streams it: words with the space before them, or two characters of Chinese."""
        if _CJK.search(self.text):
            return re.findall(r"..?", self.text, flags=re.DOTALL)
        return re.findall(r"\s*\S+", self.text)


class _Row(msgspec.Struct):
    id: str
    audio: str
    text: str = ""
    lang: str = "en"


class Library:
    """The answers of one folder with a `manifest.jsonl`, at the rate and length that the knobs ask for."""

    def __init__(self, answers: list[Answer]) -> None:
        self._by_language: dict[str, list[Answer]] = {}
        for answer in answers:
            self._by_language.setdefault(answer.language, []).append(answer)

    @classmethod
    def load(cls, knobs: Knobs, folder: Path = BUNDLED) -> Library:
        """Read and prepare all answers. Raises PrerequisiteError when there are none, or they cannot be read."""
        manifest = folder / "manifest.jsonl"
        try:
            rows = [msgspec.json.decode(line, type=_Row) for line in manifest.read_bytes().splitlines() if line.strip()]
            answers = [_prepare(_read(folder, row), knobs) for row in rows]
        except (OSError, msgspec.DecodeError, soundfile.LibsndfileError) as exc:
            raise PrerequisiteError(f"no answers for the agent: {manifest}: {exc}") from exc
        if not answers:
            raise PrerequisiteError(f"no answers for the agent: {manifest} is empty")
        return cls(answers)

    def pick(self, language: str, number: int, default: str = "en") -> Answer:
        """Answer `number`, in rotation, in `language` (zh-CN counts as zh), else in `default`, else any."""
        primary = language.lower().replace("_", "-").partition("-")[0]
        spoken = (
            self._by_language.get(primary) or self._by_language.get(default) or next(iter(self._by_language.values()))
        )
        return spoken[number % len(spoken)]

    def __iter__(self) -> Any:
        return (answer for answers in self._by_language.values() for answer in answers)


def _read(folder: Path, row: _Row) -> Answer:
    samples, rate_hz = soundfile.read(folder / row.audio, dtype="int16", always_2d=True)
    language = row.lang.lower().partition("-")[0]
    return Answer(id=row.id, text=row.text, language=language, rate_hz=rate_hz, samples=samples[:, 0])


def _prepare(answer: Answer, knobs: Knobs) -> Answer:
    samples: Int16 = answer.samples
    rate_hz = knobs.audio_rate_hz
    if rate_hz != answer.rate_hz:
        samples = float_to_int16(resample(int16_to_float(samples), answer.rate_hz, rate_hz))
    if knobs.answer_s is not None:
        samples = np.resize(samples, ms_to_samples(knobs.answer_s * 1000, rate_hz))
    if knobs.silent_answer:
        samples = np.zeros_like(samples)
    head = np.zeros(ms_to_samples(knobs.leading_silence_ms, rate_hz), dtype=np.int16)
    tail = np.zeros(ms_to_samples(knobs.tail_s * 1000, rate_hz), dtype=np.int16)
    return msgspec.structs.replace(answer, rate_hz=rate_hz, samples=np.concatenate((head, samples, tail)))
