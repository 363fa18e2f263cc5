"""`export vocalbench RUN DIR`: answers of a run in the benchmarks' own layout, for their scripts and for others.

DIR gets `json/<subset>.json` (JSON Lines in the order of the query file), `wav/<subset>/<Qid>.wav` and, where the
answers were imported with what the authors' ASR heard, `json_asr/<subset>.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import soundfile

from harness.core.audio import Int16
from harness.core.errors import ConfigError, SessionFormatError
from harness.core.events import AudioReceived, Event, TextReceived, TurnEnded, TurnStarted
from harness.core.item import Item
from harness.core.run_directory import RunDirectory, lines_bytes
from harness.core.session.reader import Session
from scenarios.benchmarks.catalogue import Catalogue, catalogue_of
from scenarios.benchmarks.outputs import ANSWERS, SOUND, TRANSCRIPTS

TEXT_KINDS = ("text", "transcript", "token")
"""The model's own words, best first."""


class ExportedAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """answers: by subset. sounds: how many have sound. skipped: sessions left out, with the reason."""

    folder: Path
    answers: dict[str, int]
    sounds: int
    skipped: tuple[str, ...] = ()


class _Row(NamedTuple):
    position: int
    qid: str
    text: str
    transcript: str | None


def export_vocalbench(run: Path, folder: Path) -> ExportedAnswers:
    """Write every answer of a run. Of repeated queries the first answer counts.

    Raises ConfigError where `folder` is taken or cannot be written, or the run holds no answers to a benchmark;
    SessionFormatError for a damaged run.
    """
    if not (run / "sessions").is_dir():
        raise SessionFormatError(f"{run}: no sessions in it, so this is not a run directory")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: is not empty; name a directory that does not exist yet")
    rows: dict[str, dict[str, _Row]] = {}
    skipped: list[str] = []
    sounds, catalogue = 0, None
    try:
        for session in RunDirectory(run).load():
            item, why = _item(session, rows)
            if item is None:
                skipped.append(f"{session.header.session}: {why}")
                continue
            catalogue = catalogue_of(item.benchmark)
            sounds += _write_sound(session, folder / SOUND / item.subset / f"{item.qid}.wav")
            transcript = session.header.config.get("transcript")
            heard = transcript if isinstance(transcript, str) else None
            row = _Row(item.index, item.qid, _text(session), heard)
            rows.setdefault(item.subset, {})[item.qid] = row
        if catalogue is None:
            raise ConfigError(f"{run}: no answers to VocalBench in it" + (f": {skipped[0]}" if skipped else ""))
        for subset, answers in rows.items():
            _write_rows(folder, catalogue, subset, sorted(answers.values()))
    except (OSError, soundfile.LibsndfileError) as exc:
        raise ConfigError(f"{folder}: cannot be written ({getattr(exc, 'strerror', None) or exc})") from exc
    counts = {subset: len(answers) for subset, answers in rows.items()}
    return ExportedAnswers(folder=folder, answers=counts, sounds=sounds, skipped=tuple(skipped))


def _item(session: Session, rows: dict[str, dict[str, _Row]]) -> tuple[Item | None, str]:
    """The one item that the session answers, or why there is none."""
    header = session.header
    if header.warmup:
        return None, "a warm-up"
    if len(header.items) != 1:
        return None, f"{len(header.items)} items of a benchmark, one is needed"
    (item,) = header.items
    if item.qid in rows.get(item.subset, {}):
        return None, f"{item.qid} was answered before"
    if not _answer_of(session):
        ended = next(session.of(TurnEnded), None)
        return None, f"{item.qid} has no answer" + (f" ({ended.reason})" if ended and ended.reason else "")
    return item, ""


def _answer_of(session: Session) -> list[Event]:
    """What the peer said since the query began."""
    begun = next((event.seq for event in session.of(TurnStarted)), None)
    if begun is None:
        return []
    said = (event for event in session.events if isinstance(event, TextReceived | AudioReceived))
    return [event for event in said if event.seq > begun]


def _text(session: Session) -> str:
    """Deltas joined, responses by lines."""
    texts = [event for event in _answer_of(session) if isinstance(event, TextReceived)]
    for kind in TEXT_KINDS:
        lines: dict[str, str] = {}
        for event in texts:
            if event.kind == kind:
                lines[event.response] = lines.get(event.response, "") + event.text
        if lines:
            return "\n".join(line.strip() for line in lines.values() if line.strip())
    return ""


def _write_sound(session: Session, path: Path) -> bool:
    packets = [event for event in _answer_of(session) if isinstance(event, AudioReceived) and event.samples]
    if not packets:
        return False
    pieces: list[Int16] = [session.agent[packet.sample : packet.sample + packet.samples] for packet in packets]
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.concatenate(pieces), session.header.agent.rate_hz, subtype="PCM_16", format="WAV")
    return True


def _write_rows(folder: Path, catalogue: Catalogue, subset: str, answers: list[_Row]) -> None:
    said = [{catalogue.qid_key: row.qid, catalogue.answer_key: row.text} for row in answers]
    heard = [
        {**own, catalogue.transcript_key: row.transcript}
        for own, row in zip(said, answers, strict=True)
        if row.transcript is not None
    ]
    for name, rows in ((ANSWERS, said), (TRANSCRIPTS, heard)):
        if rows:
            path = folder / name / f"{subset}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(lines_bytes(rows))
