"""Qwen's Omni models on transformers, measured packet by packet: what 2.5 and 3 share.

`mode=incremental` steps thinker and talker together and decodes sound in growing blocks; `mode=stock` is one call of
`generate`. Nothing of torch is imported before `load`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from connectors.local.device import cpu_threads, place
from connectors.local.facts import model_facts
from connectors.local.model import Declaration, LocalModel, Output, Session
from connectors.local.models.qwen_hearing import FRAME, RATE_HZ, Hearing
from connectors.local.models.qwen_steps import Inputs, Never, Picker, Sampling, Thinker
from connectors.local.models.qwen_stock import TokenStreamer, one_shot
from connectors.local.models.qwen_stream import Talker, Waves, stream
from connectors.local.models.qwen_tokens import IM_END, AudioMarks, Exchange, Pieces, prompt
from connectors.local.models.qwen_weights import Loaded, random, stored
from harness.core.audio import Float32, Int16
from harness.core.errors import ConfigError, nearest
from harness.core.weights_mark import RANDOM
from harness.engines.extras import require

STOCK_TOKENS, STOCK_FRAMES = 1_024, 4_096
"""`generate`'s limits of text tokens and codec frames."""
RANDOM_TOKENS, RANDOM_SECONDS = 48, 8.0
"""Random weights never end by themselves: about what a short spoken answer has."""
HISTORY = 8
"""Earlier turns that the model is shown."""
SPEECH_LEVEL = 0.05
"""RMS of random weights' sound: -26 dBFS."""
WARM_UP_TOKENS, WARM_UP_FRAMES = 4, 48


class Limits(NamedTuple):
    tokens: int
    frames: int


