"""Makes the bundled clips: `python -m scenarios.packs.make_packs --out DIR` writes DIR/queries, DIR/answers,
DIR/duplex-en and DIR/duplex-zh; `--only NAME` one of them.

Needs the extra `tts`. The same machine and package versions give the same samples; other ones may differ by rounding,
which is why the clips are in the tree and the script is here to show where they come from.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import soundfile

from harness.core.audibility import first_audible_sample
from harness.core.audio import (
    Float32,
    Int16,
    audio_sha256,
    db_to_power,
    float_to_int16,
    int16_to_float,
    ms_to_samples,
    window_power,
)
from harness.core.errors import HarnessError
from harness.engines.tts import KokoroSynthesizer, Synthesizer
from scenarios.annotator import annotate
from scenarios.packs.noises import make_noise
from scenarios.packs.recipes import ANSWERS, QUERIES, Recipe
from scenarios.packs.recipes_duplex import BACKGROUND_DB, DUPLEX, NOISES, SPELLING, NoiseRecipe

LICENCE = "audio: Kokoro-82M (Apache-2.0); text: firstpacket (Apache-2.0)"
NOISE_LICENCE = "audio: firstpacket (Apache-2.0)"
RATE_HZ = 24_000
LEAD_MS = 200
TAIL_MS = 300
ONSET_MS = 2
"""What an answer keeps before its first audible sample: room for a fade-in, no silence."""
ACTIVE_LEVEL_DB = -19.0
PEAK_DB = -1.0
FADE_MS = 2
PACKS = ("queries", "answers", "duplex-en", "duplex-zh")


def active_level_power(samples: Float32, rate_hz: int) -> float:
    """Mean square over the 10 ms windows within 35 dB of the loudest one: the level without the pauses."""
    window = ms_to_samples(10, rate_hz)
    power = window_power(float_to_int16(samples), window, window)
    return float(power[power >= power.max() * db_to_power(-35.0)].mean())


def levelled(samples: Float32, rate_hz: int) -> Float32:
    """Scaled to an active level of -19 dBFS, or less where the peak would pass -1 dBFS; never limited or clipped."""
    gain = (db_to_power(ACTIVE_LEVEL_DB) / active_level_power(samples, rate_hz)) ** 0.5
    ceiling = db_to_power(PEAK_DB) ** 0.5 / float(np.abs(samples).max())
    return (samples * np.float32(min(gain, ceiling))).astype(np.float32)


def cut(samples: Float32, start: int, end: int, rate_hz: int) -> Float32:
    """samples[start:end] with zeros where that reaches beyond the signal, and short fades at the signal's ends."""
    inside = samples[max(start, 0) : min(end, len(samples))].copy()
    ramp = np.linspace(0.0, 1.0, ms_to_samples(FADE_MS, rate_hz), endpoint=False, dtype=np.float32)
    inside[: len(ramp)] *= ramp
    inside[len(inside) - len(ramp) :] *= ramp[::-1]
    return np.pad(inside, (max(-start, 0), max(end - len(samples), 0)))


