"""Full-Duplex-Bench's rules, worked out by hand; times in ms from an odd instant."""

from __future__ import annotations

import math
from typing import Any

import pytest

from harness.core.scorer import Unscored
from scoring.duplex.presets import fdb, fdb_spans, fdb_words
from scoring.duplex.presets.material import Material
from scoring.duplex.presets.voices import Voices
from scoring.duplex.presets.words import Word, Words
from scoring.duplex.spans import Conversation, Span, UserSpan

pytestmark = pytest.mark.unit
MS = 1_000_000
BASE_NS = 991_000_007


def at(ms: float) -> int:
    return BASE_NS + round(ms * MS)


def spans(*pairs: tuple[float, float]) -> tuple[Span, ...]:
    return tuple(Span(at(a), at(b)) for a, b in pairs)


def words(*pairs: tuple[float, float]) -> tuple[Word, ...]:
    return tuple(Word(text=f"w{i}", start_ns=at(a), end_ns=at(b)) for i, (a, b) in enumerate(pairs))


def ms(found: list[Span]) -> list[tuple[float, float]]:
    return [((s.start_ns - BASE_NS) / MS, (s.end_ns - BASE_NS) / MS) for s in found]


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ([], False),
        ([(0, 300), (400, 600), (700, 999)], False),
        ([(0, 300), (400, 600), (700, 1000)], True),
        ([(0, 100), (100, 200), (200, 300), (300, 400)], True),
        ([(0, 1000)], True),
    ],
)
def test_a_turn_is_taken_by_a_second_of_words_or_by_four(said: list[tuple[float, float]], taken: bool) -> None:
    assert fdb_words.takes_turn(words(*said)) is taken


def test_latency_is_the_first_words_start_and_never_negative() -> None:
    assert fdb_words.latency_s(words((1250, 1300), (1400, 1500)), at(1000)) == 0.25
    assert fdb_words.latency_s(words((900, 1300)), at(1000)) == 0.0


@pytest.mark.parametrize(
    ("segments", "said", "over"),
    [
        ([], [], False),
        ([(0, 3000)], [], True),  # at most 3 s, but not below 1 s
        ([(0, 999)], [(0, 400), (500, 900)], False),
        ([(0, 1000)], [(0, 400), (500, 900)], True),
        ([(0, 999)], [(0, 300), (300, 600), (600, 900)], True),
        ([(0, 1500), (2000, 2500)], [], False),  # the last segment overwrites the one before
        ([(0, 500), (1000, 4001), (5000, 5100)], [], True),
        ([(1000, 1900)], [(500, 1001), (1500, 1600), (1899, 2500), (1950, 2000)], True),
        ([(1000, 1900)], [(500, 1000), (1500, 1600), (1899, 2500), (1950, 2000)], False),
    ],
)
def test_takeover_of_a_backchannel(
    segments: list[tuple[float, float]], said: list[tuple[float, float]], over: bool
) -> None:
    assert fdb_words.takes_over(spans(*segments), words(*said)) is over


def test_a_segment_of_exactly_three_seconds_still_counts_and_a_longer_one_ends_the_list() -> None:
    assert len(fdb_words.considered(spans((0, 3000), (4000, 4100)))) == 2
    assert len(fdb_words.considered(spans((0, 100), (1000, 4001), (5000, 5100)))) == 1


def test_distance_of_times_by_hand() -> None:
    # A turn of 600 ms has 4 bins (600 // 200 + 1). A segment from 250 to 399 fills bin 1 alone.
    turn = Span(at(0), at(600))
    segment = spans((250, 399))
    assert fdb_words.timing_distance(segment, turn, [0, 1, 0, 0]) == pytest.approx(0.0, abs=1e-4)
    # Against bin 2: no shared mass, sqrt(ln 2).
    assert fdb_words.timing_distance(segment, turn, [0, 0, 1, 0]) == pytest.approx(math.sqrt(math.log(2)), abs=1e-4)
    # 250 to 400 fills bins 1 and 2, evenly; against bin 1 alone: M = (3/4, 1/4).
    half = (0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25) + math.log(1 / 0.75)) / 2
    assert fdb_words.timing_distance(spans((250, 400)), turn, [0, 1, 0, 0]) == pytest.approx(math.sqrt(half), abs=1e-4)
    # Two weights (1, 0) stretch to 1/2, 1/3, 1/6, 0; the segment is all in the second bin; M = 1/4, 2/3, 1/12, 0.
    people = 1 / 2 * math.log(2) + 1 / 3 * math.log(1 / 2) + 1 / 6 * math.log(2)
    stretched = math.sqrt((people + math.log(3 / 2)) / 2)
    assert fdb_words.timing_distance(segment, turn, [1, 0]) == pytest.approx(stretched, abs=1e-4)
    assert fdb_words.timing_distance((), turn, [1, 0]) == 1.0


def test_stops_are_overlaps_of_joined_spans() -> None:
    # The user's gap of 600 ms is joined, one of 601 is not; the agent's of 500 is joined, one of 501 is not.
    user = spans((1000, 1400), (2000, 3000), (3601, 4000))
    agent = spans((0, 1200), (1700, 2200), (2701, 3950))
    assert ms(fdb_spans.stops(user, agent)) == [(1000, 2200), (2701, 3000), (3601, 3950)]


def test_responses_go_to_the_next_later_start() -> None:
    user = spans((0, 1000), (2000, 3000), (5000, 6000), (9000, 9500))
    agent = spans((1000, 1100), (4000, 4500), (6000.001, 7000))
    # 1000 does not start after 1000; the two user spans before 4000 share it, and the later one has it.
    assert ms(fdb_spans.responses(user, agent)) == [(3000, 4000), (6000, 6000.001)]


