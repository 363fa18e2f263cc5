"""A session as one stereo file that a person can listen to: the user left, the agent right, as heard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

from harness.core.audio import Float32, Int16, int16_to_float
from harness.core.errors import ConfigError
from harness.core.session.reader import Session
from harness.engines.resample import resample
from scenarios.exporters.heard import HeardSession


def export_stereo(session: Session, file: Path) -> Path:
    """Write `file` (WAV, PCM16) at the higher of the two sides' rates, so that nothing is lost.

    Raises ConfigError for a session without sound on a timeline, and where the file cannot be written.
    """
    heard = HeardSession(session)
    rate_hz = max(heard.user_rate_hz, heard.agent_rate_hz)
    user = _at_rate(heard.user, heard.user_rate_hz, rate_hz)
    agent = _at_rate(heard.agent, heard.agent_rate_hz, rate_hz)
    stereo = np.zeros((max(len(user), len(agent)), 2), dtype=np.float32)
    stereo[: len(user), 0] = user
    stereo[: len(agent), 1] = agent
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(file, stereo, rate_hz, subtype="PCM_16", format="WAV")
    except (OSError, soundfile.LibsndfileError) as exc:
        raise ConfigError(f"{file}: cannot be written ({exc}): choose another --out") from exc
    return file


def _at_rate(samples: Int16, rate_in_hz: int, rate_out_hz: int) -> Float32:
    return resample(int16_to_float(samples), rate_in_hz, rate_out_hz)
