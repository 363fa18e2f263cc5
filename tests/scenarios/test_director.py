"""The director against agents that do as the test says, on a timeline of 20 ms ticks. All times in ms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.audio import audio_sha256
from harness.core.events import decode_event, encode_event
from scenarios.compiler import Script
from scenarios.director import Director, Placement
from tests.scenarios.timelines import CLIPS, MS, script

pytestmark = pytest.mark.unit

START_NS = 77_000_000_123
TICK = 20
IN_FLIGHT = 2
"""Chunks that can't be changed any more: the one that is being captured, and the one prepared."""
Happening = tuple[str, int] | tuple[str, int, bool]


class Played:
    """A session of ticks: what was placed when, and when it was over."""

    def __init__(self, made: Script, agent: Mapping[int, Happening], until: int = 60_000, **rules: int) -> None:
        self.director = Director(made, START_NS, ahead_samples=2 * TICK * 8, **rules)
        self.placed: dict[str, Placement] = {}
        self.at: dict[str, int] = {}
        self.over: int | None = None
        for now in range(0, until, TICK):
            for moment in sorted(agent):
                if now - TICK < moment <= now:
                    self._happen(*agent[moment])
            for placement in self.director.advance(START_NS + now * MS, self.position(now)):
                assert placement.clip_sample >= self.position(now)
                assert placement.event.plan.id not in self.placed
                self.placed[placement.event.plan.id] = placement
                self.at[placement.event.plan.id] = now
            if self.director.over(START_NS + now * MS):
                self.over = now
                break

    @staticmethod
    def position(now: int) -> int:
        return (now // TICK + IN_FLIGHT) * TICK * 8

    def _happen(self, what: str, heard: int, final: bool = False) -> None:
        heard_ns = START_NS + heard * MS
        if what == "starts":
            self.director.agent_started(heard_ns)
        elif what == "stops":
            self.director.agent_stopped(heard_ns, final="response_done" if final else "")
        elif what == "writes":
            self.director.agent_wrote(heard_ns)
        else:
            self.director.agent_flushed(heard_ns)

    def speech(self, event: str) -> tuple[float, float]:
        """When the event's speech is, in ms of the user's stream."""
        return self.placed[event].speech_start / 8, self.placed[event].speech_end / 8

    def anchor(self, event: str) -> float:
        return (self.placed[event].anchor_ns - START_NS) / MS


BARGE_IN = "{say: one}\n{say: two, at: agent_start, delay_ms: 700, timeout_ms: 4000, expect: stop}"
"""one speaks from 500 to 1500 ms."""
FOLLOW_UP = "{say: one}\n{say: two, at: agent_end, delay_ms: 800}"


def test_the_static_part_needs_no_agent():
    played = Played(
        script("""
            {say: one}
            {say: two, at: user_end, delay_ms: 700}
            {noise: door, at: user_end, delay_ms: -200, expect: stay_silent}
            """),
        {},
    )
    assert played.speech("e1") == (500, 1500)
    assert played.speech("e2") == (2200, 2700)
    assert played.speech("e3") == (2500, 2800)
    assert all(each.offset_exact and not each.timed_out for each in played.placed.values())
    # Handed out within a tick of the last moment: each clip begins 100 ms before its speech.
    assert all(0 <= each.clip_sample - played.position(played.at[name]) <= 320 for name, each in played.placed.items())
    assert (played.anchor("e1"), played.anchor("e2"), played.anchor("e3")) == (0, 1500, 2700)


def test_speech_at_the_very_start_costs_the_clip_its_silence():
    played = Played(script("{say: one, delay_ms: 60}"), {})
    (one,) = played.placed.values()
    # 40 ms are in flight when the stream begins, so 20 of the 100 ms of silence are left.
    assert (one.clip_sample, one.speech_start, one.offset_exact) == (40 * 8, 60 * 8, True)
    assert np.array_equal(one.samples, CLIPS[0].samples[80 * 8 :])
    assert one.record(5).audio_sha256 == audio_sha256(one.samples)


def test_a_barge_in_meets_its_moment():
    # Told 300 ms ahead of playout.
    played = Played(script(BARGE_IN), {1700: ("starts", 2000)})
    two = played.placed["e2"]
    assert played.speech("e2") == (2700, 3200)
    assert (played.anchor("e2"), two.planned_delay_ns, two.offset_exact, two.timed_out) == (2000, 700 * MS, True, False)


@pytest.mark.parametrize(("known", "begins", "exact"), [(2600, 2700, True), (2660, 2700, True), (2680, 2720, False)])
def test_a_start_that_is_known_too_late_gives_the_real_offset(known: int, begins: int, exact: bool):
    # The agent is heard from 2000 on. At `known` the stream's next free sample is 40 ms later.
    played = Played(script(BARGE_IN), {known: ("starts", 2000)})
    assert played.speech("e2") == (begins, begins + 500)
    assert (played.placed["e2"].offset_exact, played.anchor("e2")) == (exact, 2000)


def test_a_silent_agent_is_waited_for_so_long():
    played = Played(script(BARGE_IN), {})
    two = played.placed["e2"]
    # 4000 ms after 1500; the next sample that can be changed then is 40 ms later.
    assert (played.at["e2"], played.anchor("e2"), played.speech("e2")) == (5500, 5500, (5540, 6040))
    assert (two.timed_out, two.offset_exact, two.planned_delay_ns) == (True, False, 0)


def test_a_start_that_is_flushed_unheard_is_none():
    agent = {1700: ("starts", 2200), 1900: ("is flushed", 1900), 2900: ("starts", 3000)}
    played = Played(script(BARGE_IN), agent)
    assert (played.anchor("e2"), played.speech("e2")) == (3000, (3700, 4200))


def test_an_agent_that_spoke_before_has_to_begin_anew():
    two_cuts = BARGE_IN + "\n{say: mm, at: agent_start, delay_ms: 400, expect: stop}"
    # The barge-in is said from 2700 to 3200. The agent goes on until 3500, breathes for 250 ms and stops at 4000.
    agent: dict[int, Happening] = {
        1700: ("starts", 2000),
        3560: ("stops", 3500),
        3740: ("starts", 3750),
        4100: ("stops", 4000),
        4500: ("starts", 4600),
    }
    played = Played(script(two_cuts), agent)
    assert played.anchor("e3") == 4600
    # A flush tells the two apart where the gap does not.
    flushed: dict[int, Happening] = {1700: ("starts", 2000), 3500: ("is flushed", 3500), 3700: ("starts", 3750)}
    assert Played(script(two_cuts), flushed).anchor("e3") == 3750


def test_a_flush_that_cuts_nothing_changes_nothing():
    two_cuts = BARGE_IN + "\n{say: mm, at: agent_start, delay_ms: 400, expect: stop}"
    agent: dict[int, Happening] = {
        1700: ("starts", 2000),
        3520: ("stops", 3500),
        3600: ("is flushed", 3600),
        3740: ("starts", 3750),
        4100: ("stops", 4000),
        4500: ("starts", 4600),
    }
    assert Played(script(two_cuts), agent).anchor("e3") == 4600


def test_an_early_answer_counts_if_it_is_still_going_on():
    agent: dict[int, Happening] = {1400: ("starts", 1420)}
    assert Played(script(BARGE_IN), agent).anchor("e2") == 1420
    # One that broke off while the user spoke does not.
    agent = {800: ("starts", 800), 1000: ("stops", 1000), 2000: ("starts", 2100)}
    assert Played(script(BARGE_IN), agent).anchor("e2") == 2100


def test_the_user_finishes_before_speaking_again():
    soon = BARGE_IN.replace("700", "0")
    played = Played(script(soon), {1200: ("starts", 1200)})
    two = played.placed["e2"]
    assert (played.speech("e2"), played.anchor("e2"), two.offset_exact) == ((1500, 2000), 1200, False)


def test_others_may_speak_while_the_user_does():
    lines = "{say: one}\n{other_speaker: two, at: agent_start, expect: keep_talking}"
    played = Played(script(lines), {1100: ("starts", 1200)})
    assert played.speech("e2") == (1200, 1700)


def test_the_end_that_the_peer_tells_is_known_at_once():
    agent: dict[int, Happening] = {1800: ("starts", 1900), 2200: ("stops", 6000, True)}
    played = Played(script(FOLLOW_UP), agent)
    assert (played.anchor("e2"), played.speech("e2"), played.placed["e2"].offset_exact) == (6000, (6800, 7300), True)
    # Even before it: the sound is there ahead of its playout.
    early = Played(script(FOLLOW_UP.replace("800", "-200")), agent)
    assert (early.speech("e2"), early.placed["e2"].offset_exact) == ((5800, 6300), True)


def test_an_end_that_nobody_tells_takes_600_ms_of_silence():
    agent: dict[int, Happening] = {1800: ("starts", 1900), 4100: ("stops", 4000)}
    played = Played(script(FOLLOW_UP), agent)
    assert (played.anchor("e2"), played.speech("e2"), played.placed["e2"].offset_exact) == (4000, (4800, 5300), True)
    late = Played(script(FOLLOW_UP.replace("800", "100")), agent)
    assert (late.anchor("e2"), late.speech("e2"), late.placed["e2"].offset_exact) == (4000, (4640, 5140), False)


def test_the_silence_that_ends_a_turn_is_a_parameter_and_the_rule_is_told():
    agent: dict[int, Happening] = {1800: ("starts", 1900), 4100: ("stops", 4000), 5000: ("starts", 4900)}
    agent |= {6100: ("stops", 6000)}
    patient = Played(script(FOLLOW_UP), agent, over_ms=1_000)  # a pause of 900 ms is none
    assert (patient.anchor("e2"), patient.placed["e2"].rule) == (6000, "silence")
    hasty = Played(script(FOLLOW_UP.replace("800", "400")), agent)
    assert (hasty.anchor("e2"), hasty.placed["e2"].rule) == (4000, "silence")
    told = Played(script(FOLLOW_UP), {1800: ("starts", 1900), 2200: ("stops", 6000, True)})
    assert told.placed["e2"].rule == "response_done"
    assert told.placed["e2"].record(1).anchor_rule == "response_done"
    assert told.placed["e1"].rule == ""
    barge_in = Played(script(BARGE_IN), {1700: ("starts", 2000)})
    assert barge_in.placed["e2"].rule == "speech"


def test_a_silence_counts_only_as_far_as_the_agent_was_listened_to():
    director = Director(script(FOLLOW_UP), START_NS, ahead_samples=320)
    director.advance(START_NS + 400 * MS, 400 * 8)
    director.agent_started(START_NS + 1900 * MS)
    director.agent_stopped(START_NS + 4000 * MS)
    late = {"position": 5000 * 8, "behind_ns": 500 * MS}
    assert director.advance(START_NS + 5080 * MS, **late) == []
    (placed,) = director.advance(START_NS + 5100 * MS, **late)
    assert (placed.rule, placed.offset_exact) == ("silence", False)


def test_text_that_comes_in_a_silence_makes_it_a_pause():
    # Silent from 4000; text at 4500: over at 5100 at the earliest, but the agent speaks again, until 7000.
    agent: dict[int, Happening] = {1800: ("starts", 1900), 4100: ("stops", 4000), 4500: ("writes", 4500)}
    late: dict[int, Happening] = {**agent, 5060: ("starts", 5050), 7100: ("stops", 7000)}
    played = Played(script(FOLLOW_UP), late)
    assert (played.anchor("e2"), played.placed["e2"].rule) == (7000, "silence_and_text")
    # Nothing follows it: over 600 ms after it, and the end is where the sound ended.
    silent = Played(script(FOLLOW_UP.replace("800", "100")), agent)
    assert (silent.anchor("e2"), silent.at["e2"], silent.placed["e2"].rule) == (4000, 5100, "silence_and_text")


def test_a_start_that_is_told_again_moves_until_something_hangs_on_it():
    agent: dict[int, Happening] = {1700: ("starts", 2000), 1800: ("starts", 1988)}
    played = Played(script(BARGE_IN), agent)
    assert (played.anchor("e2"), played.speech("e2")) == (1988, (2688, 3188))
    assert played.placed["e2"].offset_exact
    # Not to before the end of what was heard before it.
    agent = {1600: ("starts", 1600), 1700: ("stops", 1700), 2100: ("starts", 2100), 2120: ("starts", 1690)}
    assert Played(script(BARGE_IN), agent).director._agent[-1].start_ns == START_NS + 1700 * MS


def test_what_was_waited_for_in_vain_is_told():
    assert Played(script(BARGE_IN), {}).placed["e2"].missed == "e2: no answer was heard within 4000 ms of the end of e1"
    endless = Played(script(FOLLOW_UP.replace("800", "800, timeout_ms: 5000")), {1800: ("starts", 1900)})
    e2 = endless.placed["e2"]
    assert (e2.missed, e2.rule) == ("e2: the answer was not over within 5000 ms of the end of e1", "timeout")
    assert Played(script(BARGE_IN), {1700: ("starts", 2000)}).placed["e2"].missed == ""


def test_an_agent_that_goes_on_takes_the_end_back():
    agent: dict[int, Happening] = {
        1800: ("starts", 1900),
        4100: ("stops", 4000),
        4300: ("starts", 4400),  # a breath of 400 ms
        4900: ("stops", 5000, True),
        5200: ("starts", 5300),  # complete, and yet something more
        6100: ("stops", 6000),
    }
    assert Played(script(FOLLOW_UP), agent).anchor("e2") == 6000


def test_an_answer_that_was_complete_and_flushed_ends_at_the_flush():
    agent: dict[int, Happening] = {1800: ("starts", 1900), 2200: ("stops", 9000, True), 3000: ("is flushed", 3000)}
    assert Played(script(FOLLOW_UP), agent).anchor("e2") == 3000


def test_what_follows_a_cue_keeps_its_distance():
    played = Played(
        script(BARGE_IN + "\n{noise: door, at: user_end, delay_ms: -300, expect: stay_silent}"),
        {2680: ("starts", 2000)},
    )
    assert played.speech("e3") == (2920, 3220)
    assert played.placed["e3"].offset_exact


@pytest.mark.parametrize(
    ("lines", "head", "agent", "over"),
    [
        # linger_ms is kept to the ms, whatever the agent does.
        ("{say: one}", "linger_ms: 2000\n", {1700: ("starts", 1800), 2000: ("stops", 2500, True)}, 3500),
        # Else 1500 ms after the answer's end,
        ("{say: one}", "", {1700: ("starts", 1800), 2000: ("stops", 2500, True)}, 4000),
        # 15 s after speech that nobody answers, or that is answered without end,
        ("{say: one}", "", {}, 16_500),
        ("{say: one}", "", {1700: ("starts", 1800)}, 16_500),
        # and 4 s after what wants no answer.
        ("{other_speaker: one, expect: stay_silent}", "", {}, 5_500),
        ("{other_speaker: one, expect: stay_silent}", "", {5000: ("starts", 5000), 6000: ("stops", 6000)}, 7_500),
    ],
)  # fmt: skip
def test_a_session_is_over(lines: str, head: str, agent: dict[int, Happening], over: int):
    assert Played(script(lines, head), agent).over == over


def test_the_record_of_an_event():
    played = Played(script(BARGE_IN.replace("expect: stop", "expect: stop, tags: [cut]")), {1700: ("starts", 2000)})
    event = played.placed["e2"].record(9, category="user_interruption", tags=("slow",))
    assert decode_event(encode_event(event)) == event
    assert (event.event, event.kind, event.expect, event.clip) == ("e2", "turn", "stop", "two")
    assert (event.clip_sample, event.clip_samples) == (2600 * 8, 700 * 8)
    assert (event.speech_start, event.speech_end) == (2700 * 8, 3200 * 8)
    assert (event.anchor, event.anchor_ns, event.planned_delay_ns) == ("agent_start", START_NS + 2000 * MS, 700 * MS)
    assert (event.category, event.tags, event.impairment) == ("user_interruption", ("slow", "cut"), "")
    assert event.audio_sha256 == CLIPS[1].sha256


MOMENTS = st.dictionaries(
    st.integers(0, 12_000),
    st.one_of(
        st.tuples(st.just("starts"), st.integers(-200, 3000)),
        st.tuples(st.just("stops"), st.integers(-200, 3000), st.booleans()),
        st.tuples(st.just("is flushed"), st.integers(-200, 0)),
    ),
    max_size=12,
)
BUSY = """
    {say: one}
    {say: two, at: agent_start, delay_ms: 300, timeout_ms: 2000, expect: stop}
    {noise: door, at: user_end, delay_ms: -400, expect: stay_silent}
    {say: mm, kind: backchannel, at: agent_start, delay_ms: 100, timeout_ms: 2000}
    {other_speaker: one, at: agent_start, after: e2, timeout_ms: 500, expect: keep_talking}
    {say: two, at: agent_end, delay_ms: 200, timeout_ms: 3000}
    """


@settings(deadline=None, max_examples=60)
@given(MOMENTS)
def test_whatever_the_agent_does_everything_is_said_once_and_honestly(moments: dict[int, Happening]):
    agent = {at: (what, at + offset, *rest) for at, (what, offset, *rest) in moments.items()}
    shift: Callable[[int], int] = lambda ns: round((ns - START_NS) * 8 / MS)  # noqa: E731
    played = Played(script(BUSY), agent)
    assert sorted(played.placed) == [f"e{number}" for number in range(1, 7)]
    assert played.over is not None
    for placed in played.placed.values():
        planned = shift(placed.anchor_ns + placed.planned_delay_ns)
        assert placed.offset_exact == (placed.speech_start == planned and not placed.timed_out)
        assert placed.speech_start >= planned
        assert placed.speech_end - placed.speech_start == placed.event.speech_samples
        assert np.array_equal(
            placed.samples[placed.speech_start - placed.clip_sample :][:1600], placed.event.clip.samples[800:2400]
        )
    said = sorted((p.speech_start, p.speech_end) for p in played.placed.values() if p.event.plan.source == "say")
    assert all(end <= start for (_, end), (start, _) in pairwise(said))
