"""Chat completions with audio as a server speaks them: one request read, its answer as SSE chunks or as a whole.

Sans-IO. Bodies are HTTP/1.1: a streamed answer is chunk-encoded, so that it can be written to the connection as it is.
Source: protocol sheet, section 12.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal

import msgspec

from connectors.codecs.openai_requests import AppendInput, CommitInput, Invalid, Request, ResponseCreate
from connectors.codecs.openai_session import dig
from connectors.codecs.pcm_stream import usable_rate
from connectors.codecs.server import ServerEvents, ServerSession, Status
from connectors.codecs.wav import wav_header
from harness.core.audio import PCM16_BYTES

Dialect = Literal["openai", "dashscope", "vllm-omni"]
LEAST_AUDIO_MS = 100
"""The agent takes no turn of less."""
LAST_CHUNK = b"0\r\n\r\n"
"""Ends a chunk-encoded body."""
DONE = b"data: [DONE]\n\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
FAR_OFF = 2_000_000_000
"""`expires_at` of an answer's audio: seconds since 1970."""
_encode = msgspec.json.Encoder().encode


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks for. audio: the last user message's, as it came (WAV, or PCM16 at 24 kHz); turn: number of the
    user's messages, from 1."""

    model: str
    dialect: Dialect
    format: str
    stream: bool
    usage: bool
    audio: bytes
    rate_hz: int
    turn: int


def read_chat_request(body: bytes) -> ChatRequest | Invalid:
    """A request's body, or the error that it deserves (its code and message)."""
    try:
        asked = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        return Invalid(code="invalid_json", message=f"the body is no JSON object: {exc}")
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        return Invalid(code="missing_required_parameter", message="Missing required parameter: 'messages'.")
    said = [message for message in messages if dig(message, "role") == "user"]
    if not said:
        return Invalid(code="invalid_value", message="no message with the role user")
    data = _input_audio(said[-1])
    inline = data.startswith("data:")
    try:
        audio = base64.b64decode(data.partition(",")[2] if inline else data, validate=True)
    except (binascii.Error, ValueError):
        return Invalid(code="invalid_value", message="input_audio.data is no base64")
    stream = asked.get("stream") is True
    wanted = dig(asked, "audio", "format")
    form = wanted if isinstance(wanted, str) else "wav"
    if form not in ("wav", "pcm", "pcm16"):
        return Invalid(code="unsupported_value", message=f"audio.format {form!r}: this server has wav, pcm and pcm16")
    model = asked.get("model")
    return ChatRequest(
        model=model if isinstance(model, str) else "firstpacket-agent",
        dialect=_dialect(form, stream=stream, inline=inline),
        format=form,
        stream=stream,
        usage=dig(asked, "stream_options", "include_usage") is True or not stream,
        audio=audio,
        rate_hz=_wav_rate_hz(audio) or 24_000,
        turn=len(said),
    )


def _dialect(form: str, *, stream: bool, inline: bool) -> Dialect:
    """Who is asking: only DashScope wants a data URI; OpenAI streams nothing but pcm16."""
    if inline:
        return "dashscope"
    return "openai" if not stream or form == "pcm16" else "vllm-omni"


def _input_audio(message: Any) -> str:
    content = dig(message, "content")
    for part in content if isinstance(content, list) else []:
        data = dig(part, "input_audio", "data")
        if isinstance(data, str):
            return data
    return ""


def _wav_rate_hz(audio: bytes) -> int:
    if audio[:4] != b"RIFF" or audio[12:16] != b"fmt " or len(audio) < 28:
        return 0
    return usable_rate(int.from_bytes(audio[24:28], "little"))


class ChatServer(ServerSession):
    """One request as a session of one turn."""

    one_turn = True

    def __init__(self, request: ChatRequest, *, late: bool = False) -> None:
        self._request = request
        self.session: dict[str, Any] = {}
        self.input_rate_hz = request.rate_hz
        self.events: ServerEvents = _ChatEvents(request, late=late) if request.stream else _WholeAnswer(request)

    def decode(self, data: bytes, is_text: bool = True) -> list[Request | Invalid]:
        """The request that this session was made for, whatever `data` is."""
        asked: list[Request | Invalid] = [AppendInput(audio=self._request.audio)]
        if len(self._request.audio) >= LEAST_AUDIO_MS * self.input_rate_hz // 1000 * PCM16_BYTES + 44:
            asked.append(CommitInput())
        return [*asked, ResponseCreate()]

    @property
    def detector(self) -> dict[str, Any] | None:
        return None


