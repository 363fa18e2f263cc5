"""Qwen2.5-Omni and Qwen3-Omni as local models: `--peer local:qwen2.5-omni`, `--peer local:qwen3-omni`."""

from __future__ import annotations

from typing import Any, ClassVar

from connectors.local.models import qwen_sizes
from connectors.local.models.qwen_blocks import Blocks
from connectors.local.models.qwen_omni import Limits, QwenOmni
from connectors.local.models.qwen_steps import Inputs, Picker, Sampling, Thinker
from connectors.local.models.qwen_stock import TokenStreamer
from connectors.local.models.qwen_talker3 import Talker3, kept
from connectors.local.models.qwen_talker25 import KEPT, Talker25
from connectors.local.models.qwen_tokens import AudioMarks
from connectors.local.models.qwen_waves3 import Waves3
from connectors.local.models.qwen_waves25 import Waves25
from connectors.local.models.qwen_weights import Loaded
from harness.core.audio import Float32

CODES_25 = 8_193
"""Codec ids that Qwen2.5-Omni's DiT has an embedding for: `dit_config.num_embeds`."""
VOICES_25 = {"Chelsie": 151_872, "Ethan": 151_870}
"""Voices of random weights, and the text ids that open an answer in them."""
REFERENCE_FRAMES = 300
"""Mel frames of a random voice's reference: 3 s."""


