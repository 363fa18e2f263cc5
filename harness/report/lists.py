"""Plain lists for the terminal: connectors, findings of the doctor, knobs of the agent.

A terminal too narrow for a list's columns gets a block a row instead; nothing is cut at any width.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.figure import DASH
from harness.report.grid import print_blocks

STATES = {"ok": "green", "missing": "red", "warn": "yellow"}
ABILITIES = ("user_transcript", "cancel", "truncate", "history")
LEAST_PEERS, LEAST_FINDINGS, LEAST_KNOBS = 120, 70, 56
"""Columns of the terminal below which each list reads worse as a table than as blocks."""
OWN = "its own"


def print_peers(console: Console, peers: list[dict[str, Any]]) -> None:
    """One row a connector, then its dialects: name, what it is, how it was checked, and what its profile declares."""
    rows = [_peer_row(each) for peer in peers for each in (peer, *(peer.get("variants") or ()))]
    if console.width < LEAST_PEERS:
        print_blocks(
            console,
            (
                (
                    Text(row.name, style="bold"),
                    [
                        Text(row.about),
                        Text(f"checked: {row.evidence}"),
                        Text(f"pacing: {row.pacing}; turns: {row.turns}; kHz: {row.rates}"),
                        Text(f"can: {row.can}"),
                    ],
                )
                for row in rows
            ),
        )
    else:
        table = _table("peer", "what it is", "checked", "pacing", "turns", "kHz", "can")
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
    console.print(
        Text("checked: against software of others (interop-tested), or by hand-written frames (golden only).")
    )
    console.print(
        Text("firstpacket bench --peer NAME, NAME:target, NAME?key=value or ws://…; --set key=value for settings.")
    )


class _Peer(NamedTuple):
    name: str
    about: str
    evidence: str
    pacing: str
    turns: str
    rates: str
    can: str


def _peer_row(peer: dict[str, Any]) -> _Peer:
    profile = peer.get("profile") or {}
    can = [name for name in ABILITIES if profile.get(name)]
    return _Peer(
        name=peer["name"],
        about=peer["about"],
        evidence=peer.get("evidence") or DASH,
        pacing="continuous" if profile.get("continuous") else profile.get("pacing", OWN),
        turns=", ".join(profile.get("turns", ())) or ("upload" if profile.get("upload") else DASH if profile else OWN),
        rates=_rates(profile),
        can=", ".join(can) or (DASH if profile else OWN),
    )


def _rates(profile: dict[str, Any]) -> str:
    """Up and down, in kHz; one figure where both are the same."""
    rates = [profile[name] / 1000 for name in ("input_rate_hz", "output_rate_hz") if profile.get(name)]
    return "/".join(f"{rate:g}" for rate in dict.fromkeys(rates)) or OWN


def print_findings(console: Console, findings: Iterable[Any]) -> None:
    """One row a finding, grouped by area, with the remedy where one is needed."""
    rows = [
        (finding, Text(finding.state, style=STATES.get(finding.state, "")), _detail(finding)) for finding in findings
    ]
    if console.width < LEAST_FINDINGS:
        print_blocks(
            console,
            ((Text.assemble(f"{finding.area}: {finding.name} ", state), [detail]) for finding, state, detail in rows),
        )
        return
    table = _table("area", "what", "state", "detail")
    area = ""
    for finding, state, detail in rows:
        table.add_row(finding.area if finding.area != area else "", Text(finding.name), state, detail)
        area = finding.area
    console.print(table)


def print_knobs(console: Console, fields: Iterable[Any]) -> None:
    """One row a knob: name, type and default; what each does stands in connectors/agent/README.md."""
    rows = []
    for field in fields:
        kind = getattr(field.type, "__name__", str(field.type)) if isinstance(field.type, type) else str(field.type)
        rows.append((field.name, kind.replace("typing.", ""), repr(field.default)))
    if console.width < LEAST_KNOBS:
        print_blocks(
            console,
            ((Text(f"{name} = {default}", style="bold"), [Text(kind)]) for name, kind, default in rows),
        )
        return
    table = _table("knob", "type", "default")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _detail(finding: Any) -> Text:
    detail = Text(finding.detail)
    if finding.remedy:
        detail.append(" – " if finding.detail else "")
        detail.append(finding.remedy, style="bold")
    return detail


def _table(first: str, *others: str) -> Table:
    """Names, which stand first, are never broken; all else wraps, a word too long for its column letter by letter."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, overflow="fold")
    return table
