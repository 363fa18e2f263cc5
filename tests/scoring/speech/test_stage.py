"""A speech stage: what is cached is not computed, equal sounds are computed once, failures are tried again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import ConfigError, HarnessError
from harness.core.scorer import Unscored
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.registry import parse_spec
from scoring.speech.answer import Answer
from scoring.speech.stage import Heard, SpeechStage
from scoring.stage_cache import StageCache
from tests.engines.fake_engine import RAISES, RATE_HZ, clip

pytestmark = pytest.mark.unit


def spec(model: str = "") -> EngineSpec:
    return parse_spec(f"mos:tests.engines.fake_engine.Loudest:{model}")


class Sounds:
    """Answers whose reading is counted."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def answer(self, key: str, one: Clip, sha256: str = "") -> Answer:
        def load() -> Clip:
            self.read.append(key)
            return one

        return Answer(key, sha256 or key, len(one.pcm) / RATE_HZ, load)


def hear(cache: Path, answers: list[Answer], model: str = "", **options: Callable[..., None]) -> list[Heard]:
    with StageCache(cache) as kept, SpeechStage(spec(model), kept, workers=1) as stage:
        return list(stage.run(answers, **options))


def test_longest_first_then_from_the_cache(tmp_path: Path) -> None:
    sounds = Sounds()
    answers = [sounds.answer(f"a{i}", clip(i / 8, samples=80 * i)) for i in (1, 3, 2)]
    assert hear(tmp_path / "c", answers, "1") == [
        Heard("a3", 2.5, False), Heard("a2", 2.0, False), Heard("a1", 1.5, False),
    ]  # fmt: skip
    assert hear(tmp_path / "c", answers, "1") == [
        Heard("a1", 1.5, True), Heard("a3", 2.5, True), Heard("a2", 2.0, True),
    ]  # fmt: skip
    assert sorted(sounds.read) == ["a1", "a2", "a3"]


def test_another_engine_shares_no_results(tmp_path: Path) -> None:
    sounds = Sounds()
    answers = [sounds.answer("a", clip(0.5))]
    hear(tmp_path / "c", answers, "1")
    assert hear(tmp_path / "c", answers, "2") == [Heard("a", 3.0, False)]


def test_equal_sounds_are_computed_once(tmp_path: Path) -> None:
    sounds = Sounds()
    answers = [sounds.answer(key, clip(0.5), "same") for key in ("a", "b")]
    assert hear(tmp_path / "c", answers) == [Heard("a", 3.0, False), Heard("b", 3.0, False)]
    assert sounds.read == ["a"]


def test_a_failure_is_a_reason_and_is_tried_again(tmp_path: Path) -> None:
    sounds = Sounds()
    bad = sounds.answer("bad", clip(0.5, first=RAISES))
    answers = [sounds.answer("good", clip(0.5)), bad]
    first = {one.key: one.value for one in hear(tmp_path / "c", answers)}
    assert first == {"good": 3.0, "bad": Unscored(reason="loudest, weights: random failed: odd clip")}
    mended = sounds.answer("bad", clip(0.25))
    assert hear(tmp_path / "c", [answers[0], mended]) == [Heard("good", 3.0, True), Heard("bad", 2.0, False)]


def test_a_line_of_another_shape_in_the_cache_is_computed_anew(tmp_path: Path) -> None:
    sounds = Sounds()
    answers = [sounds.answer("a", clip(0.5))]
    hear(tmp_path / "c", answers)
    (tmp_path / "c").write_text((tmp_path / "c").read_text().replace("3.0", '"three"'))
    assert hear(tmp_path / "c", answers) == [Heard("a", 3.0, False)]


def test_progress(tmp_path: Path) -> None:
    sounds = Sounds()
    answers = [sounds.answer(f"a{i}", clip(0.5, samples=RATE_HZ * i)) for i in (1, 2)]
    hear(tmp_path / "c", answers[:1])
    told: list[tuple[int, int, float]] = []
    hear(tmp_path / "c", answers, progress=lambda *step: told.append(step))
    assert told == [(1, 2, 2.0), (2, 2, 0.0)]


def test_what_is_all_cached_loads_no_weights(tmp_path: Path) -> None:
    sounds = Sounds()
    answers = [sounds.answer("a", clip(0.5))]
    with StageCache(tmp_path / "c") as kept, SpeechStage(spec("unloadable"), kept, workers=1) as stage:
        with pytest.raises(ConfigError, match="these weights are no weights"):
            list(stage.run(answers))
        kept.put(stage._key(answers[0]), 4.5)
        assert list(stage.run(answers)) == [Heard("a", 4.5, True)]


def test_what_was_done_before_an_interruption_stays(tmp_path: Path) -> None:
    sounds = Sounds()
    answers = [sounds.answer(f"a{i}", clip(i / 8, samples=80 * i)) for i in (1, 2, 3)]

    def interrupt(done: int, total: int, left_s: float) -> None:
        if done == 2:
            raise HarnessError("interrupted")

    with pytest.raises(HarnessError, match="interrupted"):
        hear(tmp_path / "c", answers, "1", progress=interrupt)
    sounds.read.clear()
    assert {one.key: one.value for one in hear(tmp_path / "c", answers, "1")} == {"a1": 1.5, "a2": 2.0, "a3": 2.5}
    assert sounds.read == ["a1"]
