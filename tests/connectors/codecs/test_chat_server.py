"""The server's chat-completions codec: who asks, and what each dialect's chunks look like on the wire."""

from __future__ import annotations

import base64
import io
import json
import wave
from typing import Any

import h11
import pytest

from connectors.codecs.chat_completions_server import (
    LAST_CHUNK,
    STREAM_HEAD,
    ChatRequest,
    ChatServer,
    read_chat_request,
)
from connectors.codecs.openai_requests import AppendInput, CommitInput, ResponseCreate
from tests.connectors.codecs.golden_frames import rows

pytestmark = pytest.mark.unit
PCM = bytes([1, 0, 2, 0, 3, 0])


def asked(dialect: str, **changes: Any) -> ChatRequest:
    """A golden request, changed."""
    (body,) = [row["frame"] for row in rows("chat_requests") if row["dialect"] == dialect]
    found = read_chat_request(json.dumps(body | changes).encode())
    assert isinstance(found, ChatRequest)
    return found


def chunks(*payload_lists: list[bytes]) -> list[Any]:
    """The JSON of SSE payloads; `[DONE]` and the end of the body as they are."""
    found: list[Any] = []
    for payload in [each for payloads in payload_lists for each in payloads]:
        text = payload.decode().removeprefix("data: ").removesuffix("\n\n")
        found.append(json.loads(text) if text.startswith("{") else text)
    return found


@pytest.mark.parametrize("dialect", ["openai", "dashscope", "vllm-omni"])
def test_the_golden_requests_tell_their_dialect(dialect: str) -> None:
    request = asked(dialect)
    assert (request.dialect, request.stream, request.usage, request.turn) == (dialect, True, True, 1)
    assert request.rate_hz == (24_000 if dialect == "openai" else 16_000)
    with wave.open(io.BytesIO(request.audio)) as file:
        assert file.readframes(9) == PCM


def test_a_request_is_a_turn_of_its_own() -> None:
    request = asked("openai")
    long = ChatRequest(
        **{field: getattr(request, field) for field in request.__struct_fields__} | {"audio": bytes(9600)}
    )
    assert [type(each) for each in ChatServer(long).decode(b"")] == [AppendInput, CommitInput, ResponseCreate]
    assert [type(each) for each in ChatServer(request).decode(b"")] == [AppendInput, ResponseCreate]


def test_openai_chunks() -> None:
    events = ChatServer(asked("openai")).events
    (role, ident) = chunks(events.response_opened("r", "i", None))
    assert role["object"] == "chat.completion.chunk"
    assert role["choices"] == [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}]
    assert ident["choices"][0]["delta"] == {"audio": {"id": "audio_1"}}
    (text, audio) = chunks(events.transcript_delta("r", "i", "Noon."), events.audio_delta("r", "i", PCM))
    assert text["choices"][0]["delta"] == {"audio": {"transcript": "Noon."}}
    assert audio["choices"][0]["delta"] == {"audio": {"data": "AQACAAMA"}}
    assert "modality" not in audio


def test_dashscope_chunks() -> None:
    events = ChatServer(asked("dashscope")).events
    (text, audio) = chunks(events.transcript_delta("r", "i", "十二点"), events.audio_delta("r", "i", PCM))
    assert text["choices"][0]["delta"] == {"content": "十二点"}
    assert audio["choices"][0]["delta"] == {"audio": {"data": "AQACAAMA"}}  # no RIFF although wav was asked for


def test_vllm_omni_chunks() -> None:
    events = ChatServer(asked("vllm-omni")).events
    (text, audio) = chunks(events.transcript_delta("r", "i", "Noon."), events.audio_delta("r", "i", PCM, 16_000))
    assert (text["modality"], text["choices"][0]["delta"]) == ("text", {"content": "Noon."})
    assert audio["modality"] == "audio"
    assert audio["usage"]["completion_tokens"] == 0
    assert audio["choices"][0]["audio_metadata"] == {"format": "wav", "sample_rate_hz": 16_000, "channels": 1}
    with wave.open(io.BytesIO(base64.b64decode(audio["choices"][0]["delta"]["content"]))) as file:
        assert (file.getframerate(), file.readframes(9)) == (16_000, PCM)
    raw = ChatServer(asked("vllm-omni", audio={"format": "pcm"})).events
    (audio,) = chunks(raw.audio_delta("r", "i", PCM))
    assert audio["choices"][0]["delta"]["content"] == "AQACAAMA"


def test_the_end_of_a_stream() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    usage |= {"input_token_details": {"audio_tokens": 1}, "output_token_details": {"audio_tokens": 2}}  # type: ignore[dict-item]
    for dialect in ("openai", "dashscope", "vllm-omni"):
        found = chunks(ChatServer(asked(dialect)).events.response_done("r", "completed", usage=usage))
        finish, total, done, end = found[-4:]
        assert finish["choices"][0]["finish_reason"] == "stop"
        assert (total["choices"], total["usage"]["total_tokens"]) == ([], 3)
        assert (done, end) == ("[DONE]", "")
    silent = asked("openai", stream_options=None)
    found = chunks(ChatServer(silent).events.response_done("r", "completed", usage=usage))
    assert not any("usage" in chunk for chunk in found if isinstance(chunk, dict))


def test_a_late_delta_keeps_the_body_open_for_itself() -> None:
    events = ChatServer(asked("openai"), late=True).events.of_turn(1)
    assert events.audio_delta("r", "i", PCM)[-1] != b""
    assert events.response_done("r", "completed")[-1] == b"data: [DONE]\n\n"
    assert events.audio_delta("r", "i", PCM)[-1] == b""


def test_frames_are_chunked_as_another_parser_reads_them() -> None:
    events = ChatServer(asked("openai")).events
    payloads = [*events.audio_delta("r", "i", PCM), *events.response_done("r", "completed")]
    frames = [events.frame(payload) for payload in payloads]
    assert frames[-1] == LAST_CHUNK
    client = h11.Connection(our_role=h11.CLIENT)
    client.send(h11.Request(method="POST", target="/", headers=[("host", "h"), ("content-length", "0")]))
    client.send(h11.EndOfMessage())
    client.receive_data(STREAM_HEAD + b"".join(frames))
    assert isinstance(client.next_event(), h11.Response)
    body = b""
    while isinstance(event := client.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert body == b"".join(payloads)


def test_a_whole_answer() -> None:
    server = ChatServer(asked("openai", stream=False, audio={"format": "wav"}))
    events = server.events.of_turn(1)
    assert events.audio_delta("r", "i", PCM, 16_000) == []
    events.answer_closed("r", "i", "Noon.", "completed")
    (answer,) = events.response_done("r", "completed")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    message = json.loads(body)["choices"][0]["message"]
    assert message["audio"]["transcript"] == "Noon."
    with wave.open(io.BytesIO(base64.b64decode(message["audio"]["data"]))) as file:
        assert (file.getframerate(), file.readframes(9)) == (16_000, PCM)
