"""Packs: manifests, plain folders, single files, and every way to get them wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import soundfile

from harness.core.audio import Int16, audio_sha256
from harness.core.errors import ConfigError
from scenarios import clip
from scenarios.pack import bundled_packs, bundled_scenario_packs, load_pack, read_manifest, refuse_scenarios

pytestmark = pytest.mark.unit

RATE = 24_000


@pytest.fixture
def folder(tmp_path: Path, speech: Int16) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    soundfile.write(folder / "b.wav", speech, RATE)
    soundfile.write(folder / "a.flac", speech[::2], RATE // 2)
    (folder / "notes.txt").write_text("not a clip")
    (folder / "voice.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + bytes(500))
    return folder


def say(folder: Path, *rows: object) -> Path:
    path = folder / "manifest.jsonl"
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path


def test_folder_without_manifest_is_annotated_in_name_order_and_left_alone(folder: Path, private_cache: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    pack = load_pack(folder)
    assert pack.name == "mine"
    assert [clip.id for clip in pack.clips] == ["a", "b"]
    assert [clip.rate_hz for clip in pack.clips] == [12_000, 24_000]
    assert pack.annotator.startswith("silero-rms v1")
    assert sorted(path.name for path in folder.iterdir()) == before
    assert len(list(private_cache.rglob("*.json"))) == 2
    a, b = pack.clips
    assert abs(a.speech_end / 12_000 - b.speech_end / 24_000) < 0.02


def test_the_manifest_wins(folder: Path, speech: Int16, private_cache: Path) -> None:
    row = {"id": "one", "audio": "b.wav", "text": "t", "lang": "en", "voice": "v", "speech_start": 5, "speech_end": 9}
    say(folder, {**row, "sha256": audio_sha256(speech), "licence": "mine"}, "", {"id": "two", "audio": "a.flac"})
    one, two = load_pack(str(folder)).clips
    assert (one.speech_start, one.speech_end, one.text, one.language, one.voice) == (5, 9, "t", "en", "v")
    assert two.speech_end > two.speech_start > 0
    assert len(list(private_cache.rglob("*.json"))) == 1


def test_a_half_given_annotation_is_completed(folder: Path) -> None:
    computed = load_pack(folder / "b.wav").clips[0]
    say(folder, {"id": "one", "audio": "b.wav", "speech_end": 30_000})
    (clip,) = load_pack(folder).clips
    assert (clip.speech_start, clip.speech_end) == (computed.speech_start, 30_000)


def test_a_single_file_is_a_pack_of_one(folder: Path) -> None:
    pack = load_pack(folder / "b.wav")
    assert (pack.name, [clip.id for clip in pack.clips]) == ("b", ["b"])


def test_choices(folder: Path) -> None:
    say(folder, *({"id": f"{n}", "audio": "b.wav", "lang": "en" if n % 2 else "zh"} for n in range(6)))
    assert [clip.id for clip in load_pack(folder, languages={"en"}, limit=2).clips] == ["1", "3"]
    assert {clip.rate_hz for clip in load_pack(folder, rate_hz=16_000).clips} == {16_000}
    with pytest.raises(ConfigError, match="no clip in language 'fr'"):
        load_pack(folder, languages=["fr"])
    with pytest.raises(ConfigError, match="limit must be at least 1"):
        load_pack(folder, limit=0)


def test_sha256_names_the_content(folder: Path) -> None:
    first = load_pack(folder).sha256
    assert load_pack(folder).sha256 == first
    assert load_pack(folder, rate_hz=16_000).sha256 == first
    assert load_pack(folder, limit=1).sha256 != first
    say(folder, {"id": "a", "audio": "a.flac"}, {"id": "b", "audio": "b.wav", "speech_end": 30_000})
    assert load_pack(folder).sha256 != first


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], r"manifest\.jsonl: empty, no clips"),
        (["", "  "], "empty, no clips"),
        ([{"id": "a", "audio": "b.wav"}, {"id": "a", "audio": "a.flac"}], r":2: id 'a' was already used in line 1"),
        (
            [{"id": "a", "audio": "b.wav"}, "", {"id": "c", "audio": "b.wav", "txt": ""}],
            r":3: unknown key 'txt'; did you mean text\?",
        ),
        (
            [{"id": "a", "audio": "b.wav", "speech_stop": 1}],
            r":1: unknown key 'speech_stop'; did you mean speech_start\?",
        ),
        ([{"id": "a", "audio": "b.wav"}, "{broken"], r":2: not JSON"),
        (["[1, 2]"], r":1: a row is an object"),
        ([{"id": "a", "audio": "b.wav"}, '{"id":' + "[" * 100_000], r":2: not a row \(nested too deeply\)"),
        ([{"id": "a", "audio": "x" * 5_000}], r":1: .*cannot be read \(File name too long\)"),
        ([{"id": "a", "audio": "voice.m4a"}], r":1: .*voice\.m4a: unknown audio format .*convert it to WAV or FLAC"),
        ([{"id": "a"}], r":1: .*audio"),
        ([{"id": "a", "audio": 5}], r":1: Expected `str`"),
        ([{"id": "a", "audio": "b.wav", "speech_end": 1.5}], r":1: Expected `int"),
        ([{"id": "", "audio": "b.wav"}], r":1: id and audio must not be empty"),
        ([{"id": "a", "audio": "gone.wav"}], r":1: .*gone\.wav: no such file"),
        ([{"id": "a", "audio": "notes.txt"}], r":1: .*notes\.txt: unknown audio format"),
        (
            [{"id": "a", "audio": "b.wav", "sha256": "0" * 64}],
            r":1: b\.wav is not the audio that the manifest describes",
        ),
        ([{"id": "a", "audio": "b.wav", "speech_start": 9, "speech_end": 5}], r":1: .*marks \[9, 5\) do not lie"),
    ],
)
def test_wrong_manifests_are_one_line_with_its_number(folder: Path, rows: list[object], reason: str) -> None:
    say(folder, *rows)
    with pytest.raises(ConfigError, match=reason) as caught:
        load_pack(folder)
    assert "\n" not in str(caught.value)
    assert "manifest.jsonl" in str(caught.value)


def test_manifest_that_is_not_text(folder: Path) -> None:
    (folder / "manifest.jsonl").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_pack(folder)


def test_wrong_paths(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean queries"):
        load_pack("querys")
    (tmp_path / "bare").mkdir()
    with pytest.raises(ConfigError, match="no audio files and no manifest"):
        load_pack(tmp_path / "bare")
    shutil.copy(folder / "b.wav", folder / "a.wav")
    with pytest.raises(ConfigError, match=r"a\.flac and a\.wav would share the id 'a'"):
        load_pack(folder)


@pytest.mark.parametrize("name", ["x" * 5_000, "~nobody_has_this_name/a.wav"])
def test_paths_that_cannot_be(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        load_pack(name)
    assert "\n" not in str(caught.value)


def test_sound_that_cannot_be_read_is_left_out_and_named(folder: Path) -> None:
    (folder / "talk.WEBM").write_bytes(b"\x1aE\xdf\xa3")
    pack = load_pack(folder)
    assert [clip.id for clip in pack.clips] == ["a", "b"]
    assert pack.skipped == ("talk.WEBM", "voice.m4a")
    say(folder, {"id": "one", "audio": "b.wav"})
    assert load_pack(folder).skipped == ()
    assert load_pack(folder / "b.wav").skipped == ()


def test_a_folder_of_nothing_readable_says_so(tmp_path: Path) -> None:
    for name in ("x.m4a", "y.aac", "z.wma", "zz.mp4"):
        (tmp_path / name).write_bytes(bytes(100))
    with pytest.raises(
        ConfigError, match=r"no readable audio: x\.m4a, y\.aac, z\.wma and 1 more; convert to WAV or FLAC"
    ):
        load_pack(tmp_path)


def test_opus_is_skipped_where_libsndfile_has_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "c.opus").write_bytes(b"OggS" + bytes(100))
    monkeypatch.setattr(soundfile, "available_subtypes", lambda: {"VORBIS": ""})
    assert load_pack(folder).skipped == ("c.opus", "voice.m4a")


def test_a_file_that_many_rows_name_is_loaded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[Path] = []
    annotated: list[int] = []
    load_sound, annotate = clip.load_sound, clip.annotate_cached
    monkeypatch.setattr(clip, "load_sound", lambda path: decoded.append(path) or load_sound(path))
    monkeypatch.setattr(clip, "annotate_cached", lambda *sound: annotated.append(1) or annotate(*sound))
    rows = [{"id": f"{n}", "audio": "b.wav", "speech_end": 30_000 + n} for n in range(50)]
    say(folder, *rows, {"id": "other", "audio": "./b.wav"})
    pack = load_pack(folder, rate_hz=16_000)
    assert (len(decoded), len(annotated)) == (1, 1)
    assert len({id(one.samples) for one in pack.clips}) == 1
    assert [one.speech_end for one in pack.clips[:3]] == [20_000, 20_001, 20_001]


def test_bundled_packs_are_found_by_name() -> None:
    assert bundled_packs() == ["queries"]
    assert bundled_scenario_packs() == ["duplex-en", "duplex-zh"]
    assert load_pack("queries", limit=1).name == "queries"


def test_scenarios_are_no_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="holds scenarios, not queries: firstpacket duplex --pack duplex-zh"):
        refuse_scenarios("duplex-zh")
    refuse_scenarios("queries")
    monkeypatch.chdir(tmp_path)
    Path("duplex-zh").mkdir()
    refuse_scenarios("duplex-zh")  # a folder of one's own


def test_manifest_rows_can_be_read_without_the_audio(folder: Path) -> None:
    path = say(folder, {"id": "a", "audio": "gone.wav"})
    assert [row.id for row in read_manifest(path)] == ["a"]
