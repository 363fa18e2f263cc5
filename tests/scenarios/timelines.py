"""Clips and scenarios whose every position can be worked out by hand: 8 kHz, so that 1 ms is 8 samples."""

from __future__ import annotations

import numpy as np

from harness.core.audio import audio_sha256
from scenarios.clip import Clip
from scenarios.compiler import Script, compile_script
from scenarios.scenario_file import read_scenarios

RATE = 8000
MS = 1_000_000
LEAD_MS = TAIL_MS = 100


def clip(name: str, speech_ms: int, value: int = 1000) -> Clip:
    """100 ms of silence, `speech_ms` of a square wave, 100 ms of silence."""
    speech = np.where(np.arange(speech_ms * 8) % 16 < 8, value, -value).astype(np.int16)
    samples = np.pad(speech, (LEAD_MS * 8, TAIL_MS * 8))
    return Clip(
        id=name,
        text=name,
        language="en",
        voice="v",
        sha256=audio_sha256(samples),
        rate_hz=RATE,
        samples=samples,
        speech_start=LEAD_MS * 8,
        speech_end=(LEAD_MS + speech_ms) * 8,
        source="test",
    )


CLIPS = [clip("one", 1000), clip("two", 500), clip("mm", 200), clip("door", 300, 5000)]


def script(events: str, head: str = "", **options: int) -> Script:
    """The compiled script of a scenario whose events are these lines."""
    rows = "".join(f"  - {line.strip()}\n" for line in events.strip().splitlines())
    (scenario,) = read_scenarios(f"id: s\n{head}events:\n{rows}", "s.yaml")
    return compile_script(scenario, CLIPS, rate_hz=RATE, **options)
