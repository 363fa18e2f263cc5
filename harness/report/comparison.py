"""Several peers of one interleaved run beside each other: a row a metric, a column a peer. Computes no metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from harness.report.failure import plain
from harness.report.figure import DASH, Figure, figures, run_rtfs
from harness.report.overview import overview
from harness.report.side_by_side import Beside, print_side_by_side

COMPARED = ("first_audible_ms", "first_packet_ms", "ttft_ms", "endpoint_ms", "rtf")
CLOCKS = ("turn mode", "anchor of rtf")
"""Rows below the figures that say by which clocks they were taken; the second only below an RTF."""

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
        rows = [*names, *CLOCKS[: 1 + ("rtf" in names)]]
        print_side_by_side(console, rows, [_beside(peer, names) for peer in peers])
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


def _beside(peer: Peer, names: Sequence[str]) -> Beside:
    """Its column: the figures, then the clocks that they were taken by."""
    clocks = [peer.mode or DASH, ",\n".join(peer.anchors) or DASH][: 1 + ("rtf" in names)]
    return Beside(peer.label, (*(_cell(peer.found.get(name)) for name in names), *((clock,) for clock in clocks)))


def _cell(figure: Figure | None) -> tuple[str, ...]:
    if figure is None:
        return (DASH,)
    p50 = figure.show(figure.p50)
    return (p50,) if "p50" not in figure.intervals else (p50, f"({figure.interval()})")


def _print_statuses(console: Console, label: str, summary: dict[str, Any]) -> None:
    seen = overview(summary, [])
    line = Text(label, style="bold", overflow="fold")
    line.append(f": {seen.turns} turns", style="not bold")
    for index, (status, count) in enumerate(seen.statuses):
        line.append(", " if index else ": ", style="not bold")
        line.append(f"{count} {status}", style="not bold green" if status == "ok" else "not bold red")
    console.print(line)
