"""Every event of the conversations in a line: what was wanted of the agent, and what it did. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from harness.core.run_directory import RunDirectory
from harness.report.failure import plain
from harness.report.figure import DASH, number

STEREO = "stereo"
"""The folder of a run with a recording for each session."""
VALUES = ("fto_ms", "stop_ms", "wire_stop_ms", "overlap_ms")
"""Columns of figures."""
FLAGS = (
    ("yielded", "yielded", "did not yield"),
    ("false_stop", "stopped falsely", "kept talking"),
    ("false_start", "started falsely", ""),
    ("missed_response", "gave no answer", ""),
)
"""(flag, words where it is true, words where it is false)."""
BAD = frozenset({"did not yield", "stopped falsely", "started falsely", "gave no answer", "did not resume"})


class Did(msgspec.Struct, frozen=True):
    """Something that the agent did. bad: it should not have."""

    words: str
    bad: bool


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """href: the recording, relative to the page; empty without one. values: as `VALUES`, printed. at: s. view: the
    place of the session's view, None where it is not drawn; from_ms, to_ms: where the event lies in it."""

    session: str
    href: str
    event: str
    what: str
    wanted: str
    did: tuple[Did, ...]
    values: tuple[str, ...]
    at: str
    agent: str
    notes: str
    view: int | None = None
    from_ms: float | None = None
    to_ms: float | None = None


def event_rows(
    run: RunDirectory, rows: Sequence[Mapping[str, Any]], views: Mapping[str, int] | None = None
) -> Iterator[EventRow]:
    """The rows of `duplex.jsonl` as printed. views: session to the place of its view."""
    known = {path.name for path in (run.path / STEREO).glob("*.wav")}
    for row in rows:
        session = str(row.get("session") or "")
        start_ms = row.get("start_ms")
        placed = row.get("demand") is not None
        yield EventRow(
            session=plain(session),
            href=f"{STEREO}/{quote(session + '.wav')}" if f"{session}.wav" in known else "",
            event=plain(str(row.get("event") or "")),
            what=_spaced(row.get("category") or row.get("kind")),
            wanted=_spaced(row.get("demand") or row.get("expect")),
            did=tuple(_did(row)),
            values=tuple(number(row.get(name), "ms") for name in VALUES),
            at=DASH if start_ms is None else f"{start_ms / 1000:,.2f}",
            agent=("speaking" if row.get("agent_speaking") else "silent") if placed else DASH,
            notes="; ".join(_notes(row)),
            view=views.get(session) if views and start_ms is not None else None,
            from_ms=start_ms,
            to_ms=row.get("end_ms"),
        )


def _did(row: Mapping[str, Any]) -> Iterator[Did]:
    for name, true, false in FLAGS:
        words = "" if row.get(name) is None else true if row[name] else false
        if words:
            yield Did(words, words in BAD)
    if row.get("demand") == "stay_silent" and row.get("false_start") is False:
        yield Did("stayed silent", False)
    if row.get("fto_ms") is not None:
        yield Did("answered" if row["fto_ms"] >= 0 else "answered early", False)
    if row.get("resumed") is not None:
        words = f"resumed after {number(row.get('resume_ms'), 'ms')} ms" if row["resumed"] else "did not resume"
        yield Did(words, words in BAD)
    for name, one in (("agent_interruptions", "interruption"), ("agent_backchannels", "backchannel")):
        count = row.get(name) or 0
        if count:
            yield Did(f"{count} {one}{'s' * (count != 1)}", name == "agent_interruptions")


def _notes(row: Mapping[str, Any]) -> Iterator[str]:
    reasons, censored = row.get("reasons") or {}, row.get("censored") or {}
    if "event" in reasons:
        yield plain(f"not placed: {reasons['event']}")
    elif row.get("offset_exact") is False:
        yield "inexact: its cue came late"
    if row.get("timed_out"):
        yield "its cue never came: placed after a timeout"
    for reason, names in _by_reason(reasons, censored).items():
        least = [censored[name] for name in names if censored[name] is not None]
        bound = f", at least {number(max(least), 'ms')} ms" if least else ""
        yield plain(f"censored: {reason}{bound}")
    if row.get("impairment"):
        yield plain(str(row["impairment"]))


def _by_reason(reasons: Mapping[str, Any], censored: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in censored:
        found.setdefault(str(reasons.get(name) or ""), []).append(name)
    return found


def _spaced(value: Any) -> str:
    return plain(str(value or "")).replace("_", " ")
