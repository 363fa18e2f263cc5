"""What became of a run's cues, counted by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.core.audio import NS_PER_MS
from harness.core.events import Note, PeerError, ScenarioEvent, StreamStarted
from harness.run.cue_report import cue_report

pytestmark = pytest.mark.unit
T0 = 1_000 * NS_PER_MS


def cue(event: str, speech_ms: int, anchor: str, anchor_ms: int, **fields) -> ScenarioEvent:
    """An event of half a second at 8 kHz, planned 100 ms after its anchor."""
    return ScenarioEvent(
        t_ns=T0,
        event=event,
        kind="turn",
        clip="c",
        clip_sample=0,
        clip_samples=4_000,
        speech_start=speech_ms * 8,
        speech_end=speech_ms * 8 + 4_000,
        anchor=anchor,
        anchor_ns=T0 + anchor_ms * NS_PER_MS,
        planned_delay_ns=100 * NS_PER_MS,
        **fields,
    )


def session(name: str, *events, warmup: bool = False):
    all_events = [StreamStarted(t_ns=T0, sample=0, rate_hz=8_000), *events]
    return SimpleNamespace(
        header=SimpleNamespace(session=name, warmup=warmup),
        of=lambda kind: iter(event for event in all_events if isinstance(event, kind)),
    )


def test_cues_are_counted_and_what_was_not_as_planned_is_told() -> None:
    late = cue("e3", 940, "agent_end", 800, offset_exact=False, anchor_rule="silence")
    waited = {"offset_exact": False, "timed_out": True, "anchor_rule": "timeout"}
    report = cue_report(
        [
            session(
                "a",
                cue("e1", 500, "session_start", 0, offset_exact=False),
                cue("e2", 600, "agent_start", 500, anchor_rule="speech"),
                late,
            ),
            session(
                "b",
                cue("e2", 9_000, "agent_start", 9_000, **waited),
                Note(t_ns=T0, code="cue_timed_out", message="e2: no answer was heard"),
                Note(t_ns=T0, code="long_answer", message="something else"),
            ),
            session("c", Note(t_ns=T0, code="not_run", message="one upload")),
            session("d", PeerError(t_ns=T0, code="503", message="HTTP 503, refused", fatal=True)),
            session("e", PeerError(t_ns=T0, code="503", message="HTTP 503, refused", fatal=True)),
            session(
                "f", cue("e1", 500, "session_start", 0), PeerError(t_ns=T0, code="1011", message="gone", fatal=True)
            ),
            session("warm", late, warmup=True),
        ]
    )
    assert (report.agent_cues, report.exact, report.timed_out) == (3, 1, 1)
    assert report.late_ms == {"a e3": 40.0}  # 940 - 800 - 100
    assert report.rules == {"speech": 1, "silence": 1, "timeout": 1}
    assert list(report.lines) == [
        "not run: 1 scenario: one upload",
        "not run: 2 scenarios: HTTP 503, refused",
        "1 of 3 cues on the agent met exactly; 1 late, 1 timed out",
        "  a e3: 40 ms late",
        "  b: e2: no answer was heard",
    ]


def test_where_all_went_as_planned_there_is_nothing_to_say() -> None:
    assert list(cue_report([session("a", cue("e2", 600, "agent_start", 500, anchor_rule="speech"))]).lines) == []
    assert list(cue_report([]).lines) == []
