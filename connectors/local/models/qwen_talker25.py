"""The talker of Qwen2.5-Omni, one codec id a step, along with the thinker.

It reads the thinker's prompt once, then one text token per codec frame (50 a second): embedding plus last hidden state
of the token, the end mark after the last, padding from then on. Source: `Qwen2_5OmniForConditionalGeneration.generate`
of transformers 5.24, which builds the same sequence after the thinker has finished.
"""

from __future__ import annotations

from typing import Any

from connectors.local.models.qwen_steps import Picker, Thinker, cache_argument
from harness.engines.extras import require

KEPT = (0, -1)
"""Hidden states of the thinker that this talker reads: embeddings and the last layer."""


class Talker25:
    """Codec ids of one answer. begin: the voice's text id that opens the answer. ends: ids that close it."""

    def __init__(
        self, omni: Any, thinker: Thinker, begin: int, picker: Picker, ends: frozenset[int], limit: int
    ) -> None:
        transformers = require("transformers", "local")
        self._torch = require("torch", "local")
        self._model = omni.talker
        self._embed = omni.thinker.get_input_embeddings()
        self._audio = omni.config.thinker_config.audio_token_index
        self._thinker = thinker
        self._begin = begin
        self._picker = picker
        self._ends = ends
        self._limit = limit
        device = thinker.inputs.ids.device
        self._device = device
        count = thinker.inputs.ids.shape[1]
        opening = [omni.talker.codec_mask_token] * count + [omni.talker.codec_pad_token, omni.talker.codec_bos_token]
        self._ids = self._torch.tensor([opening], device=device)
        self._cache = {cache_argument(omni.talker): transformers.DynamicCache(config=omni.talker.config)}
        self._steps = 0
        self._stopped = False

    @property
    def done(self) -> bool:
        return self._stopped or (self._thinker.done and len(self._thinker.tokens) < 2)

    @property
    def ready(self) -> bool:
        """Whether the text that the next step reads is known."""
        return not self.done and (self._thinker.done or len(self._thinker.states) > self._steps + 1)

    def step(self) -> int | None:
        """One forward pass; the codec id that it brings, None at the end."""
        length = self._ids.shape[1]
        mask = self._torch.ones((1, length), dtype=self._torch.int64, device=self._device)
        if self._steps:
            out = self._model(
                input_ids=self._ids[:, -1:],
                thinker_reply_part=self._reply(self._steps),
                attention_mask=mask,
                use_cache=True,
                **self._cache,
            )
        else:
            out = self._model(inputs_embeds=self._prompt(), attention_mask=mask, use_cache=True, **self._cache)
        picked = self._picker.pick(self._ids, out.logits)
        self._ids = self._torch.cat((self._ids, picked), dim=1)
        self._steps += 1
        code = int(picked)
        self._stopped = code in self._ends or self._steps >= self._limit
        return None if code in self._ends else code

    def _prompt(self) -> Any:
        """(1, n + 2, width): the thinker's prompt with silent audio, the voice's mark, the first text token."""
        embedded, hidden = self._thinker.states[0]
        heard = (self._thinker.inputs.ids == self._audio).unsqueeze(-1)
        return self._torch.cat((hidden + embedded.masked_fill(heard, 0), self._token(self._begin), self._reply(0)), 1)

    def _reply(self, step: int) -> Any:
        """What is read at `step`, (1, 1, width). The thinker's last token is never read."""
        read = len(self._thinker.states) - 1
        if step < read:
            embedded, hidden = self._thinker.states[step + 1]
            return hidden + embedded
        return self._token(self._model.text_eos_token if step == read else self._model.text_pad_token)

    def _token(self, token: int) -> Any:
        return self._embed(self._torch.tensor([[token]], device=self._device))
