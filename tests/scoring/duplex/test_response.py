"""Response latency, floor transfer offsets, missed responses; every figure worked out on paper."""

from __future__ import annotations

import pytest

from tests.scoring.duplex.conversations import row, rows, said

pytestmark = pytest.mark.unit


def test_latency_is_from_the_end_of_the_user_to_the_start_of_the_agent() -> None:
    found = row([said(1000, 3000)], [(3412.5, 6000)])
    assert found["response_latency_ms"] == found["fto_ms"] == 412.5
    assert found["missed_response"] is False
    assert found["post_interruption_latency_ms"] is None


def test_an_agent_that_comes_early_has_a_negative_latency() -> None:
    found = row([said(1000, 3000)], [(2700, 6000)])
    assert found["response_latency_ms"] == -300.0
    assert found["agent_interruptions"] == 1


@pytest.mark.parametrize(("start_ms", "count"), [(2899, 1), (2900, 0), (2950, 0)])
def test_the_last_100_ms_of_the_user_are_no_interruption(start_ms: float, count: int) -> None:
    found = row([said(1000, 3000)], [(start_ms, 6000)])
    assert (found["agent_interruptions"], found["false_start"]) == (count, bool(count))
    assert found["fto_ms"] == start_ms - 3000


def test_what_ends_inside_the_users_speech_is_no_answer() -> None:
    found = row([said(1000, 6000)], [(2000, 4000), (6500, 8000)])
    assert found["fto_ms"] == 500.0
    assert found["agent_interruptions"] == 1


def test_a_backchannel_that_outlasts_the_user_is_no_answer() -> None:
    found = row([said(1000, 3000)], [(2700, 3100), (4000, 6000)])
    assert (found["fto_ms"], found["agent_backchannels"]) == (1000.0, 1)


def test_a_short_answer_after_the_user_is_an_answer() -> None:
    assert row([said(1000, 3000)], [(3500, 3700)])["fto_ms"] == 500.0


def test_the_answer_belongs_to_the_last_claim_before_it() -> None:
    first, second = rows([said(1000, 3000), said(3300, 5000)], [(5600, 7000)])
    assert second["fto_ms"] == 600.0
    assert first["fto_ms"] is None
    assert first["reasons"]["missed_response"] == "the user spoke on before an answer was due"


def test_a_noise_between_turn_and_answer_does_not_take_the_answer() -> None:
    first, second = rows([said(1000, 3000), said(3200, 3400, "stay_silent", "noise")], [(4000, 6000)])
    assert first["fto_ms"] == 1000.0
    assert second["false_start"] is False


@pytest.mark.parametrize(("end_ms", "missed"), [(8000, True), (7999, None)])
def test_no_answer_is_missed_or_censored(end_ms: float, missed: bool | None) -> None:
    found = row([said(1000, 3000)], [], end_ms=end_ms)
    assert found["missed_response"] is missed
    assert found["fto_ms"] is None
    if missed is None:
        assert found["censored"] == {"response_latency_ms": 4999.0, "fto_ms": 4999.0, "missed_response": None}
    else:
        assert "fto_ms" not in found["censored"]


def test_an_answer_after_the_miss_bound_is_late_but_there() -> None:
    found = row([said(1000, 3000)], [(9000, 10_000)])
    assert (found["fto_ms"], found["missed_response"]) == (6000.0, False)


def test_a_user_whom_the_end_of_listening_cut_gives_no_figure() -> None:
    found = row([said(1000, 3000)], [], end_ms=3000)
    assert found["missed_response"] is None
    assert "missed_response" in found["censored"]


def test_a_stop_needs_no_answer() -> None:
    found = row([said(2000, 3000, "stop")], [(0, 2300)])
    assert found["missed_response"] is None
    assert found["reasons"]["missed_response"] == "the event demands no answer"
    assert found["yielded"] is True


def test_the_answer_after_an_interruption_is_a_column_of_its_own() -> None:
    found = row([said(2000, 3000)], [(0, 2300), (3700, 5000)])
    assert found["post_interruption_latency_ms"] == found["fto_ms"] == 700.0
    assert found["response_latency_ms"] is None


def test_an_unknown_expectation_follows_from_the_kind() -> None:
    user = [
        said(1000, 3000, ""),
        said(4000, 4200, "", "backchannel"),
        said(8000, 8400, "", "noise"),
    ]
    found = rows(user, [(3500, 6000)])
    assert [each["demand"] for each in found] == ["respond", "keep_talking", "stay_silent"]
