"""What every scoring engine has in common: clips in, one result a clip out. The engines themselves are modules beside.

`harness.engines.registry` makes one from a line such as `asr:faster-whisper:whisper-base`; `harness.engines.pool` runs
one over many clips, in worker processes where that is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

from harness.core.audio import Float32
from harness.engines.asr import Transcript

Kind = Literal["asr", "mos", "emotion"]
T_co = TypeVar("T_co", covariant=True)


class Clip(NamedTuple):
    """One mono signal: float32 in [-1, 1], shape (n,), at `rate_hz`."""

    pcm: Float32
    rate_hz: int

    @property
    def seconds(self) -> float:
        return len(self.pcm) / self.rate_hz


Load = Callable[[], Clip]
"""Reads one clip when its turn comes, so that a thousand of them never lie in memory together."""


class EngineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Which engine, as text that reaches worker processes.

    model: pinned name, local path or hub id; empty for the engine's own choice. language: what an ASR engine is told;
    None lets it decide for each clip. device: `cpu`, `cuda`, or `auto` for the GPU where there is one. threads: of one
    engine on a CPU; 0 leaves it to the engine.
    """

    kind: Kind
    engine: str
    model: str = ""
    language: str | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int = 0


class ClipEngine(Protocol[T_co]):
    """One engine. Making it is cheap (paths and packages are checked, nothing is loaded), so a run whose results are
    all cached never loads a model. Not for an event loop.

    name: engine, model, version and decoding, for reports; contains `weights: random` where they are. fingerprint:
    sha256 of the weights and all that decides the result: equal fingerprints, equal results. device: `cpu` or `cuda`.
    batch: most clips that `run` gains from at once.
    """

    name: str
    fingerprint: str
    device: Literal["cpu", "cuda"]
    batch: int

    def load(self) -> None:
        """Load the weights, once. Raises ConfigError or PrerequisiteError where they are not what they should be."""
        ...

    def run(self, clips: Sequence[Clip]) -> Sequence[T_co]:
        """One result a clip, in order; loads first when that was not done. A clip's result does not depend on the
        clips beside it but for the last bits of its floats."""
        ...


BatchRecognizer = ClipEngine[Transcript]
"""ASR over many clips."""
QualityModel = ClipEngine[float]
"""Speech quality: a mean opinion score of 1 to 5 a clip."""
EmotionModel = ClipEngine[Mapping[str, float]]
"""Label to probability: `angry`, `happy`, `neutral`, `sad`, `surprised`, `unknown`; they add up to 1."""
