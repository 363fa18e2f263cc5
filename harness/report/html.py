"""The page of a run: one self-contained `report.html` that opens from disk and asks nothing of any network.

A content security policy allows exactly the two scripts and two style sheets that are written here, by hash, and no
address outside the page and the files beside it; text of others is escaped, and could not run if it were not.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from harness.core.errors import SessionFormatError
from harness.core.run_directory import RunDirectory, RunInfo
from harness.core.session.header import Header
from harness.core.session.reader import load_session
from harness.report.anchor import LATENCIES
from harness.report.choice import chosen_turns
from harness.report.failure import failure_groups, plain
from harness.report.figure import ANSWERED, KNOWN, Figure, figures, fine, number, run_rtfs
from harness.report.matrix import matrix_of
from harness.report.overview import overview
from harness.report.redaction import redact
from harness.report.table import apart, dash_reasons, everyone
from harness.report.timeline import drawable, timeline

HERE = Path(__file__).parent
CHARTED = ("first_audible_ms", "first_packet_ms", "ttft_ms")
MOST_SOUND_CHARACTERS = 2_500_000
"""Sound embedded in one page, as base64: half of the 5 MB that a page may have."""


class Ranges(msgspec.Struct, frozen=True, kw_only=True):
    """The common scale of the small bars beside the latencies."""

    top: int

    def of(self, figure: Figure) -> dict[str, Any] | None:
        """Positions in percent of the scale: median, p95 (p90, else median) and the interval."""
        if figure.metric.name not in LATENCIES or figure.p50 is None:
            return None
        high = next(value for value in (figure.p95, figure.p90, figure.p50) if value is not None)
        interval = figure.intervals.get("p50")
        return {
            "p50": self._percent(figure.p50),
            "high": self._percent(high),
            "low_ci": self._percent(interval[0]) if interval else None,
            "width_ci": max(0.6, self._percent(interval[1]) - self._percent(interval[0])) if interval else 0,
        }

    def _percent(self, value: float) -> float:
        return round(min(100.0, max(0.0, 100 * value / self.top)), 2)


def write_report(run: RunDirectory) -> Path:
    """Write `report.html` from `run.json`, `summary.json`, `metrics.jsonl` and the sessions shown.

    A missing file is an empty one; a session that cannot be read is left out. Raises SessionFormatError for damaged
    JSON and OSError when the disk is full.
    """
    info = run.info() if run.exists() else None
    summary = run.read_json("summary.json") or {}
    page = render_report(run, info, summary, run.read_lines("metrics.jsonl"))
    temporary = run.report.with_name(run.report.name + ".tmp")
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(run.report)
    return run.report


def render_report(
    run: RunDirectory, info: RunInfo | None, summary: Mapping[str, Any], rows: Sequence[dict[str, Any]]
) -> str:
    """The whole page as text."""
    metrics = summary.get("metrics") or {}
    found = figures(metrics)
    views, header = _views(run, rows, metrics)
    counted = [row for row in rows if not row.get("warmup")]
    charts = _charts(counted, metrics)
    styles = {"library": _asset("uPlot.min.css"), "own": _asset("report.css")}
    scripts = {"library": _asset("uPlot.iife.min.js"), "own": _asset("report.js")}
    seen = overview(summary, rows)
    failures = failure_groups(rows)
    causes_first = seen.mostly_failed and bool(failures)
    shown = [figure for figure in found if figure.n or (figure.metric.headline and not causes_first)]
    matrix = matrix_of(summary, str(summary.get("mode") or (rows[0].get("mode") if rows else "")))
    context = {
        "policy": _policy(scripts.values(), styles.values()),
        "styles": styles,
        "scripts": scripts,
        "data": _json({"views": views, "charts": charts, **_turns(counted)}),
        "seen": seen,
        "run_name": run.path.name,
        "facts": _facts(info, seen.mode, header),
        "headline": [figure for figure in found if figure.metric.headline and figure.n],
        "figures": shown,
        "ranges": _ranges(found),
        "rtfs": run_rtfs(summary),
        "dashes": dash_reasons(shown if causes_first else found, rows),
        "apart": [(title, figures(inner)) for title, inner in apart(summary)],
        "everyone": everyone(found) if seen.failed and any(f.n and f.metric.headline for f in found) else [],
        "timeout": f"{summary['timeout_s']:g} s" if summary.get("timeout_s") else "",
        "views": views,
        "charts": charts,
        "failures": failures,
        "causes_first": causes_first,
        "matrix": None if causes_first and not charts else matrix,
        "harness": _harness(summary),
        "meanings": [metric for metric in KNOWN if metric.name in metrics] or KNOWN[:3],
        "config": _config(info, header, summary),
    }
    loader = jinja2.FileSystemLoader(HERE / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("report.html.j2").render(context)


def _views(
    run: RunDirectory, rows: Sequence[dict[str, Any]], metrics: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], Header | None]:
    """The timelines, and the header of the first session shown."""
    views: list[dict[str, Any]] = []
    header: Header | None = None
    spent = 0
    for choice in chosen_turns(rows, metrics):
        name = str(choice.row.get("session") or "")
        if not name or Path(name).name != name:
            continue
        try:
            session = load_session(run.sessions / name)
        except SessionFormatError:
            continue
        header = header or session.header
        view = timeline(session, choice, sound=spent < MOST_SOUND_CHARACTERS)
        if not drawable(view):
            continue
        spent += len(view["sound"] or "")
        views.append(view)
    return views, header


def _charts(rows: Sequence[dict[str, Any]], metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each row's value of the charted metrics, for the distributions."""
    charts = []
    for figure in figures({name: metrics[name] for name in CHARTED if name in metrics}):
        name = figure.metric.name
        values = [row.get(name) if row.get("status") in ANSWERED else None for row in rows]
        if any(value is not None for value in values):
            charts.append({"name": name, "label": figure.metric.label, "p50": figure.p50, "values": values})
    return charts


