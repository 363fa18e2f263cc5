"""Backchannels, noise and other people: does the agent go on as before, and does it come back?"""

from __future__ import annotations

import pytest

from tests.scoring.duplex.conversations import row, rows, said, uttered

pytestmark = pytest.mark.unit
MHM = said(2000, 2400, "keep_talking", "backchannel")
COUGH = said(2000, 2400, "stay_silent", "noise")


@pytest.mark.parametrize(("end_ms", "kept"), [(3400.001, True), (3400, False), (2100, False)])
def test_the_agent_must_go_on_for_a_second_after_a_backchannel(end_ms: float, kept: bool) -> None:
    found = row([MHM], [(500, end_ms)])
    assert (found["kept_talking"], found["false_stop"]) == (kept, not kept)


def test_noise_has_false_stops_but_no_backchannel_column() -> None:
    found = row([said(2000, 2400, "keep_talking", "noise")], [(500, 2600)])
    assert (found["kept_talking"], found["false_stop"]) == (None, True)


def test_an_answer_that_ends_by_itself_is_no_false_stop() -> None:
    found = row([MHM], [(500, 2600)], utterances=(uttered(500, 2600, True),))
    assert found["false_stop"] is None
    assert found["reasons"]["kept_talking"] == "the answer ended by itself"


def test_a_false_stop_that_listening_did_not_see_is_censored() -> None:
    found = row([MHM], [(500, 3000)], end_ms=3000)
    assert found["kept_talking"] is None
    assert "kept_talking" in found["censored"]
    assert row([MHM], [(500, 3500)], end_ms=3500)["kept_talking"] is True


def test_a_backchannel_into_silence_asks_nothing() -> None:
    found = row([MHM], [(500, 1500)])
    assert found["reasons"]["false_stop"] == "the agent was not heard at the onset"


def test_resumption_counts_from_the_false_stop() -> None:
    found = row([MHM], [(500, 2200), (3300, 6000)])
    assert (found["false_stop"], found["resumed"], found["resume_ms"]) == (True, True, 1100.0)
    assert row([MHM], [(500, 6000)])["resumed"] is None


@pytest.mark.parametrize(("start_ms", "resumed"), [(5200, True), (5200.001, False)])
def test_a_resumption_has_three_seconds(start_ms: float, resumed: bool) -> None:
    found = row([MHM], [(500, 2200), (start_ms, 9000)])
    assert found["resumed"] is resumed
    assert found["resume_ms"] == (3000.0 if resumed else None)


def test_a_resumption_may_be_cut_off_by_the_user_or_by_the_end() -> None:
    found = rows([MHM, said(4000, 5000)], [(500, 2200), (5500, 6000)])[0]
    assert found["reasons"]["resumed"] == "the user claimed the floor before the agent had resumed"
    found = row([MHM], [(500, 2200)], end_ms=5000)
    assert (found["resumed"], found["censored"]["resume_ms"]) == (None, 2800.0)
    assert row([MHM], [(500, 2200)], end_ms=5200)["resumed"] is False


@pytest.mark.parametrize(("start_ms", "false_start"), [(2100, True), (4399, True), (4400, False)])
def test_speaking_to_a_noise_is_a_false_start(start_ms: float, false_start: bool) -> None:
    assert row([COUGH], [(start_ms, 9000)])["false_start"] is false_start


def test_the_next_turn_ends_the_wait_for_a_false_start() -> None:
    found = rows([COUGH, said(3000, 5000)], [(3500, 9000)])
    assert [each["false_start"] for each in found] == [False, True]


def test_silence_that_was_not_seen_to_its_end_is_censored() -> None:
    found = row([COUGH], [], end_ms=4399)
    assert found["false_start"] is None
    assert "false_start" in found["censored"]
    assert row([COUGH], [], end_ms=4400)["false_start"] is False


def test_a_noise_into_speech_says_nothing_of_the_next_sentence() -> None:
    assert row([COUGH], [(500, 2100), (3000, 5000)])["false_start"] is None


def test_a_pause_taken_for_the_end_is_a_false_start() -> None:
    # The user pauses inside the turn; the agent steps in, yields, and answers at the end.
    found = row([said(1000, 6000)], [(3000, 4500), (6400, 9000)])
    assert (found["false_start"], found["agent_interruptions"], found["fto_ms"]) == (True, 1, 400.0)


@pytest.mark.parametrize(("length_ms", "count"), [(1000, 1), (1001, 0)])
def test_agent_backchannels_are_short(length_ms: float, count: int) -> None:
    found = row([said(1000, 6000)], [(2000, 2000 + length_ms), (6400, 9000)])
    assert (found["agent_backchannels"], found["agent_interruptions"]) == (count, 1 - count)


def test_what_was_broken_off_is_no_backchannel() -> None:
    utterances = (uttered(2000, 2400, False), uttered(6400, 9000, True))
    found = row([said(1000, 6000)], [(2000, 2400), (6400, 9000)], utterances=utterances)
    assert (found["agent_backchannels"], found["agent_interruptions"]) == (0, 1)
