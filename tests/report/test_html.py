"""The page: its figures, its safety, its size."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
import soundfile

from harness.core.errors import SessionFormatError
from harness.core.events import ConnectionPhase, PeerError
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import load_session
from harness.core.session.writer import SessionWriter
from harness.report.figure import number
from harness.report.html import write_report
from scoring.timing.scorer import TimingScorer
from tests.report.sample_run import HOSTILE, Plan, plans, row_of, summary_of, write_run, write_session

pytestmark = pytest.mark.unit


class Reader(HTMLParser):
    """Collects the elements, scripts and table rows of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._in = ""
        self._cell = False
        self.feed(page)
        self.rows = [[" ".join(cell.split()) for cell in row] for row in self.rows]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
            self._cell = True
        elif tag == "script":
            self.scripts.append("")
        if tag in ("script", "style"):
            self._in = tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._in = ""
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts[-1] += data
        elif not self._in:
            self.text += data
            if self._cell:
                self.rows[-1][-1] += data

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


def read(run: RunDirectory) -> Reader:
    return Reader(run.report.read_text(encoding="utf-8"))


def test_printed_figures_equal_the_summary(mixed_run: RunDirectory) -> None:
    page = read(mixed_run)
    metrics = (mixed_run.read_json("summary.json") or {})["metrics"]
    for name, unit in (("first_audible_ms", "ms"), ("first_packet_ms", "ms"), ("ttft_ms", "ms"), ("rtf", "")):
        row = next(row for row in page.rows if row and row[0].split()[-1] == name)
        figure = metrics[name]
        low, high = figure["ci95"]["p50"]
        assert row[1:8] == [
            number(figure["p50"], unit),
            f"{number(low, unit)}–{number(high, unit)}",
            str(figure["n"]),
            *(number(figure[key], unit) for key in ("p90", "p95", "p99", "mean")),
        ]


def test_timeline_holds_the_rows_own_figures(mixed_run: RunDirectory) -> None:
    rows = {row["session"]: row for row in mixed_run.read_lines("metrics.jsonl")}
    views = [view for view in read(mixed_run).data["views"] if "file" not in view]
    assert len(views) == 7
    assert views[0]["why"] == "nearest to median first audible"
    assert {view["status"] for view in views} >= {"ok", "early", "timeout", "peer_error"}
    for view in views:
        row = rows[view["session"]]
        for span in view["spans"]:
            assert span["value"] == row[span["metric"]]
            assert span["to"] - span["from"] == pytest.approx(span["value"], abs=0.01)
        names = [name for name, _, _ in view["anchors"]]
        assert set(names) == {name for name, value in row["anchors"].items() if value is not None}
        assert view["from_ms"] < min(ms for _, ms, _ in view["anchors"])
        assert all(len(part) == len(view["user"][0]) for part in (*view["user"], *view["agent"]))


def test_rows_and_summary_of_the_timing_scorer_fit(tmp_path: Path) -> None:
    """The two sides of the interface, together: the scorer's names, anchors and figures are what the page reads."""
    run = write_run(tmp_path, plans(12))
    scored = TimingScorer().score(run)
    run.write_lines("metrics.jsonl", scored.rows)
    run.write_json("summary.json", scored.summary)
    write_report(run)
    page = read(run)
    figure = scored.summary["metrics"]["first_audible_ms"]
    row = next(row for row in page.rows if row and row[0].split()[-1:] == ["first_audible_ms"])
    assert (row[1], row[3]) == (number(figure["p50"], "ms"), str(figure["n"]))
    views = [view for view in page.data["views"] if "file" not in view]
    assert {view["status"] for view in views} == {"ok", "early", "timeout"}
    spans = [span for view in views for span in view["spans"]]
    assert len(spans) >= 12
    assert all(span["to"] - span["from"] == pytest.approx(span["value"], abs=0.002) for span in spans)
    assert any(row and row[0] == "speech_sent" and row[1].endswith("ttft_ms") for row in page.rows)


def test_hostile_text_is_inert(mixed_run: RunDirectory) -> None:
    page = mixed_run.report.read_text(encoding="utf-8")
    reader = Reader(page)
    assert len(reader.scripts) == 3
    assert not [tag for tag, _ in reader.tags if tag == "img"]
    assert all(not name.startswith("on") for _, attributes in reader.tags for name in attributes)
    assert "window.hacked=1" in reader.text
    assert any("window.hacked=1" in view.get("error", "") for view in reader.data["views"])
    assert "\x1b" not in page
    assert HOSTILE not in page


