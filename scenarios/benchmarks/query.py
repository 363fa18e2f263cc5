"""A benchmark's query: its item and a promise of its sound, which is read when its session is about to begin."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.audio import Int16
from harness.core.errors import ConfigError
from harness.core.item import Item
from scenarios.benchmarks.sound import AnySound, clip_of
from scenarios.clip import Clip


class BenchmarkQuery(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Satisfies `harness.core.query.Query` once `loaded`. A few hundred bytes until then, whatever its sound.

    source: None where there is no sound, and `missing` says why. wanted_hz: the rate that `at_rate` asked for.
    """

    id: str
    item: Item
    language: str
    source: AnySound | None
    missing: str = ""
    wanted_hz: int = 0
    clip: Clip | None = None

    @property
    def text(self) -> str:
        return str(self.item.fields.get("Question", ""))

    @property
    def history(self) -> Sequence[tuple[str, str]]:
        """(role, text) of the rounds before it."""
        rounds = self.item.fields.get("Context") or ()
        return tuple((str(each["from"]), str(each["value"])) for each in rounds)

    def at_rate(self, rate_hz: int) -> BenchmarkQuery:
        """The same query at `rate_hz`; nothing is read or resampled before `loaded`."""
        if self.clip is not None:
            return msgspec.structs.replace(self, wanted_hz=rate_hz, clip=self.clip.at_rate(rate_hz))
        return msgspec.structs.replace(self, wanted_hz=rate_hz)

    def loaded(self) -> BenchmarkQuery:
        """With its sound. A file that cannot be read becomes the reason in `missing`; that is no exception, as
        thousands of others wait. Raises PrerequisiteError."""
        if self.source is None or self.clip is not None:
            return self
        try:
            clip = clip_of(self.source, self.id, self.text, self.language)
        except ConfigError as exc:
            return msgspec.structs.replace(self, source=None, missing=str(exc))
        item = msgspec.structs.replace(self.item, question_samples=len(clip.samples), question_rate_hz=clip.rate_hz)
        return msgspec.structs.replace(self, item=item, clip=clip.at_rate(self.wanted_hz or clip.rate_hz))

    def _sound(self) -> Clip:
        if self.clip is None:
            raise RuntimeError(f"{self.id}: its sound was never loaded")
        return self.clip

    @property
    def rate_hz(self) -> int:
        return self._sound().rate_hz

    @property
    def samples(self) -> Int16:
        return self._sound().samples

    @property
    def speech_start(self) -> int:
        return self._sound().speech_start

    @property
    def speech_end(self) -> int:
        return self._sound().speech_end

    @property
    def annotator(self) -> str:
        return self._sound().annotator

    @property
    def sha256(self) -> str:
        return self._sound().sha256

    @property
    def impairment(self) -> str:
        return self._sound().impairment
