"""The server's codec against the same hand-written frames: it reads the client's and writes the server's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from connectors.codecs.openai_names import Dialect
from connectors.codecs.openai_realtime_server import OpenAIEvents, OpenAIRealtimeServer
from connectors.codecs.openai_requests import AppendInput, Invalid, Request, SessionUpdate
from tests.connectors.codecs.golden_frames import mutated, rows

pytestmark = pytest.mark.unit
DIALECTS: tuple[Dialect, ...] = ("ga", "beta")
CLIENT = [pytest.param(d, row, id=f"{d}: {row['kind']}") for d in DIALECTS for row in rows(f"client_{d}")]
PCM = b"\x01\x00\xff\xff"
ANSWER = ("resp_1", "item_a1")

Make = Callable[[OpenAIEvents], list[bytes] | bytes]
MADE: dict[tuple[Dialect, str], Make] = {
    ("ga", "input_audio_buffer.speech_started"): lambda e: e.speech_started("item_u1", 640),
    ("ga", "input_audio_buffer.speech_stopped"): lambda e: e.speech_stopped("item_u1", 2816),
    ("ga", "input_audio_buffer.committed"): lambda e: e.committed("item_u1", None),
    ("ga", "input_audio_buffer.cleared"): lambda e: e.cleared(),
    ("ga", "conversation.item.added"): lambda e: e.item(e.user_item("item_u1"), None)[0],
    ("ga", "conversation.item.truncated"): lambda e: e.item_truncated("item_a1", 0, 1200),
    ("ga", "conversation.item.deleted"): lambda e: e.item_deleted("item_a1"),
    ("ga", "conversation.item.retrieved"): lambda e: e.item_retrieved(
        {"id": "item_a1", "type": "message", "role": "user", "content": []}
    ),
    ("ga", "conversation.item.input_audio_transcription.delta"): lambda e: e.user_transcript("item_u1", "What is ")[0],
    ("ga", "conversation.item.input_audio_transcription.completed"): lambda e: e.user_transcript(
        "item_u1", "What is the time?"
    )[1],
    ("ga", "response.output_item.added"): lambda e: e.response_opened(*ANSWER, None)[1],
    ("ga", "response.content_part.added"): lambda e: e.response_opened(*ANSWER, None)[3],
    ("ga", "response.output_audio_transcript.delta"): lambda e: e.transcript_delta(*ANSWER, "It is"),
    ("ga", "response.output_text.delta"): lambda e: e.text_delta(*ANSWER, "十二点"),
    ("ga", "response.output_audio.delta without samples"): lambda e: e.audio_delta(*ANSWER, b""),
    ("ga", "response.output_audio.done"): lambda e: e.answer_closed(*ANSWER, "It is noon.", "completed")[0],
    ("ga", "response.output_audio_transcript.done"): lambda e: e.answer_closed(*ANSWER, "It is noon.", "completed")[1],
    ("ga", "response.content_part.done"): lambda e: e.answer_closed(*ANSWER, "It is noon.", "completed")[2],
    ("ga", "response.output_item.done"): lambda e: e.answer_closed(*ANSWER, "It is noon.", "completed")[3],
    ("ga", "response.done completed"): lambda e: e.response_done(
        "resp_1", "completed", usage={"total_tokens": 30, "input_tokens": 10, "output_tokens": 20}
    ),
    ("ga", "response.done interrupted"): lambda e: e.response_done("resp_1", "cancelled", reason="turn_detected"),
    ("ga", "response.done failed"): lambda e: e.response_done(
        "resp_1", "failed", error={"type": "tokens", "code": "rate_limit_exceeded", "message": "slow down"}
    ),
    ("ga", "rate_limits.updated"): lambda e: e.rate_limits(999),
    ("ga", "error"): lambda e: e.error(
        "invalid_request_error", "response_cancel_not_active", "no active response", echo="fp_7"
    ),
    ("beta", "conversation.item.created"): lambda e: e.item(e.user_item("item_u1"), None)[0],
    ("beta", "response.text.delta"): lambda e: e.text_delta(*ANSWER, "noon"),
    ("beta", "response.audio_transcript.delta"): lambda e: e.transcript_delta(*ANSWER, " noon"),
    ("beta", "response.audio.delta"): lambda e: e.audio_delta(*ANSWER, PCM),
    ("beta", "response.audio.done"): lambda e: e.answer_closed(*ANSWER, "noon", "completed")[0],
    ("beta", "response.audio_transcript.done"): lambda e: e.answer_closed(*ANSWER, "noon", "completed")[1],
    ("beta", "response.output_item.done"): lambda e: e.answer_closed(*ANSWER, "noon", "completed")[3],
    ("beta", "response.done completed"): lambda e: e.response_done("resp_1", "completed"),
}


def read(data: str | bytes, dialect: Dialect = "ga") -> Request | Invalid:
    (request,) = OpenAIRealtimeServer(dialect).decode(data)
    return request


def golden(dialect: Dialect, kind: str) -> dict[str, Any]:
    return next(row for row in rows(f"server_{dialect}") if row["kind"] == kind)


@pytest.mark.parametrize(("dialect", "kind"), [pytest.param(*key, id=": ".join(key)) for key in MADE])
def test_server_event_is_the_golden_frame(dialect: Dialect, kind: str) -> None:
    row = golden(dialect, kind)
    frames = MADE[dialect, kind](OpenAIEvents(dialect))
    made = json.loads(frames[0] if isinstance(frames, list) else frames)
    assert made.pop("event_id").startswith("event_")
    row["frame"].pop("event_id")
    assert made == row["frame"]
    assert made != mutated(row)


def expected(row: dict[str, Any]) -> dict[str, Any]:
    """The request that a golden client frame means, as its JSON: the frame, with what it leaves out filled in."""
    filled = {"response": None} if row["frame"]["type"] == "response.create" else {}
    filled |= {"response_id": None} if row["frame"]["type"] == "response.cancel" else {}
    filled |= {"previous_item_id": None} if row["frame"]["type"] == "conversation.item.create" else {}
    return filled | row["frame"]


@pytest.mark.parametrize(("dialect", "row"), CLIENT)
def test_client_frame_is_read(dialect: Dialect, row: dict[str, Any]) -> None:
    request = read(json.dumps(row["frame"]), dialect)
    assert isinstance(request, Request)
    assert json.loads(msgspec.json.encode(request)) == expected(row)


@pytest.mark.parametrize(("dialect", "row"), CLIENT)
def test_mutated_client_frame_is_noticed(dialect: Dialect, row: dict[str, Any]) -> None:
    request = read(json.dumps(mutated(row)), dialect)
    assert isinstance(request, Invalid) or json.loads(msgspec.json.encode(request)) != expected(row)


def test_audio_comes_out_as_bytes() -> None:
    request = read(b'{"type":"input_audio_buffer.append","audio":"AQD//w=="}')
    assert request == AppendInput(audio=PCM)


@pytest.mark.parametrize(
    ("data", "code", "echo"),
    [
        ('{"type":"response.sing","event_id":"e9"}', "invalid_value", "e9"),
        ('{"type":"conversation.item.truncate","event_id":"e9"}', "invalid_value", "e9"),
        ('{"type":"input_audio_buffer.append","audio":"AQ"}', "invalid_value", None),
        ('{"type":"input_audio_buffer.append","audio":', "invalid_json", None),
        ("[]", "invalid_value", None),
        ("{}", "invalid_value", None),
        (b"\xff\xfe", "invalid_json", None),
    ],
)
def test_what_cannot_be_done_is_answered(data: str | bytes, code: str, echo: str | None) -> None:
    found = read(data)
    assert isinstance(found, Invalid)
    assert (found.code, found.event_id) == (code, echo)
    assert "\n" not in found.message


@pytest.mark.parametrize("dialect", DIALECTS)
def test_settings_are_laid_over_the_old_ones(dialect: Dialect) -> None:
    server = OpenAIRealtimeServer(dialect, output_rate_hz=16_000)
    assert server.detector is not None
    assert server.transcription is None
    frames = {row["kind"]: row["frame"] for row in rows(f"client_{dialect}")}
    (manual,) = server.decode(json.dumps(frames["session.update, manual turns"]))
    assert isinstance(manual, SessionUpdate)
    assert server.update(manual) is None
    assert server.detector is None
    assert server.transcription is not None
    assert server.session["id"] == "sess_1"
    (vad,) = server.decode(json.dumps(frames["session.update, server VAD"]))
    assert isinstance(vad, SessionUpdate)
    assert server.update(vad) is None
    assert server.detector is not None
    assert server.detector["type"] == "server_vad"
    assert server.session["instructions"] == "Be brief."
    if dialect == "ga":
        assert server.session["audio"]["output"]["format"]["rate"] == 16_000


@pytest.mark.parametrize(
    ("dialect", "session"),
    [
        ("ga", {"output_modalities": ["audio", "text"]}),
        ("ga", {"audio": {"input": {"format": {"type": "audio/pcmu"}}}}),
        ("ga", {"audio": {"input": {"format": {"rate": "fast"}}}}),
        ("ga", {"audio": {"input": {"turn_detection": {"type": "telepathy"}}}}),
        ("beta", {"output_audio_format": "g711_alaw"}),
        ("beta", {"turn_detection": {"type": "none"}}),
    ],
)
def test_a_refused_update_changes_nothing(dialect: Dialect, session: dict[str, Any]) -> None:
    server = OpenAIRealtimeServer(dialect)
    before = server.session
    refused = server.update(SessionUpdate(session=session, event_id="e1"))
    assert refused is not None
    assert refused.event_id == "e1"
    assert server.session == before
