"""Applying impairments to a clip: one float pass, marks inherited from the clean clip, a new sha256."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from harness.core.audio import Float64, audio_sha256, float_to_int16, int16_to_float
from scenarios.clip import Clip, read_only
from scenarios.impairments import reverb
from scenarios.impairments.channel import clip_peaks, far_field, lose
from scenarios.impairments.noise import babble, mix, pink, white
from scenarios.impairments.seeded import generator
from scenarios.impairments.spec import JOINT, Spec


class Impaired(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A transformed clip. applied: what was done, joined by `+`, each spec with its method. gain_db: level change of
    the whole that kept its peak below full scale (0: none was needed); it changes no ratio inside."""

    clip: Clip
    applied: str
    gain_db: float


def impair(clip: Clip, specs: Sequence[Spec], *, seed: str, voices: Sequence[Clip] = ()) -> Impaired:
    """Apply `specs` from left to right to `clip`, at the clip's own rate.

    seed: a name; the same name, clip and specs give the same samples. voices: what babble is mixed from (`clip` itself
    is left out). Only reverberation changes the length: it appends its tail, which is no speech. Raises ConfigError for
    a clip or noise without level, PrerequisiteError for a reverberation whose package is missing.
    """
    if not specs:
        return Impaired(clip=clip, applied="", gain_db=0.0)
    span = slice(clip.speech_start, clip.speech_end)
    others = [voice for voice in voices if voice.id != clip.id]
    x = int16_to_float(clip.samples).astype(np.float64)
    applied: list[str] = []
    for number, spec in enumerate(specs):
        if spec.name == "reverb":
            spec = Spec(spec.name, reverb.method(spec.variant), spec.value)
        random = generator("impairment", seed, number, str(spec), clip.id, clip.rate_hz)
        x = _apply(spec, x, clip.rate_hz, span, random, others)
        applied.append(str(spec))
    peak = float(np.max(np.abs(x), initial=0.0))
    highest = 32767.0 / 32768.0
    gain = highest / peak if peak > highest else 1.0
    samples = read_only(float_to_int16(x * gain))
    return Impaired(
        clip=msgspec.structs.replace(
            clip, samples=samples, sha256=audio_sha256(samples), impairment=JOINT.join(applied)
        ),
        applied=JOINT.join(applied),
        gain_db=20.0 * float(np.log10(gain)),
    )


def _apply(
    spec: Spec, x: Float64, rate_hz: int, span: slice, random: np.random.Generator, voices: Sequence[Clip]
) -> Float64:
    if spec.name == "noise":
        return mix(x, _noise(spec.variant, len(x), rate_hz, random, voices), spec.value, span)
    if spec.name == "reverb":
        return reverb.reverberate(x, reverb.response(spec.variant, spec.value, rate_hz, random), span)
    if spec.name == "far_field":
        return far_field(x, rate_hz, spec.value)
    if spec.name == "loss":
        return lose(x, rate_hz, spec.value, random)
    return clip_peaks(x, spec.value, span)


def _noise(kind: str, n: int, rate_hz: int, random: np.random.Generator, voices: Sequence[Clip]) -> Float64:
    if kind == "babble":
        return babble(n, rate_hz, voices, random)
    return pink(n, rate_hz, random) if kind == "pink" else white(n, random)