def test_policy_allows_nothing_from_elsewhere(mixed_run: RunDirectory) -> None:
    reader = read(mixed_run)
    policy = next(a["content"] for tag, a in reader.tags if tag == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag, attributes in reader.tags:
        assert "style" not in attributes, f"a style attribute in <{tag}> would be refused"
        for name in ("src", "href", "action"):
            value = attributes.get(name) or ""
            assert not value.startswith(("http:", "https:", "//")), value


def test_page_loads_nothing_by_address_in_its_own_script() -> None:
    own = Path(write_report.__code__.co_filename).parent / "assets"
    for name in ("report.js", "report.css", "view.js"):
        assert not re.search(r"https?://|@import|url\(", (own / name).read_text(encoding="utf-8"))
    assert "MIT" in (own / "LICENSE.uPlot").read_text(encoding="utf-8")


def test_secrets_in_a_configuration_do_not_appear(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Plan(session="s", status="peer_error", error="bad key sk-live-TOPSECRET123")])
    info = run.info()
    config = {**info.config, "headers": {"Authorization": "Bearer TOPSECRET123"}, "api_key": "TOPSECRET123"}
    run.write_info(msgspec.structs.replace(info, config=config))
    write_report(run)
    page = run.report.read_text(encoding="utf-8")
    assert "TOPSECRET" not in page
    assert "OPENAI_API_KEY" in page


def test_a_large_run_stays_under_5_mb(tmp_path: Path) -> None:
    run = write_run(tmp_path, plans(2000), sessions=10)
    write_report(run, sessions=9)
    assert run.report.stat().st_size < 2_000_000
    page = read(run)
    assert len(page.data["turns"]["query"]) == 2000
    assert "The first 300 of 2000 turns" in page.text
    assert "1991 sessions are not drawn" in page.text


def test_a_long_turn_is_decimated(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Plan(session="s", answer_ms=150_000, pace=8.0)])
    write_report(run)
    view = read(run).data["views"][0]
    assert view["sound"] == "report_audio/s.t0.ogg"
    assert soundfile.info(tmp_path / view["sound"]).frames == pytest.approx(120 * 24_000, rel=0.001)
    assert len(view["user"][0]) <= 3000
    assert "Only the first 120 s are drawn." in view["notes"]
    assert run.report.stat().st_size < 400_000


def test_missing_sound_is_said_and_the_rest_is_drawn(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Plan(session="s")])
    (run.sessions / "s" / "agent.flac").unlink()
    write_report(run)
    view = read(run).data["views"][0]
    assert any(note.startswith("No agent waveform: agent.flac: ") for note in view["notes"])
    assert view["packets"]
    assert view["files"] == {"user": "sessions/s/user.flac"}


def test_turns_beyond_the_first_few_stand_beside_the_page(mixed_run: RunDirectory) -> None:
    page = read(mixed_run)
    views = page.data["views"]
    assert len(views) == 20
    assert "4 sessions are not drawn" in page.text
    beside = [view for view in views if "file" in view]
    assert len(beside) == 13
    stored = {f"report_views/{path.name}" for path in (mixed_run.path / "report_views").iterdir()}
    assert stored == {view["file"] for view in beside}
    whole = Reader((mixed_run.path / beside[0]["file"]).read_text(encoding="utf-8"))
    assert (whole.data["session"], whole.data["why"]) == (beside[0]["session"], "")
    assert len(whole.data["user"][0]) > 100
    sounds = {path.name for path in (mixed_run.path / "report_audio").iterdir()}
    assert {view["sound"].partition("/")[2] for view in views if "file" not in view} <= sounds
    listed = [dict(attributes) for tag, attributes in page.tags if tag == "tr" and "data-view" in dict(attributes)]
    assert sorted(int(row["data-view"] or -1) for row in listed) == list(range(20))


def test_files_of_an_earlier_page_go_and_others_stay(tmp_path: Path) -> None:
    run = write_run(tmp_path, plans(10))
    write_report(run)
    assert len(list((tmp_path / "report_views").iterdir())) == 3
    (tmp_path / "report_audio" / "notes.txt").write_text("mine")
    write_report(run, sessions=2)
    assert list((tmp_path / "report_views").iterdir()) == []
    assert len(list((tmp_path / "report_audio").glob("*.ogg"))) == 2
    assert (tmp_path / "report_audio" / "notes.txt").exists()


def test_progress_names_the_sessions_drawn(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    write_report(write_run(tmp_path, plans(3)), watch=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3)]


def test_missing_sessions_leave_the_figures(tmp_path: Path) -> None:
    run = write_run(tmp_path, plans(12), sessions=0)
    write_report(run)
    page = read(run)
    assert page.data["views"] == []
    assert any(row and row[0].startswith("First packet") for row in page.rows)


def test_empty_run(tmp_path: Path) -> None:
    run = write_run(tmp_path, [])
    write_report(run)
    assert "No turn was measured." in read(run).text


