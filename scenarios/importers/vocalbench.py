"""`import vocalbench DIR`: a model's answers in the benchmarks' own layout, so that they are scored without the model.

One session an answer, with its item. Nobody knows when an answer came, so a session has no instants but 0: the mode is
`upload` without a send, and every latency is null with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

import harness
from harness.core.audio import int16_to_pcm16
from harness.core.clock import WallAnchor
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioDone,
    AudioReceived,
    Event,
    Note,
    ResponseDone,
    ResponseStarted,
    TextReceived,
    TurnEnded,
    TurnStarted,
)
from harness.core.item import Item
from harness.core.profile import Profile
from harness.core.run_directory import slug
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.core.session.writer import SessionWriter
from scenarios.benchmarks.catalogue import catalogue_of
from scenarios.benchmarks.dataset import Choice, open_dataset
from scenarios.benchmarks.outputs import Output, Outputs
from scenarios.benchmarks.query import BenchmarkQuery
from scenarios.benchmarks.sound import ImpairedSound, length_of
from scenarios.importers.sessions import Imported, Track, begin_run, refuse_taken
from scenarios.importers.sound import load_mono

FORM = "vocalbench"
RATE_HZ = 24_000
"""Declared rate of a session without sound."""
UNKNOWN = "when the answer came is not known: no latency"
NEAR = 3
"""Folders above the outputs that are searched for the query files, as in the benchmarks' own checkouts."""


class _Answer(NamedTuple):
    output: Output
    query: BenchmarkQuery
    track: Track | None
    why: str


def import_vocalbench(
    folder: Path,
    out: Path,
    *,
    data: Path | None = None,
    benchmark: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Imported:
    """Write one session for each answer below `out`. skipped: sound that is missing or cannot be read, by name; such
    an answer is imported with its text alone.

    data: where the query files lie; None looks for them in the folders above. Raises ConfigError, one line.
    """
    refuse_taken(out)
    outputs = Outputs(folder, catalogue_of(benchmark) if benchmark else None)
    answers = [output for subset in outputs.subsets for output in outputs.read(subset)]
    queries = _queries(outputs, data)
    for output in answers:
        if (output.subset.name, output.qid) not in queries:
            raise ConfigError(
                f"{folder}: {output.qid} is answered, and the query files have no such {output.subset.name}"
            )
    names = [_name(queries[output.subset.name, output.qid]) for output in answers]
    label = slug(folder.resolve().name)
    detail = {"benchmark": outputs.catalogue.name, "answers": len(answers)}
    run = begin_run(out, names, form=FORM, source=folder, suite=outputs.catalogue.name, detail=detail, peer=label)
    skipped: list[str] = []
    try:
        for number, (name, answer) in enumerate(zip(names, _loaded(answers, queries), strict=True), start=1):
            if answer.why:
                skipped.append(f"{answer.output.qid}: {answer.why}")
            _write(run.sessions, name, answer, label)
            progress(number, len(names))
    except OSError as exc:
        raise ConfigError(
            f"{out}: cannot be written ({exc.strerror or exc}): free some space, or another --out"
        ) from exc
    return Imported(run=out, sessions=tuple(names), skipped=tuple(skipped))


def _queries(outputs: Outputs, data: Path | None) -> dict[tuple[str, str], BenchmarkQuery]:
    names = tuple(subset.name for subset in outputs.subsets)
    home = data or _near(outputs.folder.resolve(), names[0])
    dataset = open_dataset(home, outputs.catalogue, Choice(subsets=names))
    return {(query.item.subset, query.item.qid): query for query in dataset.queries}


def _near(folder: Path, subset: str) -> Path:
    for parent in folder.parents[:NEAR]:
        if (parent / "json" / f"{subset}.json").is_file():
            return parent
    raise ConfigError(f"no query file json/{subset}.json in the folders above {folder}: say --data DIR where they lie")


def _name(query: BenchmarkQuery) -> str:
    return f"{query.item.index:05d}-{slug(query.id)}"


def _loaded(answers: list[Output], queries: dict[tuple[str, str], BenchmarkQuery]) -> Iterator[_Answer]:
    """One at a time, so that memory does not grow with their number."""
    for output in answers:
        query = queries[output.subset.name, output.qid]
        track, why = None, f"no sound: {output.looked_for} is missing" if output.looked_for else ""
        if output.sound is not None:
            try:
                track = load_mono(output.sound)
            except ConfigError as exc:
                why = str(exc)
        yield _Answer(output, query, track, why)


def _write(sessions: Path, name: str, answer: _Answer, label: str) -> None:
    writer = SessionWriter(sessions, _header(name, answer, label))
    for event in _events(answer):
        writer.append(event)
    writer.close()


def _header(name: str, answer: _Answer, label: str) -> Header:
    rate_hz = answer.track.rate_hz if answer.track else RATE_HZ
    output, query = answer.output, answer.query
    transcript = {} if output.transcript is None else {"transcript": output.transcript}
    return Header(
        session=name,
        peer=PeerInfo(kind="import", label=label, version=harness.__version__),
        mode="upload",
        profile=Profile(
            turns=(),
            upload=True,
            output_rate_hz=rate_hz,
            flush_on=(),
            history=bool(query.history),
            text="none" if output.text is None else "before_audio",
        ),
        clock=ClockInfo(name="none", resolution_ns=1),
        anchor=WallAnchor(wall_ns=0, monotonic_ns=0),
        config={"imported": True, "format": FORM, "unknown": [UNKNOWN], **transcript},
        queries=(query.id,),
        languages=(query.language,),
        items=(_item(query),),
        user=AudioInfo(file="user.flac", rate_hz=RATE_HZ),
        agent=AudioInfo(file="agent.flac", rate_hz=rate_hz),
        imported=FORM,
        firstpacket=harness.__version__,
    )


def _item(query: BenchmarkQuery) -> Item:
    """With the length of the query's sound, where that is at hand. Whether the model got the history, nobody says: the
    benchmark asks for it."""
    source = query.source
    samples, rate_hz = length_of(source) if source is not None and not isinstance(source, ImpairedSound) else (0, 0)
    history: Literal["injected", ""] = "injected" if query.history else ""
    return msgspec.structs.replace(query.item, question_samples=samples, question_rate_hz=rate_hz, history=history)


def _events(answer: _Answer) -> Iterator[Event]:
    query, text, track = answer.query, answer.output.text, answer.track
    yield Note(t_ns=0, code="imported", message=UNKNOWN)
    if answer.why:
        yield Note(t_ns=0, code="no_sound", message=answer.why)
    yield TurnStarted(
        t_ns=0,
        turn=0,
        query=query.id,
        clip_sample=0,
        clip_samples=0,
        speech_start=0,
        speech_end=0,
        text=query.text,
        language=query.language,
    )
    if text is None and track is None:
        yield TurnEnded(t_ns=0, turn=0, outcome="error", reason="the model gave no answer")
        return
    yield ResponseStarted(t_ns=0, response="r")
    if text is not None:  # an empty answer is one: the benchmarks judge it
        yield TextReceived(t_ns=0, text=text, response="r")
    if track is not None:
        pcm = int16_to_pcm16(track.samples)
        yield AudioReceived(t_ns=0, samples=len(track.samples), rate_hz=track.rate_hz, response="r", pcm=pcm)
        yield AudioDone(t_ns=0, response="r")
    yield ResponseDone(t_ns=0, response="r")
    yield TurnEnded(t_ns=0, turn=0, outcome="answered")
