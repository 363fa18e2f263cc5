"""The cascade's language model: what any of them is, and which one a line such as `llama.cpp:MODEL` names."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol, TypedDict

import msgspec

from harness.core.errors import ConfigError, nearest


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


class LanguageModel(Protocol):
    """Answers a conversation in text.

    facts: for the session header, under keys of its own; `weights` is `random` where they are.
    """

    @property
    def facts(self) -> dict[str, Any]: ...

    def load(self) -> None:
        """Bring the weights in, once. Raises PrerequisiteError or ConfigError."""
        ...

    def stream(self, messages: Sequence[Message], stop: threading.Event) -> Iterator[str]:
        """The answer piece by piece, each as soon as it is there; ends early once `stop` is set. Blocks; any thread,
        one answer at a time. Raises ConnectorError where an endpoint fails."""
        ...


class LlmOptions(msgspec.Struct, frozen=True, kw_only=True):
    """spec: `llama.cpp[:MODEL]`, `transformers:MODEL`, or the base URL of an OpenAI-compatible API (`…/v1`).
    model, key_env: of an endpoint. max_tokens: of one answer. temperature: 0 is greedy. threads: on a CPU."""

    spec: str
    model: str = ""
    key_env: str = ""
    max_tokens: int = 96
    temperature: float = 0.0
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 1


KINDS = ("llama.cpp", "transformers", "http://…", "https://…")


def make_llm(options: LlmOptions) -> LanguageModel:
    """The language model of `options`, not loaded. Raises ConfigError or PrerequisiteError."""
    kind, _, model = options.spec.partition(":")
    if kind in ("http", "https"):
        from connectors.local.models.cascade.llm_endpoint import EndpointLlm

        return EndpointLlm(options)
    if kind == "llama.cpp":
        from connectors.local.models.cascade.llm_llama_cpp import LlamaCpp

        return LlamaCpp(options, model)
    if kind == "transformers" and model:
        from connectors.local.models.cascade.llm_transformers import TransformersLlm

        return TransformersLlm(options, model)
    if kind == "transformers":
        raise ConfigError("llm=transformers: needs a model, llm=transformers:Qwen/Qwen3-8B or a folder")
    raise ConfigError(f"llm={options.spec}: no such language model; {nearest(kind, KINDS)}")
