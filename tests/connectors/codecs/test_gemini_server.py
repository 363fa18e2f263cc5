"""Gemini Live's server codec against the same hand-written messages: it reads the client's and writes the server's."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs import openai_requests as requests
from connectors.codecs.gemini_live_server import GeminiEvents, GeminiServerSession
from connectors.codecs.openai_requests import AppendInput, Invalid, Request, SessionUpdate
from tests.connectors.codecs.golden_frames import rows

pytestmark = pytest.mark.unit
CLIENT = {row["kind"]: row["frame"] for row in rows("gemini_client")}
SERVER = {row["kind"]: row["frame"] for row in rows("gemini_server")}
MANUAL = {"realtimeInputConfig": {"automaticActivityDetection": {"disabled": True}}}


def read(server: GeminiServerSession, message: Any) -> list[Request | Invalid]:
    return server.decode(json.dumps(message).encode())


def set_up(**setup: Any) -> GeminiServerSession:
    server = GeminiServerSession(session_id="s1")
    (request,) = read(server, {"setup": {"model": "models/m"} | setup})
    assert isinstance(request, SessionUpdate)
    assert server.update(request) is None
    return server


def made(make: Callable[[GeminiEvents], list[bytes]], **setup: Any) -> list[Any]:
    return [json.loads(payload) for payload in make(set_up(**setup).events)]


def test_setup_of_the_client_is_understood() -> None:
    server = GeminiServerSession()
    (request,) = read(server, CLIENT["setup, automatic"])
    assert isinstance(request, SessionUpdate)
    assert server.update(request) is None
    assert server.detector == {"type": "server_vad", "interrupt_response": True, "silence_duration_ms": 800}
    server = GeminiServerSession()
    (request,) = read(server, CLIENT["setup, manual, the user's own keys"])
    assert isinstance(request, SessionUpdate)
    assert server.update(request) is None
    assert server.detector is None


@pytest.mark.parametrize(
    ("kind", "setup", "expected"),
    [
        ("realtimeInput audio", {}, [AppendInput(audio=b"\1\0\xff\xff")]),
        ("activityEnd", MANUAL, [requests.CommitInput(), requests.ResponseCreate()]),
        ("activityStart cancels", MANUAL, [requests.BargeIn()]),
        ("audioStreamEnd", {}, [AppendInput(audio=bytes(48_000))]),
    ],
)
def test_client_message_becomes_requests(kind: str, setup: dict[str, Any], expected: list[Request]) -> None:
    assert read(set_up(**setup), CLIENT[kind]) == expected


def test_history_is_kept_and_a_question_in_text_is_answered() -> None:
    asked = read(set_up(), CLIENT["clientContent of the model"])
    assert [type(request).__name__ for request in asked] == ["BargeIn", "ItemCreate"]
    question = {"clientContent": CLIENT["clientContent of the user"]["clientContent"] | {"turnComplete": True}}
    asked = read(set_up(), question)
    assert [type(request).__name__ for request in asked] == ["BargeIn", "ItemCreate", "ResponseCreate"]


def test_google_clients_spelling_is_read() -> None:
    """Snake case and base64 for URLs, as google-genai writes them."""
    pcm = b"\xfb\xff\xfe\xff"
    sent = {"realtime_input": {"audio": {"data": urlsafe_b64encode(pcm).decode(), "mime_type": "audio/pcm;rate=16000"}}}
    assert read(set_up(), sent) == [AppendInput(audio=pcm)]
    assert read(set_up(**MANUAL), {"realtime_input": {"activity_start": {}}}) == [requests.BargeIn()]


def test_no_interruption_leaves_the_answer_alone() -> None:
    handling = {"activityHandling": "NO_INTERRUPTION"}
    server = set_up(realtimeInputConfig=MANUAL["realtimeInputConfig"] | handling)
    assert read(server, CLIENT["activityStart cancels"]) == []
    server = set_up(realtimeInputConfig=handling)
    assert (server.detector or {})["interrupt_response"] is False


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ({}, CLIENT["setup, automatic"]),
        ({}, {"realtimeInput": {"activityStart": {}}}),
        ({}, CLIENT["activityEnd"]),
        ({}, {"weather": {}}),
        ({}, {"realtimeInput": {"audio": 7}}),
    ],
)
def test_wrong_messages_are_refused(setup: dict[str, Any], message: Any) -> None:
    (refused,) = read(set_up(**setup), message)
    assert isinstance(refused, Invalid)


def test_nothing_may_come_before_the_setup() -> None:
    (refused,) = read(GeminiServerSession(), CLIENT["realtimeInput audio"])
    assert isinstance(refused, Invalid)
    assert "setup" in refused.message


@pytest.mark.parametrize("setup", [{"model": 7}, {"generationConfig": {"responseModalities": ["TEXT"]}}])
def test_a_wrong_setup_changes_nothing(setup: dict[str, Any]) -> None:
    server = GeminiServerSession()
    (request,) = read(server, {"setup": {"model": "models/m"} | setup})
    assert isinstance(request, SessionUpdate)
    assert isinstance(server.update(request), Invalid)
    assert server.session == {}


@pytest.mark.parametrize(
    ("setup", "language"),
    [
        ({"generationConfig": {"speechConfig": {"languageCode": "zh-CN"}}}, "zh-CN"),
        ({"inputAudioTranscription": {"languageCodes": ["de"]}}, "de"),
        ({}, None),
    ],
)
def test_language(setup: dict[str, Any], language: str | None) -> None:
    assert set_up(**setup).language == language


def test_other_input_rates_are_resampled() -> None:
    server, rate_hz = set_up(), 48_000
    tone = (8000 * np.sin(2 * np.pi * 440 * np.arange(rate_hz) / rate_hz)).astype("<i2").tobytes()
    heard = b""
    for at in range(0, len(tone), 1921):  # odd pieces
        blob = {"mimeType": f"audio/pcm;rate={rate_hz}", "data": b64encode(tone[at : at + 1921]).decode()}
        (request,) = read(server, {"realtimeInput": {"audio": blob}})
        assert isinstance(request, AppendInput)
        heard += request.audio
    assert abs(len(heard) // 2 - server.input_rate_hz) < 200


GOLDEN: dict[str, tuple[Callable[[GeminiEvents], list[bytes]], dict[str, Any]]] = {
    "setupComplete": (lambda e: e.session("updated", {}), {}),
    "voiceActivity start": (lambda e: e.speech_started("item_u1", 640), {"explicitVadSignal": True}),
    "voiceActivity end": (lambda e: e.speech_stopped("item_u1", 2816), {"explicitVadSignal": True}),
    "outputTranscription": (lambda e: e.transcript_delta("r", "i", "It is"), {"outputAudioTranscription": {}}),
    "a late packet of the interrupted turn": (lambda e: e.audio_delta("r", "i", b"\6\0"), {}),
    "generationComplete": (lambda e: e.answer_closed("r", "i", "", "completed"), {}),
    "turnComplete after interrupted": (lambda e: e.response_done("r", "completed"), {}),
    "interrupted": (lambda e: e.response_done("r", "cancelled")[:1], {}),
    "goAway": (lambda e: e.go_away(9_500), {}),
    "an unknown message": (lambda e: e.other("weatherReport", {"sun": 1}), {}),
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_event_is_the_golden_message(kind: str) -> None:
    make, setup = GOLDEN[kind]
    (message,) = made(make, **setup)
    message.get("serverContent", {}).get("modelTurn", {}).pop("role", None)
    assert message == SERVER[kind]


def test_an_interrupted_turn_is_complete_without_generation() -> None:
    told = made(lambda e: [*e.answer_closed("r", "i", "", "incomplete"), *e.response_done("r", "cancelled")])
    assert told == [{"serverContent": {"interrupted": True}}, {"serverContent": {"turnComplete": True}}]


def test_what_was_not_asked_for_is_not_told() -> None:
    def everything(events: GeminiEvents) -> list[bytes]:
        texts = [*events.transcript_delta("r", "i", "x"), *events.user_transcript("u", "x")]
        return [*texts, *events.speech_started("u", 1), *events.speech_stopped("u", 1)]

    assert made(everything) == []


def test_plans_with_and_without_transcript_are_told_apart() -> None:
    assert set_up().events.name != set_up(outputAudioTranscription={}).events.name


def test_messages_leave_in_binary_frames() -> None:
    assert set_up().events.frame(b"{}") == b"\x82\x02{}"


@pytest.mark.parametrize(
    ("code", "closing"), [("server_error", 1011), ("rate_limit_exceeded", 1011), ("invalid_argument", 1007)]
)
def test_an_error_is_a_closing_code_with_its_reason(code: str, closing: int) -> None:
    told, reason = set_up().events.error_close(code, "Überlast " * 40)
    assert told == closing
    assert 0 < len(reason.encode()) <= 123
    assert set_up().events.error("x", code, "y") == []


@given(data=st.binary(max_size=60) | st.text(max_size=60))
def test_arbitrary_bytes_never_raise(data: bytes | str) -> None:
    assert set_up().decode(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)


@given(kind=st.sampled_from(list(CLIENT)), data=st.data())
def test_any_field_may_hold_nonsense(kind: str, data: Any) -> None:
    message = json.loads(json.dumps(CLIENT[kind]))
    (key,) = message
    inner = data.draw(st.sampled_from(list(message[key])))
    message[key][inner] = data.draw(JSON)
    server = GeminiServerSession() if key == "setup" else set_up()
    for request in server.decode(json.dumps(message)):
        if isinstance(request, SessionUpdate):
            server.update(request)
            assert server.detector is None or isinstance(server.detector, dict)
            assert server.language is None or isinstance(server.language, str)
            server.events.session("updated", server.session)
