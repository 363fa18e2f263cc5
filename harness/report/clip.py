"""The sound of one view of the page, beside it: both sides of a window as one stereo file that a browser plays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
import soxr

from harness.report.heard import Track

RATE_HZ = 24_000


def write_clip(path: Path, user: Track, agent: Track) -> bool:
    """Write the user left and the agent right as Ogg Opus at 24 kHz; False, and no file, where neither side sounds.

    Raises OSError when the file cannot be written.
    """
    if not (user.heard.any() or agent.heard.any()):
        return False
    sides = [soxr.resample(track.signal, track.rate_hz, RATE_HZ) for track in (user, agent)]
    stereo = np.zeros((max(len(side) for side in sides), 2), dtype=np.int16)
    for column, side in enumerate(sides):
        stereo[: len(side), column] = side
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        soundfile.write(file, stereo, RATE_HZ, format="OGG", subtype="OPUS")
    return True
