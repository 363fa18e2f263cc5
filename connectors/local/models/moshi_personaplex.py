"""PersonaPlex as a local model, `--peer local:personaplex`: Moshi with a voice and a role, on Kyutai's step loop."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from connectors.local.model import Session
from connectors.local.models import moshi_weights
from connectors.local.models.moshi import Moshi
from connectors.local.models.moshi_prompts import PAD, SILENCE, Forced, Frame, play, replay, voice_of, words
from connectors.local.models.moshi_weights import Parts

STAND_IN_FRAMES = 50
"""Length of a voice prompt of random weights: 4 s."""


class PersonaPlex(Moshi):
    """As `Moshi`. The session's instructions are the role, its voice a file of the weights' `voices`; both are taken
    in when a session starts, before the user is heard; no figure of a turn holds that."""

    hub_id: ClassVar[str] = "nvidia/personaplex-7b-v1"
    unit_delay: ClassVar[int] = 0
    """Its first steps are those of the prompts."""
    step_limit_s: ClassVar[float] = 60.0

    def load(self) -> None:
        self._forced = Forced()
        self._voice = cache(voice_of)
        super().load()

    def start(self, session: Session) -> None:
        super().start(session)
        source = self._parts.source
        if isinstance(source, Path):
            begun = [replay(self._gen, self._voice(source, session.voice or ""))]
        else:
            begun = _stand_in(self._parts.lm.card)
        play(self._gen, self._forced, [*begun, *words(session.instructions or "", self._parts.pieces)])
        self._first = False

    @property
    def facts(self) -> dict[str, Any]:
        made_up = {"voice": f"stand-in: {STAND_IN_FRAMES} random frames"} if self._parts.source == "random" else {}
        return {**super().facts, "depth_steps": "8 of 16, without the user's", **made_up}

    def _from_files(self) -> Parts:
        return moshi_weights.load_personaplex(self._weights, self._revision, self._at)

    def _hooks(self) -> dict[str, Any]:
        return {"on_text_hook": self._forced.on_text, "on_audio_hook": self._forced.on_audio}


def _stand_in(card: int) -> list[Frame]:
    """A voice of random weights. card: number of codes."""
    codes = np.random.default_rng(0).integers(0, card, (STAND_IN_FRAMES, len(SILENCE)))
    return [Frame(PAD, tuple(frame)) for frame in codes.tolist()]
