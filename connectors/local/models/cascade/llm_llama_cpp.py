"""A GGUF model in llama.cpp, in this process, by the package `xllamacpp` (wheels for Linux, macOS and Windows)."""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from connectors.local.models.cascade.llm import LlmOptions, Message
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError
from harness.engines import store
from harness.engines.extras import installed
from harness.engines.pinned import QWEN_CODER_05B
from harness.engines.weights import label, sha256_of

CONTEXT_TOKENS = 4096
ALL_LAYERS = 999
_WARNINGS = 2
"""llama.cpp's level of logging that tells errors and warnings only."""


class LlamaCpp:
    """model: name of a pinned model, a `.gguf` file or a folder with one; by default Qwen2.5-Coder-0.5B-Instruct Q4,
    the small one that packages hold."""

    def __init__(self, options: LlmOptions, model: str) -> None:
        self._options = options
        self._model = model or QWEN_CODER_05B.name
        self._server: Any = None
        self._file = Path()
        try:
            self._version = installed("xllamacpp", "local")
        except PrerequisiteError as exc:
            raise PrerequisiteError("llm=llama.cpp needs xllamacpp: pip install xllamacpp") from exc

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "llm": label(f"{self._model} (llama.cpp by xllamacpp {self._version})", self._file),
            "llm_sha256": sha256_of([self._file]),
        }

    def load(self) -> None:
        self._file = _gguf(store.resolve(self._model, hub_files=("*.gguf",)))
        xllamacpp = importlib.import_module("xllamacpp")
        params = xllamacpp.CommonParams()
        params.model.path = str(self._file)
        params.n_ctx, params.n_parallel = CONTEXT_TOKENS, 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._options.threads
        params.n_gpu_layers = 0 if self._options.device == "cpu" else ALL_LAYERS
        params.verbosity = _WARNINGS
        try:
            self._server = xllamacpp.Server(params)
        except (RuntimeError, ValueError) as exc:
            raise ConfigError(f"{self._file} cannot be loaded by llama.cpp: {exc}") from exc

    def stream(self, messages: Sequence[Message], stop: threading.Event) -> Iterator[str]:
        # Its stream is a callback in a call that blocks: another thread makes it an iterator.
        pieces: queue.SimpleQueue[str | Exception | None] = queue.SimpleQueue()
        left = threading.Event()
        request = {
            "messages": list(messages),
            "max_tokens": self._options.max_tokens,
            "temperature": self._options.temperature,
            "stream": True,
            "chat_template_kwargs": {"enable_thinking": False},
        }

        def take(chunk: Any) -> bool:
            """Whether to stop."""
            failure = chunk.get("error") if isinstance(chunk, dict) else f"it sent {str(chunk)[:100]!r}"
            if failure:
                pieces.put(ConnectorError(f"llama.cpp failed: {failure}", kind="peer"))
                return True
            for choice in chunk.get("choices", ()):
                if text := choice.get("delta", {}).get("content"):
                    pieces.put(text)
            return stop.is_set() or left.is_set()

        def answer() -> None:
            try:
                self._server.handle_chat_completions(request, take)
                pieces.put(None)
            except Exception as exc:  # noqa: BLE001  told to who waits
                pieces.put(exc)

        thread = threading.Thread(target=answer, name="llama.cpp", daemon=True)
        thread.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            left.set()
            thread.join()


def _gguf(path: Path) -> Path:
    """The one GGUF file of `path`, or the first of a model in several. Raises ConfigError."""
    if path.is_file():
        return path
    found = sorted(path.rglob("*.gguf"))
    if not found:
        raise ConfigError(f"{path} holds no .gguf file")
    return found[0]
