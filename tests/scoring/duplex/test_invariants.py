"""What must not change a figure: another time, more silence around what was said, more silence in the packets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scoring.duplex.hearing import hear
from scoring.duplex.metrics import METRICS
from scoring.duplex.rows import conversation_rows
from scoring.duplex.spans import Conversation, Span, UserSpan
from tests.scoring.duplex.sessions import Talk, speech
from tests.scoring.timing.recordings import header, silence

pytestmark = pytest.mark.unit
NAMES = [metric.name for metric in METRICS]
MOMENT = st.integers(0, 40_000)
KIND = st.sampled_from(
    [("turn", "respond"), ("turn", "stop"), ("backchannel", "keep_talking"), ("noise", "stay_silent"), ("turn", "")]
)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Any events and any agent, on a grid of 50 ms, so that equal instants are common."""
    user = []
    for number, (start, length) in enumerate(draw(st.lists(st.tuples(MOMENT, st.integers(50, 4000)), max_size=5))):
        kind, expect = draw(KIND)
        begin, end = start // 50 * 50_000_000, (start + length) // 50 * 50_000_000
        user.append(UserSpan(begin, end, kind=kind, expect=expect, event=f"e{number}"))
    edges = sorted(draw(st.sets(MOMENT.map(lambda ms: ms // 50 * 50_000_000), max_size=10)))
    agent = tuple(Span(a, b) for a, b in zip(edges[::2], edges[1::2], strict=False))
    ordered = tuple(sorted(user, key=lambda span: (span.start_ns, span.end_ns)))
    return Conversation(user=ordered, agent=agent, begin_ns=0, end_ns=50_000_000_000)


def moved(conversation: Conversation, by_ns: int, *, pad_ns: int = 0) -> Conversation:
    """The same at another time; `pad_ns` more silence before it."""

    def shift(span: Any) -> Any:
        fields = {name: getattr(span, name) for name in span.__struct_fields__}
        return type(span)(**fields | {"start_ns": span.start_ns + by_ns, "end_ns": span.end_ns + by_ns})

    return Conversation(
        user=tuple(shift(span) for span in conversation.user),
        agent=tuple(shift(span) for span in conversation.agent),
        begin_ns=conversation.begin_ns + by_ns - pad_ns,
        end_ns=conversation.end_ns + by_ns,
    )


def figures(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in (*NAMES, "reasons", "censored", "demand")} for row in rows]


@given(conversations(), st.integers(-(10**15), 10**15))
def test_another_time_gives_the_same_rows(conversation: Conversation, by_ns: int) -> None:
    assert conversation_rows(moved(conversation, by_ns)) == conversation_rows(conversation)


@given(conversations(), st.integers(0, 10**12))
def test_silence_before_changes_no_figure(conversation: Conversation, pad_ns: int) -> None:
    padded = conversation_rows(moved(conversation, pad_ns, pad_ns=pad_ns))
    assert figures(padded) == figures(conversation_rows(conversation))


@given(conversations(), st.integers(1, 10**12))
def test_silence_after_changes_no_figure_that_is_there(conversation: Conversation, pad_ns: int) -> None:
    """Listening on may settle what was censored (all spans end before the end here), and nothing else."""
    longer = Conversation(
        user=conversation.user, agent=conversation.agent, begin_ns=0, end_ns=conversation.end_ns + pad_ns
    )
    for row, after in zip(conversation_rows(conversation), conversation_rows(longer), strict=True):
        assert {n: row[n] for n in NAMES if n not in row["censored"]} == {
            n: after[n] for n in NAMES if n not in row["censored"]
        }


@given(conversations())
def test_figures_are_possible(conversation: Conversation) -> None:
    for row in conversation_rows(conversation):
        length = row["end_ms"] - row["start_ms"]
        for name in ("stop_ms", "resume_ms", "overlap_ms", "talk_over_ms"):
            assert row[name] is None or row[name] >= 0
        assert row["overlap_ms"] is None or row["overlap_ms"] <= length
        assert row["talk_over_ms"] is None or row["talk_over_ms"] <= row["overlap_ms"]
        assert row["fto_ms"] is None or row["fto_ms"] > -length
        assert all(row[name] is None for name in row["censored"])
        assert all(row[name] is not None or name in row["reasons"] for name in NAMES)


def exchange(pad_ms: float = 0.0, head_ms: float = 0.0) -> Talk:
    """A turn, its answer, an interruption that flushes, the answer to that. pad_ms: all of it later. head_ms: silence
    in front of the first answer's speech, in its packets, which come that much earlier."""
    talk = Talk()
    talk.stream().event("a", 500 + pad_ms, 1200 + pad_ms).begin(1500 + pad_ms)
    talk.audio(1600 + pad_ms - head_ms, np.concatenate([silence(head_ms), speech(), speech(1)])).done(1700 + pad_ms)
    talk.event("b", 3000 + pad_ms, 4000 + pad_ms).heard_start(3217.5 + pad_ms).heard_stop(4300 + pad_ms)
    talk.begin(4400 + pad_ms, "r1").paced(4500 + pad_ms, speech(2), "r1").done(9000 + pad_ms, "r1")
    return talk.until(12_000 + pad_ms)


def scored(tmp_path: Path, talk: Talk) -> list[dict[str, Any]]:
    return figures(conversation_rows(hear(talk.write(tmp_path, header())).conversation))


def test_the_exchange_has_what_it_says(tmp_path: Path) -> None:
    first, second = scored(tmp_path, exchange())
    assert first["response_latency_ms"] == pytest.approx(400, abs=10)
    assert second["stop_ms"] == 217.5
    assert second["post_interruption_latency_ms"] == pytest.approx(500, abs=10)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(-(10**12), 10**15))
def test_a_session_at_another_time_gives_the_same_rows(tmp_path_factory: pytest.TempPathFactory, by_ns: int) -> None:
    plain, later = exchange(), exchange().shifted(by_ns)
    other = Talk(base_ns=later.base_ns)
    other.events = later.events
    a, b = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    assert scored(b, other) == scored(a, plain)


@pytest.mark.parametrize("pad_ms", [20, 500, 1234.5])
def test_silence_before_a_session_changes_no_figure(tmp_path: Path, pad_ms: float) -> None:
    assert scored(tmp_path / "b", exchange(pad_ms)) == scored(tmp_path / "a", exchange())


@pytest.mark.parametrize("head_ms", [1, 35, 90])
def test_silence_in_front_of_the_speech_in_its_packets_changes_no_figure(tmp_path: Path, head_ms: float) -> None:
    plain, padded = scored(tmp_path / "a", exchange()), scored(tmp_path / "b", exchange(head_ms=head_ms))
    for before, after in zip(plain, padded, strict=True):
        for name in NAMES:
            assert after[name] == pytest.approx(before[name], abs=0.001) if before[name] else not after[name], name
