"""A benchmark's scores in the terminal: figures by subset with their latency, the overall, the published rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.report.failure import plain
from harness.report.figure import DASH
from harness.report.grid import Column, Row, fit

FEW_BELOW = 10
_COLUMNS = (
    Column(heading="subset and figure", left=True),
    Column(heading="n"),
    Column(heading="value"),
    Column(heading="95 % interval", rank=1),
    Column(heading="unit", rank=2, left=True),
    Column(heading="remark", rank=3, left=True),
)
_LATENCY = (
    Column(heading="subset", left=True),
    Column(heading="n"),
    Column(heading="TTFT ms\np50"),
    Column(heading="first packet ms\np50"),
    Column(heading="first audible ms\np50", rank=1),
    Column(heading="RTF\nof sums"),
)


def print_scores(console: Console, summary: Mapping[str, Any], *, categories: bool = True) -> None:
    """Print the summary that `scores.json` holds. categories: the tables by category as well."""
    title = Text(f"{summary['benchmark']}: {summary['answers']} answers", style="bold")
    if summary["failed"]:
        title.append(f", {summary['failed']} failed", style="red")
    if summary["not_run"]:
        title.append(f", {summary['not_run']} not run", style="yellow")
    console.print(title)
    left_out = _print_grid(console, _COLUMNS, _figure_rows(summary["subsets"]))
    if _COLUMNS[-1].heading in left_out:
        _print_reasons(console, summary["subsets"])
    if categories and summary["categories"]:
        console.print(Text("By category", style="bold"))
        _print_grid(console, _COLUMNS, _figure_rows(summary["categories"]))
    _print_latency(console, summary["latency"])
    _print_overall(console, summary["overall"])
    for stage, engine in summary["engines"].items():
        console.print(Text(f"{stage}: {plain(str(engine))}", style="dim"))
    for stage, reason in summary["no_engine"].items():
        console.print(Text(f"{stage}: unscored, {plain(str(reason))}", style="yellow"))
    if summary.get("judge_usage"):
        console.print(Text(usage_line(summary["judge_usage"]), style="dim"))


def print_overall(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """The formula's overall of each row, beside the one that the table prints."""
    columns = (
        Column(heading="model", left=True),
        Column(heading="overall"),
        Column(heading="printed", rank=1),
        Column(heading="difference", rank=1),
        Column(heading="missing", rank=2, left=True),
    )
    shown: list[Row] = []
    for row in rows:
        cells = (
            plain(str(row["model"])),
            _number(row["overall"], 4),
            _number(row["printed"], 3),
            _number(row["residual"], 4),
            ", ".join(row["missing"]),
        )
        shown.append((cells, "" if row["overall"] is not None else "dim"))
    _print_grid(console, columns, shown)


def print_leaderboard(console: Console, board: Mapping[str, Any]) -> None:
    """The published rows with the run among them, best overall first, and what keeps it from being compared."""
    names = board["columns"]
    columns = [Column(heading="model", left=True), Column(heading="overall")]
    columns += [Column(heading=name.replace("_", "\n"), rank=rank) for rank, name in enumerate(names, start=1)]
    rows: list[Row] = []
    for row in board["rows"]:
        printed = "" if row.get("consistent", True) else "*"
        cells = [plain(str(row["model"])), _number(row["overall"], 3) + printed]
        cells += [_number(row["values"][name], 2) for name in names]
        rows.append((cells, "" if row["published"] else "bold cyan"))
    _print_grid(console, columns, rows)
    console.print(Text(plain(str(board["source"])), style="dim"))
    if board["inconsistent"]:
        console.print(Text("* printed overall is not what the formula gives for the row", style="dim"))
    if board["comparable"]:
        console.print(Text("Comparable with the published rows.", style="green"))
        return
    console.print(Text("Not comparable with the published rows:", style="yellow"))
    grouped: dict[str, list[str]] = {}
    for reason in board["reasons"]:
        grouped.setdefault(plain(str(reason["why"])), []).append(reason["column"])
    for why, affected in grouped.items():
        where = "all columns" if len(affected) == len(names) else ", ".join(affected)
        console.print(Text(f"  {why} ({where})", style="yellow"))


def _figure_rows(tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Row]:
    rows: list[Row] = []
    for name, figures in tables.items():
        rows.append(((plain(name).replace("_", " "), *[""] * (len(_COLUMNS) - 1)), "bold"))
        rows += [_figure_row(label, figure) for label, figure in figures.items()]
    return rows


