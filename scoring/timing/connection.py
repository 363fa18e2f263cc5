"""How long each step of connecting took: what `connect_ms` and `connect_phases_ms` share."""

from __future__ import annotations

from collections.abc import Mapping

from scoring.timing.timeline import Instant

STEPS = ("dns", "tcp", "tls", "upgrade")


def split(phases: Mapping[str, Instant]) -> dict[str, int]:
    """Duration of each recorded step in ns; empty when the start was not recorded."""
    if "started" not in phases:
        return {}
    before_ns, found = phases["started"].t_ns, {}
    for name in STEPS:
        if name in phases:
            found[name] = phases[name].t_ns - before_ns
            before_ns = phases[name].t_ns
    return found
