"""Barge-in: stop as heard and on the wire, yield, talk-over and overlap."""

from __future__ import annotations

import pytest

from tests.scoring.duplex.conversations import row, said, span, uttered

pytestmark = pytest.mark.unit


def test_stop_is_from_the_onset_to_the_end_of_the_agent() -> None:
    found = row([said(2000, 3500)], [(500, 2640), (4000, 6000)])
    assert (found["stop_ms"], found["yielded"]) == (640.0, True)
    assert found["talk_over_ms"] == found["overlap_ms"] == 640.0


def test_overlap_counts_whatever_the_agent_says_and_talk_over_only_what_it_goes_on_with() -> None:
    found = row([said(2000, 5000)], [(500, 2300), (4000, 4500)])
    assert (found["talk_over_ms"], found["overlap_ms"]) == (300.0, 800.0)
    assert found["agent_backchannels"] == 1


def test_talk_over_ends_with_the_user_and_the_users_silence_is_no_yield() -> None:
    found = row([said(2000, 2500)], [(500, 4100)])
    assert found["talk_over_ms"] == 500.0
    assert (found["stop_ms"], found["yielded"]) == (2100.0, False)


@pytest.mark.parametrize(("stop_ms", "yielded"), [(4000, True), (4000.001, False)])
def test_a_yield_has_two_seconds(stop_ms: float, yielded: bool) -> None:
    assert row([said(2000, 3000)], [(500, stop_ms)])["yielded"] is yielded


def test_short_pauses_do_not_end_what_the_agent_says() -> None:
    found = row([said(2000, 3500)], [(500, 2100), (2699, 4400)])
    assert (found["stop_ms"], found["talk_over_ms"]) == (2400.0, 100.0 + 801.0)
    found = row([said(2000, 3500)], [(500, 2100), (2700, 4400)])
    assert (found["stop_ms"], found["talk_over_ms"]) == (100.0, 100.0)


def test_in_a_stall_the_agent_still_holds_the_floor() -> None:
    # Heard 500-1000, dry until 3000, heard 3000-4000: one utterance, as the session tells.
    found = row([said(2000, 3500)], [(500, 1000), (3000, 4000)], utterances=(uttered(500, 4000, True),))
    assert (found["stop_ms"], found["talk_over_ms"]) == (2000.0, 500.0)
    assert found["reasons"]["yielded"] == "the answer ended by itself"


@pytest.mark.parametrize(("start_ms", "stop"), [(2000, 900.0), (2000.001, None)])
def test_at_the_first_sample(start_ms: float, stop: float | None) -> None:
    assert row([said(2000, 2500)], [(start_ms, 2900)])["stop_ms"] == stop


@pytest.mark.parametrize(("end_ms", "stop"), [(2000.001, 0.001), (2000, None), (1500, None)])
def test_at_the_last_sample_and_after_the_natural_end(end_ms: float, stop: float | None) -> None:
    found = row([said(2000, 2500)], [(500, end_ms)])
    assert found["stop_ms"] == stop
    if stop is None:
        assert found["reasons"]["stop_ms"] == "the agent was not heard at the onset"
        assert found["yielded"] is found["talk_over_ms"] is None


@pytest.mark.parametrize(("natural", "yielded"), [(True, None), (False, True), (None, True)])
def test_an_answer_that_ended_by_itself_is_no_yield(natural: bool | None, yielded: bool | None) -> None:
    found = row([said(2000, 3000)], [(500, 2400)], utterances=(uttered(500, 2400, natural),))
    assert (found["stop_ms"], found["yielded"]) == (400.0, yielded)


def test_an_agent_that_speaks_to_the_end_of_listening_is_censored() -> None:
    found = row([said(2000, 2500)], [(500, 3000)], end_ms=3000)
    assert found["stop_ms"] is None
    assert found["yielded"] is None
    assert found["censored"]["stop_ms"] == 1000.0
    assert found["censored"]["yielded"] is None
    assert found["talk_over_ms"] == 500.0


def test_an_agent_that_outlasted_the_yield_window_did_not_yield_even_if_its_end_is_unknown() -> None:
    found = row([said(2000, 2500)], [(500, 4500)], end_ms=4500)
    assert (found["stop_ms"], found["yielded"]) == (None, False)


def test_overlap_with_a_user_who_was_cut_is_censored() -> None:
    found = row([said(2000, 3000)], [(500, 2400)], end_ms=3000)
    assert found["overlap_ms"] is None
    assert found["censored"]["overlap_ms"] == 400.0


def test_the_wire_stops_with_the_last_packet_of_what_began_before_the_onset() -> None:
    wire = (span(400, 2250), span(2900, 5000))
    found = row([said(2000, 2500)], [(500, 2400), (3000, 6000)], wire=wire)
    assert (found["stop_ms"], found["wire_stop_ms"]) == (400.0, 250.0)
    found = row([said(2000, 2500)], [(500, 2400)], wire=(span(400, 1900),))
    assert found["reasons"]["wire_stop_ms"] == "no audio packet arrived after the interruption"
    assert row([said(2000, 2500)], [(500, 2400)])["wire_stop_ms"] is None


def test_what_claims_no_floor_interrupts_nothing() -> None:
    found = row([said(2000, 2500, "keep_talking", "backchannel")], [(500, 2400)])
    assert found["stop_ms"] is found["yielded"] is found["talk_over_ms"] is None
    assert found["overlap_ms"] == 400.0
