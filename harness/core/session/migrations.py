"""Old session directories: each step lifts `session.json` and event lines by one schema version.

There is one version so far. A step is a pair of functions from raw JSON objects to raw JSON objects; golden sessions
of every old version stay in `tests/core/session/golden`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.core.errors import SessionFormatError
from harness.core.session.header import SCHEMA

Raw = dict[str, Any]
HeaderStep = Callable[[Raw], Raw]
EventStep = Callable[[Raw], Raw]

STEPS: dict[int, tuple[HeaderStep, EventStep]] = {}
"""From version n to n + 1."""


def version_of(header: Raw) -> int:
    """The schema version of a raw header. Raises SessionFormatError for none or a newer one."""
    version = header.get("schema")
    if not isinstance(version, int) or version < 1:
        raise SessionFormatError("session.json names no schema version: not a firstpacket session")
    if version > SCHEMA:
        raise SessionFormatError(
            f"session has schema version {version}, this firstpacket reads up to {SCHEMA}: upgrade it"
        )
    return version


def lift_header(header: Raw) -> Raw:
    """Bring a raw header to the present version."""
    for version in range(version_of(header), SCHEMA):
        header = STEPS[version][0](header)
        header["schema"] = version + 1
    return header


def event_lift(version: int) -> EventStep | None:
    """A function that brings one raw event of `version` to the present one; None when there is nothing to do."""
    steps = [STEPS[v][1] for v in range(version, SCHEMA)]
    if not steps:
        return None

    def lift(event: Raw) -> Raw:
        for step in steps:
            event = step(event)
        return event

    return lift
