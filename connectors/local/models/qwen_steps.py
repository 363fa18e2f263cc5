"""Steps of an autoregressive model: the next id from its scores, and the thinker of Qwen's Omni models token by token.

What `generate` does inside, opened up so that each id is known when it is, and so that the talker may step along.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.engines.extras import require


class Sampling(NamedTuple):
    """How ids are drawn, in the terms of transformers' `generate`. sample: False takes the most likely one."""

    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0

    @property
    def arguments(self) -> dict[str, Any]:
        """The same for `generate`."""
        drawn = {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p} if self.sample else {}
        return {"do_sample": self.sample, "repetition_penalty": self.repetition_penalty, **drawn}


class Inputs(NamedTuple):
    """A prompt on the device. ids: (1, n) int64. features: (audios, mels, frames); mask: (audios, frames) int64."""

    ids: Any
    features: Any
    mask: Any


class Never:
    """A logits processor, for `generate` too: `ids` are never picked.

    Not transformers' own class, as `generate` would drop the one that it makes itself for a second of its kind.
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = require("torch", "local").tensor(sorted(ids))

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self._ids = self._ids.to(scores.device)
        return scores.index_fill(1, self._ids, -float("inf"))


class Picker:
    """The next id from the scores of a step, processed in `generate`'s order. never: ids that are not picked."""

    def __init__(self, sampling: Sampling, never: Sequence[int] = ()) -> None:
        transformers = require("transformers", "local")
        self._torch = require("torch", "local")
        self._sample = sampling.sample
        self._processors = transformers.LogitsProcessorList()
        if sampling.repetition_penalty != 1.0:
            self._processors.append(transformers.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
        if never:
            self._processors.append(Never(never))
        if sampling.sample and sampling.temperature != 1.0:
            self._processors.append(transformers.TemperatureLogitsWarper(sampling.temperature))
        if sampling.sample and sampling.top_k:
            self._processors.append(transformers.TopKLogitsWarper(sampling.top_k))
        if sampling.sample and sampling.top_p < 1.0:
            self._processors.append(transformers.TopPLogitsWarper(sampling.top_p))

    def pick(self, ids: Any, logits: Any) -> Any:
        """The id after `ids`, both (1, n), from `logits` (1, n, vocabulary): a tensor of shape (1, 1)."""
        scores = self._processors(ids, logits[:, -1, :].to(copy=True, dtype=self._torch.float32))
        if self._sample:
            return self._torch.multinomial(scores.softmax(dim=-1), num_samples=1)
        return scores.argmax(dim=-1, keepdim=True)


def cache_argument(model: Any) -> str:
    """What `forward` calls its key-value cache: transformers renamed it during version 5."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def positions(start: int, count: int, device: Any) -> Any:
    """Equal rows of positions, (3, 1, count): what multimodal rotary embedding comes to without pictures."""
    torch = require("torch", "local")
    return torch.arange(start, start + count, device=device).expand(3, 1, count)


class Thinker:
    """Text tokens, one a step; keeps what the talker needs. Step 0 reads the prompt, step i reads token i - 1.

    kept: hidden states kept of each step, as indices into the model's list (0: embeddings, -1: the last).
    """

    def __init__(
        self, model: Any, inputs: Inputs, picker: Picker, ends: frozenset[int], limit: int, kept: tuple[int, ...]
    ) -> None:
        transformers = require("transformers", "local")
        self._torch = require("torch", "local")
        self._model = model
        self.inputs = inputs
        self._ids = inputs.ids
        self._picker = picker
        self._ends = ends
        self._limit = limit
        self._kept = kept
        self._cache = {cache_argument(model): transformers.DynamicCache(config=model.config.get_text_config())}
        self.tokens: list[int] = []
        self.states: list[tuple[Any, ...]] = []
        """Of each step, the kept hidden states, (1, n, width)."""
        self.done = False

    @property
    def answer(self) -> list[int]:
        """Token ids without the final mark."""
        return self.tokens[:-1] if self.tokens and self.tokens[-1] in self._ends else self.tokens

    def step(self) -> int:
        """One forward pass; the token that it brings."""
        if self.tokens:
            ids, heard = self._ids[:, -1:], {}
        else:
            ids, heard = self.inputs.ids, self._heard()
        out = self._model(
            input_ids=ids,
            position_ids=positions(self._ids.shape[1] - ids.shape[1], ids.shape[1], ids.device),
            use_cache=True,
            output_hidden_states=True,
            return_dict=True,
            **heard,
            **self._cache,
        )
        self.states.append(tuple(out.hidden_states[index] for index in self._kept))
        picked = self._picker.pick(self._ids, out.logits)
        self._ids = self._torch.cat((self._ids, picked), dim=1)
        token = int(picked)
        self.tokens.append(token)
        self.done = token in self._ends or len(self.tokens) >= self._limit
        return token

    def _heard(self) -> dict[str, Any]:
        return {"input_features": self.inputs.features, "feature_attention_mask": self.inputs.mask}
