"""OpenAI Realtime as a server speaks it: client frames in, typed requests out; one method for each server event.

Sans-IO. What the client sends is read in `openai_requests`; here are the session's settings and the frames to send.
Source: protocol sheet, sections 1.3 to 1.10.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from connectors.codecs.openai_names import NAMES, Dialect
from connectors.codecs.openai_requests import Invalid, Request, SessionUpdate, read_request
from connectors.codecs.openai_session import dig, merge, transcription, turn_detection
from connectors.codecs.server import ServerEvents, ServerSession, Status

DEFAULT_INPUT_RATE_HZ = 24_000
DETECTORS = ("server_vad", "semantic_vad")
_encode = msgspec.json.Encoder().encode


class OpenAIRealtimeServer(ServerSession):
    """One session at the server's side: reads requests and keeps the settings in force.

    input_rate_hz: of the user's audio. output_rate_hz: as declared for the answers (beta has no place to declare it).
    """

    def __init__(
        self,
        dialect: Dialect = "ga",
        *,
        session_id: str = "sess_1",
        model: str = "firstpacket-agent",
        input_rate_hz: int = 24_000,
        output_rate_hz: int = 24_000,
        event_prefix: str = "event_",
    ) -> None:
        self.dialect: Dialect = dialect
        self.events: OpenAIEvents = OpenAIEvents(dialect, event_prefix=event_prefix)
        self.session = _first_session(dialect, session_id, model, input_rate_hz, output_rate_hz)
        self._output_rate_hz = output_rate_hz

    def decode(self, data: str | bytes, is_text: bool = True) -> list[Request | Invalid]:
        return [read_request(data)]

    def update(self, request: SessionUpdate) -> Invalid | None:
        """Lay new settings over the session's; a refused update changes nothing and returns its error."""
        merged = merge(self.session, request.session)
        refusal = self._refusal(merged)
        if refusal is not None:
            return Invalid(code="invalid_value", message=refusal, event_id=request.event_id)
        if self.dialect == "ga":
            # The server's own rate stands, whatever the client asked for: a client must obey the declaration.
            merged = merge(merged, {"audio": {"output": {"format": {"rate": self._output_rate_hz}}}})
        self.session = merged | {"id": self.session["id"], "model": self.session["model"]}
        return None

    @property
    def detector(self) -> dict[str, Any] | None:
        """Settings of the turn detector, or None for manual turns."""
        return turn_detection(self.session)

    @property
    def input_rate_hz(self) -> int:  # type: ignore[override]
        rate = dig(self.session, "audio", "input", "format", "rate")
        return rate if isinstance(rate, int) else DEFAULT_INPUT_RATE_HZ

    @property
    def language(self) -> str | None:
        named = dig(self.transcription, "language")
        return named if isinstance(named, str) else None

    @property
    def transcription(self) -> dict[str, Any] | None:
        """Settings of the user's transcription, or None."""
        return transcription(self.session)

    def _refusal(self, merged: dict[str, Any]) -> str | None:
        detector = turn_detection(merged)
        if detector is not None and detector.get("type") not in DETECTORS:
            return f"turn_detection.type must be one of {', '.join(DETECTORS)} or turn_detection null"
        formats = [dig(merged, "audio", side, "format", "type") for side in ("input", "output")]
        formats += [merged.get("input_audio_format"), merged.get("output_audio_format")]
        if any(form not in (None, "audio/pcm", "pcm16") for form in formats):
            return "this server speaks PCM16 only"
        if self.dialect == "ga" and merged.get("output_modalities") != ["audio"]:
            return 'this server answers with output_modalities ["audio"] only'
        rate = dig(merged, "audio", "input", "format", "rate")
        if rate is not None and (not isinstance(rate, int) or not 8_000 <= rate <= 48_000):
            return "audio.input.format.rate must lie between 8000 and 48000"
        return None


