"""Plain lists for the terminal: connectors, findings of the doctor, knobs of the agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

MARKS = {"ok": "[green]ok[/]", "missing": "[red]missing[/]", "warn": "[yellow]warn[/]"}


def print_peers(console: Console, peers: list[dict[str, Any]]) -> None:
    """One row a connector: name, what it is, and what its profile declares."""
    table = Table(box=None, title_justify="left")
    for heading in ("peer", "what it is", "pacing", "turns", "can"):
        table.add_column(heading)
    for peer in peers:
        profile = peer["profile"] or {}
        can = [name for name in ("user_transcript", "cancel", "truncate", "history") if profile.get(name)]
        table.add_row(
            peer["name"],
            escape(peer["about"]),
            profile.get("pacing", "its own"),
            ", ".join(profile.get("turns", ())) or "its own",
            ", ".join(can) or ("–" if profile else "its own"),
        )
    console.print(table)
    console.print("firstpacket bench --peer NAME, NAME:target, NAME?key=value or ws://…; --set key=value for settings.")


def print_findings(console: Console, findings: Iterable[Any]) -> None:
    """One row a finding, grouped by area, with the remedy where one is needed."""
    table = Table(box=None)
    for heading in ("area", "what", "state", "detail"):
        table.add_column(heading)
    area = ""
    for finding in findings:
        detail = escape(finding.detail)
        if finding.remedy:
            detail += f"{' – ' if detail else ''}[bold]{escape(finding.remedy)}[/]"
        shown = finding.area if finding.area != area else ""
        table.add_row(shown, escape(finding.name), MARKS[finding.state], detail)
        area = finding.area
    console.print(table)


def print_knobs(console: Console, fields: Iterable[Any]) -> None:
    """One row a knob: name, type and default; what each does stands in connectors/agent/README.md."""
    table = Table(box=None)
    for heading in ("knob", "type", "default"):
        table.add_column(heading)
    for field in fields:
        kind = getattr(field.type, "__name__", str(field.type)) if isinstance(field.type, type) else str(field.type)
        table.add_row(field.name, escape(kind.replace("typing.", "")), escape(repr(field.default)))
    console.print(table)
