"""Gemini Live as a server speaks it: client messages in, requests in the agent's vocabulary out; events as messages.

Sans-IO. There is no error message: an error is a close code with its reason. Source: protocol sheet, section 6.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal

import msgspec
import numpy as np
import soxr
from websockets.frames import Frame, Opcode

from connectors.codecs import gemini_frames as frames
from connectors.codecs import openai_requests as requests
from connectors.codecs.openai_requests import Invalid, Request, SessionUpdate
from connectors.codecs.openai_session import dig
from connectors.codecs.pcm_stream import PcmStream, usable_rate
from connectors.codecs.server import ServerEvents, ServerSession, Status
from harness.core.audio import PCM16_BYTES, ms_to_samples

INPUT_RATE_HZ = 16_000
STREAM_END_MS = 1_000
"""Silence that stands for a microphone that stopped, beyond the detector's own: so the end of speech is found."""
DEFAULT_SILENCE_MS = 500
CLOSE_CODES = {"server_error": 1011, "rate_limit_exceeded": 1011, "session_limit_reached": 1008}
"""By the agent's error code; everything else is an invalid argument, 1007 (section 6.5)."""
LONGEST_REASON = 120
"""Bytes of a close reason: the frame holds 123."""

_encode = msgspec.json.Encoder().encode


class GeminiServerSession(ServerSession):
    """One session at the server's side. The first message must be the setup, and only the first."""

    input_rate_hz = INPUT_RATE_HZ

    def __init__(self, *, session_id: str = "session-1", declare_rate_hz: int | None = None) -> None:
        self.events: GeminiEvents = GeminiEvents(session_id, declare_rate_hz=declare_rate_hz)
        self.session: dict[str, Any] = {}
        self._set_up = False
        self._input = _Input()

    def decode(self, data: str | bytes, is_text: bool = True) -> list[Request | Invalid]:
        message = frames.read(data, frames.client_messages)
        if isinstance(message, frames.Unreadable):
            return [Invalid(code="invalid_json", message=f"Request contains an invalid argument: {message.reason}")]
        if message.setup is not None:
            if self._set_up:
                return [_invalid("setup must only be sent once")]
            return [SessionUpdate(session=message.setup)]
        if not self._set_up:
            return [_invalid("setup must be the first message and only the first")]
        if message.realtime_input is not None:
            return self._realtime(message.realtime_input)
        if message.client_content is not None:
            return self._content(message.client_content)
        if message.tool_response is not None or message.context_update is not None:
            return []
        return [_invalid(f"unknown message {' '.join(frames.keys(data))!r}")]

    def _realtime(self, sent: frames.RealtimeInput) -> list[Request | Invalid]:
        signals = sent.activity_start is not None or sent.activity_end is not None
        detector = self.detector
        if signals and detector is not None:
            return [_invalid("explicit activity control is not supported when automatic activity detection is enabled")]
        asked: list[Request | Invalid] = []
        if sent.activity_start is not None and self._interrupts:
            asked.append(requests.BargeIn())
        blobs = [sent.audio or frames.Blob(), *(sent.media_chunks or [])]
        heard = [blob for blob in blobs if (blob.mime_type or "").startswith("audio/")]
        asked += [requests.AppendInput(audio=self._input.push(blob)) for blob in heard]
        if sent.text is not None:
            asked += [requests.BargeIn(), requests.ItemCreate(item=_item("user", sent.text)), requests.ResponseCreate()]
        if sent.activity_end is not None:
            asked += [requests.CommitInput(), requests.ResponseCreate()]
        if sent.audio_stream_end and detector is not None:
            silence_ms = STREAM_END_MS + (detector.get("silence_duration_ms") or DEFAULT_SILENCE_MS)
            asked.append(requests.AppendInput(audio=bytes(ms_to_samples(silence_ms, INPUT_RATE_HZ) * PCM16_BYTES)))
        return asked

    def _content(self, content: frames.ClientContent) -> list[Request | Invalid]:
        """Text of the conversation; it interrupts an answer under way."""
        asked: list[Request | Invalid] = [requests.BargeIn()]
        for turn in content.turns or []:
            text = "".join(part.text or "" for part in turn.parts or [])
            asked.append(requests.ItemCreate(item=_item("assistant" if turn.role == "model" else "user", text)))
        return [*asked, requests.ResponseCreate()] if content.turn_complete else asked

    def update(self, request: SessionUpdate) -> Invalid | None:
        setup = frames.plain(request.session)
        modalities = dig(setup, "generationConfig", "responseModalities")
        if not isinstance(setup.get("model"), str):
            return _invalid("setup.model is missing")
        if modalities not in (None, ["AUDIO"]):
            return _invalid("this server answers with responseModalities [AUDIO] only")
        self._set_up = True
        self.session = setup
        self.events.set_up(setup)
        return None

    @property
    def detector(self) -> dict[str, Any] | None:
        detection = dig(self.session, "realtimeInputConfig", "automaticActivityDetection")
        if dig(detection, "disabled") is True:
            return None
        found: dict[str, Any] = {"type": "server_vad", "interrupt_response": self._interrupts}
        for theirs, ours in (("silenceDurationMs", "silence_duration_ms"), ("prefixPaddingMs", "prefix_padding_ms")):
            value = dig(detection, theirs)
            if isinstance(value, int) and 0 <= value <= 60_000:
                found[ours] = value
        return found

    @property
    def language(self) -> str | None:
        hints = dig(self.session, "inputAudioTranscription", "languageCodes")
        named = dig(self.session, "generationConfig", "speechConfig", "languageCode")
        named = named or (hints[0] if isinstance(hints, list) and hints else None)
        return named if isinstance(named, str) else None

    @property
    def _interrupts(self) -> bool:
        handling: object = dig(self.session, "realtimeInputConfig", "activityHandling")
        return handling != "NO_INTERRUPTION"


