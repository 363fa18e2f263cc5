"""Model outputs in VocalBench's layout: imported with their items and without latency, exported the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from harness.core.errors import ConfigError, SessionFormatError
from harness.core.events import Note, TurnEnded
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session
from harness.run.replay import score, scorers_of
from scenarios.exporters.vocalbench import export_vocalbench
from scenarios.importers.vocalbench import import_vocalbench
from scoring.pipeline.answers import session_answers
from tests.scenarios.benchmarks.made import KNOWLEDGE, ROUND, row, tone, write_rows, write_sound, write_sounds

pytestmark = pytest.mark.unit

SHARED = Path(__file__).parents[3] / "shared" / "data"
ZH = SHARED / "vocalbench-zh" / "model_output" / "qwen3-omni"
EN = SHARED / "vocalbench-en" / "result" / "llama-omni"


def write_answers(folder: Path, subset: str, rows: list[dict[str, Any]], *, stage: str = "json", lines: bool = True):
    path = folder / stage / f"{subset}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(each, ensure_ascii=False) for each in rows) + "\n" if lines else json.dumps(rows)
    path.write_text(text, encoding="utf-8")
    return path


def answers(*qids: str) -> list[dict[str, Any]]:
    return [{"Qid": qid, "Response": f"回答 {qid}"} for qid in qids]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_sounds(write_rows(tmp_path / "set", chinese_knowledge=KNOWLEDGE, multi_round=ROUND), KNOWLEDGE[0])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two answers on knowledge (one has sound below its subset), one of the third round (sound beside)."""
    folder = tmp_path / "model-x"
    write_answers(folder, "chinese_knowledge", answers("chinese_knowledge-0002", "chinese_knowledge-0000"))
    write_answers(folder, "multi_round", answers("multi_round-000"), lines=False)
    write_sound(folder / "wav" / "chinese_knowledge" / "chinese_knowledge-0000.wav", tone(2.5))
    write_sound(folder / "wav" / "multi_round-000.wav", tone(1.0), 24_000)
    return folder


def sessions_of(run: Path) -> dict[str, Session]:
    return {session.header.items[0].qid: session for session in RunDirectory(run).load()}


def test_answers_become_sessions_with_items(tmp_path: Path, data: Path, model: Path) -> None:
    imported = import_vocalbench(model, tmp_path / "run", data=data)
    assert imported.sessions == (
        "00002-chinese_knowledge-0002",
        "00000-chinese_knowledge-0000",
        "00000-multi_round-000",
    )
    assert [each.partition(":")[0] for each in imported.skipped] == ["chinese_knowledge-0002"]
    sessions = sessions_of(tmp_path / "run")
    knowledge, rounds = sessions["chinese_knowledge-0000"], sessions["multi_round-000"]
    (item,) = knowledge.header.items
    assert (item.benchmark, item.subset, item.index, item.fields) == (
        "vocalbench-zh",
        "chinese_knowledge",
        0,
        KNOWLEDGE[0],
    )
    assert (item.question_samples, item.question_rate_hz) == (3200, 16_000)  # that of the query, not of the answer
    assert rounds.header.items[0].history == "injected"
    assert (knowledge.header.peer.label, knowledge.header.imported) == ("model-x", "vocalbench")
    assert knowledge.agent.tolist() == tone(2.5).tolist()
    info = RunDirectory(tmp_path / "run").info()
    assert (info.peer, info.suite, info.config["answers"]) == ("model-x", "vocalbench-zh", 3)


def test_nothing_is_said_of_their_latency(tmp_path: Path, data: Path, model: Path) -> None:
    import_vocalbench(model, tmp_path / "run", data=data)
    run = RunDirectory(tmp_path / "run")
    assert scorers_of(run) == ("timing",)  # answers to a benchmark are no conversations
    row = next(row for row in score(run).rows if row["query"] == "chinese_knowledge-0000")
    assert (row["status"], row["audio_s"]) == ("ok", 2.5)
    for name in ("ttft_ms", "first_packet_ms", "first_audible_ms", "generation_s", "rtf", "stream_rtf", "connect_ms"):
        assert row[name] is None
    assert row["reasons"]["ttft_ms"] == "no sends were recorded"


