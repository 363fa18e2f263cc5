"""The page of a run: one self-contained `report.html` that opens from disk and asks nothing of any network.

A content security policy allows exactly the two scripts and two style sheets that are written here, by hash, and no
address outside the page and the files beside it; text of others is escaped, and could not run if it were not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from harness.core.run_directory import RunDirectory, RunInfo
from harness.core.session.header import Header
from harness.report.failure import failure_groups
from harness.report.figure import KNOWN, figures, run_rtfs, stage_figures
from harness.report.matrix import matrix_of
from harness.report.overview import overview
from harness.report.page_definitions import definitions_of
from harness.report.page_duplex import duplex_of
from harness.report.page_run import config_of, facts_of, first_header, harness_of
from harness.report.page_safety import as_json, asset, policy
from harness.report.page_turns import charts_of, ranges_of, turns_of, views_of
from harness.report.table import apart, dash_reasons, everyone

TEMPLATES = Path(__file__).parent / "templates"


def write_report(run: RunDirectory) -> Path:
    """Write `report.html` from what stands in the run directory: `run.json`, `summary.json`, `metrics.jsonl`,
    `duplex.json`, `duplex.jsonl`, `definitions.json` and the sessions shown.

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
    """The whole page as text. summary, rows: of the turns; those of conversations are read from the run."""
    duplex_rows = run.read_lines("duplex.jsonl")
    duplex = duplex_of(run, run.read_json("duplex.json"), duplex_rows)
    counted = [row for row in rows if not row.get("warmup")]
    turns, header = _turns(run, summary, rows, counted)
    header = header or first_header(run, (str(row.get("session")) for row in duplex_rows))
    styles = {"library": asset("uPlot.min.css"), "own": asset("report.css")}
    scripts = {"library": asset("uPlot.iife.min.js"), "own": asset("report.js")}
    context = {
        **turns,
        "policy": policy(scripts.values(), styles.values()),
        "styles": styles,
        "scripts": scripts,
        "data": as_json({"views": turns["views"], "charts": turns["charts"], **turns_of(counted)}),
        "run_name": run.path.name,
        "facts": facts_of(info, turns["seen"].mode, header),
        "with_turns": bool(turns["seen"].turns) or duplex is None,
        "duplex": duplex,
        "definitions": definitions_of(run.read_json("definitions.json")),
        "harness": harness_of(summary),
        "config": config_of(info, header, summary),
    }
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("report.html.j2").render(context)


def _turns(
    run: RunDirectory, summary: Mapping[str, Any], rows: Sequence[dict[str, Any]], counted: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], Header | None]:
    """What the page says of turns, and the header of the first session shown."""
    metrics = summary.get("metrics") or {}
    found = figures(metrics)
    views, header = views_of(run, rows, metrics)
    charts = charts_of(counted, metrics)
    seen = overview(summary, rows)
    failures = failure_groups(rows)
    causes_first = seen.mostly_failed and bool(failures)
    shown = [figure for figure in found if figure.n or (figure.metric.headline and not causes_first)]
    matrix = matrix_of(summary, str(summary.get("mode") or (rows[0].get("mode") if rows else "")))
    context = {
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
        "views": views,
        "charts": charts,
        "failures": failures,
        "causes_first": causes_first,
        "matrix": None if causes_first and not charts else matrix,
        "meanings": [metric for metric in KNOWN if metric.name in metrics] or KNOWN[:3],
    }
    return context, header
