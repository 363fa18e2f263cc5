"""A client codec that acts on a map (`generic_map`): templates out, rules in. Sans-IO; nothing a peer sends raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from connectors.codecs.bounds import carried, name, whole
from connectors.codecs.client import Message, Opening
from connectors.codecs.generic_map import Map, Rule, Template, Templates, messages
from connectors.codecs.openai_audio import audio_up, whole_down
from connectors.codecs.pcm_stream import PcmStream, usable_rate
from harness.core import commands
from harness.core.audio import PCM16_BYTES
from harness.core.commands import Command
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioDone,
    AudioReceived,
    Event,
    GoAway,
    InputCommitted,
    Interrupted,
    PeerError,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    SessionReady,
    TextReceived,
    UserSpeechStarted,
    UserSpeechStopped,
    UserTranscript,
)

UNREADABLE = "unreadable"
ABSENT: Any = object()
"""What stands where a path leads nowhere; a template's key with it is left out."""

_encode = msgspec.json.Encoder().encode


class _Message(NamedTuple):
    """A message at hand, the rule that fits it, and its arrival as an event's fields."""

    body: Any
    rule: Rule
    at: dict[str, Any]

    def get(self, field: str) -> Any:
        """The value at the path in the rule's `field`; None where it is not, or the rule has no such path."""
        path = getattr(self.rule, field)
        value = follow(self.body, path) if path else ABSENT
        return None if value is ABSENT else value

    def said(self, field: str) -> str:
        value = self.get(field)
        return name(value if isinstance(value, str) else "" if value is None else str(value))


