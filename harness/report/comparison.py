"""Several peers of one interleaved run beside each other: a row a metric, a column a peer. Computes no metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.failure import plain
from harness.report.figure import DASH, Figure, figures, run_rtfs
from harness.report.grid import natural_width, plain_table
from harness.report.overview import overview

COMPARED = ("first_audible_ms", "first_packet_ms", "ttft_ms", "endpoint_ms", "rtf")
CLOCKS = ("turn mode", "anchor of rtf")
"""Rows below the figures that say by which clocks they were taken; the second only below an RTF."""
LEAST_LABEL = 12
"""Narrowest that a column gets for the sake of its peer's name; longer names go on below themselves."""

STARTS = {
    "upload": "when the last byte of the whole query had left",
    "manual": "at the commit",
    "vad": "when the packet with the last of the speech had left",
}
"""By turn mode: where `first_packet_ms` and `ttft_ms` start."""


class Peer(NamedTuple):
    """A column. mode: who ends its turns; anchors: what its RTF counts from."""

    label: str
    found: dict[str, Figure]
    mode: str
    anchors: tuple[str, ...]


def print_comparison(console: Console, summaries: list[tuple[str, dict[str, Any]]]) -> None:
    """Print p50 and its 95 % interval of each peer with the clocks they were taken by, then its turns by status.

    summaries: (label, `summary.json`), in the order to show. Peers without room beside the others follow in a table
    of their own. Rows in which peers have different clocks are named.
    """
    peers = [_peer(label, summary) for label, summary in summaries]
    names = [name for name in COMPARED if any(name in peer.found for peer in peers)]
    if names:
        console.print(Text("Side by side: p50 and its 95 % interval", style="bold"))
    rest = peers if names else []
    while rest:
        count, table = _widest(console, names, rest)
        console.print(table)
        rest = rest[count:]
        if rest:
            console.print()
    for line in _apart(peers):
        console.print(Text(f"Not comparable: {line}", style="yellow", overflow="fold"))
    for label, summary in summaries:
        _print_statuses(console, plain(label), summary)


def _peer(label: str, summary: dict[str, Any]) -> Peer:
    anchors = tuple(plain(rtf.anchor) for rtf in run_rtfs(summary))
    return Peer(plain(label), _figures(summary), plain(str(summary.get("mode") or "")), anchors)


def _apart(peers: Sequence[Peer]) -> list[str]:
    """For rows whose figures were taken by different clocks: which, and what each starts from."""
    lines = []
    timed = [peer for peer in peers if "first_packet_ms" in peer.found or "ttft_ms" in peer.found]
    modes = list(dict.fromkeys(peer.mode for peer in timed if peer.mode))
    if len(modes) > 1:
        starts = "; ".join(f"{mode}: {STARTS[mode]}" if mode in STARTS else mode for mode in modes)
        lines.append(f"first_packet_ms and ttft_ms start in different places ({starts}).")
    anchors = dict.fromkeys(peer.anchors for peer in peers if "rtf" in peer.found and peer.anchors)
    if len(anchors) > 1 or any(len(several) > 1 for several in anchors):
        names = dict.fromkeys(name for several in anchors for name in several)
        lines.append(f"rtf counts from different anchors ({', '.join(names)}).")
    return lines


def _figures(summary: dict[str, Any]) -> dict[str, Figure]:
    found = figures(summary.get("metrics") or {})
    return {figure.metric.name: figure for figure in found if figure.n and figure.metric.name in COMPARED}


def _widest(console: Console, names: Sequence[str], peers: Sequence[Peer]) -> tuple[int, Table]:
    """As many of the peers as fit, and their table: the interval beside the p50 where there is room, else below it."""
    for count in range(len(peers), 0, -1):
        for joint in (" ", "\n"):
            table = _table(console, names, peers[:count], joint)
            if natural_width(console, table) <= console.width:
                return count, table
    return 1, _table(console, names, peers[:1], "\n")


def _table(console: Console, names: Sequence[str], peers: Sequence[Peer], joint: str) -> Table:
    cells = [[_cell(peer.found.get(name), joint) for name in names] + _clocks(peer, names) for peer in peers]
    rows = [*names, *CLOCKS[: 1 + ("rtf" in names)]]
    widths = [max([LEAST_LABEL, *(cell_len(line) for cell in column for line in cell.split("\n"))]) for column in cells]
    spare = console.width - max(map(len, rows)) - sum(width + 2 for width in widths)
    for index, peer in enumerate(peers):
        more = min(max(0, spare), max(0, cell_len(peer.label) - widths[index]))
        widths[index] += more
        spare -= more
    table = plain_table()
    table.add_column("metric", no_wrap=True)
    for peer, width in zip(peers, widths, strict=True):
        table.add_column(_broken(peer.label, width), justify="right", width=width, overflow="fold")
    for index, name in enumerate(rows):
        table.add_row(name, *(Text(column[index]) for column in cells))
    return table


def _clocks(peer: Peer, names: Sequence[str]) -> list[str]:
    """Its cells in the rows `CLOCKS`."""
    return [peer.mode or DASH, ",\n".join(peer.anchors) or DASH][: 1 + ("rtf" in names)]


def _cell(figure: Figure | None, joint: str) -> str:
    if figure is None:
        return DASH
    p50 = figure.show(figure.p50)
    return p50 if "p50" not in figure.intervals else f"{p50}{joint}({figure.interval()})"


def _broken(label: str, width: int) -> Text:
    """The label in lines of at most `width`, broken after a separator where one is near."""
    lines = [""]
    for piece in _pieces(label):
        if lines[-1] and cell_len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return Text("\n".join(line.strip() for line in lines))


def _pieces(label: str) -> list[str]:
    pieces = [""]
    for character in label:
        pieces[-1] += character
        if character in "-_/:.?&= ":
            pieces.append("")
    return [piece for piece in pieces if piece]


def _print_statuses(console: Console, label: str, summary: dict[str, Any]) -> None:
    seen = overview(summary, [])
    line = Text(label, style="bold", overflow="fold")
    line.append(f": {seen.turns} turns", style="not bold")
    for index, (status, count) in enumerate(seen.statuses):
        line.append(", " if index else ": ", style="not bold")
        line.append(f"{count} {status}", style="not bold green" if status == "ok" else "not bold red")
    console.print(line)
