"""Every duplex metric from a session directory, worked out on paper; and none of them moves with the clock or with
silence before the session.

Instants of the user, of packets and of flushes are exact; where the agent's speech begins is known to one window of the
energy rule (10 ms).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.duplex.hearing import hear
from scoring.duplex.metrics import METRICS
from scoring.duplex.rows import conversation_rows
from tests.scoring.duplex.sessions import Talk, speech
from tests.scoring.timing.recordings import RATE, header

pytestmark = pytest.mark.unit
WINDOW_MS = 10.0


def voice(from_ms: float = 0, to_ms: float | None = None) -> Any:
    """5.3 s of speech without a long pause, or a part of it."""
    sound = np.concatenate([speech(), speech(1)])
    return sound[round(from_ms * RATE / 1000) : None if to_ms is None else round(to_ms * RATE / 1000)]


def interrupted(pad: float = 0) -> Talk:
    """Asked until 1200, answered from 1600 on in two bursts, of which the second arrives at 3080; the user comes in at
    3000, what plays is dropped at 3217.5; the user ends at 4000, the next answer begins at 4500."""
    talk = Talk()
    talk.stream().event("a", 500 + pad, 1200 + pad).begin(1500 + pad)
    talk.audio(1600 + pad, voice(0, 1500)).audio(3080 + pad, voice(1500, 3000))
    talk.event("b", 3000 + pad, 4000 + pad, expect="stop").heard_start(3217.5 + pad)
    talk.done(3220 + pad, status="cancelled").begin(4400 + pad, "r1").audio(4500 + pad, speech(2), "r1")
    talk.done(4501 + pad, "r1")
    return talk.until(12_000 + pad)


def listened_to(pad: float = 0) -> Talk:
    """The answer plays from 1600 to 6888; the user says "mm-hm" at 3000 for 300 ms."""
    talk = Talk()
    talk.stream().event("a", 500 + pad, 1200 + pad).begin(1500 + pad).audio(1600 + pad, voice()).done(1601 + pad)
    talk.event("m", 3000 + pad, 3300 + pad, kind="backchannel", expect="keep_talking")
    return talk.until(12_000 + pad)


def stopped_by_a_backchannel(pad: float = 0) -> Talk:
    """The same, but the agent drops its answer at 3200, and speaks on at 4200."""
    talk = Talk()
    talk.stream().event("a", 500 + pad, 1200 + pad).begin(1500 + pad).audio(1600 + pad, voice()).done(1601 + pad)
    talk.event("m", 3000 + pad, 3300 + pad, kind="backchannel", expect="keep_talking").heard_start(3200 + pad)
    talk.begin(4150 + pad, "r1").audio(4200 + pad, speech(2), "r1").done(4201 + pad, "r1")
    return talk.until(12_000 + pad)


def answered_a_cough(pad: float = 0) -> Talk:
    """A cough from 500 to 800 into silence; the agent speaks at 1300."""
    talk = Talk()
    talk.stream().event("n", 500 + pad, 800 + pad, kind="noise", expect="stay_silent")
    talk.begin(1200 + pad).audio(1300 + pad, speech()).done(1301 + pad)
    return talk.until(9_000 + pad)


def silent(pad: float = 0) -> Talk:
    """Asked until 1200; nothing for 8 s."""
    talk = Talk()
    talk.stream().event("a", 500 + pad, 1200 + pad)
    return talk.until(9_200 + pad)


def talked_into(pad: float = 0) -> Talk:
    """The user speaks from 500 to 9000. The agent says something of 600 ms at 2000, more than 2 s at 4000, and answers
    at 9400."""
    talk = Talk()
    talk.stream().event("a", 500 + pad, 9000 + pad)
    for number, (at, sound) in enumerate(((2000, voice(0, 600)), (4000, speech(1)), (9400, speech(2)))):
        name = f"r{number}"
        talk.begin(at - 50 + pad, name).audio(at + pad, sound, name).done(at + 1 + pad, name)
    return talk.until(16_000 + pad)


WORKED_OUT: dict[Callable[..., Talk], dict[tuple[str, str], float | bool | None]] = {
    interrupted: {
        ("a", "response_latency_ms"): 400,
        ("a", "fto_ms"): 400,
        ("a", "missed_response"): False,
        ("a", "overlap_ms"): 0,
        ("a", "stop_ms"): None,
        ("b", "stop_ms"): 217.5,
        ("b", "wire_stop_ms"): 80,
        ("b", "yielded"): True,
        ("b", "talk_over_ms"): 217.5,
        ("b", "overlap_ms"): 217.5,
        ("b", "post_interruption_latency_ms"): 500,
        ("b", "fto_ms"): 500,
        ("b", "response_latency_ms"): None,
    },
    listened_to: {
        ("m", "kept_talking"): True,
        ("m", "false_stop"): False,
        ("m", "resumed"): None,
        ("m", "overlap_ms"): 300,
        ("a", "agent_backchannels"): 0,
    },
    stopped_by_a_backchannel: {
        ("m", "kept_talking"): False,
        ("m", "false_stop"): True,
        ("m", "resumed"): True,
        ("m", "resume_ms"): 1000,
        ("m", "overlap_ms"): 200,
        ("a", "false_start"): False,
    },
    answered_a_cough: {("n", "false_start"): True, ("n", "fto_ms"): None},
    silent: {("a", "missed_response"): True, ("a", "fto_ms"): None},
    talked_into: {
        ("a", "agent_backchannels"): 1,
        ("a", "agent_interruptions"): 1,
        ("a", "false_start"): True,
        ("a", "fto_ms"): 400,
    },
}


def scored(path: Path, talk: Talk) -> list[dict[str, Any]]:
    """The rows of the written session, without the instants of the events themselves."""
    rows = conversation_rows(hear(talk.write(path, header())).conversation)
    return [{name: value for name, value in row.items() if name not in ("start_ms", "end_ms")} for row in rows]


@pytest.mark.parametrize("session", WORKED_OUT, ids=lambda session: session.__name__)
def test_a_session_has_the_figures_worked_out(tmp_path: Path, session: Callable[..., Talk]) -> None:
    rows = {row["event"]: row for row in scored(tmp_path, session())}
    for (event, name), value in WORKED_OUT[session].items():
        found = rows[event][name]
        if isinstance(value, bool) or value is None:
            assert found is value, (event, name)
        else:
            assert found == pytest.approx(value, abs=WINDOW_MS if name.endswith("_ms") else 0), (event, name)
    if session is interrupted:
        assert (rows["b"]["stop_ms"], rows["b"]["wire_stop_ms"]) == (217.5, 80.0)


def test_every_metric_is_worked_out_in_a_session() -> None:
    shown = {name for figures in WORKED_OUT.values() for (_, name), value in figures.items() if value is not None}
    assert shown == {metric.name for metric in METRICS}


@pytest.mark.parametrize("session", WORKED_OUT, ids=lambda session: session.__name__)
def test_no_figure_moves_with_the_clock_or_with_silence_before(tmp_path: Path, session: Callable[..., Talk]) -> None:
    plain = scored(tmp_path / "plain", session())
    later = session().shifted(987_654_321_012_345)
    moved = Talk(base_ns=later.base_ns)
    moved.events = later.events
    assert scored(tmp_path / "moved", moved) == plain
    assert scored(tmp_path / "padded", session(1234.5)) == plain
