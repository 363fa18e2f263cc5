"""`python -m tests.bench_asr [asr:ENGINE[:MODEL]]`: the pool against the plain loop, on spoken clips of the packs."""

from __future__ import annotations

import sys
from pathlib import Path

import soundfile

from harness.core.clock import SystemClock
from harness.engines.clip_engine import Clip, Load
from harness.engines.comparison import compare
from harness.engines.registry import parse_spec

PACKS = Path(__file__).parent.parent / "scenarios" / "packs"
CLIPS = 20


def spoken() -> list[Load]:
    """Twenty clips from all packs, noise left out."""
    files = [file for file in sorted(PACKS.glob("*/*.flac")) if not {"noise", "bg"} & set(file.stem.split("-"))]
    return [_load(file) for file in files[:: max(1, len(files) // CLIPS)][:CLIPS]]


def _load(file: Path) -> Load:
    def now() -> Clip:
        pcm, rate_hz = soundfile.read(file, dtype="float32", always_2d=True)
        return Clip(pcm[:, 0].copy(), rate_hz)

    return now


def main() -> None:
    spec = parse_spec(sys.argv[1] if len(sys.argv) > 1 else "asr:faster-whisper", device="cpu")
    found = compare(spec, spoken(), SystemClock())
    print(f"{found.engine}: {found.clips} clips, {found.seconds:.1f} s, {found.equal} with the same text")
    for plain, pooled in zip(found.plain_s, found.pooled_s, strict=True):
        print(f"  plain {plain:.2f} s, {found.workers} workers {pooled:.2f} s: {plain / pooled:.2f}x")
    print(f"  in all {found.ratio:.2f}x")


if __name__ == "__main__":
    main()