def _figure_row(label: str, figure: Mapping[str, Any]) -> Row:
    name, *cells = figure_cells(label, figure)
    style = "yellow" if figure.get("value") is None else "dim" if figure["n"] < FEW_BELOW else ""
    return (f"  {name}", *cells), style


def figure_cells(label: str, figure: Mapping[str, Any]) -> tuple[str, ...]:
    """Name, n, value, interval, unit and remark of one figure, as printed."""
    name = plain(label).replace("_", " ")
    if figure.get("value") is None:
        return name, str(figure.get("n", 0)), "unscored", "", "", plain(str(figure.get("unscored", "")))
    ci95 = figure.get("ci95")
    remark = f"{figure['missing']} without: {plain(str(figure.get('why', '')))}" if figure.get("missing") else ""
    return (
        name,
        str(figure["n"]),
        _number(figure["value"], 3),
        DASH if not ci95 else f"{_number(ci95[0], 3)} to {_number(ci95[1], 3)}",
        str(figure.get("unit", "")),
        remark,
    )


def _print_reasons(console: Console, tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """What a narrow terminal's table has no room for: each reason once, with the subsets whose figures it is for."""
    grouped: dict[str, dict[str, None]] = {}
    for name, figures in tables.items():
        for figure in figures.values():
            if figure.get("unscored"):
                grouped.setdefault(plain(str(figure["unscored"])), {})[plain(name).replace("_", " ")] = None
    for why, names in grouped.items():
        where = "all subsets" if len(names) == len(tables) > 1 else ", ".join(names)
        console.print(Text(f"  unscored: {why} ({where})", style="yellow"))


def _print_latency(console: Console, latency: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    if not any(figure["n"] for figure in latency["all"].values()):
        why = plain(str(latency["all"]["first_packet_ms"].get("unscored", "")))
        console.print(Text(f"Latency unscored: {why}", style="yellow"))
        return
    console.print(Text("Latency of the same answers", style="bold"))
    _print_grid(console, _LATENCY, [_latency_row(subset, figures) for subset, figures in latency.items()])


def _latency_row(subset: str, figures: Mapping[str, Mapping[str, Any]]) -> Row:
    cells = latency_cells(subset, figures)
    return cells, "" if cells[1] != "0" else "dim"


def latency_cells(subset: str, figures: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Subset, n, the medians of TTFT, first packet and first audible, and the RTF of the sums, as printed."""
    middle = [_number(figures[name].get("p50"), 1) for name in ("ttft_ms", "first_packet_ms", "first_audible_ms")]
    n = max((int(figure.get("n", 0)) for figure in figures.values()), default=0)
    return plain(subset), str(n), *middle, _number(figures["rtf"].get("of_sums"), 4)


def _print_overall(console: Console, overall: Mapping[str, Any]) -> None:
    console.print(Text(overall_line(overall), style="bold" if overall.get("value") is not None else "yellow"))


def overall_line(overall: Mapping[str, Any]) -> str:
    """The overall score, or what keeps it from being one."""
    if overall.get("value") is not None:
        return f"Overall {overall['value']:.3f}"
    missing = ", ".join(plain(str(part)).replace("_", " ") for part in overall.get("missing", ()))
    return f"Overall unscored: missing {missing}" if missing else "Overall unscored"


def usage_line(usage: Any) -> str:
    """Calls, tokens and cost of the judge."""
    get = usage.get if isinstance(usage, Mapping) else lambda key, default=None: getattr(usage, key, default)
    cost = f", cost {get('cost'):.4f}" if get("cost") is not None else ""
    tokens = f"{get('prompt_tokens')} + {get('completion_tokens')} tokens"
    return f"judge: {get('calls')} calls, {get('cached')} from the cache, {get('failed')} failed, {tokens}{cost}"


def _print_grid(console: Console, columns: Sequence[Column], rows: Sequence[Row]) -> tuple[str, ...]:
    """Headings of the columns that had no room."""
    fitted = fit(console, columns, rows)
    console.print(fitted.table)
    if fitted.left_out:
        console.print(Text(f"No room for {', '.join(fitted.left_out)} at this width; --json has all.", style="dim"))
    return fitted.left_out


def _number(value: float | None, digits: int) -> str:
    return DASH if value is None else f"{value:.{digits}f}"
