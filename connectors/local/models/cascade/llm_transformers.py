"""A causal language model in Transformers, stepped token by token, so that it can stop between any two."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from connectors.local.device import Place, place
from connectors.local.facts import model_facts
from connectors.local.models.cascade.llm import LlmOptions, Message
from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.extras import installed, require

_WANTED = ("*.json", "*.txt", "*.jinja", "*.model", "*.safetensors")
_UNFINISHED = "\ufffd"
"""What a decoder writes for a character whose last bytes are in a token to come."""


class TransformersLlm:
    """model: folder or hub id of a chat model with a chat template."""

    def __init__(self, options: LlmOptions, model: str) -> None:
        self._options = options
        self._name = model
        self._version = installed("transformers", "local")
        self._folder = Path()
        self._at: Place | None = None
        self._model: Any = None
        self._tokenizer: Any = None

    @property
    def facts(self) -> dict[str, Any]:
        assert self._at is not None
        found = model_facts(self._at, weights=self._folder, model=self._model)
        own = {
            "llm": f"{self._name} (transformers {self._version}, {found['dtype']} on {found['device']})",
            "llm_sha256": found.get("sha256", ""),
            "llm_attention": found.get("attention", ""),
        }
        return own | ({"weights": "random"} if found.get("weights") == "random" else {})

    def load(self) -> None:
        self._folder = store.resolve(self._name, hub_files=_WANTED)
        torch = require("torch", "local")
        transformers = require("transformers", "local")
        transformers.utils.logging.set_verbosity_error()
        self._at = place(self._options.device, self._options.dtype)
        if self._at.device.type == "cpu":
            torch.set_num_threads(self._options.threads)
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(str(self._folder))
            model = transformers.AutoModelForCausalLM.from_pretrained(str(self._folder), dtype=self._at.dtype)
        except (OSError, ValueError, KeyError) as exc:
            raise ConfigError(f"{self._name} is no language model that Transformers can load: {exc}") from exc
        if not getattr(self._tokenizer, "chat_template", None):
            raise ConfigError(f"{self._name} has no chat template: it is not a chat model")
        self._model = model.to(self._at.device).eval()

    def stream(self, messages: Sequence[Message], stop: threading.Event) -> Iterator[str]:
        assert self._at is not None
        prompt = self._tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=True, return_tensors="pt", return_dict=True, enable_thinking=False
        )
        torch = require("torch", "local")
        ids, cache = prompt["input_ids"].to(self._at.device), None
        ends = self._ends()
        answer: list[int] = []
        said = ""
        for _ in range(self._options.max_tokens):
            if stop.is_set():
                return
            with torch.inference_mode():
                out = self._model(input_ids=ids, past_key_values=cache, use_cache=True)
                token = self._pick(torch, out.logits[0, -1])
            cache = out.past_key_values
            ids = torch.tensor([[token]], device=self._at.device)
            if token in ends:
                break
            answer.append(token)
            text = self._tokenizer.decode(answer, skip_special_tokens=True)
            if not text.endswith(_UNFINISHED) and len(text) > len(said):
                yield text[len(said) :]
                said = text

    def _pick(self, torch: Any, logits: Any) -> int:
        if self._options.temperature <= 0:
            return int(logits.argmax())
        chances = torch.softmax(logits.float() / self._options.temperature, dim=-1)
        return int(torch.multinomial(chances, 1))

    def _ends(self) -> set[int]:
        """Tokens that end an answer."""
        configured = getattr(self._model.generation_config, "eos_token_id", None)
        found = configured if isinstance(configured, list) else [configured]
        return {token for token in (*found, self._tokenizer.eos_token_id) if token is not None}
