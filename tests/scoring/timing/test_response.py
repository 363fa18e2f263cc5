"""Which output belongs to which response, with and without ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.events import Interrupted
from scoring.timing.response import Response, responses_of
from tests.scoring.timing.recordings import Script, tone

pytestmark = pytest.mark.unit


def found(tmp_path: Path, script: Script) -> list[Response]:
    return responses_of(script.write(tmp_path))


def counts(responses: list[Response]) -> list[tuple[int, int]]:
    return [(len(response.packets), len(response.late)) for response in responses]


def test_interleaved_ids(tmp_path: Path):
    script = Script().begin(1, "a").begin(2, "b").audio(3, tone(20), "a").audio(4, tone(20), "b")
    script.audio(5, tone(20), "a").done(6, "a").done(7, "b")
    responses = found(tmp_path, script)
    assert [r.id for r in responses] == ["a", "b"]
    assert counts(responses) == [(2, 0), (1, 0)]
    assert all(r.completed for r in responses)


def test_output_opens_a_response_that_was_not_announced(tmp_path: Path):
    (response,) = found(tmp_path, Script().text(5, "x", "a").audio(6, tone(20), "a"))
    assert response.start.t_ns == Script().at(5)
    assert response.open


def test_announced_twice_is_one(tmp_path: Path):
    assert len(found(tmp_path, Script().begin(1, "a").begin(2, "a"))) == 1


def test_without_ids_a_new_start_is_a_new_response(tmp_path: Path):
    script = Script().begin(1, "").audio(2, tone(20), "").done(3, "").audio(4, tone(20), "")
    script.begin(5, "").audio(6, tone(20), "").done(7, "")
    assert counts(found(tmp_path, script)) == [(1, 1), (1, 0)]


def test_without_ids_and_starts_the_users_side_parts_the_answers(tmp_path: Path):
    script = Script().audio(2, tone(20), "").done(3, "").audio(4, tone(20), "").commit(5)
    assert counts(found(tmp_path, script.audio(6, tone(20), "").done(7, ""))) == [(1, 1), (1, 0)]


def test_speech_that_interrupts_does_not_open_a_response_for_late_audio(tmp_path: Path):
    script = Script().audio(2, tone(20), "").heard_start(3).done(4, "", status="cancelled").audio(5, tone(20), "")
    script.heard_stop(6).audio(7, tone(20), "").done(8, "")
    responses = found(tmp_path, script)
    assert counts(responses) == [(1, 1), (1, 0)]
    assert [r.cancelled for r in responses] == [True, False]


def test_our_cancel_closes_the_open_response(tmp_path: Path):
    script = Script().begin(1, "a").audio(2, tone(20), "a").cancel(3).audio(4, tone(20), "a").done(5, "a")
    (response,) = found(tmp_path, script)
    assert (response.cancelled, response.completed) == (True, False)
    assert counts([response]) == [(1, 1)]


def test_a_cancel_names_its_response(tmp_path: Path):
    script = Script().begin(1, "a").begin(2, "b").cancel(3, "a").audio(4, tone(20), "a").audio(5, tone(20), "b")
    assert counts(found(tmp_path, script)) == [(0, 1), (1, 0)]


def test_a_cancel_after_the_end_is_nothing(tmp_path: Path):
    (response,) = found(tmp_path, Script().begin(1, "a").audio(2, tone(20), "a").done(3, "a").cancel(4))
    assert response.completed


def test_the_peers_interruption_closes(tmp_path: Path):
    script = Script().begin(1, "").audio(2, tone(20), "").heard_start(3)
    script.add(Interrupted(t_ns=script.at(4))).audio(5, tone(20), "").done(6, "")
    (response,) = found(tmp_path, script)
    assert (response.cancelled, len(response.late), response.done is not None) == (True, 1, True)


def test_a_packet_without_samples_is_no_packet(tmp_path: Path):
    assert counts(found(tmp_path, Script().begin(1, "a").audio(2, tone(0), "a").audio(3, tone(20), "a"))) == [(1, 0)]


def test_a_header_only_answer_has_no_audio(tmp_path: Path):
    (response,) = found(tmp_path, Script().begin(1, "a").audio(2, tone(0), "a").done(3, "a"))
    assert (response.packets, response.completed) == ([], True)