def spoken(synthesizer: Synthesizer, recipe: Recipe) -> tuple[Float32, int]:
    """The recipe as the model says it: phrases trimmed to their speech, joined by the pause, levelled."""
    phrases: list[Float32] = []
    rate_hz = 0
    for phrase in recipe.phrases:
        samples, rate_hz = synthesizer.speak(SPELLING.get(phrase, phrase), recipe.voice, recipe.language)
        marks = annotate(float_to_int16(np.pad(samples, rate_hz // 4)), rate_hz)
        margin = ms_to_samples(recipe.pause_ms / 2 if recipe.pause_ms else 100, rate_hz)
        offset = rate_hz // 4
        phrases.append(cut(samples, marks.speech_start - offset - margin, marks.speech_end - offset + margin, rate_hz))
    return levelled(np.concatenate(phrases), rate_hz), rate_hz


def as_query(samples: Float32, rate_hz: int) -> Int16:
    """200 ms before the speech, 300 ms after it."""
    marks = annotate(float_to_int16(samples), rate_hz)
    lead, tail = ms_to_samples(LEAD_MS, rate_hz), ms_to_samples(TAIL_MS, rate_hz)
    return float_to_int16(cut(samples, marks.speech_start - lead, marks.speech_end + tail, rate_hz))


def as_answer(samples: Float32, rate_hz: int) -> Int16:
    """From 2 ms before the first audible sample to 100 ms after the speech."""
    pcm = float_to_int16(samples)
    onset = first_audible_sample(pcm, rate_hz)
    if onset is None:
        raise ValueError("the answer is not audible")
    end = annotate(pcm, rate_hz).speech_end + ms_to_samples(100, rate_hz)
    return float_to_int16(cut(int16_to_float(pcm), onset - ms_to_samples(ONSET_MS, rate_hz), end, rate_hz))


def as_background(samples: Float32, rate_hz: int) -> Int16:
    """As a query, 12 dB below the user's own voice."""
    return as_query((samples * np.float32(db_to_power(BACKGROUND_DB) ** 0.5)).astype(np.float32), rate_hz)


def write_duplex_pack(folder: Path, language: str, synthesizer: Synthesizer) -> None:
    """A duplex pack's clips: what the user says, other people, and noises."""
    people = [recipe for recipe in DUPLEX[language] if "-bg-" in recipe.id]
    own = [recipe for recipe in DUPLEX[language] if "-bg-" not in recipe.id]
    rows = _write_spoken(folder, own, as_query, synthesizer)
    rows += _write_spoken(folder, people, as_background, synthesizer)
    rows += [_write_noise(folder, recipe) for recipe in NOISES[language]]
    (folder / "manifest.jsonl").write_bytes(b"\n".join(rows) + b"\n")


def _write_noise(folder: Path, recipe: NoiseRecipe) -> bytes:
    """One noise with its own marks: it sounds from after the lead to before the tail."""
    lead, tail = ms_to_samples(LEAD_MS, RATE_HZ), ms_to_samples(TAIL_MS, RATE_HZ)
    sound = levelled(make_noise(recipe, RATE_HZ), RATE_HZ)
    samples = float_to_int16(cut(sound, -lead, len(sound) + tail, RATE_HZ))
    soundfile.write(folder / f"{recipe.id}.flac", samples, RATE_HZ, format="FLAC", subtype="PCM_16")
    row = {
        "id": recipe.id,
        "audio": f"{recipe.id}.flac",
        "text": recipe.text,
        "lang": recipe.language,
        "voice": "",
        "sha256": audio_sha256(samples),
        "speech_start": lead,
        "speech_end": lead + len(sound),
        "licence": NOISE_LICENCE,
    }
    return msgspec.json.encode(row)


def write_pack(
    folder: Path, recipes: Sequence[Recipe], shape: Callable[[Float32, int], Int16], synthesizer: Synthesizer
) -> None:
    """Synthesise the recipes into `folder`: one FLAC each, and the manifest."""
    rows = _write_spoken(folder, recipes, shape, synthesizer)
    (folder / "manifest.jsonl").write_bytes(b"\n".join(rows) + b"\n")


def _write_spoken(
    folder: Path, recipes: Sequence[Recipe], shape: Callable[[Float32, int], Int16], synthesizer: Synthesizer
) -> list[bytes]:
    """The clips, and their rows for the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[bytes] = []
    for recipe in recipes:
        speech, rate_hz = spoken(synthesizer, recipe)
        samples = shape(speech, rate_hz)
        marks = annotate(samples, rate_hz)
        soundfile.write(folder / f"{recipe.id}.flac", samples, rate_hz, format="FLAC", subtype="PCM_16")
        row = {
            "id": recipe.id,
            "audio": f"{recipe.id}.flac",
            "text": recipe.text,
            "lang": recipe.language,
            "voice": recipe.voice,
            "sha256": audio_sha256(samples),
            "speech_start": marks.speech_start,
            "speech_end": marks.speech_end,
            "licence": LICENCE,
        }
        rows.append(msgspec.json.encode(row))
        print(f"{recipe.id}  {len(samples) / rate_hz:4.1f} s  {recipe.text}", file=sys.stderr)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Command line: --out DIR [--only NAME]."""
    parser = argparse.ArgumentParser(description="Make the bundled clips with Kokoro-82M.")
    parser.add_argument("--out", type=Path, required=True, help="folder that receives one folder a pack")
    parser.add_argument("--only", choices=PACKS, help="make this pack alone")
    arguments = parser.parse_args(argv)
    out: Path = arguments.out
    try:
        synthesizer = KokoroSynthesizer()
        for name in [arguments.only] if arguments.only else PACKS:
            if name == "queries":
                write_pack(out / name, QUERIES, as_query, synthesizer)
            elif name == "answers":
                write_pack(out / name, ANSWERS, as_answer, synthesizer)
            else:
                write_duplex_pack(out / name, name.removeprefix("duplex-"), synthesizer)
    except HarnessError as exc:
        print(exc, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
