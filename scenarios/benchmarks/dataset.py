"""A benchmark's queries as they lie on disk, checked, each with its item and the place of its sound."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from harness.core.errors import ConfigError
from harness.core.item import Item
from scenarios.benchmarks.catalogue import CLEAN, ROBUST, Catalogue, Subset
from scenarios.benchmarks.conditions import CONDITIONS, canonical, spec_of
from scenarios.benchmarks.layout import Found
from scenarios.benchmarks.query import BenchmarkQuery
from scenarios.benchmarks.rows import Row
from scenarios.benchmarks.sound import AnySound, FileSound, ImpairedSound, RecordedSound
from scenarios.benchmarks.spoken import Spoken, spoken
from scenarios.impairments.noise import BABBLE_VOICES
from scenarios.impairments.seeded import generator

Origin = Literal["data", "generated", "synthesized", ""]


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Of one subset: items found, items as published, items without sound, and those asked for."""

    subset: str
    found: int
    published: int
    missing: int
    asked: int


class Dataset(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """queries: in the order in which they are run. missing: (subset, name) of each query without sound, with what was
    looked for. wanted: texts to speak before a run. sha256: of every row, in order."""

    benchmark: str
    queries: tuple[BenchmarkQuery, ...]
    sizes: tuple[Size, ...]
    missing: tuple[tuple[str, str], ...]
    wanted: tuple[Spoken, ...]
    sha256: str


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What of a data set is wanted. limit: of each subset, of each level of the robustness subset. synthesize: missing
    sound is spoken. generate: the robustness subset's sound is made from the clean one."""

    subsets: tuple[str, ...] = ()
    limit: int | None = None
    synthesize: bool = False
    generate: bool = False


def open_dataset(data: Path, catalogue: Catalogue, choice: Choice) -> Dataset:
    """Read all rows; sound is looked for, not read. Raises ConfigError, one line that names file and place."""
    return _Reader(data, catalogue, choice).read()


class _Checked(NamedTuple):
    row: Row
    position: int
    packed: RecordedSound | None


class _Reader:
    def __init__(self, data: Path, catalogue: Catalogue, choice: Choice) -> None:
        self._found = Found(data, catalogue)
        self._catalogue = catalogue
        self._choice = choice
        self._clean: dict[int, tuple[RecordedSound | None, Origin]] = {}
        self._wanted: list[Spoken] = []

    def read(self) -> Dataset:
        chosen = self._chosen()
        rows: dict[str, list[_Checked]] = {}
        if any(subset.name == ROBUST for subset in chosen):
            rows[CLEAN] = self._rows(self._catalogue.subset(CLEAN))
            self._clean = {each.position: self._own(each, self._catalogue.subset(CLEAN)) for each in rows[CLEAN]}
        queries: list[BenchmarkQuery] = []
        sizes: list[Size] = []
        for subset in chosen:
            checked = rows.get(subset.name) or self._rows(subset)
            if subset.name == ROBUST and not checked:
                checked = self._made(rows[CLEAN])
            asked = [self._query(subset, each) for each in self._limited(checked)]
            sizes.append(
                Size(
                    subset=subset.name,
                    found=len(checked),
                    published=subset.items,
                    missing=sum(query.source is None for query in asked),
                    asked=len(asked),
                )
            )
            queries += asked
        return Dataset(
            benchmark=self._catalogue.name,
            queries=tuple(queries),
            sizes=tuple(sizes),
            missing=tuple((query.item.subset, _sought(query)) for query in queries if query.source is None),
            wanted=tuple(dict.fromkeys(self._wanted)),
            sha256=_sha256(queries, self._choice),
        )

    def _chosen(self) -> list[Subset]:
        """Those asked for; without a word, those that are here."""
        here = [subset.name for subset in self._found.subsets()]
        if ROBUST not in here and CLEAN in here and self._choice.generate:
            here.append(ROBUST)
        chosen = self._catalogue.choose(self._choice.subsets)
        if not self._choice.subsets:
            return [subset for subset in chosen if subset.name in here]
        for subset in chosen:
            if subset.name not in here:
                how = "; --generate-robust makes it from robust_clean" if subset.name == ROBUST else ""
                raise ConfigError(f"--data: no {subset.name} in it (it holds {', '.join(here)}){how}")
        return list(chosen)

    def _rows(self, subset: Subset) -> list[_Checked]:
        if subset not in self._found.subsets():
            return []
        seen: dict[str, str] = {}
        checked: list[_Checked] = []
        for place, row, packed in self._found.rows(subset):
            qid = row.get("Qid")
            if not isinstance(qid, str) or subset.index(qid) is None:
                raise ConfigError(f"{place}: {qid!r} is no Qid of {subset.name}; they look like {subset.example()}")
            if qid in seen:
                raise ConfigError(f"{place}: {qid} stands twice, first at {seen[qid]}")
            if not isinstance(row.get("Question"), str):
                raise ConfigError(f"{place}: {qid} has no Question")
            _check_context(place, row)
            seen[qid] = place
            index = subset.index(qid)
            assert index is not None
            checked.append(_Checked(row, index, packed))
        return checked

    def _made(self, clean: Sequence[_Checked]) -> list[_Checked]:
        """Rows of a robustness subset whose query file is not here."""
        rows = []
        for number, (prefix, (condition, _)) in enumerate(CONDITIONS.items()):
            for each in clean:
                own = {
                    "Set": "Robust",
                    "Qid": f"{prefix}-{each.position:03d}",
                    "Audio": f"{condition.folder}/{each.position:03d}.wav",
                    "Category": condition.category,
                    "Level": condition.level,
                }
                rows.append(_Checked({**each.row, **own}, number * 100 + each.position, None))
        return rows

    def _limited(self, checked: list[_Checked]) -> list[_Checked]:
        if self._choice.limit is None:
            return checked
        counts: Counter[str] = Counter()
        kept = []
        for each in checked:
            group = each.row["Qid"].rpartition("-")[0]
            counts[group] += 1
            if counts[group] <= self._choice.limit:
                kept.append(each)
        return kept

    def _query(self, subset: Subset, each: _Checked) -> BenchmarkQuery:
        source, origin, missing = self._source(subset, each)
        qid = each.row["Qid"]
        return BenchmarkQuery(
            id=subset.query_id(qid),
            item=Item(
                benchmark=self._catalogue.name,
                subset=subset.name,
                qid=qid,
                index=each.position,
                fields=each.row,
                sound=origin,
            ),
            language=subset.language,
            source=source,
            missing=missing,
        )

    def _source(self, subset: Subset, each: _Checked) -> tuple[AnySound | None, Origin, str]:
        """Where the sound comes from, what that makes of it, and, without any, why."""
        if subset.name != ROBUST:
            own, origin = self._own(each, subset)
            return own, origin, "" if own else f"no sound: {_audio(each.row)} is missing"
        clean, origin = self._clean.get(each.position % 100, (None, ""))
        recorded = None if self._choice.generate else self._recorded(each)
        if recorded is not None:
            if origin == "data":
                recorded = msgspec.structs.replace(recorded, clean=clean)
            return recorded, "data", ""
        if not (self._choice.generate or self._choice.synthesize):
            return None, "", f"no sound: {_audio(each.row)} is missing"
        if clean is None:
            return None, "", f"no sound: robust_clean-{each.position % 100:03d}, of which it would be made, is missing"
        spec = spec_of(each.row["Qid"])
        assert spec is not None
        voices = self._voices(each) if spec.variant == "babble" else ()
        made = ImpairedSound(clean=clean, specs=str(spec), voices=voices)
        return made, "synthesized" if origin == "synthesized" else "generated", ""

    def _own(self, each: _Checked, subset: Subset) -> tuple[RecordedSound | None, Origin]:
        recorded = self._recorded(each)
        if recorded is not None:
            return recorded, "data"
        if not self._choice.synthesize:
            return None, ""
        said = spoken(each.row["Question"], subset.language)
        self._wanted.append(said)
        return FileSound(said.path), "synthesized"

    def _recorded(self, each: _Checked) -> RecordedSound | None:
        if each.packed is not None:
            return each.packed
        audio = each.row.get("Audio")
        try:
            return self._found.sound_file(audio) if isinstance(audio, str) else None
        except ConfigError as exc:
            raise ConfigError(f"{self._catalogue.name}, {each.row['Qid']}: {exc}") from exc

    def _voices(self, each: _Checked) -> tuple[RecordedSound, ...]:
        """Other clean queries, always the same ones for the same query."""
        known = {index: source for index, (source, _) in self._clean.items() if source and index != each.position % 100}
        order = generator("voices", canonical(each.row["Qid"])).permutation(sorted(known))
        return tuple(known[int(index)] for index in order[:BABBLE_VOICES])


def _check_context(place: str, row: Row) -> None:
    rounds = row.get("Context")
    if rounds is None:
        return
    fine = isinstance(rounds, list) and all(
        isinstance(each, dict) and each.get("from") in ("user", "assistant") and isinstance(each.get("value"), str)
        for each in rounds
    )
    if not fine:
        raise ConfigError(f"{place}: Context is no list of {{from: user or assistant, value: text}}")


def _audio(row: Row) -> str:
    return str(row.get("Audio") or row["Qid"])


def _sought(query: BenchmarkQuery) -> str:
    return query.missing.removeprefix("no sound: ").removesuffix(" is missing") or query.id


def _sha256(queries: Sequence[BenchmarkQuery], choice: Choice) -> str:
    digest = hashlib.sha256(b"generate" if choice.generate else b"")
    for query in queries:
        digest.update(msgspec.json.encode([query.item.subset, query.item.fields], order="sorted"))
    return digest.hexdigest()