class OpenAIEvents(ServerEvents):
    """Frames of one dialect as JSON bytes; numbers them as they are made.

    Responses and items are named by the caller. Positions of a spoken answer are always output 0, content 0.
    """

    def __init__(self, dialect: Dialect, *, event_prefix: str = "event_") -> None:
        self.name = f"openai/{dialect}"
        self._names = NAMES[dialect]
        self._dialect = dialect
        self._prefix = event_prefix
        self._made = 0

    def of_turn(self, turn: int) -> OpenAIEvents:
        events = type(self)(self._dialect, event_prefix=f"event_r{turn}_")
        events.name = self.name
        return events

    def session(self, phase: Literal["created", "updated"], session: dict[str, Any]) -> list[bytes]:
        return [self._frame(f"session.{phase}", session=session)]

    def speech_started(self, item: str, audio_ms: int) -> list[bytes]:
        return [self._frame("input_audio_buffer.speech_started", audio_start_ms=audio_ms, item_id=item)]

    def speech_stopped(self, item: str, audio_ms: int) -> list[bytes]:
        return [self._frame("input_audio_buffer.speech_stopped", audio_end_ms=audio_ms, item_id=item)]

    def committed(self, item: str, previous: str | None) -> list[bytes]:
        return [self._frame("input_audio_buffer.committed", item_id=item, previous_item_id=previous)]

    def cleared(self) -> list[bytes]:
        return [self._frame("input_audio_buffer.cleared")]

    def user_transcript(self, item: str, text: str) -> list[bytes]:
        """A delta and the end of what the peer understood."""
        name = "conversation.item.input_audio_transcription"
        usage = {"type": "duration", "seconds": 1}
        return [
            self._frame(f"{name}.delta", item_id=item, content_index=0, delta=text),
            self._frame(f"{name}.completed", item_id=item, content_index=0, transcript=text, usage=usage),
        ]

    def item(self, item: dict[str, Any], previous: str | None) -> list[bytes]:
        """The events that put a finished item into the conversation (GA two, beta one)."""
        return [self._frame(name, previous_item_id=previous, item=item) for name in self._names.items]

    def item_truncated(self, item: str, content_index: int, audio_end_ms: int) -> list[bytes]:
        return [
            self._frame(
                "conversation.item.truncated", item_id=item, content_index=content_index, audio_end_ms=audio_end_ms
            )
        ]

    def item_deleted(self, item: str) -> list[bytes]:
        return [self._frame("conversation.item.deleted", item_id=item)]

    def item_retrieved(self, item: dict[str, Any]) -> list[bytes]:
        return [self._frame("conversation.item.retrieved", item=item)]

    def response_opened(self, response: str, item: str, previous: str | None) -> list[bytes]:
        """`response.created` up to the first content part, in the order of section 1.5."""
        blank = self.answer_item(item, "", "in_progress")
        return [
            self._frame("response.created", response=self._response(response, "in_progress", None, None, [])),
            self._frame("response.output_item.added", response_id=response, output_index=0, item=blank),
            self._frame(self._names.item_added, previous_item_id=previous, item=blank),
            self._part("response.content_part.added", response, item, part={"type": "audio", "transcript": ""}),
        ]

    def transcript_delta(self, response: str, item: str, text: str) -> list[bytes]:
        return [self._part(self._names.transcript_delta, response, item, delta=text)]

    def text_delta(self, response: str, item: str, text: str) -> list[bytes]:
        return [self._part(self._names.text_delta, response, item, delta=text)]

    def audio_delta(self, response: str, item: str, audio: bytes, rate_hz: int = 24_000) -> list[bytes]:
        return [self._part(self._names.audio_delta, response, item, delta=audio)]

    def answer_closed(
        self, response: str, item: str, transcript: str, status: Literal["completed", "incomplete"]
    ) -> list[bytes]:
        """From the audio's end to the item's, before `response.done`."""
        whole = self.answer_item(item, transcript, status)
        part = {"type": "audio", "transcript": transcript}
        closed = [
            self._part(self._names.audio_done, response, item),
            self._part(self._names.transcript_done, response, item, transcript=transcript),
            self._part("response.content_part.done", response, item, part=part),
            self._frame("response.output_item.done", response_id=response, output_index=0, item=whole),
        ]
        return closed + ([self._frame("conversation.item.done", item=whole)] if self._dialect == "ga" else [])

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
        """The end of a response. reason: `turn_detected`, `client_cancelled`, ...; error: type, code, message."""
        details: dict[str, Any] | None = None
        if status != "completed":
            details = {"type": status} | ({"reason": reason} if reason else {}) | ({"error": error} if error else {})
        return [self._frame("response.done", response=self._response(response, status, details, usage, output or []))]

    def go_away(self, time_left_ms: int) -> list[bytes]:
        """This protocol announces nothing: the session has expired, and the connection will close."""
        return self.error("invalid_request_error", "session_expired", "The session has expired.")

    def playback(self, state: Literal["started", "stopped", "cleared"], response: str) -> list[bytes]:
        """WebRTC only: the agent's own playout of the answer."""
        return [self._frame(f"output_audio_buffer.{state}", response_id=response)] if self.continuous else []

    def rate_limits(self, remaining: int) -> list[bytes]:
        limit = {"name": "requests", "limit": 1000, "remaining": remaining, "reset_seconds": 0.06}
        return [self._frame("rate_limits.updated", rate_limits=[limit])]

    def error(self, kind: str, code: str, message: str, *, echo: str | None = None) -> list[bytes]:
        """kind: `invalid_request_error`, `server_error`, ...; echo: the client's own event id."""
        body = {"type": kind, "code": code, "message": message, "param": None, "event_id": echo}
        return [self._frame("error", error=body)]

    def other(self, name: str, body: dict[str, Any]) -> list[bytes]:
        """An event that the protocol does not have."""
        return [self._frame(name, **body)]

    def answer_item(self, item: str, transcript: str, status: str) -> dict[str, Any]:
        """A spoken answer as a conversation item; without content while it is empty."""
        content = [{"type": self._names.assistant_audio, "transcript": transcript}] if transcript else []
        return {"id": item, "object": "realtime.item", "type": "message"} | {
            "status": status,
            "role": "assistant",
            "content": content,
        }

    def user_item(self, item: str) -> dict[str, Any]:
        """A spoken turn of the user as a conversation item."""
        content = [{"type": "input_audio", "transcript": None}]
        return {"id": item, "object": "realtime.item", "type": "message"} | {
            "status": "completed",
            "role": "user",
            "content": content,
        }

    def _response(
        self,
        response: str,
        status: str,
        details: dict[str, Any] | None,
        usage: dict[str, Any] | None,
        output: list[dict[str, Any]],
    ) -> dict[str, Any]:
        body = {"object": "realtime.response", "id": response, "status": status, "status_details": details}
        return body | {
            "output": output,
            "conversation_id": "conv_1",
            self._names.modalities: list(self._names.spoken),
            "metadata": None,
            "usage": usage,
        }

    def _part(self, name: str, response: str, item: str, **body: Any) -> bytes:
        return self._frame(name, response_id=response, item_id=item, output_index=0, content_index=0, **body)

    def _frame(self, name: str, **body: Any) -> bytes:
        self._made += 1
        return _encode({"type": name, "event_id": f"{self._prefix}{self._made}"} | body)


def _first_session(
    dialect: Dialect, session_id: str, model: str, input_rate_hz: int, output_rate_hz: int
) -> dict[str, Any]:
    """What a session is before the client's first update: server VAD at 500 ms, no transcription (section 1.3)."""
    detection = {"type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 500}
    detection |= {"create_response": True, "interrupt_response": True}
    names = NAMES[dialect]
    session: dict[str, Any] = {"object": "realtime.session", "id": session_id, "model": model}
    session |= {names.modalities: list(names.spoken), "instructions": "", "tools": [], "tool_choice": "auto"}
    if dialect == "beta":
        return session | {
            "voice": "answers",
            "input_audio_format": "pcm16",
            "output_audio_format": "pcm16",
            "input_audio_transcription": None,
            "turn_detection": detection,
            "max_response_output_tokens": "inf",
        }
    return session | {
        "type": "realtime",
        "max_output_tokens": "inf",
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": input_rate_hz},
                "transcription": None,
                "noise_reduction": None,
                "turn_detection": detection,
            },
            "output": {"format": {"type": "audio/pcm", "rate": output_rate_hz}, "voice": "answers", "speed": 1.0},
        },
    }
