"""One engine over many clips, in this process and in workers: the same outcomes, and one bad clip costs only itself."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.scorer import Unscored
from harness.engines.batches import BatchReader
from harness.engines.clip_engine import Clip, Load
from harness.engines.pool import EnginePool
from harness.engines.registry import parse_spec
from tests.engines.fake_engine import DIES, RAISES, clip

pytestmark = pytest.mark.unit


def pool(model: str = "", workers: int = 1) -> EnginePool:
    return EnginePool(parse_spec(f"mos:tests.engines.fake_engine.Loudest:{model}"), workers=workers)


def loads(*clips: Clip) -> list[Load]:
    def of(one: Clip) -> Callable[[], Clip]:
        return lambda: one

    return [of(one) for one in clips]


def unreadable() -> Clip:
    raise OSError("no such file")


@pytest.mark.parametrize("workers", [1, 2])
def test_each_clip_has_its_outcome(workers: int) -> None:
    given = loads(*(clip(i / 16) for i in range(1, 12)))
    given[3] = unreadable
    given += loads(clip(0.5, samples=0), clip(float("nan")), clip(0.75, first=RAISES), clip(0.5))
    with pool("4", workers) as engines:
        found = {outcome.at: outcome.value for outcome in engines.stream(given)}
        again = list(engines.stream(loads(clip(0.5))))
    assert sorted(found) == list(range(15))
    assert [found[i] for i in (0, 10, 14)] == [1.25, 3.75, 3.0]
    assert found[3] == Unscored(reason="the sound cannot be read: no such file")
    assert found[11] == Unscored(reason="the answer has no sound")
    assert found[12] == Unscored(reason="the sound holds values that are no numbers")
    assert found[13] == Unscored(reason="loudest, weights: random failed: odd clip")
    assert [outcome.value for outcome in again] == [3.0]


def test_a_clip_that_kills_its_process_costs_only_itself() -> None:
    given = loads(*(clip(0.5) for _ in range(9)), clip(0.5, first=DIES), *(clip(0.25, first=None) for _ in range(2)))
    with pool("4", workers=2) as engines:
        found = {outcome.at: outcome.value for outcome in engines.stream(given)}
    assert found.pop(9) == Unscored(reason="the engine's process died on this clip")
    assert found == {**dict.fromkeys(range(9), 3.0), 10: 2.0, 11: 2.0}


@pytest.mark.parametrize("workers", [1, 2])
def test_weights_that_cannot_be_loaded_end_the_run(workers: int) -> None:
    with pool("unloadable", workers) as engines, pytest.raises(ConfigError, match="these weights are no weights"):
        list(engines.stream(loads(clip(0.5), clip(0.5))))


def test_workers_that_always_die_end_the_run() -> None:
    with pool("deadly", 2) as engines, pytest.raises(PrerequisiteError, match="its worker processes die"):
        list(engines.stream(loads(clip(0.5), clip(0.5))))


def test_a_run_that_is_left_early_can_be_followed_by_another() -> None:
    with pool("1", 2) as engines:
        assert next(iter(engines.stream(loads(*(clip(0.5) for _ in range(20)))))).value == 3.0
        assert [outcome.value for outcome in engines.stream(loads(clip(0.25)))] == [2.0]


def test_clips_are_read_when_their_turn_comes() -> None:
    read: list[int] = []

    def load(i: int) -> Load:
        def now() -> Clip:
            read.append(i)
            return clip(0.5)

        return now

    with pool("4") as engines:
        stream = engines.stream([load(i) for i in range(100)])
        next(stream)
        assert len(read) <= 8
        stream.close()  # type: ignore[attr-defined]


def test_batches_shrink_towards_the_end() -> None:
    reader = BatchReader(loads(*(clip(0.5) for _ in range(40))), most=4, workers=2)
    sizes = []
    while (batch := reader.next()) is not None:
        sizes.append(len(batch.clips))
    assert sum(sizes) == 40
    assert sizes[:4] == [4, 4, 4, 4]
    assert sizes[-6:] == [1, 1, 1, 1, 1, 1]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("asr:faster-whispr", "asr:faster-whispr: no such engine as 'faster-whispr'; did you mean faster-whisper?"),
        ("mso:distillmos", "mso:distillmos: no such kind of engine as 'mso'; did you mean mos?"),
        ("emotion", "emotion: no such engine as ''; known: emotion2vec"),
    ],
)
def test_unknown_names(text: str, line: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(line)}$"):
        parse_spec(text)


def test_a_model_may_hold_colons() -> None:
    spec = parse_spec("asr:faster-whisper:C:\\models\\base", language="zh", device="cpu", threads=2)
    assert (spec.model, spec.language, spec.device, spec.threads) == ("C:\\models\\base", "zh", "cpu", 2)


def test_a_class_of_ones_own_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="no such engine"):
        EnginePool(parse_spec("mos:tests.engines.fake_engine.Quietest"))


def test_zeros_are_sound() -> None:
    with pool() as engines:
        assert [outcome.value for outcome in engines.stream(loads(Clip(np.zeros(9, np.float32), 8_000)))] == [1.0]
