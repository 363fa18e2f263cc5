"""The presets that give one latency a turn, on one hand-made session.

Speech 300-1000 ms in a clip of 0-1200; response created at 1401; packets: 100 ms of silence at 1600, tone from 1610 on,
heard from 1700 on (see `vad_turn`). Silero, by hand: the user until 1016, the agent from 1696.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core.profile import Profile
from harness.core.scorer import Unscored
from scoring.duplex.presets import aiewf, coval, eva, livekit, pipecat
from scoring.duplex.presets.material import Material
from scoring.duplex.presets.voices import Voices
from scoring.duplex.spans import Conversation, Span, UserSpan
from scoring.timing.recording import Recording
from tests.scoring.timing.recordings import Script, header, silence, tone, vad_turn

pytestmark = pytest.mark.unit


def material(script: Script, tmp: Path, **changes: Any) -> Material:
    at = script.at
    turn = UserSpan(at(300), at(1000), event="q0", expect="respond")
    voices = Voices(
        user=(Span(at(288), at(600)), Span(at(640), at(1016))),
        agent=(Span(at(1696), at(2000)),),
        origin_ns=at(0),
        detector="by hand",
    )
    conversation = Conversation(user=(turn,), agent=(Span(at(1700), at(2000)),), begin_ns=at(0), end_ns=at(2000))
    session = script.write(tmp, header(**changes))
    return Material(recording=Recording(session), conversation=conversation, voices=voices)


def test_one_answer_under_five_definitions(tmp_path: Path) -> None:
    made = material(vad_turn(), tmp_path)
    # The clip's last chunk is written 0.15 ms after 1200; 91 ms of the answer lie before its first audible window.
    assert coval.PRESET.measure(made).figures == {"latency_ms": pytest.approx(1600 - 1200.15 + 91)}
    # VAD stop 1016 + 6 * 32, less 200.
    assert pipecat.PRESET.measure(made).figures == {"latency_ms": 1600 - (1016 + 192 - 200)}
    assert livekit.PRESET.measure(made).figures == {"ttft_ms": 1600 - 1401}
    assert aiewf.PRESET.measure(made).figures == {"voice_to_voice_ms": 1696 - 1016}
    assert eva.PRESET.measure(made).figures == {"latency_ms": 400, "score": pytest.approx(0.9)}
    assert aiewf.PRESET.measure(made).notes == ("spans: by hand",)
    assert pipecat.PRESET.measure(made).notes == ("VAD: by hand",)
    (value,) = livekit.PRESET.measure(made).values
    assert (value.session, value.event, value.value) == ("s0", "q0", 199.0)


def test_several_recordings_are_averaged_and_counted(tmp_path: Path) -> None:
    slow = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400).begin(1401)
    slow.audio(2000, tone(100)).done(2001)
    found = livekit.PRESET.measure(material(vad_turn(), tmp_path / "a"), material(slow, tmp_path / "b"))
    assert (found.figures["ttft_ms"], found.n["ttft_ms"]) == ((199 + 599) / 2, 2)


@pytest.mark.parametrize(
    ("latency_ms", "score"),
    [(-501, 0), (-500, 0), (0, 0.5), (499, 0.999), (500, 1), (2000, 1), (2750, 0.5), (3500, 0), (9000, 0)],
)
def test_evas_curve(latency_ms: float, score: float) -> None:
    assert eva.score_of(latency_ms) == pytest.approx(score)


def test_eva_counts_an_early_assistant_as_negative(tmp_path: Path) -> None:
    early = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400)
    early.begin(800).audio(900, tone(200)).done(901)
    made = material(early, tmp_path)
    found = eva.PRESET.measure(made)
    assert found.figures == {"latency_ms": -300, "score": pytest.approx(0.2)}
    absent = coval.PRESET.measure(made).figures["latency_ms"]
    assert absent == Unscored(reason="early: the peer answered only before the query was over")


def test_eva_does_not_take_a_greeting_for_an_answer(tmp_path: Path) -> None:
    greeted = Script().stream().begin(10, "r9").audio(50, tone(100), "r9").done(51, "r9")
    greeted.turn(0, 300, 1000, clip_ms=(200, 1200)).send(0, 1400)
    found = eva.PRESET.measure(material(greeted, tmp_path))
    assert found.figures["latency_ms"] == Unscored(reason="no audio of the assistant in this turn")


def test_a_continuous_peer_has_an_end_but_no_packets(tmp_path: Path) -> None:
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400)
    script.audio(0, silence(1500), "").audio(1500, tone(400), "").send(1400, 2000)
    made = material(script, tmp_path, profile=Profile(continuous=True))
    absent = Unscored(reason="continuous peer: its audio never stops")
    for preset, figure in ((coval.PRESET, "latency_ms"), (pipecat.PRESET, "latency_ms"), (livekit.PRESET, "ttft_ms")):
        assert preset.measure(made).figures[figure] == absent
    # EVA begins with the first audible sound: at 1500, whose window begins 9 ms before.
    assert eva.PRESET.measure(made).figures["latency_ms"] == pytest.approx(1491 - 1200)


def test_a_silent_answer_is_fast_for_pipecat_and_none_for_coval(tmp_path: Path) -> None:
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400).begin(1401)
    made = material(script.audio(1600, silence(400)).done(1601), tmp_path)
    assert pipecat.PRESET.measure(made).figures["latency_ms"] == 592
    assert coval.PRESET.measure(made).figures["latency_ms"] == Unscored(
        reason="silent: the answer never becomes audible"
    )


def test_a_peer_that_does_not_announce_its_answers_has_no_ttft_for_livekit(tmp_path: Path) -> None:
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400)
    made = material(script.audio(1600, tone(100)).done(1601), tmp_path)
    assert livekit.PRESET.measure(made).figures["ttft_ms"] == Unscored(
        reason="the peer does not announce its responses"
    )


def test_aiewf_looks_between_this_turn_and_the_next() -> None:
    def ms(value: float) -> int:
        return round(value * 1_000_000)

    turns = (UserSpan(ms(0), ms(1000)), UserSpan(ms(3000), ms(4000)), UserSpan(ms(6000), ms(7000)))
    conversation = Conversation(user=turns, agent=(), begin_ns=0, end_ns=ms(9000))
    voices = Voices(
        user=(Span(ms(10), ms(990)), Span(ms(3010), ms(3990))),
        agent=(Span(ms(500), ms(1500)), Span(ms(3500), ms(3600)), Span(ms(4290), ms(5000))),
        origin_ns=0,
        detector="by hand",
    )
    found = aiewf.PRESET.measure(Material(conversation=conversation, voices=voices))
    # The first turn's agent was already speaking and starts again only in the next turn; the third is not heard.
    assert (found.figures["voice_to_voice_ms"], found.n["voice_to_voice_ms"]) == (300.0, 1)
    assert found.reasons["voice_to_voice_ms"] == {
        "the agent does not start to speak between this turn and the next": 1,
        "Silero hears no user speech in this turn": 1,
    }


def test_without_a_session_the_clock_presets_say_so() -> None:
    made = Material(conversation=Conversation(user=(), agent=(), begin_ns=0, end_ns=1))
    for preset in (coval.PRESET, pipecat.PRESET, livekit.PRESET, eva.PRESET):
        for value in preset.measure(made).figures.values():
            assert value == Unscored(reason="there is no session, only a conversation")
