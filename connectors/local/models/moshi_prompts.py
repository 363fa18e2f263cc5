"""PersonaPlex's prompts: a voice, then a role in words, forced into the model step by step before the user is heard.

A frame is one step's text and codes; what is forced at a step is the next frame's text and first codebook, and this
frame's other codebooks, which lag by one. Source of order, fillers and files: NVIDIA/personaplex, moshi/models/lm.py
(2026-03).
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import ConfigError, nearest
from harness.engines.extras import require

PAD = 3
"""Text of a frame without words."""
SILENCE = (948, 243, 1178, 546, 1736, 1030, 1978, 2008)
"""Mimi's codes of silence: what the agent says meanwhile."""
SINE = (430, 1268, 381, 1611, 1095, 1495, 56, 472)
"""Mimi's codes of a 440 Hz tone: what stands for the user meanwhile."""
PAUSE_FRAMES = 6
"""0.5 s after the voice and after the words."""
VOICES = "voices"
DEFAULT_VOICE = "NATF2.pt"


class Frame(NamedTuple):
    """text: a token. codes: of the agent's 8 codebooks."""

    text: int
    codes: tuple[int, ...]


class Voice(NamedTuple):
    """A voice as it was recorded into the model. embeddings: (steps, 1, 1, dim), inputs of the transformer. cache:
    (1, 17, positions), the ring of tokens after the frame that followed them."""

    embeddings: Any
    cache: Any


class Forced:
    """What `LMGen`'s hooks write over the model's own choice; None: nothing."""

    def __init__(self) -> None:
        self.text: int | None = None
        self.codes: Any = None

    def on_text(self, tokens: Any) -> None:
        """tokens: (1,), changed in place."""
        if self.text is not None:
            tokens.fill_(self.text)

    def on_audio(self, codes: Any) -> None:
        """codes: (1, 8), changed in place; the first is the model's own."""
        if self.codes is not None:
            codes[:, 1:] = self.codes[1:]


def words(text: str, pieces: Any) -> list[Frame]:
    """The frames of a role; empty text has the pauses alone."""
    said = text.strip()
    if said and not (said.startswith("<system>") and said.endswith("<system>")):
        said = f"<system> {said} <system>"
    pause = [Frame(PAD, SILENCE)] * PAUSE_FRAMES
    return [*pause, *(Frame(token, SILENCE) for token in (pieces.encode(said) if said else [])), *pause]


def play(gen: Any, forced: Forced, frames: Sequence[Frame]) -> None:
    """Step `gen` through `frames`. After the last, text and first codebook of the next frame are the model's own."""
    torch = require("torch", "local")
    device = gen.lm_model.device
    user = torch.tensor(SINE, device=device).view(1, len(SINE), 1)
    for frame, after in zip_longest(frames, frames[1:]):
        codes = torch.tensor(frame.codes, device=device)
        if after is not None:
            forced.text = after.text
            codes[0] = after.codes[0]
            gen.step(user, codes.view(1, -1, 1))
        else:
            forced.text, forced.codes = None, codes
            gen.step(user)
    forced.codes = None


def replay(gen: Any, voice: Voice) -> Frame:
    """Bring `gen`, which has just been reset, to where `voice` was recorded; the frame that is under way there."""
    state, steps = gen._streaming_state, len(voice.embeddings)
    for embedding in voice.embeddings:
        gen.lm_model.transformer(embedding.to(state.cache.device, gen.lm_model.dtype))
    state.offsets.fill_(steps)
    now, later = (voice.cache[:, :, position % voice.cache.shape[2]] for position in (steps, steps + 1))
    state.cache[:, :, steps % state.cache.shape[2]] = now.to(state.cache.device)
    text, first = now[0, :2].tolist()
    return Frame(text, (first, *later[0, 2 : 1 + len(SILENCE)].tolist()))


def voice_of(folder: Path, name: str) -> Voice:
    """A voice by its name in `folder`'s `voices` (or `voices.tgz`), or by path. Raises ConfigError."""
    torch = require("torch", "local")
    name = name or DEFAULT_VOICE
    for path in (folder / VOICES / name, Path(name).expanduser()):
        if path.is_file():
            held: Any = path
            break
    else:
        held = _packed(folder, name)
    if not name.endswith(".pt"):
        raise ConfigError(f"voice={name}: needs a recorded voice (.pt), as the weights bring some in {VOICES}")
    try:
        found = torch.load(held, map_location="cpu", weights_only=True)
        voice = Voice(found["embeddings"], found["cache"])
    except Exception as exc:
        raise ConfigError(f"voice={name}: is no voice of PersonaPlex") from exc
    return voice


def _packed(folder: Path, name: str) -> io.BytesIO:
    """A voice inside `voices.tgz`. Raises ConfigError for one that is nowhere."""
    known = sorted(path.name for path in (folder / VOICES).glob("*.pt"))
    archive = folder / f"{VOICES}.tgz"
    if archive.is_file():
        with tarfile.open(archive) as tar:
            for member in tar:
                file = tar.extractfile(member) if Path(member.name).name == name else None
                if file is not None:
                    return io.BytesIO(file.read())
                known.append(Path(member.name).name)
    raise ConfigError(f"voice={name}: {nearest(name, [voice for voice in known if voice.endswith('.pt')])}")
