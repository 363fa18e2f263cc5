"""Chat completions with audio as a client sees them: whole requests out, streamed chunks in, as events. Sans-IO.

The wire keeps no session: what was said before goes along in each request. Which dialect a chunk is of shows in its
own shape, so a server that mixes them is understood. Nothing that a peer sends raises.
Source: protocol sheet, section 12.
"""

from __future__ import annotations

import base64
from typing import Any, Literal

import msgspec

from connectors.codecs.base64_stream import Base64Stream
from connectors.codecs.bounds import carried, name, whole
from connectors.codecs.chat_chunks import Audio, AudioMetadata, Chunk, Delta, Failure, Unreadable, read_chunk
from connectors.codecs.chat_dialects import ChatDialect
from connectors.codecs.client import Message, Opening
from connectors.codecs.openai_session import merge
from connectors.codecs.pcm_stream import PcmStream, usable_rate
from connectors.codecs.sse import SseEvent
from connectors.codecs.wav import wav_header
from harness.core import commands
from harness.core.audio import PCM16_BYTES
from harness.core.commands import Command
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioReceived,
    Event,
    Note,
    PeerError,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    TextReceived,
)

History = Literal["text", "audio_id", "none"]
"""How an earlier answer stands in the next request: its text, the id of its audio (where the peer gave one), or no
history at all."""
DONE = b"[DONE]"
UNREADABLE = "unreadable"
READABLE_FORMATS = (None, "", "wav", "pcm", "pcm16")
CUT_SHORT = ("length", "content_filter")
"""Values of `finish_reason` that say that the answer was to be longer."""

At = dict[str, Any]
"""Instants and length of what is at hand, copied into each of its events."""
_encode = msgspec.json.Encoder().encode


