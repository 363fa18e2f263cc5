"""What the page says of the run around its figures: facts, the harness's own error, configuration without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from harness.core.errors import SessionFormatError
from harness.core.run_directory import RunDirectory, RunInfo
from harness.core.session.header import Header
from harness.core.session.reader import load_session
from harness.report.failure import plain
from harness.report.figure import fine, number
from harness.report.redaction import redact


def first_header(run: RunDirectory, sessions: Iterable[str]) -> Header | None:
    """The header of the first of these sessions that can be read."""
    known = set(run.finished())
    for name in dict.fromkeys(sessions):
        if name not in known:
            continue
        try:
            return load_session(run.sessions / name).header
        except SessionFormatError:
            continue
    return None


def facts_of(info: RunInfo | None, mode: str, header: Header | None) -> list[str]:
    """One line under the title."""
    facts = [mode]
    if info:
        facts += [info.suite, info.created, f"firstpacket {info.firstpacket}"]
    if header:
        machine = header.machine
        facts.append(str(machine.get("cpu") or machine.get("system") or machine.get("platform") or ""))
    return [plain(fact) for fact in facts if fact]


def harness_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    raw = summary.get("harness") or {}
    labels = {"error_ms": "own error", "send_late_ms": "send lateness", "loop_lag_ms": "loop lag"}
    shown = []
    for key, label in labels.items():
        figure = raw.get(key)
        if isinstance(figure, Mapping):
            values = [fine(figure.get(name)) for name in ("p50", "p90", "p99", "max")]
            shown.append((label, [str(figure.get("n", number(None))), *values]))
    calibration = summary.get("calibration")
    return {
        "figures": shown,
        "tainted": int(raw.get("tainted") or 0),
        "calibration": list(_flat(redact(calibration))) if calibration else [],
    }


def config_of(info: RunInfo | None, header: Header | None, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Configuration, peer and machine as flat pairs, without anything that looks like a secret."""
    parts: dict[str, Any] = {}
    if info:
        parts["run"] = info.config
    if header:
        parts |= {"peer": header.peer.config, "profile": msgspec.to_builtins(header.profile), "machine": header.machine}
        parts["clock"] = msgspec.to_builtins(header.clock)
    for name in ("parameters", "metric_versions"):
        if summary.get(name):
            parts[name] = summary[name]
    return list(_flat(redact(parts)))


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [pair for key, inner in value.items() for pair in _flat(inner, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        return [pair for number, inner in enumerate(value, 1) for pair in _flat(inner, f"{name} {number}")]
    if isinstance(value, list):
        return [(name, plain(", ".join(str(item) for item in value)))]
    return [(name, plain(str(value)))]
