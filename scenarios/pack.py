"""A pack: clips that belong together, from a folder with or without `manifest.jsonl`, or bundled by name."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import soundfile

from harness.core.audio import Int16
from harness.core.errors import ConfigError, nearest
from scenarios.annotator import annotator_name
from scenarios.clip import AudioFile, Clip

MANIFEST = "manifest.jsonl"
SCENARIOS = "scenarios"
"""The folder of a pack that holds its scenarios, if it has some."""
BUNDLED_ROOT = Path(__file__).parent / "packs"
AUDIO_SUFFIXES = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au", ".caf", ".w64"})
"""What a folder without a manifest is searched for; a manifest may name any file that libsndfile reads."""
OTHER_AUDIO_SUFFIXES = frozenset(
    {".m4a", ".aac", ".webm", ".weba", ".wma", ".mp4", ".mov", ".mkv", ".amr", ".3gp", ".ape", ".mka", ".ac3", ".dts"}
)
"""Sound that libsndfile does not read: such files of a folder are left out, and named."""


class ManifestRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of `manifest.jsonl`. Marks are samples at the file's own rate; sha256 is of the PCM16 samples."""

    id: str
    audio: str
    text: str = ""
    lang: str = ""
    voice: str = ""
    sha256: str | None = None
    speech_start: int | None = None
    speech_end: int | None = None
    licence: str = ""


