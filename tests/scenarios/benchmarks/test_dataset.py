"""Data sets on disk: what is read, what is missing and named, one line for each thing that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import ConfigError
from scenarios.benchmarks.catalogue import VOCALBENCH_EN, VOCALBENCH_ZH
from scenarios.benchmarks.sound import FileSound, ImpairedSound, ParquetSound
from tests.scenarios.benchmarks.made import (
    CLEAN,
    KNOWLEDGE,
    ROBUST,
    ROUND,
    ROUNDS,
    opened,
    row,
    write_parquet,
    write_rows,
    write_sound,
    write_sounds,
)

pytestmark = pytest.mark.unit

DATA = Path(__file__).parents[4] / "shared" / "data"


def test_items_carry_the_published_rows(tmp_path: Path) -> None:
    write_sounds(write_rows(tmp_path, chinese_knowledge=KNOWLEDGE, multi_round=ROUND), *KNOWLEDGE, *ROUND)
    dataset = opened(tmp_path)
    assert [query.id for query in dataset.queries] == [each["Qid"] for each in KNOWLEDGE + ROUND]
    query = dataset.queries[2]
    assert (query.item.benchmark, query.item.subset, query.item.index) == ("vocalbench-zh", "chinese_knowledge", 2)
    assert (query.item.fields, query.item.sound, query.language) == (KNOWLEDGE[2], "data", "zh")
    assert query.text == "问题 chinese_knowledge-0002"
    assert query.clip is None  # nothing is read before its session
    assert list(dataset.queries[3].history) == [(each["from"], each["value"]) for each in ROUNDS]
    assert [(size.subset, size.found, size.published, size.missing) for size in dataset.sizes] == [
        ("chinese_knowledge", 3, 1000, 0),
        ("multi_round", 1, 400, 0),
    ]


@pytest.mark.parametrize("root", ["", "audio", "wav", "data"])
def test_sound_lies_in_one_of_four_places(tmp_path: Path, root: str) -> None:
    write_rows(tmp_path, chinese_knowledge=KNOWLEDGE[:1])
    path = write_sound(tmp_path / root / "knowledge" / "chinese" / "0000.flac")
    assert opened(tmp_path).queries[0].source == FileSound(path)


def test_missing_sound_is_named(tmp_path: Path) -> None:
    write_sounds(write_rows(tmp_path, chinese_knowledge=KNOWLEDGE), KNOWLEDGE[0])
    dataset = opened(tmp_path)
    assert dataset.missing == (
        ("chinese_knowledge", "knowledge/chinese/0001.wav"),
        ("chinese_knowledge", "knowledge/chinese/0002.wav"),
    )
    assert dataset.queries[1].missing == "no sound: knowledge/chinese/0001.wav is missing"
    assert dataset.queries[1].item.sound == ""
    assert dataset.sizes[0].missing == 2


def test_the_limit_counts_in_each_subset_and_each_level(tmp_path: Path) -> None:
    write_rows(tmp_path, chinese_knowledge=KNOWLEDGE, robust_clean=CLEAN, robust=ROBUST)
    assert [query.id for query in opened(tmp_path, limit=1).queries] == [
        "chinese_knowledge-0000",
        "robust-background_noise-snr_-5-000",
        "robust-white_noise-snr_5-000",
    ]
    assert [query.item.index for query in opened(tmp_path, "robust", limit=1).queries] == [0, 3500]


def test_robust_sound_is_made_from_the_clean_one_when_asked(tmp_path: Path) -> None:
    root = write_sounds(write_rows(tmp_path, robust_clean=CLEAN, robust=ROBUST), *CLEAN)
    assert len(opened(root, "robust").missing) == 6
    babble, *_, white = opened(root, "robust", generate=True).queries
    assert isinstance(babble.source, ImpairedSound)
    assert isinstance(white.source, ImpairedSound)
    assert (babble.source.specs, white.source.specs) == ("noise:babble:snr=-5", "noise:white:snr=5")
    assert babble.source.clean == FileSound(root / CLEAN[0]["Audio"])
    assert sorted(voice.path.name for voice in babble.source.voices) == ["002.wav", "004.wav"]  # not itself
    assert white.source.voices == ()
    assert {query.item.sound for query in opened(root, "robust", generate=True).queries} == {"generated"}
    write_sounds(root, *ROBUST)
    assert {query.item.sound for query in opened(root, "robust").queries} == {"data"}
    assert {query.item.sound for query in opened(root, "robust", generate=True).queries} == {"generated"}
    recorded = opened(root, "robust").queries[0].source
    assert isinstance(recorded, FileSound)
    assert recorded.clean == FileSound(root / CLEAN[0]["Audio"])  # whose marks it takes


def test_rows_of_all_36_levels_are_made_where_their_file_is_not_there(tmp_path: Path) -> None:
    root = write_sounds(write_rows(tmp_path, robust_clean=CLEAN), *CLEAN)
    with pytest.raises(ConfigError, match=r"no robust in it .*--generate-robust makes it from robust_clean"):
        opened(root, "robust")
    dataset = opened(root, "robust", generate=True)
    assert len(dataset.queries) == 36 * 3
    last = dataset.queries[-1].item
    assert (last.qid, last.index) == ("robust-white_noise-snr_5-002", 3502)
    assert (last.fields["Category"], last.fields["Level"]) == ("white_noise", "snr_5")


def test_what_is_synthesized_says_so(tmp_path: Path) -> None:
    root = write_rows(tmp_path, chinese_knowledge=KNOWLEDGE[:1], robust_clean=CLEAN, robust=ROBUST)
    write_sounds(root, CLEAN[0])
    dataset = opened(root, "chinese_knowledge", "robust", synthesize=True)
    assert dataset.missing == ()
    sounds = {query.id: query.item.sound for query in dataset.queries}
    assert sounds["chinese_knowledge-0000"] == "synthesized"
    assert sounds["robust-white_noise-snr_5-000"] == "generated"  # of a recording
    assert sounds["robust-white_noise-snr_5-001"] == "synthesized"  # of spoken text
    assert [each.text for each in dataset.wanted] == [
        "问题 robust_clean-001",
        "问题 robust_clean-002",
        "问题 chinese_knowledge-0000",
    ]


def test_the_parquet_form(tmp_path: Path) -> None:
    write_parquet(tmp_path / "chinese_knowledge" / "test-00000-of-00002.parquet", KNOWLEDGE[:2], group=1)
    write_parquet(tmp_path / "chinese_knowledge" / "test-00001-of-00002.parquet", KNOWLEDGE[2:])
    write_parquet(tmp_path / "data" / "multi_round-00000-of-00001.parquet", ROUND)
    dataset = opened(tmp_path)
    assert [query.id for query in dataset.queries] == [each["Qid"] for each in KNOWLEDGE + ROUND]
    query = dataset.queries[1]
    assert query.item.fields == {key: value for key, value in KNOWLEDGE[1].items() if key != "Audio"}
    assert isinstance(query.source, ParquetSound)
    loaded = query.at_rate(24_000).loaded()
    assert (len(loaded.samples), loaded.rate_hz) == (4800, 24_000)
    assert (loaded.item.question_samples, loaded.item.question_rate_hz) == (3200, 16_000)
    assert list(dataset.queries[3].history) == [(each["from"], each["value"]) for each in ROUNDS]


def test_rows_of_json_and_sound_of_parquet(tmp_path: Path) -> None:
    write_rows(tmp_path, chinese_knowledge=KNOWLEDGE)
    write_parquet(tmp_path / "hub" / "chinese_knowledge.parquet", KNOWLEDGE[1:2])
    dataset = opened(tmp_path)
    assert dataset.queries[1].item.fields == KNOWLEDGE[1]
    assert isinstance(dataset.queries[1].source, ParquetSound)
    assert len(dataset.missing) == 2


def test_parquet_files_with_other_names_are_known_by_their_qids(tmp_path: Path) -> None:
    write_parquet(tmp_path / "train.parquet", KNOWLEDGE)
    assert opened(tmp_path).sizes[0].subset == "chinese_knowledge"
    write_parquet(tmp_path / "more.parquet", [row("codeswitching_knowledge-000", "a.wav")])
    with pytest.raises(ConfigError, match=r"more\.parquet: .*cs_knowledge or cs_knowledge_en.*name the file"):
        opened(tmp_path)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "chinese_knowledge.parquet", KNOWLEDGE)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ConfigError, match=r"chinese_knowledge\.parquet: truncated or damaged"):
        opened(tmp_path)


def test_rows_in_english(tmp_path: Path) -> None:
    rows = [row("instruction-000", "instruction_following/000.wav")]
    write_sounds(write_rows(tmp_path, instruction_following=rows), *rows)
    (query,) = opened(tmp_path, catalogue=VOCALBENCH_EN).queries
    assert (query.item.benchmark, query.language) == ("vocalbench-en", "en")


Broken = Callable[[Path], object]
FILE = "json/chinese_knowledge.json"


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda root: (root / FILE).write_text(json.dumps(KNOWLEDGE)[:-40]), r"json: half-written, its end is missing"),
        (lambda root: (root / FILE).write_text("[1, 2]"), "entry 1: a int, not an object"),
        (lambda root: (root / FILE).write_text("[{]"), "no JSON"),
        (lambda root: (root / FILE).write_text(""), "empty file"),
        (
            lambda root: write_rows(root, chinese_knowledge=[KNOWLEDGE[0], row("safety-000", "s.wav")]),
            "entry 2: 'safety-000' is no Qid of chinese_knowledge; they look like chinese_knowledge-0000",
        ),
        (
            lambda root: write_rows(root, chinese_knowledge=[*KNOWLEDGE, KNOWLEDGE[1]]),
            "entry 4: chinese_knowledge-0001 stands twice, first at .*entry 2",
        ),
        (
            lambda root: write_rows(root, chinese_knowledge=[{"Qid": "chinese_knowledge-0000"}]),
            "chinese_knowledge-0000 has no Question",
        ),
        (
            lambda root: write_rows(root, chinese_knowledge=[{**KNOWLEDGE[0], "Context": [{"from": "bot"}]}]),
            "entry 1: Context is no list of",
        ),
        (
            lambda root: write_rows(root, chinese_knowledge=[{**KNOWLEDGE[0], "Audio": "../../etc/x.wav"}]),
            "chinese_knowledge-0000: Audio .* is no path inside the data set",
        ),
        (lambda root: (root / FILE).unlink(), "holds no vocalbench-zh"),
    ],
)
def test_one_line_for_each_wrong_file(tmp_path: Path, break_it: Broken, reason: str) -> None:
    write_rows(tmp_path, chinese_knowledge=KNOWLEDGE)
    break_it(tmp_path)
    with pytest.raises(ConfigError, match=reason) as caught:
        opened(tmp_path)
    assert "\n" not in str(caught.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        opened(tmp_path / "none")
    write_rows(tmp_path, chinese_knowledge=KNOWLEDGE)
    with pytest.raises(ConfigError, match=r"no safety in it \(it holds chinese_knowledge\)"):
        opened(tmp_path, "safety")


def test_what_is_asked_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Two runs of the same rows may be joined; anything else may not."""
    write_sounds(write_rows(tmp_path, robust_clean=CLEAN, robust=ROBUST), *CLEAN)
    first = opened(tmp_path, "robust").sha256
    assert opened(tmp_path, "robust").sha256 == first
    assert opened(tmp_path, "robust", limit=1).sha256 != first
    assert opened(tmp_path, "robust", generate=True).sha256 != first
    write_rows(tmp_path, robust=[{**ROBUST[0], "Answer": "another"}, *ROBUST[1:]])
    assert opened(tmp_path, "robust").sha256 != first


