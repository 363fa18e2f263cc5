"""Commands as OpenAI Realtime frames, in the words of a dialect: the client's sending half. Sans-IO.

Source: protocol sheet, sections 1, 4 and 5.
"""

from __future__ import annotations

from typing import Any

import msgspec

from connectors.codecs.client import Message
from connectors.codecs.openai_audio import audio_up
from connectors.codecs.openai_dialects import Dialect
from connectors.codecs.openai_names import NAMES
from connectors.codecs.openai_session import configure_session
from harness.core import commands
from harness.core.commands import Command
from harness.core.errors import ConfigError

_encode = msgspec.json.Encoder().encode


class OpenAICommands:
    """One session's frames; numbers them and remembers whether an utterance is open.

    input_rate_hz, output_rate_hz: what is asked for. transcription_model: None for the dialect's own. binary: audio as
    binary messages.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        input_rate_hz: int,
        output_rate_hz: int,
        transcription_model: str | None,
        binary: bool,
    ) -> None:
        self._dialect = dialect
        self._input_rate_hz = input_rate_hz
        self._output_rate_hz = output_rate_hz
        self._transcription_model = transcription_model
        self._binary = binary
        self._up = audio_up(dialect.coding_in, input_rate_hz)
        self._speaking = False
        self._sent = 0

    def encode(self, command: Command) -> list[Message]:
        """Frames that carry out `command`, in order; each has an `event_id` that the peer's errors echo.

        Raises ConfigError for a command that the dialect lacks.
        """
        tag = str(command.__struct_config__.tag)
        if tag in self._dialect.lacks and not (self._dialect.bracketed and tag == "create_response"):
            raise ConfigError(f"{self._dialect.name}: the peer has no {tag.replace('_', ' ')}")
        match command:
            case commands.AppendAudio():
                return self._append(command.pcm)
            case commands.Configure():
                body: dict[str, Any] = {"type": "session.update"} | self._configured(command)
            case commands.Commit():
                body = {"type": "input_audio_buffer.commit"}
                if self._dialect.bracketed:
                    body["final"], self._speaking = True, False
            case commands.ClearInput():
                body = {"type": "input_audio_buffer.clear"}
            case commands.CreateResponse():
                if self._dialect.bracketed:
                    return []
                body = {"type": "response.create"}
            case commands.Cancel():
                body = {"type": "response.cancel"}
                if command.response is not None:
                    body["response_id"] = command.response
            case commands.Truncate():
                body = {"type": "conversation.item.truncate", "item_id": command.item}
                body |= {"content_index": command.content_index, "audio_end_ms": command.audio_end_ms}
            case commands.AddHistory():
                part = NAMES[self._dialect.names].assistant_text if command.role == "assistant" else "input_text"
                content = [{"type": part, "text": command.text}]
                item = {"type": "message", "role": command.role, "content": content}
                body = {"type": "conversation.item.create", "item": item}
            case _:
                raise TypeError(f"OpenAI Realtime has no {type(command).__name__}")
        return [self._message(body)]

    def _append(self, pcm: bytes) -> list[Message]:
        data = self._up.push(pcm)
        if self._binary:
            return [data]
        append = {"type": "input_audio_buffer.append", "audio": data}
        if self._dialect.bracketed and not self._speaking:
            self._speaking = True
            return [self._message({"type": "input_audio_buffer.commit", "final": False}), self._message(append)]
        return [self._message(append)]

    def _configured(self, configure: commands.Configure) -> dict[str, Any]:
        """What stands beside the type of a `session.update`."""
        row = self._dialect
        beside = {"model": configure.model} if row.model_place == "top" and configure.model is not None else {}
        if row.shape == "none":
            return beside | configure.extra
        session = configure_session(
            configure,
            row,
            input_rate_hz=self._input_rate_hz,
            output_rate_hz=self._output_rate_hz,
            transcription_model=self._transcription_model,
            binary=self._binary,
        )
        return beside | {"session": session}

    def _message(self, body: dict[str, Any]) -> str:
        self._sent += 1
        return _encode({"event_id": f"fp_{self._sent}"} | body).decode()