class _Input:
    """The user's audio at `INPUT_RATE_HZ`, whatever rate its mime type names."""

    def __init__(self) -> None:
        self._rate_hz = INPUT_RATE_HZ
        self._stream = PcmStream()
        self._resampler: Any = None

    def push(self, blob: frames.Blob) -> bytes:
        rate_hz = usable_rate(frames.rate_hz(blob.mime_type)) or INPUT_RATE_HZ
        if rate_hz != self._rate_hz:
            self._rate_hz, self._stream = rate_hz, PcmStream()
            # As in the endpointer: cubic interpolation holds back a few samples only.
            self._resampler = soxr.ResampleStream(rate_hz, INPUT_RATE_HZ, 1, dtype="int16", quality="QQ")
        if rate_hz == INPUT_RATE_HZ:
            return blob.data
        samples = np.frombuffer(self._stream.push(blob.data), dtype="<i2")
        return np.asarray(self._resampler.resample_chunk(samples), dtype="<i2").tobytes()


class GeminiEvents(ServerEvents):
    """Messages as JSON bytes, written in binary frames as the service does.

    declare_rate_hz: in the mime type of all audio (None: the audio's own).
    """

    done_after_playout = True

    def __init__(self, session_id: str, *, declare_rate_hz: int | None = None) -> None:
        self.name = "gemini"
        self._session_id = session_id
        self._declare_rate_hz = declare_rate_hz
        self._transcribes = self._hears = self._tells_activity = False

    def set_up(self, setup: dict[str, Any]) -> None:
        """What the client wants to be told."""
        self._transcribes = isinstance(setup.get("outputAudioTranscription"), dict)
        self._hears = isinstance(setup.get("inputAudioTranscription"), dict)
        self._tells_activity = setup.get("explicitVadSignal") is True
        self.name = "gemini/transcript" if self._transcribes else "gemini"

    def frame(self, payload: bytes) -> bytes:
        return Frame(Opcode.BINARY, payload).serialize(mask=False)

    def session(self, phase: Literal["created", "updated"], session: dict[str, Any]) -> list[bytes]:
        if phase == "created":
            return []
        events = [_encode({"setupComplete": {"sessionId": self._session_id}})]
        if isinstance(session.get("sessionResumption"), dict):
            handle = {"newHandle": f"handle-of-{self._session_id}", "resumable": True}
            events.append(_encode({"sessionResumptionUpdate": handle}))
        return events

    def speech_started(self, item: str, audio_ms: int) -> list[bytes]:
        return self._activity("ACTIVITY_START", audio_ms)

    def speech_stopped(self, item: str, audio_ms: int) -> list[bytes]:
        return self._activity("ACTIVITY_END", audio_ms)

    def user_transcript(self, item: str, text: str) -> list[bytes]:
        return [_content(inputTranscription={"text": text, "finished": True})] if self._hears else []

    def transcript_delta(self, response: str, item: str, text: str) -> list[bytes]:
        return [_content(outputTranscription={"text": text})] if self._transcribes else []

    def audio_delta(self, response: str, item: str, audio: bytes, rate_hz: int = 24_000) -> list[bytes]:
        mime = f"audio/pcm;rate={self._declare_rate_hz or rate_hz}"
        blob = {"mimeType": mime, "data": b64encode(audio).decode()}
        return [_content(modelTurn={"role": "model", "parts": [{"inlineData": blob}]})]

    def answer_closed(
        self, response: str, item: str, transcript: str, status: Literal["completed", "incomplete"]
    ) -> list[bytes]:
        return [_content(generationComplete=True)] if status == "completed" else []

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
        if status == "cancelled":
            return [_content(interrupted=True), _content(turnComplete=True)]
        message: dict[str, Any] = {"serverContent": {"turnComplete": True}}
        if usage is not None:
            message["usageMetadata"] = {
                "promptTokenCount": usage["input_tokens"],
                "responseTokenCount": usage["output_tokens"],
                "totalTokenCount": usage["total_tokens"],
            }
        return [_encode(message)]

    def go_away(self, time_left_ms: int) -> list[bytes]:
        return [_encode({"goAway": {"timeLeft": f"{time_left_ms / 1000:g}s"}})]

    def error_close(self, code: str, message: str) -> tuple[int, str]:
        reason = message.encode("ascii", "replace")[:LONGEST_REASON].decode()
        return CLOSE_CODES.get(code, 1007), reason

    def other(self, name: str, body: dict[str, Any]) -> list[bytes]:
        return [_encode({name: body})]

    def broken(self) -> list[bytes]:
        return [b'{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"data":"AAAA']

    def _activity(self, kind: str, audio_ms: int) -> list[bytes]:
        if not self._tells_activity:
            return []
        said = {"voiceActivityType": kind, "audioOffset": f"{audio_ms / 1000:g}s"}
        return [_encode({"voiceActivity": said})]


def _content(**body: Any) -> bytes:
    return _encode({"serverContent": body})


def _item(role: str, text: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": part, "text": text}]}


def _invalid(message: str) -> Invalid:
    return Invalid(code="invalid_argument", message=message)