class QwenOmni(LocalModel):
    """Settings: weights (a folder, a hub id or `random`), size (of random weights), revision (of a hub id), mode,
    sampling (`stock`: the talker draws, as `generate` does by default; `greedy`), text_tokens and audio_s (limits;
    0: stock's, with random weights 48 tokens and 8 s), first_frames, block_frames, left_frames, right_frames (blocks
    of `mode=incremental`, in codec frames; -1: the model's own), device, dtype, attention (`sdpa`, `eager`,
    `flash_attention_2`), threads (of torch on the CPU; 0: cores - 1), seed (of everything drawn).
    """

    hub_id: ClassVar[str]
    sizes: ClassVar[tuple[str, ...]]
    class_name: ClassVar[str]
    voice: ClassVar[str]
    frames_a_second: ClassVar[float]
    blocks: ClassVar[tuple[int, int, int, int]]
    """first, largest, left and right of blocks, in frames."""
    in_float32: ClassVar[tuple[str, ...]] = ()
    talker_sampling: ClassVar[Sampling]
    system: ClassVar[str] = ""

    def __init__(
        self,
        *,
        weights: str = "",
        size: str = "",
        revision: str = "",
        mode: Literal["incremental", "stock"] = "incremental",
        sampling: Literal["stock", "greedy"] = "stock",
        text_tokens: int = 0,
        audio_s: float = 0.0,
        first_frames: int = -1,
        block_frames: int = -1,
        left_frames: int = -1,
        right_frames: int = -1,
        device: str = "auto",
        dtype: str = "auto",
        attention: str = "sdpa",
        threads: int = 0,
        seed: int = 0,
    ) -> None:
        self._weights = weights or self.hub_id
        if size and self._weights != RANDOM:
            raise ConfigError(f"size={size} is for weights=random: real weights have the size they have")
        self._size = size or self.sizes[0]
        if self._size not in self.sizes:
            raise ConfigError(f"size={size}: {nearest(size, self.sizes)}")
        if min(text_tokens, audio_s, threads) < 0:
            raise ConfigError("text_tokens, audio_s and threads cannot be negative")
        self._revision = revision
        self._mode = mode
        self._greedy = sampling == "greedy"
        self._text_tokens = text_tokens
        self._audio_s = audio_s
        given = (first_frames, block_frames, left_frames, right_frames)
        self._blocks = tuple(own if value < 0 else value for value, own in zip(given, self.blocks, strict=True))
        if min(self._blocks[:2]) < 1:
            raise ConfigError("first_frames and block_frames are at least 1")
        self._device, self._dtype, self._attention = device, dtype, attention
        self._threads = threads
        self._seed = seed
        self._omni: Any = None
        self._blocks_change = -1.0
        self._hearing = Hearing(vad=False)
        self._past: list[tuple[Float32, list[int]]] = []
        self._voice = self.voice
        self._system: list[int] = []

    @property
    def declaration(self) -> Declaration:
        return Declaration(
            input_rate_hz=RATE_HZ,
            turns=("manual", "vad"),
            unit_samples=2 * FRAME,
            text="with_audio" if self._mode == "incremental" else "before_audio",
            step_limit_s=60.0,
            load_limit_s=1_800.0,
        )

    @property
    def facts(self) -> dict[str, Any]:
        change: dict[str, Any] = {}
        if self._blocks_change >= 0:
            change["blocks_change_sound_by"] = round(self._blocks_change, 6)
        return model_facts(
            self._at,
            weights=self._source,
            model=self._omni,
            revision=self._revision,
            attention=self._attention,
            mode=self._mode,
            sampling="greedy" if self._greedy else "stock",
            size=self._size if self._source == RANDOM else "",
            tokenizer="stand-in: made-up words in Qwen2's format" if self._source == RANDOM else "",
            vision_tower="not real: one layer" if self._source == RANDOM else "",
            answer_limit=f"{self._limits.tokens} text tokens, {self._limits.frames} codec frames",
            blocks=" ".join(map(str, self._blocks)) + " frames (first, largest, left, right)"
            if self._mode == "incremental"
            else "",
            transformers=require("transformers", "local").__version__,
            **change,
        )

    # --- loading --------------------------------------------------------------------------------------------------

    def load(self) -> None:
        self._torch = require("torch", "local")
        kind = getattr(require("transformers", "local"), self.class_name)
        self._at = place(self._device, self._dtype)
        self._use_threads()
        self._torch.manual_seed(self._seed)
        if self._weights == RANDOM:
            self._keep(random(kind, self._config(), self._at, self._attention, self.in_float32, self._seed))
        else:
            self._keep(stored(kind, self._weights, self._revision, self._at, self._attention, self.in_float32))

    def _keep(self, loaded: Loaded) -> None:
        self._omni, self._tokenizer, self._extractor, self._source, self._trained = loaded
        self._omni.eval().requires_grad_(False)
        self._bad_codes = () if self._trained else self._never_picked()
        own = self._omni.thinker.generation_config.eos_token_id
        ends = [own] if isinstance(own, int) else own or []
        self._ends = frozenset((IM_END, *ends))
        self._bad_tokens = () if self._trained else tuple(self._ends)
        tokens, seconds = (0, 0.0) if self._trained else (RANDOM_TOKENS, RANDOM_SECONDS)
        frames = round((self._audio_s or seconds) * self.frames_a_second)
        self._limits = Limits(self._text_tokens or tokens or STOCK_TOKENS, frames or STOCK_FRAMES)

    def warm_up(self) -> None:
        """An answer of one second, and how much blocks change the sound against decoding it in one piece."""
        self.start(Session(turn="manual"))
        if self._source == RANDOM:
            self._quieten()
        noise = np.random.default_rng(0).normal(0, 0.05, RATE_HZ).astype(np.float32)
        for _ in self._answer(noise, Limits(WARM_UP_TOKENS, WARM_UP_FRAMES)):
            pass
        if self._mode == "incremental":
            frames = [self._some_frame() for _ in range(2 * WARM_UP_FRAMES)]
            whole, blocks = (_all(waves, frames) for waves in (self._waves((len(frames), 1, 0, 0)), self._waves()))
            self._blocks_change = float(np.abs(whole - blocks).max())
        self._past = []

    def _use_threads(self) -> None:
        """Torch's threads on the CPU, which each thread of Python has to say for itself."""
        if self._at.device.type == "cpu":
            self._torch.set_num_threads(cpu_threads(self._threads))

    def _quieten(self) -> None:
        """Random decoders clip all they say: scale the last layer, so that sound has the level of speech."""
        layer, level = self._last_layer(), []
        with layer.register_forward_hook(lambda *called: level.append(float(called[2].std()))):
            _all(self._waves((WARM_UP_FRAMES, 1, 0, 0)), [self._some_frame() for _ in range(WARM_UP_FRAMES)])
        layer.weight.mul_(SPEECH_LEVEL / level[0])
        if layer.bias is not None:
            layer.bias.mul_(SPEECH_LEVEL / level[0])

    # --- a session ------------------------------------------------------------------------------------------------

    def start(self, session: Session) -> None:
        self._hearing = Hearing(session.turn == "vad", session.silence_ms)
        self._past = []
        self._voice = session.voice or self.voice
        known = self._voices()
        if self._voice not in known:
            raise ConfigError(f"voice={self._voice}: {nearest(self._voice, known)}")
        text = " ".join(part for part in (self.system, session.instructions) if part)
        self._system = list(self._tokenizer.encode(text, add_special_tokens=False)) if text else []

    def push_audio(self, pcm: Int16) -> list[Output]:
        return self._hearing.push(pcm)

    def end_turn(self) -> Iterator[Output]:
        # Taken now: audio that waits is heard before the generator's first step.
        return self._answer(self._hearing.take(), self._limits)

    def _answer(self, heard: Float32, limits: Limits) -> Iterator[Output]:
        pieces = Pieces(self._tokenizer)
        said: list[int] = []
        inputs = self._inputs(heard)
        self._past = [*self._past, (heard, said)][-HISTORY:]
        if self._mode == "stock":
            yield from one_shot(lambda streamer: self._generate(inputs, limits, streamer), pieces, self._parts(), said)
            return
        thinker = Thinker(
            self._omni.thinker,
            inputs,
            Picker(Sampling(), self._bad_tokens),
            self._ends,
            limits.tokens,
            self._kept(),
        )
        try:
            yield from stream(thinker, self._talker(thinker, limits), self._waves(), pieces)
        finally:
            said += thinker.answer

    def _inputs(self, heard: Float32) -> Inputs:
        """Prompt, mel frames of all turns and their mask, on the device."""
        turns = [*self._past, (heard, [])]
        features = self._extractor(
            [audio for audio, _ in turns],
            sampling_rate=RATE_HZ,
            padding="longest",
            truncation=False,
            return_attention_mask=True,
            return_tensors="pt",
        )
        exchanges = [
            Exchange(self._audio_tokens(len(audio) // FRAME), [token for token in said if token not in self._ends])
            for audio, said in turns
        ]
        ids = prompt(self._system, exchanges, self._marks())
        device = self._at.device
        return Inputs(
            self._torch.tensor([ids], device=device),
            features["input_features"].to(device, self._at.dtype),
            features["attention_mask"].to(device),
        )

    def _generate(self, inputs: Inputs, limits: Limits, streamer: TokenStreamer) -> Float32:
        """One call of `generate`; the sound, (n,)."""
        self._use_threads()
        self._torch.manual_seed(self._seed)
        drawn = self._talker_sampling().arguments
        arguments = {f"talker_{name}": value for name, value in drawn.items()}
        for part, never in (("thinker", self._bad_tokens), ("talker", self._bad_codes)):
            if never:
                processors = require("transformers", "local").LogitsProcessorList([Never(never)])
                arguments[f"{part}_logits_processor"] = processors
        _, wave = self._omni.generate(
            input_ids=inputs.ids,
            attention_mask=self._torch.ones_like(inputs.ids),
            input_features=inputs.features,
            feature_attention_mask=inputs.mask,
            speaker=self._voice,
            thinker_do_sample=False,
            thinker_streamer=streamer,
            thinker_eos_token_id=sorted(self._ends),
            **self._talker_ends(),
            thinker_max_new_tokens=limits.tokens,
            talker_max_new_tokens=limits.frames,
            **arguments,
        )
        return np.asarray(wave.reshape(-1).float().cpu().numpy(), dtype=np.float32)

    def _talker_sampling(self) -> Sampling:
        return self.talker_sampling._replace(sample=not self._greedy)

    def _talker_ends(self) -> dict[str, Any]:
        """For `generate`: ids that end the sound, where it takes them."""
        return {}

    # --- what differs ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _config(self) -> Any:
        """Of random weights of this size."""

    @abstractmethod
    def _marks(self) -> AudioMarks: ...

    @abstractmethod
    def _audio_tokens(self, frames: int) -> int:
        """Encoder outputs of so many mel frames."""

    @abstractmethod
    def _voices(self) -> list[str]: ...

    @abstractmethod
    def _never_picked(self) -> tuple[int, ...]:
        """First codes that random weights must not pick: the end, and what is no sound."""

    @abstractmethod
    def _kept(self) -> tuple[int, int]:
        """Hidden states of the thinker that the talker reads."""

    @abstractmethod
    def _talker(self, thinker: Thinker, limits: Limits) -> Talker: ...

    @abstractmethod
    def _waves(self, blocks: tuple[int, ...] = ()) -> Waves:
        """blocks: in place of the settings."""

    @abstractmethod
    def _some_frame(self) -> Any:
        """A random frame."""

    @abstractmethod
    def _last_layer(self) -> Any:
        """The convolution that makes the samples."""

    @abstractmethod
    def _parts(self) -> list[Any]:
        """Modules whose every call is a step."""


def _all(waves: Waves, frames: list[Any]) -> Float32:
    """All sound of `frames`, taken as it comes."""
    parts = []
    for index, frame in enumerate(frames):
        waves.push(frame)
        parts += [part for part in waves.take(final=index == len(frames) - 1) if part is not None]
    return np.concatenate(parts)