class _ChatEvents(ServerEvents):
    """The chunks of one answer. late: one more chunk of audio will follow the end, so the body stays open for it."""

    def __init__(self, request: ChatRequest, *, late: bool) -> None:
        self.name = f"chat/{request.dialect}/{request.format}/{request.usage}/{request.turn}/{request.model}"
        self._request = request
        self._late = late
        self._over = False
        self._spoken = request.dialect == "vllm-omni"

    def of_turn(self, turn: int) -> ServerEvents:
        return _ChatEvents(self._request, late=self._late)

    def frame(self, payload: bytes) -> bytes:
        """One chunk of the body; the empty payload ends it."""
        return b"%x\r\n%b\r\n" % (len(payload), payload)

    def response_opened(self, response: str, item: str, previous: str | None) -> list[bytes]:
        opened = [self._chunk({"role": "assistant", "content": "" if self._spoken else None}, "text")]
        if self._request.dialect == "openai":
            opened.append(self._chunk({"audio": {"id": f"audio_{self._request.turn}"}}, "text"))
        return opened

    def transcript_delta(self, response: str, item: str, text: str) -> list[bytes]:
        if self._request.dialect == "openai":
            return [self._chunk({"audio": {"transcript": text}}, "text")]
        return [self._chunk({"content": text}, "text")]

    def audio_delta(self, response: str, item: str, audio: bytes, rate_hz: int = 24_000) -> list[bytes]:
        if not self._spoken:
            chunk = self._chunk({"audio": {"data": base64.b64encode(audio).decode()}}, "audio")
        else:
            if self._request.format == "wav" and audio[:4] != b"RIFF":
                audio = wav_header(rate_hz, len(audio)) + audio
            metadata = {"format": self._request.format, "sample_rate_hz": rate_hz, "channels": 1}
            chunk = self._chunk({"content": base64.b64encode(audio).decode()}, "audio", metadata=metadata)
        return [chunk, b""] if self._over and self._late else [chunk]

    def response_done(
        self,
        response: str,
        status: Status,
        *,
        reason: str | None = None,
        error: dict[str, Any] | None = None,
        usage: dict[str, Any] | None = None,
        output: list[dict[str, Any]] | None = None,
    ) -> list[bytes]:
        self._over = True
        if error is not None:
            return [_event({"error": error}), DONE, b""]
        done: list[bytes] = []
        if self._request.dialect == "openai":
            done.append(self._chunk({"audio": {"expires_at": FAR_OFF}}, "audio"))
        done.append(self._chunk({}, "audio", finish="stop"))
        if usage is not None and self._request.usage:
            done.append(_event(self._body([]) | {"usage": _usage(usage)}))
        return [*done, DONE] if self._late else [*done, DONE, b""]

    def error(self, kind: str, code: str, message: str, *, echo: str | None = None) -> list[bytes]:
        return [_event({"error": {"type": kind, "code": code, "message": message}}), DONE, b""]

    def other(self, name: str, body: dict[str, Any]) -> list[bytes]:
        return [b"event: %b\ndata: %b\n\n" % (name.encode(), _encode(body))]

    def broken(self) -> list[bytes]:
        return [b'data: {"id":"chatcmpl-1","choices":[{"delta":{"audio":{"da\n\n']

    def _chunk(
        self,
        delta: dict[str, Any],
        modality: str,
        *,
        finish: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> bytes:
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish}
        body = self._body([choice])
        if self._spoken:
            body["modality"] = modality
            if metadata is not None:
                choice["audio_metadata"] = metadata
                body["usage"] = {"prompt_tokens": 40, "completion_tokens": 0, "total_tokens": 40}
        return _event(body)

    def _body(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        request = self._request
        body = {"id": f"chatcmpl-{request.turn}", "object": "chat.completion.chunk", "created": 0}
        return body | {"model": request.model, "choices": choices}


class _WholeAnswer(ServerEvents):
    """An answer that is not streamed: one JSON body, ready when a streamed one would have ended."""

    def __init__(self, request: ChatRequest) -> None:
        self.name = f"chat/whole/{request.format}/{request.turn}/{request.model}"
        self._request = request
        self._audio = bytearray()
        self._rate_hz = 24_000
        self._transcript = ""

    def of_turn(self, turn: int) -> ServerEvents:
        return _WholeAnswer(self._request)

    def frame(self, payload: bytes) -> bytes:
        return payload

    def audio_delta(self, response: str, item: str, audio: bytes, rate_hz: int = 24_000) -> list[bytes]:
        self._audio += audio
        self._rate_hz = rate_hz
        return []

    def answer_closed(
        self, response: str, item: str, transcript: str, status: Literal["completed", "incomplete"]
    ) -> list[bytes]:
        self._transcript = transcript
        return []

    def response_done(
        self,
        response: str,
        status: Status,
        *,
        reason: str | None = None,
        error: dict[str, Any] | None = None,
        usage: dict[str, Any] | None = None,
        output: list[dict[str, Any]] | None = None,
    ) -> list[bytes]:
        pcm = bytes(self._audio)
        data = wav_header(self._rate_hz, len(pcm)) + pcm if self._request.format == "wav" else pcm
        audio = {"id": f"audio_{self._request.turn}", "data": base64.b64encode(data).decode(), "expires_at": FAR_OFF}
        message = {"role": "assistant", "content": None, "audio": audio | {"transcript": self._transcript}}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {"id": f"chatcmpl-{self._request.turn}", "object": "chat.completion", "created": 0}
        body |= {"model": self._request.model, "choices": [choice]}
        return [http_answer(200, body | ({"usage": _usage(usage)} if usage else {}))]

    def broken(self) -> list[bytes]:
        return []

    def error(self, kind: str, code: str, message: str, *, echo: str | None = None) -> list[bytes]:
        return [http_error(500 if kind == "server_error" else 400, kind, code, message)]


def http_answer(status: int, body: dict[str, Any], reason: str = "OK", headers: str = "") -> bytes:
    """A whole HTTP answer with a JSON body. headers: lines that end in CRLF."""
    data = _encode(body)
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
    )
    return head.encode() + data


def http_error(status: int, kind: str, code: str, message: str, headers: str = "") -> bytes:
    """A refusal in OpenAI's shape."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    return http_answer(status, {"error": error}, "Error", headers)


def _event(body: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % _encode(body)


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    """The agent's usage under this protocol's names."""
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
        "prompt_tokens_details": {"audio_tokens": usage["input_token_details"]["audio_tokens"]},
        "completion_tokens_details": {"audio_tokens": usage["output_token_details"]["audio_tokens"]},
    }
