"""From events to a conversation: real speech through the playout model, Silero and the energy rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.core.profile import Profile
from harness.core.session.header import AudioInfo
from harness.engines.vad import Span
from scoring.duplex import agent_speech
from scoring.duplex.hearing import Heard, hear
from scoring.duplex.rows import conversation_rows
from scoring.duplex.spans import Conversation
from tests.scoring.duplex.sessions import Talk, ms_of, speech
from tests.scoring.timing.recordings import BASE_NS, MS, RATE, header, silence, tone

pytestmark = pytest.mark.unit
WINDOW_MS = 10.0
"""How far a boundary may lie from the speech: one window of the energy rule."""


def talk() -> Talk:
    talk = Talk()
    talk.stream()
    return talk


def heard(tmp_path: Path, script: Talk, **changes: Any) -> Heard:
    return hear(script.write(tmp_path, header(**changes)))


def spoken(tmp_path: Path, script: Talk, **changes: Any) -> Conversation:
    return heard(tmp_path, script, **changes).conversation


def ms(t_ns: int) -> float:
    return (t_ns - BASE_NS) / MS


def utterances(conversation: Conversation) -> list[tuple[float, float, bool | None]]:
    assert conversation.utterances is not None
    return [(ms(u.start_ns), ms(u.end_ns), u.natural) for u in conversation.utterances]


def test_spans_lie_where_the_speech_is(tmp_path: Path) -> None:
    voice = speech()
    script = talk().event("a", 500, 1500, category="smooth").begin(2000)
    script.audio(2000, np.concatenate([silence(700), voice, silence(800)])).done(2001).heard_stop(9000)
    found = heard(tmp_path, script)
    (user,) = found.conversation.user
    assert (ms(user.start_ns), ms(user.end_ns), user.kind, user.category) == (500, 1500, "turn", "smooth")
    ((start_ms, end_ms, natural),) = utterances(found.conversation)
    assert start_ms == pytest.approx(2700, abs=WINDOW_MS)
    assert end_ms == pytest.approx(2700 + ms_of(voice), abs=WINDOW_MS)
    assert natural is True
    assert found.vad.startswith("silero-")
    assert ms(found.conversation.begin_ns) == 0
    assert ms(found.conversation.end_ns) == 9000


def test_a_tone_is_no_speech(tmp_path: Path) -> None:
    conversation = spoken(tmp_path, talk().begin(1000).audio(1000, tone(2000)).done(1001).heard_stop(9000))
    assert conversation.agent == conversation.utterances == ()


def test_a_span_never_opens_inside_a_silent_packet(tmp_path: Path) -> None:
    # A window that reaches 1 ms into the speech is loud already. The silent packets end in the middle of a window; at
    # their end the speech is loud from its first sample.
    voice = speech()
    loud = voice[int(np.argmax(np.abs(voice) > 8000)) :]
    rng = np.random.default_rng(1)
    hiss = rng.integers(-8, 9, round(0.8 * RATE)).astype(np.int16)
    script = talk().begin(1000).paced(1000, hiss).audio(1800, loud).done(1801).heard_stop(9000)
    ((start_ms, _, _),) = utterances(spoken(tmp_path, script))
    assert start_ms == pytest.approx(1800, abs=0.001)


def test_a_network_that_runs_ahead_into_silence_is_corrected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hiss = np.random.default_rng(1).integers(-8, 9, RATE).astype(np.int16)
    monkeypatch.setattr(agent_speech, "speech_spans", lambda samples, rate_hz, threshold: [Span(RATE // 2, 2 * RATE)])
    script = talk().begin(1000).paced(1000, hiss).audio(2000, tone(1000)).done(2001).heard_stop(9000)
    ((start_ms, end_ms, _),) = utterances(spoken(tmp_path / "a", script))
    assert (start_ms, end_ms) == (pytest.approx(2000, abs=0.001), pytest.approx(3000, abs=1))
    only_hiss = talk().begin(1000).paced(1000, np.concatenate([hiss, hiss])).done(3001).heard_stop(9000)
    assert utterances(spoken(tmp_path / "b", only_hiss)) == []


def test_a_flush_ends_what_is_heard(tmp_path: Path) -> None:
    script = talk().event("a", 1000, 1500).begin(2000).audio(2000, np.concatenate([speech(), speech(1)]))
    script.done(2001).event("b", 3000, 4000, expect="stop").heard_start(3200).heard_stop(9000)
    conversation = spoken(tmp_path, script)
    ((start_ms, end_ms, natural),) = utterances(conversation)
    assert start_ms == pytest.approx(2000, abs=WINDOW_MS)
    assert (end_ms, natural) == (3200.0, False)
    assert conversation.agent[-1].end_ns <= conversation.utterances[0].end_ns
    first, second = conversation_rows(conversation)
    assert first["response_latency_ms"] == pytest.approx(500, abs=WINDOW_MS)
    assert (second["stop_ms"], second["yielded"]) == (200.0, True)
    assert second["talk_over_ms"] <= 200.0


def test_without_a_flush_on_the_profile_the_answer_is_heard_out(tmp_path: Path) -> None:
    voice = np.concatenate([speech(), speech(1)])
    script = talk().begin(2000).audio(2000, voice).done(2001).event("b", 3000, 4000).heard_start(3200)
    conversation = spoken(tmp_path, script.until(12_000), profile=Profile(flush_on=()))
    ((_, end_ms, natural),) = utterances(conversation)
    assert end_ms == pytest.approx(2000 + ms_of(voice), abs=WINDOW_MS)
    assert natural is True
    assert end_ms > 5000
    assert conversation_rows(conversation)[0]["yielded"] is False


def test_a_peer_that_talks_on_through_a_flush_does_not_stop(tmp_path: Path) -> None:
    script = talk()
    script.begin(2000).paced(2000, speech()[: 2 * RATE]).done(4000)
    script.event("m", 2500, 2700, kind="backchannel", expect="keep_talking").heard_start(2611).heard_stop(9000)
    ((_, end_ms, natural),) = utterances(spoken(tmp_path, script))
    assert end_ms == pytest.approx(4000, abs=200)
    assert natural is True


def test_neither_a_stall_nor_a_pause_ends_an_utterance_and_long_silence_does(tmp_path: Path) -> None:
    first, second = speech()[:RATE], speech(1)[:RATE]
    stalled = talk().begin(1000).audio(1000, first).audio(3500, second).done(3501).heard_stop(9000)
    ((start_ms, end_ms, _),) = utterances(spoken(tmp_path / "a", stalled))
    assert (start_ms, end_ms) == (pytest.approx(1000, abs=WINDOW_MS), pytest.approx(4500, abs=100))
    for name, pause_ms, count in (("b", 1500, 1), ("c", 2300, 2)):
        paused = talk().begin(1000).audio(1000, np.concatenate([first, silence(pause_ms), second])).done(1001)
        found = utterances(spoken(tmp_path / name, paused.until(9000)))
        assert (len(found), found[-1][2]) == (count, True)


def test_two_responses_are_two_utterances(tmp_path: Path) -> None:
    first, second = speech(), speech(1)
    script = talk().begin(1000).audio(1000, first).done(1001).begin(1100, "r1").audio(1100, second, "r1")
    script.done(1101, "r1").heard_stop(12_000)
    one, two = utterances(spoken(tmp_path, script))
    border_ms = 1000 + ms_of(first)
    assert one[1] == pytest.approx(border_ms, abs=WINDOW_MS)
    assert two[0] == pytest.approx(border_ms, abs=WINDOW_MS)
    assert one[1] <= border_ms <= two[0]


def test_speech_at_the_end_of_the_session_is_censored(tmp_path: Path) -> None:
    script = talk().event("a", 500, 1000).begin(1500).paced(1500, speech()[: round(1.5 * RATE)])
    script.event("b", 2500, 2800).heard_stop(2900)
    conversation = spoken(tmp_path, script)
    assert max(event.end_ns for event in conversation.agent) <= conversation.end_ns
    row = conversation_rows(conversation)[1]
    assert ms(conversation.end_ns) == pytest.approx(2980, abs=0.1)
    assert row["stop_ms"] is None
    assert row["censored"]["stop_ms"] == pytest.approx(480, abs=0.1)


def test_a_pause_at_the_end_of_the_session_is_no_end_when_sound_is_yet_to_come(tmp_path: Path) -> None:
    sound = np.concatenate([speech()[:RATE], silence(1000), speech(1)[:RATE]])
    script = talk().event("a", 500, 800).begin(1000).audio(1000, sound).done(1001).event("b", 1500, 1900)
    (utterance,) = utterances(spoken(tmp_path, script.until(2600)))
    assert utterance[1:] == (2600.0, None)


def test_how_far_a_late_packet_put_playout_behind(tmp_path: Path) -> None:
    """Packets of 100 ms; the one due at 600 comes at 750, and from then on all are played 150 ms late."""
    script = talk()
    for at in range(0, 3000, 100):
        script.audio(750 if at == 600 else max(at, 751) if 600 < at < 800 else at, silence(100), "")
    script.event("a", 200, 590).event("b", 1000, 1540)
    profile = Profile(continuous=True, pacing="paced", flush_on=())
    found = heard(tmp_path, script, mode="none", profile=profile)
    assert found.behind_ns == {"a": 0, "b": 150 * MS}
    assert heard(tmp_path / "turns", script).behind_ns == {}, "of a turn peer a packet may wait without being late"


def test_a_continuous_peer_is_known_by_its_sound_only(tmp_path: Path) -> None:
    voice = speech()[: 2 * RATE]
    sound = np.concatenate([silence(1500), voice, silence(2000)])
    script = talk().event("a", 500, 1000).paced(0, sound, "")
    conversation = spoken(tmp_path, script, mode="none", profile=Profile(continuous=True, pacing="paced", flush_on=()))
    assert conversation.utterances is conversation.wire is None
    assert conversation_rows(conversation)[0]["fto_ms"] == pytest.approx(500, abs=WINDOW_MS)
    assert ms(conversation.agent[0].start_ns) == pytest.approx(1500, abs=WINDOW_MS)


def test_turns_stand_in_where_there_is_no_scenario(tmp_path: Path) -> None:
    script = talk().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 2000)
    (user,) = spoken(tmp_path, script).user
    assert (user.event, user.kind, user.expect, ms(user.start_ns), ms(user.end_ns)) == (
        "q0",
        "turn",
        "respond",
        300,
        1000,
    )


def test_an_event_that_never_sounded_has_a_reason(tmp_path: Path) -> None:
    script = talk().event("a", 500, 1000)
    # Placed, but the session ended before its first sample.
    (late,) = Talk().event("late", 5000, 6000).events
    script.add(msgspec.structs.replace(late, t_ns=script.at(2900))).heard_stop(3000)
    found = heard(tmp_path, script)
    assert [event.event for event in found.conversation.user] == ["a"]
    assert found.unplaced == {"late": "the session ended before it began"}


def test_a_cue_that_timed_out_is_not_exact(tmp_path: Path) -> None:
    script = (
        talk().event("a", 500, 1000, timed_out=True).event("b", 1500, 2000, offset_exact=False).event("c", 2500, 3000)
    )
    user = spoken(tmp_path, script.until(5000)).user
    assert [event.offset_exact for event in user] == [False, False, True]


def test_a_packet_at_another_rate_keeps_its_place(tmp_path: Path) -> None:
    voice = speech()
    script = talk().begin(1000).audio(1000, voice[::2], rate_hz=12_000).done(1001).heard_stop(9000)
    made = {"agent": AudioInfo(file="agent.wav", rate_hz=12_000)}
    ((start_ms, end_ms, _),) = utterances(spoken(tmp_path, script, **made))
    assert start_ms == pytest.approx(1000, abs=WINDOW_MS)
    assert end_ms == pytest.approx(1000 + ms_of(voice), abs=2 * WINDOW_MS)