def test_a_directory_with_nothing_in_it(tmp_path: Path) -> None:
    write_report(RunDirectory(tmp_path))
    assert "No turn was measured." in read(RunDirectory(tmp_path)).text


def test_all_failed_run_gives_the_causes_first(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Plan(session=f"s{i}", status="timeout", error="no answer") for i in range(3)])
    write_report(run)
    page = read(run)
    assert [view["status"] for view in page.data["views"]] == ["timeout"] * 3
    assert any(row[:3] == ["3", "timeout", "no answer"] for row in page.rows)
    assert page.text.index("Turns without a proper answer") < page.text.index("One turn as heard")
    assert page.text.count("Turns without a proper answer") == 1
    assert not any(row and row[0].endswith("first_audible_ms") for row in page.rows)
    assert "No turn gave a latency." not in page.text
    assert "infinitely late" not in page.text


def test_mostly_failed_run_gives_the_causes_then_the_figures(tmp_path: Path) -> None:
    wanted = [Plan(session=f"s{i}", status="timeout", error="no answer") for i in range(3)]
    run = write_run(tmp_path, [*wanted, Plan(session="s9", pace=1.0)])
    write_report(run)
    page = read(run)
    assert page.text.index("Turns without a proper answer") < page.text.index("median of 1")
    assert [row[3] for row in page.rows if row and row[0].endswith("first_audible_ms")][:1] == ["1"]
    assert "No rtf" not in page.text


def test_sessions_that_never_connected_are_not_drawn(tmp_path: Path) -> None:
    run = write_run(tmp_path, [], peer="dead")
    rows = []
    for index in range(3):
        plan = Plan(session=f"s{index}", status="peer_error", error="connect: connection refused")
        header = msgspec.structs.replace(load_session(write_one(tmp_path / "model", plan)).header, session=plan.session)
        writer = SessionWriter(run.sessions, header)
        writer.append(ConnectionPhase(t_ns=header.anchor.monotonic_ns, phase="started"))
        writer.append(PeerError(t_ns=header.anchor.monotonic_ns + 1, code="connect", message=plan.error, fatal=True))
        writer.close()
        rows.append(row_of(plan))
    run.write_lines("metrics.jsonl", rows)
    run.write_json("summary.json", summary_of(rows))
    write_report(run)
    page = read(run)
    assert page.data["views"] == []
    assert not any(attributes.get("id") == "detail" for _, attributes in page.tags)
    assert "There is no turn to draw" in page.text
    assert any(row[:3] == ["3", "peer_error", "connect: connection refused"] for row in page.rows)


def write_one(sessions: Path, plan: Plan) -> Path:
    write_session(sessions, plan)
    return sessions / plan.session


def test_notes_stand_under_the_title_with_their_sessions(tmp_path: Path) -> None:
    notes = [{"code": "rate", "message": "declared <16> kHz", "sessions": 2}, {"code": "slow_word", "sessions": 1}]
    run = write_run(tmp_path, [Plan(session="s")], notes=notes, early_turns=2)
    write_report(run)
    text = read(run).text
    assert "declared <16> kHz (2 sessions)" in text
    assert "slow_word (1 session)" in text
    assert "2 turns were answered before the query was over (an early answer counts for nothing; latencies" in text


def test_manual_turns_start_at_the_commit(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Plan(session="s", mode="manual")])
    write_report(run)
    view = read(run).data["views"][0]
    spans = {span["metric"]: span for span in view["spans"]}
    committed = next(ms for name, ms, _ in view["anchors"] if name == "committed")
    assert spans["first_packet_ms"]["from"] == committed
    assert "endpoint_ms" not in spans


def test_session_names_cannot_leave_the_run(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Plan(session="s")])
    rows = run.read_lines("metrics.jsonl")
    run.write_lines("metrics.jsonl", [row | {"session": "../s"} for row in rows])
    write_report(run)
    assert read(run).data["views"] == []


def test_damaged_rows_are_an_error_of_the_format(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Plan(session="s")])
    (tmp_path / "metrics.jsonl").write_text("{broken", encoding="utf-8")
    with pytest.raises(SessionFormatError):
        write_report(run)


def test_definitions_matrix_names_the_cells_that_are_metrics(tmp_path: Path) -> None:
    cells = {"first_text": {"n": 3, "p50": 812.5}, "first_packet": {"n": 0, "p50": None, "reason": "no answer"}}
    run = write_run(tmp_path, [Plan(session="s")], definitions={"speech_sent": cells, "speech_end": cells}, mode="vad")
    write_report(run)
    rows = [row for row in read(run).rows if row and row[0] in ("speech_sent", "speech_end")]
    assert rows == [
        ["speech_sent", "812.5ttft_ms", "–first_packet_ms"],
        ["speech_end", "812.5", "–"],
    ]
