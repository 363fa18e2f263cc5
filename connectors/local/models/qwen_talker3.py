"""The talker of Qwen3-Omni, one frame of codes a step, along with the thinker.

A step draws the first code of a frame; the next step's beginning draws the others from it, so a frame is known one
step later. Each step reads one text token's embedding, the end mark after the last, padding from then on. Source:
`Qwen3OmniMoeForConditionalGeneration.generate` and `prepare_inputs_for_generation` of its talker, transformers 5.24.
"""

from __future__ import annotations

from typing import Any

from connectors.local.models.qwen_steps import Picker, Thinker, cache_argument
from connectors.local.models.qwen_tokens import IM_START, USER
from harness.engines.extras import require

OPENING_IDS = 3
"""Prompt ids that open the answer: the mark, the role, a line break."""


def kept(config: Any) -> tuple[int, int]:
    """Hidden states of the thinker that this talker reads: embeddings, and a middle layer for heard audio."""
    return 0, config.talker_config.accept_hidden_layer


class Talker3:
    """Frames of codes of one answer. speaker: the voice's codec id. rest: picks the codes after a frame's first."""

    def __init__(self, omni: Any, thinker: Thinker, speaker: int, picker: Picker, rest: Picker, limit: int) -> None:
        transformers = require("transformers", "local")
        self._torch = require("torch", "local")
        self._config = omni.config
        self._model = omni.talker
        self._embed_text = omni.thinker.get_input_embeddings()
        self._embed = omni.talker.get_input_embeddings()
        self._thinker = thinker
        self._speaker = speaker
        self._picker = picker
        self._rest = rest
        self._limit = limit
        self._device = thinker.inputs.ids.device
        # The prompt has no codec ids: nothing of it counts as repeated.
        self._ids = self._torch.empty((1, 0), dtype=self._torch.int64, device=self._device)
        self._cache_class = transformers.DynamicCache
        self._cache = {cache_argument(omni.talker): self._new_cache(omni.config.talker_config.text_config)}
        self._hidden: Any = None
        self._position = 0
        self._stopped = False

    @property
    def done(self) -> bool:
        return self._stopped or (self._thinker.done and len(self._thinker.tokens) < 2)

    @property
    def ready(self) -> bool:
        """Whether the text that the next step reads is known."""
        return not self.done and (self._thinker.done or len(self._thinker.tokens) > self._ids.shape[1])

    def step(self) -> Any | None:
        """One forward pass, after the rest of the last frame was drawn: that frame, (1, groups, 1), None at first."""
        step = self._ids.shape[1]
        frame = None
        if step:
            frame, embedded = self._complete(self._ids[:, -1:])
            embedded = embedded + self._text(step)
        else:
            embedded = self._prompt()
        length = embedded.shape[1]
        self._position += length
        out = self._model(
            inputs_embeds=embedded,
            attention_mask=self._torch.ones((1, self._position), dtype=self._torch.int64, device=self._device),
            generation_step=step - 1,
            use_cache=True,
            output_hidden_states=True,
            **self._cache,
        )
        self._hidden = out.hidden_states[0][-1][:, -1:]
        picked = self._picker.pick(self._ids, out.logits)
        self._ids = self._torch.cat((self._ids, picked), dim=1)
        self._stopped = int(picked) == self._config.talker_config.codec_eos_token_id or step + 1 >= self._limit
        return frame

    def _complete(self, first: Any) -> tuple[Any, Any]:
        """The frame whose first code is `first` (1, 1), and the sum of its codes' embeddings, (1, 1, width)."""
        predictor = self._model.code_predictor
        tables = predictor.get_input_embeddings()
        cache = {cache_argument(predictor): self._new_cache(predictor.config)}
        codes, embedded = [first], [self._embed(first)]
        out = predictor(inputs_embeds=self._torch.cat((self._hidden, embedded[0]), 1), use_cache=True, **cache)
        for group in range(1, self._config.talker_config.num_code_groups):
            picked = self._rest.pick(self._torch.cat(codes[1:] or [first[:, :0]], 1), out.logits)
            codes.append(picked)
            embedded.append(tables[group - 1](picked))
            if group < self._config.talker_config.num_code_groups - 1:
                out = predictor(input_ids=picked, generation_steps=group, use_cache=True, **cache)
        return self._torch.stack(codes, 1).squeeze(-1).unsqueeze(-1), self._torch.cat(embedded, 1).sum(1, keepdim=True)

    def _prompt(self) -> Any:
        """(1, n + 9, width): what the users said, then the answer's opening on the text and the codec track."""
        config = self._config.talker_config
        ids = self._thinker.inputs.ids[0]
        embedded, hidden = self._thinker.states[0]
        users = self._user_parts(ids.tolist())
        read = self._model.text_projection(embedded)
        heard = ids == self._config.thinker_config.audio_token_id
        read[:, heard] = self._model.hidden_projection(hidden[:, heard])
        opening = self._model.text_projection(embedded[:, -OPENING_IDS:])
        pad, begin = self._marks(self._config.tts_pad_token_id), self._marks(self._config.tts_bos_token_id)
        text = self._torch.cat((opening, pad.expand(1, 4, -1), begin, self._word(0)), 1)
        codec = self._embed(
            self._torch.tensor(
                [
                    [
                        config.codec_nothink_id,
                        config.codec_think_bos_id,
                        config.codec_think_eos_id,
                        self._speaker,
                        config.codec_pad_id,
                        config.codec_bos_id,
                    ]
                ],
                device=self._device,
            )
        )
        text[:, OPENING_IDS:] += codec
        return self._torch.cat((read[:, users], text), 1)

    def _user_parts(self, ids: list[int]) -> Any:
        """Which of the prompt's ids lie in messages of the user, as a mask over them."""
        mask, inside = [], False
        for index, token in enumerate(ids):
            if token == IM_START:
                inside = ids[index + 1] == USER
            mask.append(inside)
        return self._torch.tensor(mask, device=self._device)

    def _text(self, step: int) -> Any:
        """What is read at `step`, from 1. The thinker's last token is never read."""
        last = len(self._thinker.tokens) - 1 if self._thinker.done else step + 1
        if step < last:
            return self._word(step)
        return self._marks(self._config.tts_eos_token_id if step == last else self._config.tts_pad_token_id)

    def _word(self, index: int) -> Any:
        return self._marks(self._thinker.tokens[index])

    def _marks(self, token: int) -> Any:
        return self._model.text_projection(self._embed_text(self._torch.tensor([[token]], device=self._device)))

    def _new_cache(self, config: Any) -> Any:
        return self._cache_class(config=config)
