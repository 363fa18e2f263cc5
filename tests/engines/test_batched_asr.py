"""faster-whisper over many clips with real weights: the same text alone, in a batch, in workers, and from the cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.core.errors import ConfigError
from harness.engines.asr import Transcript
from harness.engines.clip_engine import Clip, EngineSpec, Load
from harness.engines.pool import EnginePool
from harness.engines.registry import make_engine, parse_spec
from scoring.speech.answer import Answer
from scoring.speech.stage import SpeechStage
from scoring.stage_cache import StageCache
from tests.engines.test_weights import need

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore")]

PACKS = Path(__file__).parents[2] / "scenarios" / "packs"
CLIPS = ("duplex-en/en-long-02", "duplex-en/en-q-05", "duplex-zh/zh-q-05")


def spec(language: str | None = None) -> EngineSpec:
    return parse_spec("asr:faster-whisper", language=language, device="cpu", threads=1)


def read(name: str) -> Clip:
    pcm, rate_hz = soundfile.read(PACKS / f"{name}.flac", dtype="float32", always_2d=True)
    return Clip(pcm[:, 0].copy(), rate_hz)


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    need("whisper-base", "faster_whisper", "zhconv")
    return [read(name) for name in CLIPS]


@pytest.fixture(scope="module")
def alone(clips: list[Clip]) -> list[Transcript]:
    engine = make_engine(spec())
    return [engine.run([clip])[0] for clip in clips]


def test_each_clip_is_heard_in_its_own_language(alone: list[Transcript]) -> None:
    english, mandarin = alone[0].text, alone[2].text
    assert english == "So I was thinking that we could paint the kitchen first and then the hall."
    assert "你能解释一下" in mandarin
    assert alone[0].model.endswith("int8, greedy, language auto)")


def test_workers_and_cache_give_the_same_text(clips: list[Clip], alone: list[Transcript], tmp_path: Path) -> None:
    def load(clip: Clip) -> Load:
        return lambda: clip

    answers = [Answer(str(i), str(i), clip.seconds, load(clip)) for i, clip in enumerate(clips)]
    for cached in (False, True):
        with StageCache(tmp_path / "asr") as cache, SpeechStage(spec(), cache, workers=2) as stage:
            heard = {one.key: one for one in stage.run(answers)}
        assert [heard[str(i)].value for i in range(len(clips))] == alone
        assert {one.cached for one in heard.values()} == {cached}


def test_a_batch_with_a_long_clip(clips: list[Clip], alone: list[Transcript]) -> None:
    quiet = np.zeros(2 * 24_000, np.float32)
    short = clips[1]
    pieces = [part for _ in range(8) for part in (short.pcm, quiet)]
    long = Clip(np.concatenate(pieces), short.rate_hz)
    assert long.seconds > 30
    engine = make_engine(spec(language="en"))
    first, second = engine.run([long, short])
    assert second.text == alone[1].text
    # Decoded to its end: the sentence comes as often as it was said, but for one that a window's edge may cut.
    assert first.text.count(second.text.rstrip("?.")[-12:]) >= 7
    assert "language en" in engine.name
    assert engine.fingerprint != make_engine(spec()).fingerprint


def test_a_language_that_whisper_does_not_know() -> None:
    need("whisper-base", "faster_whisper", "zhconv")
    with pytest.raises(ConfigError, match="Whisper knows no language 'xx'"), EnginePool(spec("xx"), workers=1) as pool:
        list(pool.stream([lambda: Clip(np.zeros(16_000, np.float32), 16_000)]))
