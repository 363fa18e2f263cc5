"""Turns that did not end well, grouped by status and by what the peer said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from harness.report.redaction import redact_text

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_VARIABLE = re.compile(r"[0-9a-fA-F]{8,}|\d+|(?<=_)[A-Za-z0-9]{12,}")
LONGEST = 600
"""Characters of a peer's message that are shown."""


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of one status whose messages differ in numbers and ids only. sessions: all of them, in row order."""

    status: str
    message: str
    count: int
    sessions: tuple[str, ...]


def failure_groups(rows: Iterable[Mapping[str, Any]]) -> list[FailureGroup]:
    """Every failed row that is no warm-up, grouped; the largest group first."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        status = str(row.get("status", ""))
        if not row.get("failed", status != "ok") or row.get("warmup"):
            continue
        message = message_of(row)
        key = (status, _VARIABLE.sub("#", message))
        groups.setdefault(key, []).append((message, str(row.get("session", ""))))
    found = [
        FailureGroup(
            status=status,
            message=members[0][0],
            count=len(members),
            sessions=tuple(dict.fromkeys(session for _, session in members)),
        )
        for (status, _), members in groups.items()
    ]
    return sorted(found, key=lambda group: (-group.count, group.status, group.message))


def message_of(row: Mapping[str, Any]) -> str:
    """What went wrong in a row: the peer's words where there are some, else the scorer's reason; empty for neither."""
    reasons = row.get("reasons")
    reason = reasons.get("status") if isinstance(reasons, Mapping) else None
    return plain(str(row.get("error") or reason or ""))


def plain(text: str) -> str:
    """Text of others made fit to print: no control or direction characters, no secrets, of bounded length."""
    text = redact_text(_CONTROL.sub("", text)).strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
