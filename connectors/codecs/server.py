"""What every server codec of the agent is to its dialogue: requests in one vocabulary, events as ready payloads.

A protocol overrides what it has; an event that it has not is the empty list. Sans-IO. The vocabulary of requests is
OpenAI Realtime's (`openai_requests`), the richest of them: a Gemini `activityEnd`, say, is read as `CommitInput` and
`ResponseCreate`.
"""

from __future__ import annotations

from typing import Any, Literal

from websockets.frames import Frame, Opcode

from connectors.codecs.openai_requests import Invalid, Request, SessionUpdate

Status = Literal["completed", "cancelled", "failed", "incomplete"]


class ServerEvents:
    """Payloads of one protocol, each method a list of them. Responses and items are named by the caller.

    name: which plans can share these payloads (protocol and dialect); empty: none can. continuous: answers are played
    into an audio stream that never stops (`Mouth`) at `mouth_rate_hz`, so `audio_delta` is never asked for.
    done_after_playout: a response is done when a listener has heard it, not when all of it was sent.
    """

    name = ""
    continuous = False
    mouth_rate_hz = 24_000
    done_after_playout = False

    def of_turn(self, turn: int) -> ServerEvents:
        """Events for the plan of a session's turn number `turn`: of their own where ids must differ."""
        return self

    def frame(self, payload: bytes) -> bytes:
        """A payload as the bytes to write: here one unmasked WebSocket text frame."""
        return Frame(Opcode.TEXT, payload).serialize(mask=False)

    def session(self, phase: Literal["created", "updated"], session: dict[str, Any]) -> list[bytes]:
        return []

    def speech_started(self, item: str, audio_ms: int) -> list[bytes]:
        return []

    def speech_stopped(self, item: str, audio_ms: int) -> list[bytes]:
        return []

    def committed(self, item: str, previous: str | None) -> list[bytes]:
        return []

    def cleared(self) -> list[bytes]:
        return []

    def user_transcript(self, item: str, text: str) -> list[bytes]:
        return []

    def item(self, item: dict[str, Any], previous: str | None) -> list[bytes]:
        """A finished item enters the conversation."""
        return []

    def item_truncated(self, item: str, content_index: int, audio_end_ms: int) -> list[bytes]:
        return []

    def item_deleted(self, item: str) -> list[bytes]:
        return []

    def item_retrieved(self, item: dict[str, Any]) -> list[bytes]:
        return []

    def response_opened(self, response: str, item: str, previous: str | None) -> list[bytes]:
        """Everything that comes before the first text or audio of an answer."""
        return []

    def transcript_delta(self, response: str, item: str, text: str) -> list[bytes]:
        return []

    def audio_delta(self, response: str, item: str, audio: bytes, rate_hz: int = 24_000) -> list[bytes]:
        return []

    def answer_closed(
        self, response: str, item: str, transcript: str, status: Literal["completed", "incomplete"]
    ) -> list[bytes]:
        """Everything between the last delta and the end of the response."""
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
        """The end of the response. reason: `turn_detected` or `client_cancelled` when it was cancelled."""
        return []

    def rate_limits(self, remaining: int) -> list[bytes]:
        return []

    def playback(self, state: Literal["started", "stopped", "cleared"], response: str) -> list[bytes]:
        """The agent's own playout (continuous protocols that tell it)."""
        return []

    def go_away(self, time_left_ms: int) -> list[bytes]:
        """The session will end soon."""
        return []

    def error(self, kind: str, code: str, message: str, *, echo: str | None = None) -> list[bytes]:
        return []

    def error_close(self, code: str, message: str) -> tuple[int, str] | None:
        """Close code and reason, where the protocol tells this error by ending the connection."""
        return None

    def session_closed(self) -> list[bytes]:
        """The last word of a session that the client asked to end."""
        return []

    def other(self, name: str, body: dict[str, Any]) -> list[bytes]:
        """An event that the protocol does not have."""
        return []

    def broken(self) -> list[bytes]:
        """A message that cannot be read."""
        return [b'{"type":"response.output_audio.delta","delta":"AAAA']

    def answer_item(self, item: str, transcript: str, status: str) -> dict[str, Any]:
        """A spoken answer as a conversation item; without content while it is empty."""
        return {"id": item, "type": "message", "role": "assistant", "status": status, "content": []}

    def user_item(self, item: str) -> dict[str, Any]:
        """A spoken turn of the user as a conversation item."""
        return {"id": item, "type": "message", "role": "user", "status": "completed", "content": []}


class ServerSession:
    """One session at the server's side: reads requests and keeps the settings in force.

    A protocol whose client speaks first has no `session` created, and answers the first request with `session` updated.
    input_rate_hz: of the user's audio, as now in force. one_turn: the session is a question and its answer.
    """

    events: ServerEvents
    session: dict[str, Any]
    input_rate_hz = 24_000
    one_turn = False

    def decode(self, data: bytes, is_text: bool = True) -> list[Request | Invalid]:
        """What one message of the client asks for, in order; an `Invalid` carries the error to send back.

        `AppendInput.audio` is PCM16 (with any container that `PcmStream` strips) at `input_rate_hz`.
        """
        raise NotImplementedError

    def update(self, request: SessionUpdate) -> Invalid | None:
        """Lay new settings over the session's; a refused update changes nothing and returns its error."""
        return None

    @property
    def detector(self) -> dict[str, Any] | None:
        """Settings of the turn detector in OpenAI's keys, or None for manual turns."""
        return {"type": "server_vad"}

    @property
    def language(self) -> str | None:
        """Language of the user's speech, if the client named one."""
        return None