@pytest.mark.skipif(not (DATA / "vocalbench-zh").is_dir(), reason="shared data is not here: vocalbench-zh")
@pytest.mark.parametrize(("catalogue", "items"), [(VOCALBENCH_ZH, 11_115), (VOCALBENCH_EN, 5_900)])
def test_the_published_query_sets(catalogue, items: int) -> None:
    dataset = opened(DATA / catalogue.name, catalogue=catalogue)
    assert len(dataset.queries) == len({query.id for query in dataset.queries}) == items
    assert all(size.found == size.published for size in dataset.sizes)
    positions: dict[str, int] = {}
    for query in dataset.queries:
        assert query.item.index == positions.get(query.item.subset, 0)  # the file's order is the Qids'
        positions[query.item.subset] = query.item.index + 1
    assert sum(bool(query.history) for query in dataset.queries) == 400


@pytest.mark.parametrize("audio", ["x" * 300 + ".wav", "a\0b.wav", "knowledge/" * 500 + "x.wav"])
def test_a_name_that_no_file_can_have_is_missing_sound(tmp_path: Path, audio: str) -> None:
    write_rows(tmp_path, chinese_knowledge=[{**KNOWLEDGE[0], "Audio": audio}])
    assert opened(tmp_path).missing == (("chinese_knowledge", audio),)
