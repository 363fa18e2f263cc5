"""Model outputs in the benchmarks' own layout: `json/<subset>.json`, `json_asr/<subset>.json`, `wav/…`.

The same keys in both benchmarks' own words: `Qid, Response, Response_hyp` (zh) and `question_id, prediction, asr_pred`
(en). Sound is `wav/<subset>/<Qid>.wav`, or `wav/<Qid>.wav` where no other subset has that Qid.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.core.errors import ConfigError, nearest
from scenarios.benchmarks.catalogue import CATALOGUES, Catalogue, Subset
from scenarios.benchmarks.rows import Placed, Row, read_rows

ANSWERS, TRANSCRIPTS, SOUND = "json", "json_asr", "wav"
SOUND_SUFFIXES = (".wav", ".flac")


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. text: None where the model gave none. transcript: what the authors' ASR heard, None without one.
    sound: its file, None without one. looked_for: where it should be, in a folder that holds sound."""

    subset: Subset
    qid: str
    text: str | None
    transcript: str | None
    sound: Path | None
    looked_for: Path | None


class Outputs:
    """One model's folder. Raises ConfigError, one line, for what is no such folder."""

    def __init__(self, folder: Path, catalogue: Catalogue | None = None) -> None:
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no such folder; name the one that holds json/ and wav/")
        self.folder = folder
        self._files = _files(folder)
        first = next(iter(self._files.values()))
        self.catalogue = catalogue or _catalogue(first, read_rows(first)[0].row)
        known = {subset.name for subset in self.catalogue.subsets}
        for name, path in self._files.items():
            if name not in known:
                raise ConfigError(f"{path}: {self.catalogue.name} has no subset {name!r}; {nearest(name, known)}")
        self._has_sound = (folder / SOUND).is_dir()

    @property
    def subsets(self) -> list[Subset]:
        """Those that were answered, in the benchmark's order."""
        return [subset for subset in self.catalogue.subsets if subset.name in self._files]

    def read(self, subset: Subset) -> Iterator[Output]:
        """The answers of one subset, in the file's order. Raises ConfigError with file and place."""
        path = self._files[subset.name]
        rows = _by_qid(path, read_rows(path), self.catalogue, subset)
        beside = self.folder / TRANSCRIPTS / path.name
        heard = rows if beside == path else _heard(beside, self.catalogue, subset)
        for qid, (place, row) in rows.items():
            sound, looked_for = self._sound(subset, qid)
            yield Output(
                subset=subset,
                qid=qid,
                text=_text(f"{path}, {place}", row, self.catalogue.answer_key, needed=True),
                transcript=_text(str(beside), heard[qid].row, self.catalogue.transcript_key) if qid in heard else None,
                sound=sound,
                looked_for=looked_for,
            )

    def _sound(self, subset: Subset, qid: str) -> tuple[Path | None, Path | None]:
        if not self._has_sound:
            return None, None
        wav = self.folder / SOUND
        homes = [wav / subset.name, *([wav] if subset.own_qids else [])]
        for home in homes:
            for suffix in SOUND_SUFFIXES:
                if (home / f"{qid}{suffix}").is_file():
                    return home / f"{qid}{suffix}", None
        return None, homes[0] / f"{qid}.wav"


def _files(folder: Path) -> dict[str, Path]:
    """Query file stem to answer file: `json/`, the ASR stage's copy of it, or the folder itself."""
    for name in (ANSWERS, TRANSCRIPTS, ""):
        found = {path.stem: path for path in sorted((folder / name).glob("*.json*")) if path.is_file()}
        if found:
            return found
    raise ConfigError(f"{folder}: no json/<subset>.json in it; name the folder of one model's outputs")


def _catalogue(path: Path, row: Row) -> Catalogue:
    for catalogue in CATALOGUES.values():
        if catalogue.qid_key in row:
            return catalogue
    keys = " or ".join(catalogue.qid_key for catalogue in CATALOGUES.values())
    raise ConfigError(f"{path}: its rows have no {keys}; {nearest('Qid', row)}")


def _by_qid(path: Path, rows: list[Placed], catalogue: Catalogue, subset: Subset) -> dict[str, Placed]:
    found: dict[str, Placed] = {}
    for placed in rows:
        qid = placed.row.get(catalogue.qid_key)
        if not isinstance(qid, str) or subset.index(qid) is None:
            raise ConfigError(
                f"{path}, {placed.place}: {catalogue.qid_key} {qid!r} is not of {subset.name}; "
                f"they look like {subset.example()}"
            )
        if qid in found:
            raise ConfigError(f"{path}, {placed.place}: {qid} stands twice, first in {found[qid].place}")
        found[qid] = placed
    return found


def _heard(path: Path, catalogue: Catalogue, subset: Subset) -> dict[str, Placed]:
    return _by_qid(path, read_rows(path), catalogue, subset) if path.is_file() else {}


def _text(place: str, row: Row, key: str, *, needed: bool = False) -> str | None:
    if needed and key not in row:
        raise ConfigError(f"{place}: no {key}; {nearest(key, row)}")
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{place}: {key} is a {type(value).__name__}, not a text")
    return value
