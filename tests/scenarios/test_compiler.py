"""From scenario to script: positions, drawn delays, noises and impairments; the same input gives the same script."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.audio import audio_sha256, int16_to_float
from harness.core.errors import ConfigError
from scenarios.compiler import compile_script
from scenarios.impairments.noise import rms
from scenarios.pack import load_pack
from scenarios.scenario_file import read_scenarios
from tests.scenarios.timelines import CLIPS, MS, RATE, clip, script

pytestmark = pytest.mark.unit


def test_what_hangs_on_no_agent_is_placed_in_samples():
    made = script("""
        {say: one}
        {say: two, at: user_end, delay_ms: 700, expect: respond}
        {noise: door, at: user_end, delay_ms: -200, expect: stay_silent}
        {say: mm, kind: backchannel, at: agent_start, delay_ms: 300}
        {other_speaker: one, at: user_end, after: e4, expect: keep_talking}
        """)
    # one: 500..1500 ms; two: 2200..2700 ms; door: 2500..2800 ms.
    assert [event.speech_at for event in made.events] == [500 * 8, 2200 * 8, 2500 * 8, None, None]
    assert [event.plan.id for event in made.cues] == ["e4", "e5"]
    assert [event.delay_ns for event in made.events] == [500 * MS, 700 * MS, -200 * MS, 300 * MS, 0]


def test_the_static_part_is_mixed():
    made = script("""
        {say: one, delay_ms: 50}
        {noise: door, at: user_end, delay_ms: -300, expect: stay_silent}
        {say: two, at: agent_end, delay_ms: 900}
        """)
    mixed = made.static
    # one speaks from 50 to 1050 ms (its first 50 ms of silence do not fit), the door slams from 750 to 1050 ms.
    assert len(mixed) == 1150 * 8
    assert not mixed[: 50 * 8].any()
    assert set(np.abs(mixed[50 * 8 : 750 * 8])) == {1000}
    assert set(np.abs(mixed[750 * 8 : 1050 * 8])) == {6000}
    assert not mixed[1050 * 8 :].any()


def test_a_clip_longer_than_its_lead_in_is_mixed_at_full_scale_at_most():
    loud = [clip("one", 1000, 32767), clip("two", 500, 32767)]
    (scenario,) = read_scenarios(
        "id: s\nevents: [{say: one}, {other_speaker: two, at: user_end, delay_ms: -500, expect: stay_silent}]", "s.yaml"
    )
    mixed = compile_script(scenario, loud, rate_hz=RATE).static
    assert (mixed.max(), mixed.min()) == (32767, -32768)


def test_jitter_is_drawn_per_event_and_repeat():
    lines = "{say: one}\n{say: two, at: agent_start, delay_ms: 100, jitter_ms: [20, 400]}"
    delays = [script(lines, repeat=repeat).events[1].delay_ns for repeat in range(200)]
    assert delays == [script(lines, repeat=repeat).events[1].delay_ns for repeat in range(200)]
    assert min(delays) >= 120 * MS
    assert max(delays) <= 500 * MS
    assert len(set(delays)) == 200
    # Uniform between 120 and 500 ms: mean 310, standard deviation of the mean of 200 draws 110 / 14 = 8 ms.
    assert np.mean(delays) / MS == pytest.approx(310, abs=32)
    assert script(lines, repeat=1, seed=1).events[1].delay_ns != delays[1]


def test_one_events_jitter_does_not_move_anothers():
    before = script("{say: one}\n{id: x, say: two, at: agent_start, jitter_ms: 400}")
    after = script(
        "{say: one, jitter_ms: 100}\n{say: mm, at: user_end}\n{id: x, say: two, at: agent_start, jitter_ms: 400}"
    )
    assert before.events[1].delay_ns == after.events[2].delay_ns


def test_a_missing_clip_is_named():
    with pytest.raises(ConfigError, match=r"^s.yaml:3:11: say: the pack has no clip 'onee'; did you mean one\?$"):
        script("{say: onee}")


def test_what_begins_before_its_reference_is_refused():
    script("{say: one}\n{noise: door, at: user_end, delay_ms: -1000, expect: stay_silent}")
    with pytest.raises(ConfigError, match=r"^s.yaml:4:13: delay_ms goes back before 'e1' begins \(1000 ms long\)$"):
        script("{say: one}\n{noise: door, at: user_end, delay_ms: -1001, expect: stay_silent}")


def test_the_user_does_not_speak_twice_at_once():
    script("{say: one}\n{say: two, at: session_start, delay_ms: 1500}")
    with pytest.raises(ConfigError, match=r"^s.yaml:4:11: 'e2' begins while the user still says 'e1'$"):
        script("{say: one}\n{say: two, at: session_start, delay_ms: 1499}")


def test_generated_noise_has_its_length_and_level():
    made = script(
        "{noise: white, duration_ms: 2000, expect: stay_silent}\n{noise: babble, at: session_start, "
        "duration_ms: 700, gain_db: -10, expect: stay_silent}"
    )
    white, babble = (event.clip for event in made.events)
    assert (white.speech_start, white.speech_end, len(white.samples)) == (0, 16_000, 16_000)
    assert 20 * np.log10(rms(int16_to_float(white.samples).astype(float))) == pytest.approx(-30, abs=0.1)
    assert len(babble.samples) == 5600
    assert 20 * np.log10(rms(int16_to_float(babble.samples).astype(float))) == pytest.approx(-40, abs=0.1)


def test_the_gain_moves_the_level():
    made = script("{say: one}\n{other_speaker: one, at: user_end, gain_db: -20, expect: stay_silent}")
    assert set(np.abs(made.events[1].clip.samples[800:8800])) == {100}


def test_impairments_are_for_speech_and_marked():
    (scenario,) = read_scenarios(
        "id: s\nimpairments: ['loss:rate=0.5']\nevents: [{say: one}, {noise: door, at: user_end, expect: stay_silent}]",
        "s.yaml",
    )
    made = compile_script(scenario, CLIPS, rate_hz=RATE, impairments=["noise:white:snr=10"])
    one, door = made.events
    assert one.impairment == "loss:rate=0.5+noise:white:snr=10"
    assert one.audio_sha256 == one.clip.sha256 == audio_sha256(one.clip.samples) != CLIPS[0].sha256
    assert (one.clip.speech_start, one.clip.speech_end) == (CLIPS[0].speech_start, CLIPS[0].speech_end)
    assert (door.impairment, door.clip) == ("", CLIPS[3])
    again = compile_script(scenario, CLIPS, rate_hz=RATE, impairments=["noise:white:snr=10"])
    assert [event.audio_sha256 for event in again.events] == [event.audio_sha256 for event in made.events]
    other = compile_script(scenario, CLIPS, rate_hz=RATE, impairments=["noise:white:snr=10"], repeat=1)
    assert other.events[0].audio_sha256 != one.audio_sha256


def test_an_impairment_that_cannot_be_is_said_with_the_place():
    (scenario,) = read_scenarios("id: s\nevents: [{say: one}]", "s.yaml")
    with pytest.raises(ConfigError, match=r"^s.yaml:2:16: noise:babble needs other clips to mix"):
        compile_script(scenario, CLIPS[:1], rate_hz=RATE, impairments=["noise:babble:snr=10"])


def test_real_clips_at_the_peers_rate():
    pack = load_pack("queries", languages=["en"], limit=3)
    (scenario,) = read_scenarios("id: s\nevents: [{say: en-01}, {say: en-02, at: user_end, delay_ms: 250}]", "s.yaml")
    made = compile_script(scenario, pack.clips, rate_hz=16_000)
    # en-01 speaks from 4800 to 71088 at 24 kHz.
    assert (made.events[0].clip.speech_start, made.events[0].clip.speech_end) == (3200, 47_392)
    assert made.events[1].speech_at == 8000 + (47_392 - 3200) + 4000