def conversation(user: tuple[UserSpan, ...], agent: tuple[Span, ...], end_ms: float = 20_000) -> Conversation:
    return Conversation(user=user, agent=agent, begin_ns=at(0), end_ns=at(end_ms))


def turn(start_ms: float, end_ms: float, **more: Any) -> UserSpan:
    return UserSpan(at(start_ms), at(end_ms), **more)


def material(conversation_: Conversation, said: tuple[Word, ...] | None, **more: Any) -> Material:
    user = tuple(Span(s.start_ns, s.end_ns) for s in conversation_.user)
    voices = Voices(user=user, agent=conversation_.agent, origin_ns=at(0), detector="by hand")
    given = {} if said is None else {"words": Words(words=said, asr="some recogniser")}
    return Material(conversation=conversation_, voices=voices, name="s", **{**given, **more})


def test_the_preset_on_a_recording_of_four_turns() -> None:
    made = conversation(
        (
            turn(0, 1000, event="q0"),
            turn(4000, 5000, event="stop", expect="stop"),
            turn(8000, 9000, event="mm", kind="backchannel"),
            turn(10_000, 12_000, event="p", category="pause inside a turn"),
            turn(16_000, 17_000, event="aside", expect="stay_silent"),
        ),
        spans((1500, 4300), (5600, 7000), (10_500, 10_900), (12_400, 14_000)),
    )
    said = words(
        (1400, 2000), (2100, 3900), (4100, 4290), (5650, 6000), (6100, 6900), (10_550, 10_800), (12_350, 13_900)
    )
    found = fdb.PRESET.measure(material(made, said))
    # q0: first word 400 ms after its end. p: 10 550 lies before its end at 12 000: clamped to 0. Mean 0.2 s.
    assert (found.figures["v1_turn_tor"], found.n["v1_turn_tor"]) == (1.0, 2)
    assert found.figures["v1_turn_latency_s"] == pytest.approx(0.2)
    # The interruption's answer begins after its end: 5650 - 5000; the words of the answer it cut do not count.
    assert found.figures["v1_interrupt_tor"] == 1.0
    assert found.figures["v1_interrupt_latency_s"] == pytest.approx(0.65)
    # In the pause: one word of 250 ms is no turn.
    assert (found.figures["v1_pause_tor"], found.n["v1_pause_tor"]) == (0.0, 1)
    # Segments that start inside turns: one of 400 ms with one word, in the 2 s of p; the other two turns have none.
    assert (found.figures["v1_backchannel_tor"], found.n["v1_backchannel_tor"]) == (0.0, 3)
    assert found.figures["v1_backchannel_per_s"] == pytest.approx((0 + 0 + 0.5) / 3)
    assert found.figures["v1_backchannel_jsd"] == fdb.NO_DISTRIBUTION
    # v1.5: 4000-4300 and 10 500-10 900; responses 1000-1500, 5000-5600, 9000-10 500, 12 000-12 400.
    assert found.figures["v15_stop_s"] == pytest.approx((0.3 + 0.4) / 2)
    assert found.figures["v15_response_s"] == pytest.approx((0.5 + 0.6 + 1.5 + 0.4) / 4)
    assert found.notes == ("words: some recogniser", "segments: by hand")
    stop = next(value for value in found.values if value.figure == "v1_interrupt_latency_s")
    assert (stop.event, stop.at_ns, stop.session) == ("stop", at(5000), "s")


def test_a_turn_that_is_not_taken_has_no_latency() -> None:
    made = conversation((turn(0, 1000),), spans((1500, 1900)))
    found = fdb.PRESET.measure(material(made, words((1500, 1800))))
    assert found.figures["v1_turn_tor"] == 0.0
    assert found.figures["v1_turn_latency_s"] == Unscored(reason="the turn was not taken")


def test_a_short_silence_inside_the_agents_answer_is_no_end_of_it() -> None:
    agent = spans((0, 2000), (2500, 4000))
    found = fdb.PRESET.measure(material(conversation((turn(2200, 3000),), agent), words((3500, 4600))))
    assert (found.n["v1_interrupt_tor"], found.n["v1_turn_tor"]) == (1, 0)


def test_without_words_the_figures_say_why_and_the_others_stand() -> None:
    made = conversation((turn(0, 1000),), spans((1500, 4300)))
    found = fdb.PRESET.measure(material(made, None, backchannels=[1.0, 1.0]))
    assert found.figures["v1_turn_tor"] == Unscored(reason="no words: the agent was not transcribed")
    assert found.figures["v1_backchannel_tor"] == found.figures["v1_turn_tor"]
    assert found.figures["v1_backchannel_jsd"] == 1.0
    assert found.figures["v15_response_s"] == 0.5
    bare = fdb.PRESET.measure(Material(name="x"))
    assert bare.figures["v1_turn_tor"] == Unscored(reason="the session has no conversation")
    assert isinstance(bare.figures["v15_stop_s"], Unscored)


def test_intervals_without_audio_stand_in_for_silero_and_say_so() -> None:
    made = conversation((turn(0, 1000), turn(1100, 1300, kind="noise")), spans((1500, 4300)))
    found = fdb.PRESET.measure(Material(conversation=made))
    assert found.figures["v15_response_s"] == 0.5
    assert found.notes == ("segments: spans of the conversation",)
