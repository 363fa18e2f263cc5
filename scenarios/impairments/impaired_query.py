"""Queries of a bench that are impaired: at the peer's rate, so that a ratio holds in what the peer hears."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.clip import Clip
from scenarios.impairments.impair import impair
from scenarios.impairments.spec import Spec, parse_specs


class ImpairedQuery:
    """A clip that is impaired once its rate is known. voices: what babble is mixed from."""

    def __init__(self, clip: Clip, specs: Sequence[Spec], *, seed: int, voices: Sequence[Clip]) -> None:
        self._clip = clip
        self._specs = tuple(specs)
        self._seed = seed
        self._voices = voices

    def at_rate(self, rate_hz: int) -> Clip:
        """The clip, resampled and impaired, with its clean marks. Raises as `impair`."""
        clip = self._clip.at_rate(rate_hz)
        return impair(clip, self._specs, seed=f"{self._seed}/{clip.id}", voices=self._voices).clip


def impaired_queries(clips: Sequence[Clip], impairments: Sequence[str], *, seed: int = 0) -> list[ImpairedQuery]:
    """The clips of a pack, each to be impaired by all specs in their order. Raises ConfigError for a wrong spec."""
    specs = [spec for text in impairments for spec in parse_specs(text)]
    return [ImpairedQuery(clip, specs, seed=seed, voices=clips) for clip in clips]
