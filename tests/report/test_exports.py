"""Exports: what stands in the file is what stands in the run, in the form that others read."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import soundfile
from click.testing import CliRunner, Result

from harness.cli import cli
from harness.core.errors import ConfigError, PrerequisiteError, SessionFormatError
from harness.core.run_directory import RunDirectory, RunInfo
from harness.report.exports.csv_table import csv_text
from harness.report.exports.otel import otel_trace
from harness.report.exports.parquet import write_parquet
from harness.report.exports.rows import Flat, flat_rows
from tests.report.duplex_run import event_rows, write_conversations
from tests.report.sample_run import BASE_NS, HOSTILE, MS, Plan, write_run

pytestmark = pytest.mark.unit

WALL_NS = 1_760_000_000_000_000_000
"""Of the sample sessions' anchor, at `BASE_NS`."""


def firstpacket(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(cli, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plans = [
        Plan(session="s0", query="q0", answer_ms=300),
        Plan(
            session="s1", query="q1", status="peer_error", error="=cmd|' /C calc'!A0 sk-abcdefgh12345678", answer_ms=300
        ),
    ]
    return write_run(tmp_path_factory.mktemp("exports") / "run", plans).path


def test_csv_has_every_row_and_no_secret(run: Path) -> None:
    rows = RunDirectory(run).read_lines("metrics.jsonl")
    found = list(csv.DictReader(io.StringIO(firstpacket("export", "csv", run).stdout)))
    assert [row["session"] for row in found] == ["s0", "s1"]
    assert float(found[0]["first_packet_ms"]) == rows[0]["first_packet_ms"]
    assert int(found[0]["anchors.first_packet"]) == rows[0]["anchors"]["first_packet"]
    assert found[0]["warmup"] == "false"
    assert found[1]["first_packet_ms"] == ""
    assert found[1]["error"] == "'=cmd|' /C calc'!A0 [redacted]"


def test_csv_survives_commas_quotes_and_lines() -> None:
    text = csv_text(Flat(("a", "b"), [{"a": 'x,"y"\nz', "b": -0.5}, {"b": True}]))
    assert list(csv.reader(io.StringIO(text))) == [["a", "b"], ['x,"y"\nz', "-0.5"], ["", "true"]]


@pytest.mark.parametrize("text", ["=1+1", " =1+1", "\n@x", "\t-1", "\uff1d1+1"])
def test_csv_runs_nothing_whatever_stands_before_it(text: str) -> None:
    (_, (cell,)) = csv.reader(io.StringIO(csv_text(Flat(("a",), [{"a": text}]))))
    assert cell.startswith("'")


def test_parquet_takes_numbers_of_any_size(tmp_path: Path) -> None:
    from pyarrow import parquet

    info = RunInfo(peer="p", suite="s", created="", firstpacket="0", config={})
    columns = ("small", "large", "mixed")
    rows: list[dict[str, Any]] = [{"small": 2**62, "large": 2**64, "mixed": 2**60 + 1}, {"small": None, "mixed": 0.5}]
    write_parquet(Flat(columns, rows), tmp_path / "rows.parquet", info)
    table = parquet.read_table(tmp_path / "rows.parquet")
    assert table.to_pydict() == {"small": [2**62, None], "large": [2.0**64, None], "mixed": [2.0**60, 0.5]}


def test_parquet_columns_have_their_types(run: Path, tmp_path: Path) -> None:
    from pyarrow import parquet

    done = firstpacket("export", "parquet", run, tmp_path / "new" / "rows.parquet")
    assert done.exit_code == 0, done.output
    table = parquet.read_table(tmp_path / "new" / "rows.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert [types[name] for name in ("session", "first_packet_ms", "turn", "tainted", "anchors.first_packet")] == [
        *("string", "double", "int64", "bool", "int64"),
    ]
    rows = RunDirectory(run).read_lines("metrics.jsonl")
    assert table["first_packet_ms"].to_pylist() == [row["first_packet_ms"] for row in rows]
    assert table.schema.metadata[b"firstpacket.peer"] == b"sample-realtime"


def test_parquet_without_its_package(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = firstpacket("export", "parquet", run, tmp_path / "rows.parquet")
    assert isinstance(done.exception, PrerequisiteError)
    assert "firstpacket[parquet]" in str(done.exception)


def test_rows_of_conversations(tmp_path: Path) -> None:
    run = write_conversations(tmp_path / "run")
    assert len(flat_rows(run).rows) == len(event_rows())
    assert firstpacket("export", "csv", run.path, "--rows", "duplex").exit_code == 0
    done = firstpacket("export", "csv", run.path, "--rows", "scores")
    assert isinstance(done.exception, ConfigError)
    assert "no scores.jsonl in it" in str(done.exception)


def test_markdown_has_a_column_a_peer(tmp_path: Path) -> None:
    names = ("quick", "a|b <i>")
    for name, p50 in zip(names, (400.0, 1234.56), strict=True):
        metrics = {"first_packet_ms": {"n": 21, "p50": p50, "p95": 2000.0, "ci95": {"p50": [p50 - 1, p50 + 1]}}}
        run = RunDirectory(tmp_path / f"run{p50:.0f}")
        written = write_run(run.path, [], sessions=0)
        written.write_json("run.json", {**json.loads((run.path / "run.json").read_text()), "peer": name})
        written.write_json("summary.json", {"metrics": metrics, "turns": 22, "failed": 1, "mode": "vad"})
    lines = firstpacket("export", "markdown", tmp_path / "run400", tmp_path / "run1235").stdout.splitlines()
    assert lines[:5] == [
        "| Metric | quick | a\\|b &lt;i> |",
        "| --- | ---: | ---: |",
        "| First packet (ms) | 400.0 (399.0–401.0), p95 2,000.0; 21 | 1,234.6 (1,233.6–1,235.6), p95 2,000.0; 21 |",
        "| Turns (failed) | 22 (1) | 22 (1) |",
        "| Turn mode | vad | vad |",
    ]


def test_markdown_of_conversations_and_scores(tmp_path: Path) -> None:
    run = write_conversations(tmp_path / "run")
    abilities = {
        "fluency_utmos": {"value": 4.1, "n": 20, "ci95": [4.0, 4.2]},
        "safety_rr_pct": {"unscored": "no", "n": 0},
    }
    run.write_json("scores.json", {"benchmark": "vb", "abilities": abilities, "overall": {"unscored": "parts"}})
    text = firstpacket("export", "markdown", run.path).stdout
    cell = next(line for line in text.splitlines() if line.startswith("| yields |"))
    assert cell == "| yields | 100.0 % (100.0 to 100.0); 12 |"
    assert "| `fluency_utmos` | 4.100 (4.000–4.200); 20 |" in text
    assert "safety" not in text


def by_key(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["key"]: each["value"] for each in attributes}


def test_otel_spans_lie_at_wall_time(run: Path) -> None:
    (resource,) = otel_trace(RunDirectory(run))["resourceSpans"]
    assert by_key(resource["resource"]["attributes"])["service.name"] == {"stringValue": "sample-realtime"}
    spans = resource["scopeSpans"][0]["spans"]
    whole, turn = spans[:2]
    assert (whole["name"], turn["name"], turn["kind"]) == ("session", "turn q0", 3)
    assert (len(turn["traceId"]), len(turn["spanId"]), turn["parentSpanId"]) == (32, 16, whole["spanId"])
    row = RunDirectory(run).read_lines("metrics.jsonl")[0]
    zero = WALL_NS + 400 * MS  # the stream starts 400 ms after the anchor
    events = {event["name"]: int(event["timeUnixNano"]) for event in turn["events"]}
    assert events == {name: zero + t_ns for name, t_ns in row["anchors"].items()}
    assert turn["startTimeUnixNano"] == str(min(events.values()))
    assert by_key(turn["attributes"])["firstpacket.first_packet_ms"] == {"doubleValue": row["first_packet_ms"]}
    assert turn["status"] == {"code": 1}
    packet = next(span for span in spans if span["name"] == "first_packet_ms")
    length_ms = (int(packet["endTimeUnixNano"]) - int(packet["startTimeUnixNano"])) / MS
    assert length_ms == pytest.approx(row["first_packet_ms"], abs=0.001)
    assert packet["parentSpanId"] == turn["spanId"]
    assert BASE_NS != WALL_NS


def test_otel_of_a_failed_turn_is_an_error_without_secrets(run: Path) -> None:
    text = firstpacket("export", "otel", run).stdout
    spans = json.loads(text)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    failed = next(span for span in spans if span["name"] == "turn q1")
    assert failed["status"] == {"code": 2, "message": "=cmd|' /C calc'!A0 [redacted]"}
    assert "sk-abcdefgh" not in text
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert len({span["traceId"] for span in spans}) == 2


def test_otel_is_the_same_every_time(run: Path, tmp_path: Path) -> None:
    assert firstpacket("export", "otel", run, tmp_path / "t.json").exit_code == 0
    assert (tmp_path / "t.json").read_text() == firstpacket("export", "otel", run).stdout


def test_stereo_has_the_user_left_and_the_agent_right(run: Path, tmp_path: Path) -> None:
    done = firstpacket("export", "stereo", run, tmp_path / "sound")
    assert done.exit_code == 0, done.output
    sound, rate_hz = soundfile.read(tmp_path / "sound" / "s0.wav")
    # The query speaks from 250 to 2150 ms; its answer is heard 520 + 430 + 90 ms later, for 300 ms.
    left, right = (abs(sound[:, side]) > 0.01 for side in (0, 1))
    assert left[: int(0.24 * rate_hz)].sum() == right[: int(3.18 * rate_hz)].sum() == 0
    assert left.argmax() / rate_hz == pytest.approx(0.25, abs=0.02)
    assert right.argmax() / rate_hz == pytest.approx(3.19, abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("csv", "nowhere"), r"nowhere: no run\.json"),
        (("parquet", "nowhere"), r"nowhere: no run\.json"),
        (("markdown", "nowhere"), r"nowhere: no run\.json"),
        (("otel", "nowhere"), r"nowhere: no run\.json"),
        (("stereo", "nowhere"), r"nowhere: no run\.json"),
        (("csv", "run", "run"), "run: cannot be written"),
        (("parquet", "run", "run"), "run: cannot be written"),
    ],
)
def test_bad_input_is_one_line(
    run: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(run.parent)
    done = firstpacket("export", *arguments)
    assert done.exception is not None
    with pytest.raises((ConfigError, SessionFormatError), match=said) as raised:
        raise done.exception
    assert "\n" not in str(raised.value)


def test_words_of_a_peer_cannot_steer_a_terminal(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [Plan(session="s", query=HOSTILE, status="timeout", error=HOSTILE)])
    for form in ("otel", "csv"):
        assert firstpacket("export", form, run.path, tmp_path / form).exit_code == 0
        assert "\x1b" not in (tmp_path / form).read_text(encoding="utf-8")
