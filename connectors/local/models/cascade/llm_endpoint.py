"""Any OpenAI-compatible chat endpoint as the language model, streamed over SSE (llama-server, vLLM, Ollama, …)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from connectors.codecs.chat_chunks import Chunk, Failure, Unreadable, read_chunk
from connectors.codecs.sse import SseEvent, SseReader
from connectors.local.models.cascade.endpoint import Endpoint
from connectors.local.models.cascade.llm import LlmOptions, Message
from harness.core.errors import ConfigError, ConnectorError

_LAST = b"[DONE]"


class EndpointLlm:
    """options.spec: the base URL; options.model: what the server calls its model."""

    def __init__(self, options: LlmOptions) -> None:
        if not options.model:
            raise ConfigError(f"llm={options.spec}: an endpoint needs the model's name, --set llm_model=NAME")
        self._options = options
        self.endpoint = Endpoint("llm", options.spec, options.key_env)

    @property
    def facts(self) -> dict[str, Any]:
        return {"llm": f"{self._options.model} at {self.endpoint.base}"}

    def load(self) -> None:
        """Nothing: the server has loaded."""

    def stream(self, messages: Sequence[Message], stop: threading.Event) -> Iterator[str]:
        body = {
            "model": self._options.model,
            "messages": list(messages),
            "stream": True,
            "max_tokens": self._options.max_tokens,
            "temperature": self._options.temperature,
        }
        reader = SseReader()
        for data in self.endpoint.post("/chat/completions", body, stop):
            yield from self._texts(reader.feed(data, 0))
        yield from self._texts(reader.finish(0))

    def _texts(self, events: Sequence[SseEvent]) -> Iterator[str]:
        for event in events:
            if event.data.strip() == _LAST:
                continue
            chunk = read_chunk(event.data, event.name)
            if isinstance(chunk, Failure | Unreadable):
                why = chunk.message if isinstance(chunk, Failure) else chunk.reason
                raise ConnectorError(f"llm={self.endpoint.base} failed in its answer: {why}", kind="peer")
            yield from _contents(chunk)


def _contents(chunk: Chunk) -> Iterator[str]:
    for choice in chunk.choices or ():
        said = choice.delta or choice.message
        if said is not None and said.content:
            yield said.content