class GenericClient:
    """One session. environment: the values of the variables that the map's messages name."""

    def __init__(self, described: Map, environment: Mapping[str, str] | None = None) -> None:
        self._map = described
        self.opening: Opening = described.opening
        self._values: dict[str, Any] = {
            "input_rate_hz": described.input.rate_hz,
            "output_rate_hz": described.output.rate_hz,
            **{f"env.{key}": value for key, value in (environment or {}).items()},
        }
        self._up = audio_up(described.input.coding, described.input.rate_hz)
        self._whole = whole_down(described.output.coding, described.output.rate_hz)
        self._skipped = 0
        self._pcm = PcmStream()
        self._rate_hz = described.output.rate_hz
        self._replies: list[Message] = []
        self._binary = any(rule.binary for rule in described.receive)
        self._manual = False
        self._speaking = False
        self._response = ""

    # --- server to client -----------------------------------------------------------------------------------

    def decode(self, data: bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        """Events of every rule that fits, in the map's order; a message that means nothing is a `RawReceived`."""
        at: dict[str, Any] = {"t_ns": t_ns, "first_byte_ns": first_byte_ns, "wire_bytes": len(data)}
        if not is_text and self._binary:
            return [self._sound(data, self._response, "", 0, at)]
        try:
            body = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
            return [PeerError(code=UNREADABLE, message=f"broken JSON: {' '.join(str(exc).split())}", **at)]
        events: list[Event] = []
        for rule in self._map.receive:
            if fits(rule, body):
                message = _Message(body, rule, at)
                events += _MEANINGS[rule.event](self, message)
                self._replies += self._filled(rule.reply, body)
        kind = follow(body, self._map.name_field)
        return events or [RawReceived(name=name(kind if isinstance(kind, str) else ""), **at)]

    def replies(self) -> list[Message]:
        replies, self._replies = self._replies, []
        return replies

    def _ready(self, message: _Message) -> list[Event]:
        rate_hz = _rate(message.get("output_rate_hz"))
        self._rate_hz = rate_hz or self._rate_hz
        phase: Any = "created" if message.rule.event == "ready" else "updated"
        session, model = message.said("session"), message.said("model")
        return [SessionReady(phase=phase, peer_session=session, model=model, output_rate_hz=rate_hz, **message.at)]

    def _speech(self, message: _Message) -> list[Event]:
        kind = UserSpeechStarted if message.rule.event == "user_speech_started" else UserSpeechStopped
        return [kind(audio_ms=_number(message.get("audio_ms")), item=message.said("item"), **message.at)]

    def _committed(self, message: _Message) -> list[Event]:
        return [InputCommitted(item=message.said("item"), **message.at)]

    def _understood(self, message: _Message) -> list[Event]:
        item, final = message.said("item"), message.rule.final
        return [
            UserTranscript(text=text, final=final, item=item, **message.at) for text in self._texts(message, "text")
        ]

    def _started(self, message: _Message) -> list[Event]:
        self._begin(message.said("response"))
        return [ResponseStarted(response=self._response, **message.at)]

    def _text(self, message: _Message) -> list[Event]:
        kind: Any = message.rule.event
        response, item = self._of(message), message.said("item")
        return [
            TextReceived(text=text, kind=kind, response=response, item=item, **message.at)
            for text in self._texts(message, "text")
        ]

    def _audio(self, message: _Message) -> list[Event]:
        value = message.get("audio")
        if value is None:
            return []
        try:
            data = msgspec.convert(value, bytes)
        except msgspec.ValidationError:
            why = f"no base64 audio at {message.rule.audio}"
            return [PeerError(code=UNREADABLE, message=why, **message.at)]
        rate_hz = _rate(message.get("output_rate_hz"))
        return [self._sound(data, self._of(message), message.said("item"), rate_hz, message.at)]

    def _sound(self, data: bytes, response: str, item: str, rate_hz: int, at: dict[str, Any]) -> Event:
        if response != self._response:
            self._begin(response)
        stream = self._whole if self._whole is not None else self._pcm
        pcm = stream.push(data)
        if self._whole is not None and self._whole.broken:
            return PeerError(code=UNREADABLE, message="the stream of Opus pages is broken", **at)
        before, self._skipped = self._skipped, self._whole.skipped if self._whole is not None else 0
        return AudioReceived(
            samples=len(pcm) // PCM16_BYTES,
            rate_hz=stream.rate_hz or rate_hz or self._rate_hz,
            skipped=self._skipped - before,
            response=response,
            item=item,
            pcm=pcm,
            **at,
        )

    def _audio_done(self, message: _Message) -> list[Event]:
        return [AudioDone(response=self._of(message), **message.at)]

    def _done(self, message: _Message) -> list[Event]:
        usage = message.get("usage")
        done = ResponseDone(
            response=self._of(message),
            status=message.said("status") or "completed",
            reason=message.said("reason"),
            usage=carried(usage) if isinstance(usage, dict) else None,
            **message.at,
        )
        self._pcm = PcmStream()
        return [done]

    def _interrupted(self, message: _Message) -> list[Event]:
        self._pcm = PcmStream()
        return [Interrupted(reason=message.said("reason"), response=self._of(message), **message.at)]

    def _go_away(self, message: _Message) -> list[Event]:
        return [GoAway(time_left_ms=_number(message.get("time_left_ms")), **message.at)]

    def _error(self, message: _Message) -> list[Event]:
        value = message.get("message")
        words = " ".join(value.split()) if isinstance(value, str) else message.said("message")
        return [PeerError(code=message.said("code"), message=words, fatal=message.rule.fatal, **message.at)]

    def _ignored(self, message: _Message) -> list[Event]:
        return []

    def _texts(self, message: _Message, field: str) -> list[str]:
        value = message.get(field)
        return [value] if isinstance(value, str) else []

    def _of(self, message: _Message) -> str:
        return message.said("response") or self._response

    def _begin(self, response: str) -> None:
        self._response, self._pcm = response, PcmStream()

    # --- client to server -----------------------------------------------------------------------------------

    def encode(self, command: Command) -> list[Message]:
        """The map's messages for `command`. Raises ConfigError where it has none."""
        send = self._map.send
        match command:
            case commands.AppendAudio():
                return self._append(command.pcm)
            case commands.Configure():
                return self._configure(command)
            case commands.Commit() if send.commit or send.create:
                self._speaking = False
                return self._filled(send.commit)
            case commands.CreateResponse() if send.commit or send.create:
                return self._filled(send.create)
            case commands.ClearInput() if send.clear:
                self._speaking = False
                return self._filled(send.clear)
            case commands.Cancel() if send.cancel:
                return self._filled(send.cancel, response=command.response or self._response or None)
            case commands.AddHistory() if send.history:
                return self._filled(send.history, role=command.role, text=command.text)
        tag = str(command.__struct_config__.tag).replace("_", " ")
        raise ConfigError(f"the map has no message for {tag}")

    def _configure(self, configure: commands.Configure) -> list[Message]:
        for key in ("instructions", "voice", "model", "language", "silence_ms", "turn"):
            self._values[key] = getattr(configure, key)
        self._manual = configure.turn == "manual"
        by_turn = self._map.send.start_manual if self._manual else self._map.send.start_vad
        return self._filled(self._map.send.start) + self._filled(by_turn)

    def _append(self, pcm: bytes) -> list[Message]:
        data = self._up.push(pcm)
        sent: list[Message] = []
        if self._manual and not self._speaking:
            sent += self._filled(self._map.send.begin)
        self._speaking = True
        if data and self._map.send.audio is None:
            sent.append(data)
        elif data:
            sent += self._filled(self._map.send.audio, audio=data)
        return sent

    def _filled(self, templates: Templates | None, body: Any = None, **values: Any) -> list[Message]:
        known = self._values | values
        return [_encode(_fill(template, known, body)).decode() for template in messages(templates)]


def follow(body: Any, path: str) -> Any:
    """The value at dotted `path` (digits count into lists), or `ABSENT`."""
    for step in path.split("."):
        if isinstance(body, dict) and step in body:
            body = body[step]
        elif isinstance(body, list) and step.isascii() and step.isdigit() and int(step) < len(body):
            body = body[int(step)]
        else:
            return ABSENT
    return body


def fits(rule: Rule, body: Any) -> bool:
    """Whether a JSON message is meant by `rule`. Booleans and numbers are told apart."""
    if rule.binary:
        return False
    for path, wanted in rule.when.items():
        found = follow(body, path)
        if found != wanted or isinstance(found, bool) is not isinstance(wanted, bool):
            return False
    return all(follow(body, path) is not ABSENT for path in rule.has)


def _fill(template: Any, values: Mapping[str, Any], body: Any) -> Any:
    """A template with its placeholders replaced; what has no value is left out."""
    if isinstance(template, str):
        if template.startswith("$$"):
            return template[1:]
        if template.startswith("$in."):
            return follow(body, template[4:])
        if template.startswith("$"):
            value = values.get(template[1:])
            return ABSENT if value is None else value
    elif isinstance(template, dict):
        filled: Template = {key: _fill(value, values, body) for key, value in template.items()}
        return {key: value for key, value in filled.items() if value is not ABSENT}
    elif isinstance(template, list):
        return [value for value in (_fill(each, values, body) for each in template) if value is not ABSENT]
    return template


def _number(value: Any) -> int | None:
    return whole(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rate(value: Any) -> int:
    return usable_rate(_number(value))


_MEANINGS: dict[str, Callable[[GenericClient, _Message], list[Event]]] = {
    "ready": GenericClient._ready,
    "configured": GenericClient._ready,
    "user_speech_started": GenericClient._speech,
    "user_speech_stopped": GenericClient._speech,
    "input_committed": GenericClient._committed,
    "user_transcript": GenericClient._understood,
    "response_started": GenericClient._started,
    "text": GenericClient._text,
    "transcript": GenericClient._text,
    "audio": GenericClient._audio,
    "audio_done": GenericClient._audio_done,
    "response_done": GenericClient._done,
    "interrupted": GenericClient._interrupted,
    "go_away": GenericClient._go_away,
    "error": GenericClient._error,
    "ignore": GenericClient._ignored,
}