def test_missing_damaged_and_empty_sound_is_named_and_the_text_stays(tmp_path: Path, data: Path, model: Path) -> None:
    wav = model / "wav" / "chinese_knowledge" / "chinese_knowledge-0000.wav"
    wav.write_bytes(b"")
    imported = import_vocalbench(model, tmp_path / "run", data=data)
    missing, empty = imported.skipped
    assert missing == f"chinese_knowledge-0002: no sound: {wav.with_name('chinese_knowledge-0002.wav')} is missing"
    assert empty.startswith(f"chinese_knowledge-0000: {wav}: ")
    session = sessions_of(tmp_path / "run")["chinese_knowledge-0000"]
    assert any(note.code == "no_sound" for note in session.of(Note))
    assert next(session.of(TurnEnded)).outcome == "answered"
    assert session.header.agent.samples == 0


def test_text_alone(tmp_path: Path, data: Path) -> None:
    rows = [*answers("chinese_knowledge-0000"), {"Qid": "chinese_knowledge-0001", "Response": None}]
    write_answers(tmp_path / "m", "chinese_knowledge", rows)
    assert import_vocalbench(tmp_path / "m", tmp_path / "run", data=data).skipped == ()  # no wav/ at all
    silent = sessions_of(tmp_path / "run")["chinese_knowledge-0001"]
    ended = next(silent.of(TurnEnded))
    assert (ended.outcome, ended.reason) == ("error", "the model gave no answer")


def test_an_empty_text_is_an_answer_and_goes_out_again(tmp_path: Path, data: Path) -> None:
    write_answers(tmp_path / "m", "chinese_knowledge", [{"Qid": "chinese_knowledge-0001", "Response": ""}])
    import_vocalbench(tmp_path / "m", tmp_path / "run", data=data)
    (session,) = RunDirectory(tmp_path / "run").load()
    assert next(session.of(TurnEnded)).outcome == "answered"
    (answer,) = session_answers(session)
    assert (answer.text, answer.failed) == ("", "")
    export_vocalbench(tmp_path / "run", tmp_path / "out")
    (line,) = (tmp_path / "out" / "json" / "chinese_knowledge.json").read_text().splitlines()
    assert json.loads(line) == {"Qid": "chinese_knowledge-0001", "Response": ""}


def test_the_english_keys_and_the_query_files_above(tmp_path: Path) -> None:
    rows = [row("knowledge-0000", "k.wav"), row("knowledge-0001", "l.wav")]
    write_rows(tmp_path, knowledge=rows)
    folder = tmp_path / "result" / "m"
    said = [{"question_id": "knowledge-0001", "prediction": "Paris.", "prediction_units": "1 2"}]
    write_answers(folder, "knowledge", said)
    write_answers(folder, "knowledge", [{**said[0], "asr_pred": "paris"}], stage="json_asr", lines=False)
    import_vocalbench(folder, tmp_path / "run")
    (session,) = sessions_of(tmp_path / "run").values()
    assert (session.header.items[0].benchmark, session.header.items[0].index) == ("vocalbench-en", 1)
    assert session.header.config["transcript"] == "paris"


def test_there_and_back(tmp_path: Path, data: Path, model: Path) -> None:
    heard = [{**each, "Response_hyp": "听到"} for each in answers("chinese_knowledge-0000")]
    write_answers(model, "chinese_knowledge", heard, stage="json_asr")
    import_vocalbench(model, tmp_path / "run", data=data)
    exported = export_vocalbench(tmp_path / "run", tmp_path / "out")
    assert (exported.answers, exported.sounds) == ({"chinese_knowledge": 2, "multi_round": 1}, 2)

    def lines(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (tmp_path / "out" / name).read_text(encoding="utf-8").splitlines()]

    assert lines("json/chinese_knowledge.json") == answers("chinese_knowledge-0000", "chinese_knowledge-0002")
    assert lines("json/multi_round.json") == answers("multi_round-000")
    assert lines("json_asr/chinese_knowledge.json") == heard
    samples, rate_hz = soundfile.read(tmp_path / "out" / "wav" / "multi_round" / "multi_round-000.wav", dtype="int16")
    assert rate_hz == 24_000
    assert np.array_equal(samples, tone(1.0))

    import_vocalbench(tmp_path / "out", tmp_path / "again", data=data)
    first, second = sessions_of(tmp_path / "run"), sessions_of(tmp_path / "again")
    assert {qid: session.header.agent.sha256 for qid, session in first.items()} == {
        qid: session.header.agent.sha256 for qid, session in second.items()
    }
    assert {qid: session.header.items for qid, session in first.items()} == {
        qid: session.header.items for qid, session in second.items()
    }


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"Qid": "chinese_kn')


