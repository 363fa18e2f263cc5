"""Tables in Markdown, for a paper or a README: a row a metric, a column a peer. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.report.duplex_panel import figure as panel_figure
from harness.report.failure import plain
from harness.report.figure import DASH, Figure, figures, number
from harness.report.overview import overview

LATENCY_FIRST = ("first_audible_ms", "first_packet_ms", "ttft_ms", "endpoint_ms", "think_ms", "rtf", "barge_in_stop_ms")
ALL = "all"


def markdown(runs: Sequence[tuple[str, Mapping[str, Mapping[str, Any]]]]) -> str:
    """A table of the turns, one of the conversations, one of the benchmark, as far as the runs have them.

    runs: (label, summaries by scorer: `timing`, `duplex`, `scores`). A cell is p50 with its 95 % interval and p95.
    """
    parts: list[str] = []
    for scorer, table in (("timing", _timing), ("duplex", _duplex), ("scores", _scores)):
        having = [(label, summaries[scorer]) for label, summaries in runs if summaries.get(scorer)]
        if having:
            parts += table(having)
    return "\n\n".join(parts) + "\n"


def _timing(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    runs = [(label, summary) for label, summary in runs if summary.get("turns")]
    found = [
        {each.metric.name: each for each in figures(summary.get("metrics") or {}) if each.n} for _, summary in runs
    ]
    names = [name for name in LATENCY_FIRST if any(name in peer for peer in found)]
    if not names:
        return []
    rows = []
    for name in names:
        metric = next(peer[name].metric for peer in found if name in peer)
        unit = f" ({metric.unit})" if metric.unit in ("ms", "s") else ""
        rows.append([f"{metric.label}{unit}", *(_cell(peer.get(name)) for peer in found)])
    heads = [overview(summary, []) for _, summary in runs]
    rows.append(["Turns (failed)", *(f"{head.turns} ({head.failed})" for head in heads)])
    rows.append(["Turn mode", *(str(summary.get("mode") or DASH) for _, summary in runs)])
    caption = "p50 (95 % interval), p95 where n is 20 or more; n. Failed turns are in no latency."
    return [_table(["Metric", *(label for label, _ in runs)], rows), caption]


def _cell(found: Figure | None) -> str:
    if found is None:
        return DASH
    interval = found.intervals.get("p50")
    spread = f" ({found.show(interval[0])}–{found.show(interval[1])})" if interval else ""
    tail = "" if found.p95 is None else f", p95 {found.show(found.p95)}"
    return f"{found.show(found.p50)}{spread}{tail}; {found.n}"


def _duplex(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    cells = [{cell["metric"]: cell for cell in summary["panel"] if cell["category"] == ALL} for _, summary in runs]
    names = {name: str(cell["header"]) for peer in cells for name, cell in peer.items()}
    if not names:
        return []
    rows = [[header, *(_panel_cell(peer.get(name)) for peer in cells)] for name, header in names.items()]
    caption = "Conversations, all events: figure (95 % interval); n."
    return [_table(["Metric", *(label for label, _ in runs)], rows), caption]


def _panel_cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None or cell["value"] is None:
        return DASH
    unit = str(cell["unit"])
    spread = ""
    if cell.get("ci95"):
        low, high = (panel_figure(bound, unit).partition(" ")[0] for bound in cell["ci95"])
        spread = f" ({low} to {high})"
    return f"{panel_figure(cell['value'], unit)}{spread}; {cell['n']}"


def _scores(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    tables = [
        {**(summary.get("abilities") or {}), "overall": summary.get("overall") or {"unscored": ""}}
        for _, summary in runs
    ]
    names = [name for name in tables[0] if any(peer.get(name, {}).get("value") is not None for peer in tables)]
    if not names:
        return []
    rows = [[f"`{name}`", *(_score(peer.get(name) or {}) for peer in tables)] for name in names]
    benchmarks = ", ".join(dict.fromkeys(str(summary.get("benchmark")) for _, summary in runs))
    engines = "; ".join(
        f"{label}: {', '.join(map(str, (summary.get('engines') or {}).values()))}" for label, summary in runs
    )
    return [_table(["Column", *(label for label, _ in runs)], rows), _escaped(f"{benchmarks}. Engines of {engines}.")]


def _score(figure: Mapping[str, Any]) -> str:
    if figure.get("value") is None:
        return DASH
    spread = ""
    if figure.get("ci95"):
        low, high = figure["ci95"]
        spread = f" ({number(low)}–{number(high)})"
    n = f"; {figure['n']}" if "n" in figure else ""
    return f"{number(figure['value'])}{spread}{n}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in lines)


def _escaped(text: str) -> str:
    """A peer's words stay in their cell, and are no markup."""
    text = " ".join(plain(text).split())
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
