"""Recordings for the tests of importers and exporters: tone bursts and bundled speech at known samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.core.audio import Int16, float_to_int16
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session
from scenarios.clip import Clip
from scenarios.pack import load_pack


def burst(length: int, rate_hz: int, hz: float = 440.0) -> Int16:
    """A sine of `length` samples that is loud from its first sample on."""
    return float_to_int16(0.4 * np.cos(2 * np.pi * hz * np.arange(length) / rate_hz))


def laid(length: int, *sounds: tuple[int, Int16]) -> Int16:
    """Silence of `length` samples with sounds at given places."""
    signal = np.zeros(length, dtype=np.int16)
    for at, samples in sounds:
        signal[at : at + len(samples)] = samples
    return signal


def clip(name: str, pack: str = "queries", rate_hz: int = 24_000) -> Clip:
    """A bundled clip."""
    return next(each for each in load_pack(pack).clips if each.id == name).at_rate(rate_hz)


def only(run: Path) -> Session:
    """The one session of a run directory."""
    (session,) = RunDirectory(run).load()
    return session
