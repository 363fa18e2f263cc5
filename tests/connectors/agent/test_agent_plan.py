"""Answers laid out in time, knobs read and refused: nothing here needs a socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import connectors.agent
from connectors.agent.endpointer import Heard, ScriptedEndpointer, SileroEndpointer
from connectors.agent.knobs import FIELDS, Knobs, check_knobs, read_knobs
from connectors.agent.plan import Plan, Plans, make_plan
from connectors.agent.speech import Answer, Library
from connectors.agent.truth import FIELDS as TRUTH_FIELDS
from connectors.agent.truth import Truth
from connectors.codecs.openai_realtime_server import OpenAIEvents
from harness.core.errors import ConfigError, PrerequisiteError
from tests.connectors.agent.talk import RATE_HZ, silence, spoken

pytestmark = pytest.mark.unit
MS = 1_000_000
GA = OpenAIEvents("ga")
SECOND = Answer(id="a", text="One two.", language="en", rate_hz=RATE_HZ, samples=np.arange(RATE_HZ, dtype=np.int16))


def plan(**knobs: Any) -> Plan:
    return make_plan(Knobs(**knobs), GA, 1, SECOND)


def at_ms(made: Plan, kind: str = "audio") -> list[float]:
    return [step.at_ns / MS for step in made.steps if step.kind == kind]


def test_paced_and_burst() -> None:
    assert at_ms(plan(delivery="paced", think_ms=50)) == [50 + 100 * n for n in range(10)]
    assert at_ms(plan(burst_x=10.0, think_ms=50)) == [50 + 10 * n for n in range(10)]
    assert at_ms(plan(burst_x=0.0, think_ms=50)) == [50] * 10


def test_stall_and_jitter_keep_the_order() -> None:
    stalled = at_ms(plan(delivery="paced", think_ms=0, stall_at_ms=300, stall_ms=700))
    assert stalled == [0, 100, 200, 1000, 1100, 1200, 1300, 1400, 1500, 1600]
    shaken = at_ms(plan(delivery="paced", think_ms=0, jitter_ms=400, seed=1))
    assert shaken == sorted(shaken)
    assert shaken == at_ms(plan(delivery="paced", think_ms=0, jitter_ms=400, seed=1))
    assert shaken != at_ms(plan(delivery="paced", think_ms=0, jitter_ms=400, seed=2))
    assert all(0 <= at - 100 * n <= 400 for n, at in enumerate(shaken))


def test_text_leads_by_as_much_as_there_is_time_for() -> None:
    assert at_ms(plan(think_ms=300, text_lead_ms=100), "text") == [200, 250]
    assert at_ms(plan(think_ms=30, text_lead_ms=100), "text") == [0, 15]
    assert at_ms(plan(think_ms=30, text="after", burst_x=0.0), "text") == [30, 30]


@pytest.mark.parametrize("knobs", [{}, {"odd_bytes": True}, {"chunk_ms": 70}, {"chunk_ms": 5000}, {"empty_packets": 3}])
def test_every_sample_is_in_exactly_one_packet(knobs: dict[str, Any]) -> None:
    made = plan(**knobs)
    assert made.samples == RATE_HZ
    assert [step.kind for step in made.steps].count("done") == 1


def test_close_is_the_last_step() -> None:
    made = plan(close_after_ms=250, delivery="paced", think_ms=0)
    assert at_ms(made) == [0, 100, 200]
    assert made.steps[-1].kind == "close"


def test_plans_are_made_once() -> None:
    plans = Plans(Knobs(dialect="ga"), Library([SECOND]))
    plans.prepare(2)
    assert plans.get(GA, 2, SECOND) is plans.get(GA, 2, SECOND)
    assert plans.get(GA, 1, SECOND) is not plans.get(GA, 2, SECOND)
    assert at_ms(plans.get(GA, 1, SECOND, at_once=True))[0] == 0


def test_pieces_of_text() -> None:
    chinese = msgspec.structs.replace(SECOND, text="北京是中国。", language="zh")
    for answer in (SECOND, chinese):
        assert "".join(answer.pieces) == answer.text
    assert SECOND.pieces == ["One", " two."]
    assert chinese.pieces == ["北京", "是中", "国。"]


@pytest.mark.parametrize(
    ("pairs", "line"),
    [
        ({"think_m": "5"}, "the agent has no knob 'think_m': did you mean think_ms?"),
        ({"think_ms": "soon"}, "think_ms=soon: needs a whole number"),
        ({"think_ms": "-1"}, "think_ms=-1: must lie between 0 and 86400000"),
        ({"chunk_ms": "0"}, "chunk_ms=0: must lie between 10 and 10000"),
        ({"delivery": "slow"}, "delivery=slow: known: burst, paced"),
        ({"endpointer": "scripted"}, "endpointer=scripted needs endpoint_sample"),
        ({"endpoint_sample": "5"}, "endpoint_sample needs endpointer=scripted"),
        ({"refuse_with": "200"}, "refuse_with=200: must be an HTTP error status, such as 401 or 429"),
        ({"close_code": "1006"}, "close_code=1006: not allowed"),
        ({"pause_answer": "true", "endpoint_ms": "300"}, "pause_answer sets the endpointing time: no endpoint_ms"),
    ],
)
def test_wrong_knobs_are_one_clear_line(pairs: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_knobs(pairs)
    assert str(refused.value) == line


def test_knobs_are_read_from_strings() -> None:
    knobs = read_knobs({"odd_bytes": "true", "answer_s": "1.5", "endpoint_ms": "null", "text": "after"})
    assert knobs == Knobs(odd_bytes=True, answer_s=1.5, endpoint_ms=None, text="after")
    assert check_knobs(Knobs()) == Knobs()


def test_every_knob_is_in_the_readme_and_every_truth_record_too() -> None:
    readme = (Path(connectors.agent.__file__).parent / "README.md").read_text("utf-8")
    assert [name for name in FIELDS if f"`{name}" not in readme] == []
    assert [kind for kind in TRUTH_FIELDS if f"`{kind}`" not in readme] == []


def test_scripted_endpointer_counts_from_the_commit() -> None:
    endpointer = ScriptedEndpointer(100, 2)
    assert endpointer.push(b"\0\0" * 99) == []
    endpointer.forget()
    assert endpointer.push(b"\0\0" * 99) == []
    assert endpointer.push(b"\0\0" * 21) == [Heard("start", 99), Heard("stop", 199)]
    assert endpointer.push(b"\0\0" * 80) == [Heard("start", 199), Heard("stop", 299)]
    assert endpointer.push(b"\0\0" * 500) == []


@pytest.mark.parametrize("rate_hz", [24_000, 16_000])
def test_silero_endpointer_does_not_mind_how_audio_is_cut(rate_hz: int) -> None:
    pcm = silence(0.3) + spoken(seconds=1.5) + silence(1.0)
    if rate_hz == 16_000:
        from harness.core.audio import float_to_int16, int16_to_float, int16_to_pcm16, pcm16_to_int16
        from harness.engines.resample import resample

        pcm = int16_to_pcm16(float_to_int16(resample(int16_to_float(pcm16_to_int16(pcm)), RATE_HZ, rate_hz)))
    heard = []
    for step in (960, 2222, len(pcm)):
        endpointer = SileroEndpointer(rate_hz, 300, first_sample=7)
        heard.append([event for at in range(0, len(pcm), step) for event in endpointer.push(pcm[at : at + step])])
    assert [event.kind for event in heard[0]] == ["start", "stop"]
    assert abs(heard[0][0].sample - 0.3 * rate_hz) < 0.15 * rate_hz
    assert abs(heard[0][1].sample - 1.8 * rate_hz) < 0.15 * rate_hz
    for other in heard[1:]:
        assert [
            (a.kind, abs(a.sample - b.sample) <= 0.033 * rate_hz) for a, b in zip(heard[0], other, strict=True)
        ] == [
            ("start", True),
            ("stop", True),
        ]


def test_truth_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    truth = Truth(path)
    for number in range(1000):
        truth.add(("error", 1, number, "x"))
    truth.close()
    truth.close()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["t_ns"] for row in rows] == list(range(1000))
    assert rows[0] == {"type": "error", "conn": 1, "t_ns": 0, "code": "x"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told_and_stops_nothing() -> None:
    truth = Truth(Path("/dev/full"))
    for number in range(500):
        truth.add(("error", 1, number, "x"))
    truth.close()
    assert truth.failure == "the truth log /dev/full is incomplete: No space left on device"
    assert truth.records() == []


def test_truth_without_a_file_is_kept_on_request_only() -> None:
    for keep in (True, False):
        truth = Truth(keep=keep)
        truth.add(("error", 1, 5, "x"))
        assert len(truth.records()) == keep
        truth.close()


@pytest.mark.parametrize("content", [None, "", "{", '{"id":"a","audio":"missing.wav"}'])
def test_missing_answers_are_one_clear_line(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "manifest.jsonl").write_text(content)
    with pytest.raises(PrerequisiteError, match="no answers for the agent") as refused:
        Library.load(Knobs(), tmp_path)
    assert "\n" not in str(refused.value)
