"""The bundled model: says back what it heard. No weights, but everything else that a real one has.

It listens in steps, finds the end of a turn by level alone (`vad`) or is told (`manual`), answers with text tokens
first and then with the user's own voice, and can be made slow, paced or broken on purpose.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator
from typing import Literal

import numpy as np

from connectors.local.model import (
    Audio,
    Declaration,
    LocalModel,
    Output,
    Pause,
    Session,
    Text,
    UserSpeechStarted,
    UserSpeechStopped,
)
from harness.core.audio import NS_PER_MS, Int16, db_to_power, ms_to_samples, samples_to_ns, window_power
from harness.core.clock import SystemClock
from harness.core.errors import ConfigError

RATE_HZ = 24_000
WINDOW_MS = 10
ONSET_WINDOWS = 3
"""Loud windows in a row that begin a turn: 30 ms, longer than a click."""
LEAD_MS = 100
"""Kept before the onset, as soft consonants lie below the threshold."""


class Parrot(LocalModel):
    """Says back the user's last turn.

    think_ms: pause before the first token. chunk_ms: length of an audio packet. step_ms: what each token and packet
    costs to compute (blocks, as a device would). silence_ms: silence that ends a turn in vad mode. threshold_db:
    level of a 10 ms window, in dBFS, that counts as speech. delivery: packets at once, or in real time.
    crash_after, raise_after, hang_after: die, raise or stand still after so many steps of an answer (0: never).
    step_limit_s: how long a step may last before the harness calls it a hang.
    """

    def __init__(
        self,
        *,
        think_ms: float = 100.0,
        chunk_ms: float = 40.0,
        step_ms: float = 0.0,
        silence_ms: int = 500,
        threshold_db: float = -45.0,
        delivery: Literal["burst", "paced"] = "burst",
        crash_after: int = 0,
        raise_after: int = 0,
        hang_after: int = 0,
        step_limit_s: float = 10.0,
    ) -> None:
        if not all(math.isfinite(value) for value in (think_ms, chunk_ms, step_ms, threshold_db, step_limit_s)):
            raise ConfigError("Parrot: settings are finite numbers")
        if chunk_ms <= 0 or step_limit_s <= 0:
            raise ConfigError("Parrot: chunk_ms and step_limit_s must be above 0")
        if min(think_ms, step_ms, silence_ms) < 0:
            raise ConfigError("Parrot: think_ms, step_ms and silence_ms cannot be negative")
        self._think_ns = round(think_ms * NS_PER_MS)
        self._chunk = max(1, ms_to_samples(chunk_ms, RATE_HZ))
        self._step_s = step_ms / 1000
        self._own_silence_ms = silence_ms
        self._threshold = db_to_power(threshold_db)
        self._delivery = delivery
        self._failures = (crash_after, raise_after, hang_after)
        self._vad = False
        self._heard_ms = self._steps = 0
        self._silence_windows = 1
        self._turn: list[tuple[Int16, bool]] = []
        self._speaking = False
        self._loud = self._soft = 0
        self._declaration = Declaration(
            input_rate_hz=RATE_HZ,
            output_rate_hz=RATE_HZ,
            pacing="paced" if delivery == "paced" else "burst",
            unit_samples=ms_to_samples(WINDOW_MS, RATE_HZ),
            step_limit_s=step_limit_s,
        )

    @property
    def declaration(self) -> Declaration:
        return self._declaration

    def start(self, session: Session) -> None:
        self._vad = session.turn == "vad"
        silence_ms = self._own_silence_ms if session.silence_ms is None else session.silence_ms
        self._silence_windows = max(1, silence_ms // WINDOW_MS)
        self._heard_ms = self._steps = 0
        self._forget()

    def push_audio(self, pcm: Int16) -> list[Output]:
        loud = self._is_loud(pcm)
        self._turn.append((pcm, loud))
        self._heard_ms += WINDOW_MS
        if not self._vad:
            return []
        self._loud = self._loud + 1 if loud else 0
        self._soft = 0 if loud else self._soft + 1
        if not self._speaking and self._loud >= ONSET_WINDOWS:
            self._speaking = True
            return [UserSpeechStarted(self._heard_ms - ONSET_WINDOWS * WINDOW_MS)]
        if self._speaking and self._soft >= self._silence_windows:
            self._speaking = False
            return [UserSpeechStopped(self._heard_ms - self._soft * WINDOW_MS)]
        if not self._speaking:
            del self._turn[: -LEAD_MS // WINDOW_MS - ONSET_WINDOWS]
        return []

    def end_turn(self) -> Iterator[Output]:
        # Taken now: audio that waits is heard before the generator's first step.
        echo = self._trimmed()
        self._forget()
        return self._answer(echo)

    def _answer(self, echo: Int16) -> Iterator[Output]:
        yield Pause(SystemClock.now_ns() + self._think_ns)
        for word in f"You said {len(echo) / RATE_HZ:.2f} seconds of this:".split(" "):
            self._step()
            yield Text(word + " ")
        started_ns = SystemClock.now_ns()
        for start in range(0, len(echo), self._chunk):
            if self._delivery == "paced":
                yield Pause(started_ns + samples_to_ns(start, RATE_HZ))
            self._step()
            yield Audio(echo[start : start + self._chunk])

    def _forget(self) -> None:
        self._turn = []
        self._speaking = False
        self._loud = self._soft = 0

    def _is_loud(self, pcm: Int16) -> bool:
        power = window_power(pcm, len(pcm), max(1, len(pcm)))
        return bool(len(power) and power[0] >= self._threshold)

    def _trimmed(self) -> Int16:
        """What was heard in this turn, from just before the first loud window to the end of the last."""
        loud = [index for index, (_, is_loud) in enumerate(self._turn) if is_loud]
        if not loud:
            return np.zeros(0, dtype=np.int16)
        kept = self._turn[max(0, loud[0] - LEAD_MS // WINDOW_MS) : loud[-1] + 1]
        return np.concatenate([pcm for pcm, _ in kept])

    def _step(self) -> None:
        self._steps += 1
        crash_after, raise_after, hang_after = self._failures
        if self._steps == crash_after:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._steps == raise_after:
            raise RuntimeError(f"parrot was told to raise after {raise_after} steps")
        if self._steps == hang_after:
            time.sleep(3600)
        if self._step_s:
            time.sleep(self._step_s)