class _Answer:
    """The response under way: what has been received of it. name: unique in its session."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = False
        self.done = False
        self.finish = ""
        self.usage: dict[str, Any] | None = None
        self.text = ""
        self.audio_id = ""
        self.base64 = Base64Stream()
        self.pcm = PcmStream()
        self.said_rate_hz = 0


class ChatCompletionsClient:
    """One session's codec; keeps the conversation.

    `CreateResponse` is the only command that makes a message, the request's JSON: user audio appended since the last
    one, and before it settings and history. `begin` when that request is sent, then `take` each event of its answer
    (or `decode` its data), and one of `ended`, `refused`, `failed`.
    model None: no `model` in the request. extra: laid over the request's body. output_rate_hz: what counts where
    neither a header nor the peer's word tells another; the first other rate makes a note.
    """

    opening: Opening = "handshake"

    def __init__(
        self,
        dialect: ChatDialect,
        *,
        model: str | None = None,
        voice: str | None = None,
        audio_format: str | None = None,
        input_rate_hz: int | None = None,
        output_rate_hz: int = 24_000,
        history: History = "text",
        extra: dict[str, Any] | None = None,
    ) -> None:
        self._dialect = dialect
        self._model = model or dialect.model
        self._voice = voice or dialect.voice
        self._format = audio_format or dialect.audio_format
        self._input_rate_hz = input_rate_hz or dialect.input_rate_hz
        self._output_rate_hz = output_rate_hz
        self._history = history
        self._extra = extra or {}
        self._messages: list[dict[str, Any]] = []
        self._input = bytearray()
        self._said: dict[str, Any] | None = None
        self._asked: dict[str, Any] | None = None
        self._answer: _Answer | None = None
        self._requests = 0
        self._names: set[str] = set()
        self._noted = False

    # --- client to server -----------------------------------------------------------------------------------

    def encode(self, command: Command) -> list[Message]:
        match command:
            case commands.AppendAudio():
                self._input += command.pcm
            case commands.ClearInput():
                self._input.clear()
            case commands.Configure():
                self._configure(command)
            case commands.AddHistory():
                self._messages.append({"role": command.role, "content": command.text})
            case commands.Commit() | commands.Cancel():
                pass  # the end of the request is the end of the turn; a cancel is the end of the connection
            case commands.CreateResponse():
                return [self._request()]
            case _:
                raise ConfigError(f"chat completions have no {type(command).__name__}")
        return []

    def replies(self) -> list[Message]:
        return []

    def begin(self) -> None:
        """The request encoded last is being sent: what comes from now on answers it."""
        self._requests += 1
        self._asked, self._said = self._said, None
        self._answer = _Answer(f"request-{self._requests}")

    def _configure(self, command: commands.Configure) -> None:
        self._model = command.model or self._model
        self._voice = command.voice or self._voice
        self._extra = merge(self._extra, command.extra)
        if command.instructions is not None:
            self._messages.insert(0, {"role": "system", "content": command.instructions})

    def _request(self) -> str:
        parts: list[dict[str, Any]] = []
        if self._input:
            wav = wav_header(self._input_rate_hz, len(self._input)) + bytes(self._input)
            data = self._dialect.input_prefix + base64.b64encode(wav).decode()
            parts.append({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}})
            self._input.clear()
        messages = list(self._messages)
        if parts:
            self._said = {"role": "user", "content": parts}
            messages.append(self._said)
        audio = {"voice": self._voice} if self._voice else {}
        body: dict[str, Any] = {"model": self._model} if self._model else {}
        body |= {
            "modalities": ["text", "audio"],
            "audio": audio | {"format": self._format},
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": messages,
        }
        return _encode(merge(body, self._extra)).decode()

    # --- server to client -----------------------------------------------------------------------------------

    def decode(self, data: bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        return self.take(SseEvent(data, t_ns, first_byte_ns, wire_bytes=len(data)))

    def take(self, event: SseEvent) -> list[Event]:
        """What one event of the answer's stream (or a whole answer's body) means; never none."""
        answer = self._current()
        at: At = {"t_ns": event.t_ns, "first_byte_ns": event.first_byte_ns, "wire_bytes": event.wire_bytes}
        if event.data.strip() == DONE:
            return self._done(answer, at) or [RawReceived(name=DONE.decode(), **at)]
        chunk = read_chunk(event.data, event.name)
        if isinstance(chunk, Unreadable):
            return [PeerError(code=UNREADABLE, message=chunk.reason, **at)]
        if isinstance(chunk, Failure):
            return self._error(answer, chunk, at)
        events = self._chunk(answer, chunk, at)
        return events or [RawReceived(name=name(event.name or chunk.object or "chunk"), **at)]

    def ended(self, t_ns: int) -> list[Event]:
        """The answer's body ended as HTTP demands."""
        answer, at = self._current(), At(t_ns=t_ns)
        if answer.done:
            return []
        if not answer.begun:
            return self._error(answer, Failure("empty", "the peer answered without a single chunk"), at)
        return self._done(answer, at, status="" if answer.finish else "incomplete")

    def refused(self, status: int, failure: Failure, retry_after_s: float | None, t_ns: int) -> list[Event]:
        """An HTTP status other than 200. A peer that names a time is told apart by the code `429`, its own code then
        stands in the message."""
        code, message = failure.code or str(status), f"HTTP {status}: {failure.message}".rstrip(": ")
        if status == 429 and retry_after_s is not None:
            message = f"{message} ({failure.code})" if failure.code else message
            code = "429"
        if retry_after_s is not None:
            message += f"; try again in {retry_after_s:g} s"
        fatal = status in (401, 402, 403, 404, 405)
        return self._error(self._current(), Failure(code, message), {"t_ns": t_ns}, fatal=fatal)

    def failed(self, code: str, message: str, t_ns: int) -> list[Event]:
        """The answer will never be whole: the connection went, or it cannot be read on."""
        answer = self._current()
        if answer.done:
            return [PeerError(t_ns=t_ns, code=code, message=message)]
        return self._error(answer, Failure(code, message), {"t_ns": t_ns})

    def cancelled(self, t_ns: int) -> list[Event]:
        """We ended the answer ourselves; one that had not begun is none."""
        answer = self._current()
        if not answer.begun:
            answer.done = True
            return []
        return self._done(answer, {"t_ns": t_ns}, status="cancelled")

    def _current(self) -> _Answer:
        if self._answer is None:
            self._answer = _Answer("request-0")
        return self._answer

    def _error(self, answer: _Answer, failure: Failure, at: At, *, fatal: bool = False) -> list[Event]:
        error = PeerError(code=failure.code, message=failure.message, fatal=fatal, **at)
        answer.finish = failure.code
        return [error, *self._done(answer, at, status="failed")]

    def _chunk(self, answer: _Answer, chunk: Chunk, at: At) -> list[Event]:
        events: list[Event] = []
        if not answer.begun and not answer.done:
            answer.begun = True
            answer.name = self._fresh(chunk.id) or answer.name
            events.append(ResponseStarted(response=answer.name, **at))
        spoken = chunk.modality == "audio"
        if chunk.usage is not None and not spoken:  # that of an audio chunk is no total (section 12.3)
            answer.usage = carried(chunk.usage)
        for choice in chunk.choices or []:
            delta = choice.delta or choice.message or Delta()
            if spoken:
                events += self._audio(answer, delta.content or "", choice.audio_metadata, at)
            else:
                events += self._text(answer, delta.content, "text", at)
                events += self._audio_piece(answer, delta.audio or Audio(), choice.audio_metadata, at)
            answer.finish = name(choice.finish_reason) or answer.finish
        return events

    def _audio_piece(self, answer: _Answer, piece: Audio, metadata: AudioMetadata | None, at: At) -> list[Event]:
        answer.audio_id = name(piece.id) or answer.audio_id
        events = self._text(answer, piece.transcript, "transcript", at)
        return events + (self._audio(answer, piece.data, metadata, at) if piece.data is not None else [])

    def _text(self, answer: _Answer, text: str | None, kind: Literal["text", "transcript"], at: At) -> list[Event]:
        if not text:
            return []
        answer.text += text
        return [TextReceived(text=text, kind=kind, response=answer.name, **at)]

    def _audio(self, answer: _Answer, text: str, metadata: AudioMetadata | None, at: At) -> list[Event]:
        metadata = metadata or AudioMetadata()
        if metadata.format not in READABLE_FORMATS or metadata.channels not in (None, 1):
            what = f"{name(metadata.format)}, {metadata.channels:g} channels" if metadata.channels else metadata.format
            message = f"the peer sends {what}; only mono PCM16 can be read"
            return [PeerError(code="unsupported_audio_format", message=message, **at)]
        try:
            pcm = answer.pcm.push(answer.base64.push(text))
        except ValueError as exc:
            return [PeerError(code=UNREADABLE, message=f"audio: {exc}", **at)]
        answer.said_rate_hz = usable_rate(whole(metadata.sample_rate_hz)) or answer.said_rate_hz
        rate_hz = answer.said_rate_hz or answer.pcm.rate_hz or self._output_rate_hz
        events: list[Event] = []
        if rate_hz != self._output_rate_hz and not self._noted:
            self._noted = True
            message = f"the peer sends {rate_hz} Hz, {self._output_rate_hz} Hz were expected; durations follow its word"
            events.append(Note(t_ns=at["t_ns"], code="rate", message=message))
        samples = len(pcm) // PCM16_BYTES
        item = answer.audio_id
        return [
            *events,
            AudioReceived(samples=samples, rate_hz=rate_hz, response=answer.name, item=item, pcm=pcm, **at),
        ]

    def _done(self, answer: _Answer, at: At, status: str = "") -> list[Event]:
        if answer.done:
            return []
        answer.done = True
        if not status:
            status = "incomplete" if answer.finish in CUT_SHORT else "completed"
        if status in ("completed", "incomplete"):
            self._remember(answer)
        self._asked = None
        reason = answer.finish or ("no finish_reason" if status == "incomplete" else "")
        done = ResponseDone(response=answer.name, status=status, reason=reason, usage=answer.usage, **at)
        return [done]

    def _remember(self, answer: _Answer) -> None:
        """Put what was asked and answered into the requests to come."""
        if self._history == "none" or self._asked is None:
            return
        if self._history == "audio_id" and answer.audio_id:
            said: dict[str, Any] = {"role": "assistant", "audio": {"id": answer.audio_id}}
        elif answer.text:
            said = {"role": "assistant", "content": answer.text}
        else:
            return
        self._messages += [self._asked, said]

    def _fresh(self, ident: str | None) -> str:
        """The peer's name for the response; one that it has used in this session already gets a number."""
        first = fresh = name(ident)
        number = 1
        while fresh and fresh in self._names:
            number += 1
            fresh = f"{first}#{number}"
        self._names.add(fresh)
        return fresh