Broken = Callable[[Path], object]


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (
            lambda model: cut(model / "json" / "chinese_knowledge.json"),
            r"chinese_knowledge\.json, line 3: half-written, its end is missing: fetch or write it again",
        ),
        (
            lambda model: write_answers(model, "chinese_knowledge", answers("foreign_knowledge-0000")),
            "line 1: Qid 'foreign_knowledge-0000' is not of chinese_knowledge; they look like chinese_knowledge-0000",
        ),
        (
            lambda model: write_answers(model, "chinese_knowledge", answers(*["chinese_knowledge-0001"] * 2)),
            "line 2: chinese_knowledge-0001 stands twice, first in line 1",
        ),
        (
            lambda model: write_answers(model, "chinese_knowledge", answers("chinese_knowledge-0777")),
            "chinese_knowledge-0777 is answered, and the query files have no such chinese_knowledge",
        ),
        (
            lambda model: write_answers(
                model, "chinese_knowledge", [{"Qid": "chinese_knowledge-0000", "Respones": "a"}]
            ),
            r"line 1: no Response; did you mean Respones\?",
        ),
        (
            lambda model: write_answers(model, "chinese_knowledge", [{"Qid": "chinese_knowledge-0000", "Response": 4}]),
            "Response is a int, not a text",
        ),
        (
            lambda model: write_answers(model, "chinese_knowlege", answers("chinese_knowledge-0000")),
            "no subset 'chinese_knowlege'; did you mean chinese_knowledge",
        ),
        (lambda model: write_answers(model, "chinese_knowledge", [{"id": 1}]), "rows have no Qid or question_id"),
        (lambda model: write_answers(model, "chinese_knowledge", []), "empty file"),
        (lambda model: write_answers(model, "chinese_knowledge", [], lines=False), "an empty list"),
    ],
)
def test_one_line_for_each_wrong_file(tmp_path: Path, data: Path, model: Path, break_it: Broken, reason: str) -> None:
    break_it(model)
    with pytest.raises(ConfigError, match=reason) as caught:
        import_vocalbench(model, tmp_path / "run", data=data)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_folders_that_are_none(tmp_path: Path, data: Path, model: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        import_vocalbench(tmp_path / "nobody", tmp_path / "run", data=data)
    with pytest.raises(ConfigError, match=r"no json/<subset>\.json in it"):
        import_vocalbench(tmp_path, tmp_path / "run", data=data)
    with pytest.raises(ConfigError, match=r"in the folders above .*: say --data DIR"):
        import_vocalbench(model, tmp_path / "run")
    import_vocalbench(model, tmp_path / "run", data=data)
    with pytest.raises(ConfigError, match="is not empty"):
        import_vocalbench(model, tmp_path / "run", data=data)
    with pytest.raises(ConfigError, match="is not empty"):
        export_vocalbench(tmp_path / "run", model)
    with pytest.raises(SessionFormatError, match="not a run directory"):
        export_vocalbench(model, tmp_path / "out")


@pytest.mark.skipif(not ZH.is_dir(), reason="shared data is not here: vocalbench-zh")
def test_the_published_mandarin_sample(tmp_path: Path) -> None:
    imported = import_vocalbench(ZH, tmp_path / "run")
    assert (len(imported.sessions), len(imported.skipped)) == (5, 4)
    session = sessions_of(tmp_path / "run")["chinese_knowledge-0000"]
    assert session.header.agent.samples == 1_221_375
    assert session.header.items[0].fields["Answer"] == "少林"
    assert session.header.config["transcript"]


@pytest.mark.skipif(not EN.is_dir(), reason="shared data is not here: vocalbench-en")
def test_the_published_english_thousand(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    imported = import_vocalbench(EN, tmp_path / "run", progress=lambda *step: steps.append(step))
    assert (len(imported.sessions), steps[0], steps[-1]) == (1000, (1, 1000), (1000, 1000))
    assert sum("is missing" in each for each in imported.skipped) == 999