class Pack(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Clips in manifest order (or by file name). sha256 names the content: every id, sound, rate and mark.

    annotator: what found the marks that no manifest gives. skipped: files of a folder without a manifest that hold
    sound which cannot be read here.
    """

    name: str
    clips: tuple[Clip, ...]
    sha256: str
    annotator: str
    skipped: tuple[str, ...] = ()


def bundled_packs() -> list[str]:
    """Names of the packs of queries that come with firstpacket."""
    return sorted(path.parent.name for path in BUNDLED_ROOT.glob(f"*/{MANIFEST}") if not _plays(path.parent))


def bundled_scenario_packs() -> list[str]:
    """Names of the packs that come with firstpacket and hold scenarios: their clips are no queries."""
    return sorted(path.parent.name for path in BUNDLED_ROOT.glob(f"*/{MANIFEST}") if _plays(path.parent))


def _plays(folder: Path) -> bool:
    return (folder / SCENARIOS).is_dir()


def refuse_scenarios(path_or_name: str | Path) -> None:
    """Raises ConfigError for a bundled pack of scenarios where queries are wanted."""
    name = str(path_or_name)
    if name in bundled_scenario_packs() and not Path(name).exists():
        raise ConfigError(f"{name}: holds scenarios, not queries: firstpacket duplex --pack {name}")


def load_pack(
    path_or_name: str | Path,
    *,
    rate_hz: int | None = None,
    limit: int | None = None,
    languages: Collection[str] | None = None,
) -> Pack:
    """Load a bundled pack by name, a folder, or a single audio file (a pack of one).

    rate_hz: resample every clip to this rate; None keeps each file's own. limit: at most so many clips, taken after
    the choice of languages. languages: only clips whose manifest names one of them.
    Raises ConfigError, one line, for whatever is wrong with the path, the manifest (with its line number) or a file.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit must be at least 1, not {limit}")
    path = _locate(path_or_name)
    root = path.parent if path.is_file() else path
    found = _Found([_of_file(path)]) if path.is_file() else _rows(path)
    rows = found.rows
    if languages is not None:
        known = {located.row.lang for located in rows}
        for language in languages:
            if language not in known:
                raise ConfigError(f"{path}: no clip in language {language!r}; {nearest(language, known)}")
        rows = [located for located in rows if located.row.lang in languages]
    files: dict[Path, AudioFile] = {}
    clips = tuple(_load(root, located, files) for located in rows[:limit])
    return Pack(
        name=path.stem if path.is_file() else path.name,
        clips=clips if rate_hz is None else _at_rate(clips, rate_hz),
        sha256=_content_sha256(clips),
        annotator=annotator_name(),
        skipped=found.skipped,
    )


def _locate(path_or_name: str | Path) -> Path:
    path = Path(path_or_name)
    try:
        path = path.expanduser()
        if path.exists():
            return path.resolve()
    except (OSError, RuntimeError) as exc:  # RuntimeError: nobody's home, or links in a circle
        raise ConfigError(f"{path}: cannot be read ({getattr(exc, 'strerror', None) or exc})") from exc
    bundled = BUNDLED_ROOT / str(path_or_name)
    if (bundled / MANIFEST).is_file() and bundled.parent == BUNDLED_ROOT:
        return bundled
    known = [*bundled_packs(), *bundled_scenario_packs()]
    raise ConfigError(f"{path_or_name}: no such file or folder, and no bundled pack; {nearest(str(path), known)}")


def read_manifest(manifest: Path) -> list[ManifestRow]:
    """The rows of a manifest, checked. Raises ConfigError with the line number for broken JSON, unknown keys (with the
    nearest right one), values of the wrong kind, duplicate ids, and for a manifest without rows."""
    return [located.row for located in _located_rows(manifest)]


class _Located(NamedTuple):
    """A row and the place that an error about it names (empty where no manifest said it)."""

    where: str
    row: ManifestRow


class _Found(NamedTuple):
    rows: list[_Located]
    skipped: tuple[str, ...] = ()


def _of_file(path: Path) -> _Located:
    return _Located("", ManifestRow(id=path.stem, audio=path.name))


def _rows(folder: Path) -> _Found:
    manifest = folder / MANIFEST
    if manifest.is_file():
        return _Found(_located_rows(manifest))
    readable = AUDIO_SUFFIXES - _unreadable_here()
    try:
        sounds = sorted(p for p in folder.iterdir() if p.suffix.lower() in AUDIO_SUFFIXES | OTHER_AUDIO_SUFFIXES)
    except OSError as exc:
        raise ConfigError(f"{folder}: cannot be read ({exc.strerror or exc})") from exc
    files = [path for path in sounds if path.suffix.lower() in readable]
    skipped = tuple(path.name for path in sounds if path.suffix.lower() not in readable)
    if not files and skipped:
        raise ConfigError(f"{folder}: no readable audio: {_some(skipped)}; convert to WAV or FLAC")
    if not files:
        raise ConfigError(f"{folder}: no audio files and no {MANIFEST}")
    seen: dict[str, str] = {}
    for path in files:
        if path.stem in seen:
            raise ConfigError(f"{folder}: {seen[path.stem]} and {path.name} would share the id {path.stem!r}")
        seen[path.stem] = path.name
    return _Found([_of_file(path) for path in files], skipped)


def _unreadable_here() -> frozenset[str]:
    """Suffixes of `AUDIO_SUFFIXES` that an old libsndfile does not read."""
    missing = set()
    if "MP3" not in soundfile.available_formats():
        missing.add(".mp3")
    if "OPUS" not in soundfile.available_subtypes():
        missing.add(".opus")
    return frozenset(missing)


def _some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _located_rows(manifest: Path) -> list[_Located]:
    try:
        lines = manifest.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{manifest}: cannot be read ({exc})") from exc
    rows: list[_Located] = []
    first_line: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{manifest}:{number}"
        row = _decode(line, where)
        if row.id in first_line:
            raise ConfigError(f"{where}: id {row.id!r} was already used in line {first_line[row.id]}")
        first_line[row.id] = number
        rows.append(_Located(where, row))
    if not rows:
        raise ConfigError(f"{manifest}: empty, no clips")
    return rows


def _decode(line: str, where: str) -> ManifestRow:
    try:
        raw = msgspec.json.decode(line)
    except msgspec.DecodeError as exc:
        raise ConfigError(f"{where}: not JSON ({exc})") from exc
    except RecursionError as exc:
        raise ConfigError(f"{where}: not a row (nested too deeply)") from exc
    if not isinstance(raw, dict):
        raise ConfigError(f'{where}: a row is an object like {{"id": ..., "audio": ...}}')
    for key in raw:
        if key not in ManifestRow.__struct_fields__:
            raise ConfigError(f"{where}: unknown key {key!r}; {nearest(key, ManifestRow.__struct_fields__)}")
    try:
        row = msgspec.convert(raw, ManifestRow)
    except msgspec.ValidationError as exc:
        raise ConfigError(f"{where}: {exc}") from exc
    if not row.id or not row.audio:
        raise ConfigError(f"{where}: id and audio must not be empty")
    return row


def _load(root: Path, located: _Located, files: dict[Path, AudioFile]) -> Clip:
    """The clip of a row; files: those decoded so far, each once however many rows name it."""
    row = located.row
    path = root / row.audio
    try:
        if path not in files:
            files[path] = AudioFile(path)
        clip = files[path].clip(
            clip_id=row.id,
            text=row.text,
            language=row.lang,
            voice=row.voice,
            speech_start=row.speech_start,
            speech_end=row.speech_end,
        )
    except ConfigError as exc:
        raise ConfigError(f"{located.where}: {exc}" if located.where else str(exc)) from exc
    if row.sha256 is not None and row.sha256 != clip.sha256:
        raise ConfigError(f"{located.where}: {row.audio} is not the audio that the manifest describes (sha256 differs)")
    return clip


def _at_rate(clips: tuple[Clip, ...], rate_hz: int) -> tuple[Clip, ...]:
    """The clips resampled; clips of one sound share their samples afterwards as they did before."""
    sounds: dict[tuple[str, int], Int16] = {}
    resampled = []
    for clip in clips:
        sound = (clip.sha256, clip.rate_hz)
        resampled.append(clip.at_rate(rate_hz, sounds.get(sound)))
        sounds[sound] = resampled[-1].samples
    return tuple(resampled)


def _content_sha256(clips: tuple[Clip, ...]) -> str:
    digest = hashlib.sha256()
    for clip in clips:
        digest.update(msgspec.json.encode([clip.id, clip.sha256, clip.rate_hz, clip.speech_start, clip.speech_end]))
    return digest.hexdigest()
