"""The page of a run: one `report.html` that opens from disk and asks nothing of any network; beside it the sound of the
sessions that it draws, and the data of those beyond the first few.

A content security policy allows exactly the two scripts and two style sheets that are written here, by hash, and no
address outside the page and the files beside it; text of others is escaped, and could not run if it were not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from harness.core.run_directory import RunDirectory
from harness.report.failure import failure_groups
from harness.report.figure import KNOWN, figures, run_rtfs, stage_figures
from harness.report.matrix import matrix_of
from harness.report.overview import overview
from harness.report.page_definitions import definitions_of
from harness.report.page_duplex import duplex_of
from harness.report.page_run import config_of, facts_of, first_header, harness_of
from harness.report.page_safety import as_json, asset, policy
from harness.report.page_scores import scores_of
from harness.report.page_turns import LISTED, charts_of, ranges_of, turn_rows, turns_of
from harness.report.page_views import MOST_VIEWS, Views, Watch, views_of
from harness.report.table import apart, dash_reasons, everyone

TEMPLATES = Path(__file__).parent / "templates"


def write_report(run: RunDirectory, *, sessions: int | None = MOST_VIEWS, watch: Watch | None = None) -> Path:
    """Write `report.html` from what stands in the run directory: `run.json`, `summary.json`, `metrics.jsonl`,
    `duplex.json`, `duplex.jsonl`, `definitions.json`, `scores.json` and the sessions drawn; their sound goes into
    `report_audio/`, and what the page loads when it is looked at into `report_views/`.

    sessions: how many are drawn at most, None for all. watch: called with how many are drawn, of how many. A missing
    file is an empty one; a session that cannot be read is left out. Raises SessionFormatError for damaged JSON and
    OSError when the disk is full.
    """
    page = _render(run, sessions, watch)
    temporary = run.report.with_name(run.report.name + ".tmp")
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(run.report)
    return run.report


def _render(run: RunDirectory, most: int | None, watch: Watch | None) -> str:
    info = run.info() if run.exists() else None
    summary = run.read_json("summary.json") or {}
    rows, events = run.read_lines("metrics.jsonl"), run.read_lines("duplex.jsonl")
    counted = [row for row in rows if not row.get("warmup")]
    views = views_of(run, rows, summary.get("metrics") or {}, events, most=most, watch=watch)
    turns = _turns(summary, rows, counted, views)
    duplex = duplex_of(run, run.read_json("duplex.json"), events, views.conversations)
    header = views.header or first_header(run, (str(row.get("session")) for row in (*rows, *events)))
    styles = {"library": asset("uPlot.min.css"), "own": asset("report.css")}
    scripts = {"library": asset("uPlot.iife.min.js"), "own": asset("report.js")}
    context = {
        **turns,
        "policy": policy(scripts.values(), styles.values()),
        "styles": styles,
        "scripts": scripts,
        "data": as_json({"views": views.entries, "charts": turns["charts"], **turns_of(counted)}),
        "run_name": run.path.name,
        "facts": facts_of(info, turns["seen"].mode, header),
        "with_turns": bool(turns["seen"].turns) or duplex is None,
        "duplex": duplex,
        "definitions": definitions_of(run.read_json("definitions.json")),
        "scores": scores_of(run.read_json("scores.json")),
        "harness": harness_of(summary),
        "config": config_of(info, header, summary),
    }
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("report.html.j2").render(context)


def _turns(
    summary: Mapping[str, Any],
    rows: Sequence[dict[str, Any]],
    counted: Sequence[dict[str, Any]],
    views: Views,
) -> dict[str, Any]:
    """What the page says of turns, and of the sessions that it draws."""
    metrics = summary.get("metrics") or {}
    found = figures(metrics)
    charts = charts_of(counted, metrics)
    seen = overview(summary, rows)
    failures = failure_groups(rows)
    causes_first = seen.mostly_failed and bool(failures)
    shown = [figure for figure in found if figure.n or (figure.metric.headline and not causes_first)]
    matrix = matrix_of(summary, str(summary.get("mode") or (rows[0].get("mode") if rows else "")))
    places: dict[str, int] = {}
    for (session, _), place in views.turns.items():
        places.setdefault(session, place)
    return {
        "seen": seen,
        "headline": [figure for figure in found if figure.metric.headline and figure.n],
        "figures": shown,
        "ranges": ranges_of(found),
        "rtfs": run_rtfs(summary),
        "stages": stage_figures(summary),
        "dashes": dash_reasons(shown if causes_first else found, rows),
        "apart": [(title, figures(inner)) for title, inner in apart(summary)],
        "everyone": everyone(found) if seen.failed and any(f.n and f.metric.headline for f in found) else [],
        "timeout": f"{summary['timeout_s']:g} s" if summary.get("timeout_s") else "",
        "views": views.entries,
        "left_out": views.left_out,
        "places": places,
        "listed": turn_rows(counted, views.turns),
        "columns": [heading for _, heading, _ in LISTED],
        "charts": charts,
        "failures": failures,
        "causes_first": causes_first,
        "matrix": None if causes_first and not charts else matrix,
        "meanings": [metric for metric in KNOWN if metric.name in metrics] or KNOWN[:3],
    }