class Qwen25Omni(QwenOmni):
    """Qwen2.5-Omni, 7B or 3B. See `QwenOmni` for the settings."""

    hub_id = "Qwen/Qwen2.5-Omni-7B"
    sizes = ("7b", "3b", "tiny")
    class_name = "Qwen2_5OmniForConditionalGeneration"
    voice = "Chelsie"
    frames_a_second = 50.0
    blocks = (12, 48, 24, 12)
    in_float32 = ("token2wav",)
    talker_sampling = Sampling(sample=True, temperature=0.9, top_k=40, top_p=0.8, repetition_penalty=1.05)
    system = (
        "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of perceiving auditory and "
        "visual inputs, as well as generating text and speech."
    )
    """The model speaks only with this system message; source: the model card of Qwen/Qwen2.5-Omni-7B."""

    def _keep(self, loaded: Loaded) -> None:
        super()._keep(loaded)
        if self._omni.speaker_map:
            return
        dit = self._omni.config.token2wav_config.dit_config
        for name, begin in VOICES_25.items():
            generator = self._torch.Generator().manual_seed(begin)
            self._omni.speaker_map[name] = {
                "cond": self._torch.randn((1, dit.enc_emb_dim), generator=generator),
                "ref_mel": self._torch.randn((1, REFERENCE_FRAMES, dit.mel_dim), generator=generator),
                "bos_token": begin,
            }

    def _generate(self, inputs: Inputs, limits: Limits, streamer: TokenStreamer) -> Float32:
        with self._omni.talker.register_forward_pre_hook(_with_mask, with_kwargs=True):
            return super()._generate(inputs, limits, streamer)

    def _config(self) -> Any:
        return qwen_sizes.qwen25(self._size)

    def _marks(self) -> AudioMarks:
        config = self._omni.config.thinker_config
        return AudioMarks(config.audio_start_token_id, config.audio_token_index, config.audio_end_token_id)

    def _audio_tokens(self, frames: int) -> int:
        return ((frames - 1) // 2 - 1) // 2 + 1

    def _voices(self) -> list[str]:
        return list(self._omni.speaker_map)

    def _never_picked(self) -> tuple[int, ...]:
        return tuple(range(CODES_25, self._omni.config.talker_config.vocab_size)) + tuple(self._code_ends)

    @property
    def _code_ends(self) -> frozenset[int]:
        return frozenset((self._omni.talker.codec_pad_token, self._omni.talker.codec_eos_token))

    def _talker_ends(self) -> dict[str, Any]:
        return {"talker_eos_token_id": sorted(self._code_ends)}

    def _kept(self) -> tuple[int, int]:
        return KEPT

    def _talker(self, thinker: Thinker, limits: Limits) -> Talker25:
        never = (self._omni.talker.codec_bos_token, *self._bad_codes)
        picker = Picker(self._talker_sampling(), never)
        begin = int(self._omni.speaker_map[self._voice]["bos_token"])
        return Talker25(self._omni, thinker, begin, picker, self._code_ends, limits.frames)

    def _waves(self, blocks: tuple[int, ...] = ()) -> Waves25:
        dit = self._omni.token2wav.code2wav_dit_model
        first, largest, left, right = blocks or self._blocks
        voice = {
            key: self._omni.speaker_map[self._voice][key].to(self._at.device).float() for key in ("cond", "ref_mel")
        }
        align = dit.block_size // dit.repeats
        cut = Blocks(first=first, largest=largest, left=left, right=right, align=align)
        return Waves25(self._omni.token2wav, voice, cut, self._seed)

    def _some_frame(self) -> int:
        return int(self._torch.randint(CODES_25 - 1, (1,)))

    def _last_layer(self) -> Any:
        return self._omni.token2wav.code2wav_bigvgan_model.conv_post

    def _parts(self) -> list[Any]:
        return [self._omni.thinker, self._omni.talker, self._omni.token2wav.code2wav_dit_model]


def _with_mask(talker: Any, positional: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Give the talker's first call the attention mask that belongs to it.

    `generate` of transformers 5.24 drops a mask of ones, and without one `Qwen2_5OmniTalker...forward` leaves out the
    codec marks that open an answer in training: stock sound would not be the model's.
    """
    embedded = named.get("inputs_embeds")
    if embedded is not None and named.get("attention_mask") is None:
        named = {**named, "attention_mask": embedded.new_ones(embedded.shape[:2]).long()}
    return positional, named


class Qwen3Omni(QwenOmni):
    """Qwen3-Omni-30B-A3B. See `QwenOmni` for the settings."""

    hub_id = "Qwen/Qwen3-Omni-30B-A3B-Instruct"
    sizes = ("30b", "tiny")
    class_name = "Qwen3OmniMoeForConditionalGeneration"
    voice = "Ethan"
    frames_a_second = 12.5
    blocks = (4, 24, 25, 0)
    talker_sampling = Sampling(sample=True, temperature=0.9, top_k=50, top_p=1.0, repetition_penalty=1.05)
    rest_sampling: ClassVar[Sampling] = Sampling(sample=True, top_k=50, top_p=0.8)
    """How the codes after a frame's first are drawn: `prepare_inputs_for_generation` of transformers 5.24."""

    def _config(self) -> Any:
        return qwen_sizes.qwen3(self._size)

    def _marks(self) -> AudioMarks:
        config = self._omni.config.thinker_config
        # The end mark is in no configuration class; it follows the begin mark.
        return AudioMarks(config.audio_start_token_id, config.audio_token_id, config.audio_start_token_id + 1)

    def _audio_tokens(self, frames: int) -> int:
        """13 of each 100 frames; a shorter rest is halved three times, rounded up."""
        whole, rest = divmod(frames, 100)
        return 13 * whole + -(-rest // 8)

    def _voices(self) -> list[str]:
        return [name.capitalize() for name in self._omni.config.talker_config.speaker_id]

    def _never_picked(self) -> tuple[int, ...]:
        return (self._omni.config.talker_config.codec_eos_token_id,)

    def _marks_of_talker(self) -> tuple[int, ...]:
        """Ids that are no sound: the last 1,024, but for the end (`generate`)."""
        config = self._omni.config.talker_config
        size = config.text_config.vocab_size
        return tuple(code for code in range(size - 1_024, size) if code != config.codec_eos_token_id)

    def _kept(self) -> tuple[int, int]:
        return kept(self._omni.config)

    def _talker(self, thinker: Thinker, limits: Limits) -> Talker3:
        picker = Picker(self._talker_sampling(), (*self._marks_of_talker(), *self._bad_codes))
        rest = Picker(self.rest_sampling._replace(sample=not self._greedy))
        speaker = self._omni.config.talker_config.speaker_id[self._voice.lower()]
        return Talker3(self._omni, thinker, speaker, picker, rest, limits.frames)

    def _waves(self, blocks: tuple[int, ...] = ()) -> Waves3:
        first, largest, left, right = blocks or self._blocks
        return Waves3(self._omni.code2wav, Blocks(first=first, largest=largest, left=left, right=right))

    def _some_frame(self) -> Any:
        config = self._omni.config.code2wav_config
        return self._torch.randint(config.codebook_size, (1, config.num_quantizers, 1), device=self._at.device)

    def _last_layer(self) -> Any:
        return self._omni.code2wav.decoder[-1].conv

    def _parts(self) -> list[Any]:
        return [self._omni.thinker, self._omni.talker, self._omni.code2wav]
