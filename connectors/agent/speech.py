"""What the agent can say: recorded answers by language, cut, padded and resampled as the knobs ask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
BACKCHANNELS = Path(__file__).parent / "backchannels"
"""The agent's own "mm-hm", one a language; always these, whatever the answers are."""
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

    def __init__(self, answers: list[Answer], backchannels: Sequence[Answer] = ()) -> None:
        self._by_language = _by_language(answers)
        self._backchannels = _by_language(backchannels)

    @classmethod
    def load(cls, knobs: Knobs, folder: Path = BUNDLED) -> Library:
        """Read and prepare all answers. Raises PrerequisiteError when there are none, or they cannot be read."""
        answers = [_prepare(answer, knobs) for answer in _read_all(folder)]
        backchannels = [] if knobs.backchannel_after_ms is None else _read_all(BACKCHANNELS)
        return cls(answers, [_at_rate(each, knobs.audio_rate_hz) for each in backchannels])

    def pick(self, language: str, number: int, default: str = "en") -> Answer:
        """Answer `number`, in rotation, in `language` (zh-CN counts as zh), else in `default`, else any."""
        spoken = _spoken(self._by_language, language, default)
        return spoken[number % len(spoken)]

    def backchannel(self, language: str, default: str = "en") -> Answer:
        """The agent's "mm-hm"; there is one only where the knobs ask for it."""
        return _spoken(self._backchannels, language, default)[0]

    def __iter__(self) -> Any:
        return (answer for answers in self._by_language.values() for answer in answers)


def _by_language(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        found.setdefault(answer.language, []).append(answer)
    return found


def _spoken(by_language: dict[str, list[Answer]], language: str, default: str) -> list[Answer]:
    primary = language.lower().replace("_", "-").partition("-")[0]
    return by_language.get(primary) or by_language.get(default) or next(iter(by_language.values()))


def _read_all(folder: Path) -> list[Answer]:
    manifest = folder / "manifest.jsonl"
    try:
        rows = [msgspec.json.decode(line, type=_Row) for line in manifest.read_bytes().splitlines() if line.strip()]
        answers = [_read(folder, row) for row in rows]
    except (OSError, msgspec.DecodeError, soundfile.LibsndfileError) as exc:
        raise PrerequisiteError(f"no answers for the agent: {manifest}: {exc}") from exc
    if not answers:
        raise PrerequisiteError(f"no answers for the agent: {manifest} is empty")
    return answers


def _read(folder: Path, row: _Row) -> Answer:
    samples, rate_hz = soundfile.read(folder / row.audio, dtype="int16", always_2d=True)
    language = row.lang.lower().partition("-")[0]
    return Answer(id=row.id, text=row.text, language=language, rate_hz=rate_hz, samples=samples[:, 0])


def _at_rate(answer: Answer, rate_hz: int) -> Answer:
    if rate_hz == answer.rate_hz:
        return answer
    samples = float_to_int16(resample(int16_to_float(answer.samples), answer.rate_hz, rate_hz))
    return msgspec.structs.replace(answer, samples=samples, rate_hz=rate_hz)


def _prepare(answer: Answer, knobs: Knobs) -> Answer:
    answer = _at_rate(answer, knobs.audio_rate_hz)
    samples: Int16 = answer.samples
    rate_hz = answer.rate_hz
    if knobs.answer_s is not None:
        samples = np.resize(samples, ms_to_samples(knobs.answer_s * 1000, rate_hz))
    if knobs.silent_answer:
        samples = np.zeros_like(samples)
    head = np.zeros(ms_to_samples(knobs.leading_silence_ms, rate_hz), dtype=np.int16)
    tail = np.zeros(ms_to_samples(knobs.tail_s * 1000, rate_hz), dtype=np.int16)
    return msgspec.structs.replace(answer, samples=np.concatenate((head, samples, tail)))
