"""Gemini Live (BidiGenerateContent) as a client speaks it: server messages in, events out; commands in, messages out.

Sans-IO. The wire names no response: they are numbered here, `turn_1` and so on, each from its first model content to
its `turnComplete`. Nothing that a peer sends raises. Source: protocol sheet, section 6.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal

import msgspec

from connectors.codecs import gemini_frames as frames
from connectors.codecs.bounds import carried, name
from connectors.codecs.client import Message, Opening
from connectors.codecs.openai_session import merge
from connectors.codecs.pcm_stream import PcmStream, usable_rate
from harness.core import commands
from harness.core.audio import PCM16_BYTES
from harness.core.commands import Command, Configure
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioDone,
    AudioReceived,
    Event,
    GoAway,
    Interrupted,
    PeerError,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    SessionReady,
    TextReceived,
    ToolCall,
    UserSpeechStarted,
    UserSpeechStopped,
    UserTranscript,
)

INPUT_RATE_HZ = 16_000
OUTPUT_RATE_HZ = 24_000
"""The rate of audio whose mime type names none."""
UNREADABLE = "unreadable"
LONGEST_TRANSCRIPT = 100_000
"""Characters of what the user said that are put together at most."""
FAILED_REASONS = frozenset({"MALFORMED_FUNCTION_CALL", "RESPONSE_REJECTED"})
"""Reasons of a `turnComplete` after which there is no answer."""

_encode = msgspec.json.Encoder().encode


class GeminiLiveClient:
    """One session's codec: numbers the turns, keeps odd bytes, usage and the resumption handle.

    turn: who ends the user's turns, as the setup last said. model: where `Configure` names none. resumable: ask for
    handles. resumption_handle: the newest; a credential, so it stands in no event.
    """

    opening: Opening = "configure_first"
    binary_is_text = True

    def __init__(self, *, model: str = "", resumable: bool = True, language_hint: bool = False) -> None:
        self._model = model
        self._resumable = resumable
        self._language_hint = language_hint
        self.turn: Literal["manual", "vad"] = "vad"
        self.resumption_handle = ""
        self._speaking = False
        self._interrupting = False
        self._asked = True
        self._count = 0
        self._active = ""
        self._cut_off = False
        self._usage: dict[str, Any] | None = None
        self._understood = ""
        self._stream = PcmStream()

    # --- server to client -----------------------------------------------------------------------------------

    def decode(self, data: str | bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        """Events of one message, in order, never none; a message may hold several keys and several parts."""
        length = len(data) if isinstance(data, bytes) or data.isascii() else len(data.encode("utf-8", "replace"))
        at: dict[str, Any] = {"t_ns": t_ns, "first_byte_ns": first_byte_ns, "wire_bytes": length}
        message = frames.read(data, frames.server_messages)
        if isinstance(message, frames.Unreadable):
            return [PeerError(code=UNREADABLE, message=message.reason, **at)]
        events: list[Event] = []
        if message.setup_complete is not None:
            session = name(message.setup_complete.session_id)
            events.append(SessionReady(phase="created", peer_session=session, input_rate_hz=INPUT_RATE_HZ, **at))
        if message.voice_activity is not None:
            events += _activity(message.voice_activity, at)
        content = message.server_content or frames.ServerContent()
        events += self._content(content, at)
        if message.usage_metadata is not None:
            self._usage = message.usage_metadata
        events += [_tool_call(call, at) for call in (message.tool_call or frames.ToolCall()).function_calls or []]
        events += self._endings(content, at)
        if message.session_resumption_update is not None:
            events.append(self._resumption(message.session_resumption_update, at))
        if message.go_away is not None:
            events.append(GoAway(time_left_ms=frames.duration_ms(message.go_away.time_left), **at))
        return events or [RawReceived(name=name(" ".join(frames.keys(data))), **at)]

    def _content(self, content: frames.ServerContent, at: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        if content.interim_input_transcription is not None:  # each one replaces the last: no delta
            events.append(RawReceived(name="serverContent.interimInputTranscription", **at))
        if content.input_transcription is not None:
            events.append(self._heard(content.input_transcription, at))
        transcript = content.output_transcription
        if transcript is not None:
            events += self._text(transcript.text or "", "transcript", at)
        for part in (content.model_turn or frames.Content()).parts or []:
            if part.thought:
                events.append(RawReceived(name="serverContent.thought", **at))
            elif part.text is not None:
                events += self._text(part.text, "text", at)
            elif part.inline_data is not None:
                events += self._audio(part.inline_data, at)
        return events

    def _heard(self, said: frames.Transcription, at: dict[str, Any]) -> Event:
        """A piece of what the user said; the last one, where the peer marks it, as the whole."""
        self._understood = (self._understood + (said.text or ""))[-LONGEST_TRANSCRIPT:]
        if not said.finished:
            return UserTranscript(text=said.text or "", **at)
        whole, self._understood = self._understood, ""
        return UserTranscript(text=whole, final=True, **at)

    def _text(self, text: str, kind: Literal["text", "transcript"], at: dict[str, Any]) -> list[Event]:
        response, began = self._response(at) if text.strip() else (self._newest, [])
        return [*began, TextReceived(text=text, kind=kind, response=response, **at)]

    def _audio(self, blob: frames.Blob, at: dict[str, Any]) -> list[Event]:
        if not (blob.mime_type or "audio/").startswith("audio/"):
            return [RawReceived(name=name(f"serverContent.{blob.mime_type}"), **at)]
        response, began = self._response(at)
        pcm = self._stream.push(blob.data)
        rate_hz = self._stream.rate_hz or usable_rate(frames.rate_hz(blob.mime_type)) or OUTPUT_RATE_HZ
        samples = len(pcm) // PCM16_BYTES
        return [*began, AudioReceived(samples=samples, rate_hz=rate_hz, response=response, pcm=pcm, **at)]

    def _response(self, at: dict[str, Any]) -> tuple[str, list[Event]]:
        """Name of the response that content belongs to, with the event of its start where it begins.

        With manual turns, what comes before the next question is late content of the answer before.
        """
        if self._active:
            return self._active, []
        if self.turn == "manual" and not self._asked:
            return self._newest, []
        self._asked = False
        self._count += 1
        self._active = self._newest
        self._cut_off = False
        self._usage = None
        self._stream = PcmStream()
        return self._active, [ResponseStarted(response=self._active, **at)]

    @property
    def _newest(self) -> str:
        return f"turn_{self._count}" if self._count else ""

    def _endings(self, content: frames.ServerContent, at: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        if content.interrupted:
            self._cut_off = True
            events.append(Interrupted(response=self._newest, **at))
        if content.generation_complete:
            events.append(AudioDone(response=self._newest, **at))
        if content.turn_complete:
            if self._understood:  # few servers mark the end of the user's transcript
                events.append(self._heard(frames.Transcription(finished=True), at))
            events.append(self._turn_complete(name(content.turn_complete_reason), at))
        return events

    def _turn_complete(self, reason: str, at: dict[str, Any]) -> Event:
        if not self._active:
            if self._cut_off or (self.turn == "manual" and not self._asked):
                self._cut_off = False
                return RawReceived(name="serverContent.turnComplete", **at)
            self._asked = False
            self._count += 1  # a turn without content
        status = "cancelled" if self._cut_off else "failed" if reason in FAILED_REASONS else "completed"
        reason = "interrupted" if self._cut_off else reason
        usage = None if self._usage is None else carried(self._usage)
        self._active, self._usage, self._cut_off = "", None, False
        return ResponseDone(response=self._newest, status=status, reason=reason, usage=usage, **at)

    def _resumption(self, update: frames.ResumptionUpdate, at: dict[str, Any]) -> Event:
        if update.resumable and update.new_handle:
            self.resumption_handle = update.new_handle
        return RawReceived(name="sessionResumptionUpdate", **at)

    # --- client to server -----------------------------------------------------------------------------------

    def replies(self) -> list[Message]:
        return []

    def encode(self, command: Command) -> list[Message]:
        """Messages that carry out `command`, in order. Raises ConfigError for what the protocol has not.

        Commands may be encoded ahead of the audio before them: the first audio after a `Commit` begins an activity.
        """
        match command:
            case commands.AppendAudio():
                audio = {"mimeType": f"audio/pcm;rate={INPUT_RATE_HZ}", "data": b64encode(command.pcm).decode()}
                return [*self._activity_start(), _message("realtimeInput", audio=audio)]
            case commands.Configure():
                self.turn = command.turn
                return [_message("setup", **self._setup(command))]
            case commands.Commit() if self.turn == "manual":
                self._speaking = False
                self._asked = True
                return [_message("realtimeInput", activityEnd={})]
            case commands.Commit():
                return [_message("realtimeInput", audioStreamEnd=True)]
            case commands.CreateResponse():
                return []
            case commands.Cancel() if self.turn == "manual":
                self._interrupting = True
                return [_message("realtimeInput", activityStart={})]
            case commands.AddHistory() if command.role != "system":
                role = "model" if command.role == "assistant" else "user"
                turns = [{"role": role, "parts": [{"text": command.text}]}]
                return [_message("clientContent", turns=turns, turnComplete=False)]
            case commands.Cancel():
                raise ConfigError("Gemini Live can be cancelled in manual turns only")
            case commands.AddHistory():
                raise ConfigError("Gemini Live takes a system message as instructions only")
            case commands.ClearInput() | commands.Truncate():
                raise ConfigError(f"Gemini Live has no {command.__struct_config__.tag}")
            case _:
                raise TypeError(f"Gemini Live has no {type(command).__name__}")

    def _activity_start(self) -> list[Message]:
        if self.turn == "vad" or self._speaking:
            return []
        self._speaking = True
        if self._interrupting:  # the cancel has begun the activity already
            self._interrupting = False
            return []
        return [_message("realtimeInput", activityStart={})]

    def _setup(self, configure: Configure) -> dict[str, Any]:
        model = configure.model or self._model
        generation: dict[str, Any] = {"responseModalities": ["AUDIO"]}
        if configure.voice is not None:
            voice = {"prebuiltVoiceConfig": {"voiceName": configure.voice}}
            generation["speechConfig"] = {"voiceConfig": voice}
        setup: dict[str, Any] = {"model": model if "/" in model else f"models/{model}", "generationConfig": generation}
        if configure.instructions is not None:
            setup["systemInstruction"] = {"parts": [{"text": configure.instructions}]}
        detection: dict[str, Any] = {"disabled": True} if configure.turn == "manual" else {}
        if configure.turn == "vad" and configure.silence_ms is not None:
            detection["silenceDurationMs"] = configure.silence_ms
        if detection:
            setup["realtimeInputConfig"] = {"automaticActivityDetection": detection}
        if configure.transcribe:
            hinted = self._language_hint and configure.language is not None
            setup["inputAudioTranscription"] = {"languageCodes": [configure.language]} if hinted else {}
        setup["outputAudioTranscription"] = {}
        if self._resumable:
            setup["sessionResumption"] = {}
        return merge(setup, configure.extra)


def _message(key: str, **body: Any) -> str:
    return _encode({key: body}).decode()


def _activity(said: frames.VoiceActivity, at: dict[str, Any]) -> list[Event]:
    position_ms = frames.duration_ms(said.audio_offset)
    if said.voice_activity_type == "ACTIVITY_START":
        return [UserSpeechStarted(audio_ms=position_ms, **at)]
    if said.voice_activity_type == "ACTIVITY_END":
        return [UserSpeechStopped(audio_ms=position_ms, **at)]
    return []


def _tool_call(call: frames.FunctionCall, at: dict[str, Any]) -> Event:
    arguments = _encode(carried(call.args or {})).decode()
    return ToolCall(call=name(call.id), name=name(call.name), arguments=arguments, **at)
