"""Where a data set keeps things: query files, sound folders, parquet files, and which subset each belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.core.errors import ConfigError
from scenarios.benchmarks.catalogue import Catalogue, Subset
from scenarios.benchmarks.parquet import parquet_files, read_parquet
from scenarios.benchmarks.rows import Row, read_rows
from scenarios.benchmarks.sound import FileSound, ParquetSound

SOUND_ROOTS = ("audio", "wav", "data", "")
"""Folders that the paths of `Audio` may be relative to, the first that has the file."""
OTHER_SUFFIXES = (".flac", ".mp3", ".ogg")
_SHARD = re.compile(r"[-.]?[0-9]{1,5}-of-[0-9]{1,5}.*$")


class Found:
    """One data set on disk. Raises ConfigError for a folder that is none."""

    def __init__(self, data: Path, catalogue: Catalogue) -> None:
        if not data.is_dir():
            raise ConfigError(f"--data {data}: no such folder; name the one that holds {catalogue.name}")
        self._data = data
        self._catalogue = catalogue
        self._json = data / "json" if (data / "json").is_dir() else data
        self._roots = [data / root for root in SOUND_ROOTS if (data / root).is_dir()]
        self._parquet: dict[str, list[Path]] = {}
        for path in parquet_files(data):
            self._parquet.setdefault(self._subset_of(path), []).append(path)
        if not self.subsets():
            files = ", ".join(f"{subset.name}.json" for subset in catalogue.subsets[:2])
            raise ConfigError(
                f"--data {data}: holds no {catalogue.name}: no json/ with {files}, …, and no parquet files"
            )

    def subsets(self) -> list[Subset]:
        """Those that are here."""
        return [each for each in self._catalogue.subsets if self._file(each).is_file() or each.name in self._parquet]

    def rows(self, subset: Subset) -> Iterator[tuple[str, Row, ParquetSound | None]]:
        """(place, row, its sound in a parquet file) in the file's order. Raises ConfigError, PrerequisiteError."""
        sounds: dict[str, ParquetSound] = {}
        packed: list[tuple[str, Row, ParquetSound | None]] = []
        for path in self._parquet.get(subset.name, ()):
            for number, found in enumerate(read_parquet(path), start=1):
                row = {key: value for key, value in found.row.items() if value is not None}
                sound = ParquetSound(path, found.group, found.offset, found.sound) if found.sound else None
                packed.append((f"{path}, row {number}", row, sound))
                if sound is not None:
                    sounds[str(row.get("Qid"))] = sound
        file = self._file(subset)
        if not file.is_file():
            yield from packed
            return
        for place, row in read_rows(file):
            yield f"{file}, {place}", row, sounds.get(str(row.get("Qid")))

    def sound_file(self, audio: str) -> FileSound | None:
        """The file that a row's `Audio` names; None where it is missing. Raises ConfigError for what cannot be a path
        inside the data set."""
        name = PurePosixPath(audio)
        if name.is_absolute() or ".." in name.parts or not name.name:
            raise ConfigError(f"Audio {audio[:80]!r} is no path inside the data set")
        for root in self._roots:
            for path in (root / name, *((root / name).with_suffix(suffix) for suffix in OTHER_SUFFIXES)):
                if _is_file(path):
                    return FileSound(path)
        return None

    def _file(self, subset: Subset) -> Path:
        return self._json / f"{subset.name}.json"

    def _subset_of(self, path: Path) -> str:
        """The subset of a parquet file: by a folder's name, its own, or the Qids in it."""
        parts = path.relative_to(self._data).parts
        names = [*parts[:-1], _SHARD.sub("", path.stem)]
        known = {subset.name for subset in self._catalogue.subsets}
        for name in reversed(names):
            if name in known:
                return name
        first = next(read_parquet(path), None)
        qid = str(first.row.get("Qid")) if first else ""
        fitting = [subset.name for subset in self._catalogue.subsets if subset.index(qid) is not None]
        if len(fitting) == 1:
            return fitting[0]
        guess = " or ".join(fitting) or "any"
        raise ConfigError(f"{path}: cannot tell which subset this is ({guess}): name the file or its folder after it")


def _is_file(path: Path) -> bool:
    """False for a name that no file system takes (too long), which pathlib raises for."""
    try:
        return path.is_file()
    except OSError:
        return False