def _turns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the dots stand for: columns over the rows, queries by index in order of appearance."""
    queries = sorted({str(row.get("query") or "") for row in rows})
    index = {query: number for number, query in enumerate(queries)}
    return {
        "queries": [plain(query) for query in queries],
        "turns": {
            "query": [index[str(row.get("query") or "")] for row in rows],
            "session": [str(row.get("session") or "") for row in rows],
            "failed": [1 if row.get("failed", row.get("status") != "ok") else 0 for row in rows],
            "tainted": [1 if row.get("tainted") else 0 for row in rows],
        },
    }


def _ranges(found: Sequence[Figure]) -> Ranges | None:
    """A scale to a round number above the greatest p95 among the latencies; None when there are none."""
    tops = [v for f in found if f.metric.name in LATENCIES for v in (f.p50, f.p90, f.p95) if v is not None and v > 0]
    if not tops:
        return None
    step = 10 ** max(0, len(str(int(max(tops)))) - 2) * 5
    return Ranges(top=int(-(-max(tops) // step) * step))


def _facts(info: RunInfo | None, mode: str, header: Header | None) -> list[str]:
    """One line under the title."""
    facts = [mode]
    if info:
        facts += [info.suite, info.created, f"firstpacket {info.firstpacket}"]
    if header:
        machine = header.machine
        facts.append(str(machine.get("cpu") or machine.get("system") or machine.get("platform") or ""))
    return [plain(fact) for fact in facts if fact]


def _harness(summary: Mapping[str, Any]) -> dict[str, Any]:
    raw = summary.get("harness") or {}
    labels = {"error_ms": "own error", "send_late_ms": "send lateness", "loop_lag_ms": "loop lag"}
    shown = []
    for key, label in labels.items():
        figure = raw.get(key)
        if isinstance(figure, Mapping):
            values = [fine(figure.get(name)) for name in ("p50", "p90", "p99", "max")]
            shown.append((label, [str(figure.get("n", number(None))), *values]))
    calibration = summary.get("calibration")
    return {
        "figures": shown,
        "tainted": int(raw.get("tainted") or 0),
        "calibration": list(_flat(redact(calibration))) if calibration else [],
    }


def _config(info: RunInfo | None, header: Header | None, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Configuration, peer and machine as flat pairs, without anything that looks like a secret."""
    parts: dict[str, Any] = {}
    if info:
        parts["run"] = info.config
    if header:
        parts |= {"peer": header.peer.config, "profile": msgspec.to_builtins(header.profile), "machine": header.machine}
        parts["clock"] = msgspec.to_builtins(header.clock)
    for name in ("parameters", "metric_versions"):
        if summary.get(name):
            parts[name] = summary[name]
    return list(_flat(redact(parts)))


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [pair for key, inner in value.items() for pair in _flat(inner, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        return [pair for number, inner in enumerate(value, 1) for pair in _flat(inner, f"{name} {number}")]
    if isinstance(value, list):
        return [(name, plain(", ".join(str(item) for item in value)))]
    return [(name, plain(str(value)))]


def _asset(name: str) -> Markup:
    return Markup((HERE / "assets" / name).read_text(encoding="utf-8"))  # our own files, checked by hash in the policy


def _json(value: Any) -> Markup:
    """JSON that cannot end its script element or start another, whatever its strings hold."""
    text = msgspec.json.encode(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # escaped just above


def _policy(scripts: Any, styles: Any) -> str:
    def hashes(texts: Any) -> str:
        digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{digest}'" for digest in digests)

    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; "
        "media-src data: file: 'self'; base-uri 'none'; form-action 'none'"
    )
