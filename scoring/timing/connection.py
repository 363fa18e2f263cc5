"""How long each step of connecting took: what `connect_ms` and `connect_phases_ms` share."""

from __future__ import annotations

from collections.abc import Mapping

from harness.core.scorer import Unscored
from scoring.timing.timeline import Instant

MADE = ("upgrade", "ready", "configured")
"""Any of these says that the connection was made (a peer without an upgrade is ready at once)."""
STEPS = ("dns", "tcp", "tls", "upgrade")


def split(phases: Mapping[str, Instant]) -> dict[str, int] | Unscored:
    """Duration of each recorded step in ns. A connection that was refused on the way has none: how fast somebody says
    no is not how long connecting takes."""
    if "started" not in phases:
        return Unscored(reason="the phases of the connection were not recorded")
    if not any(name in phases for name in MADE):
        return Unscored(reason="the connection was not made")
    before_ns, found = phases["started"].t_ns, {}
    for name in STEPS:
        if name in phases:
            found[name] = phases[name].t_ns - before_ns
            before_ns = phases[name].t_ns
    return found or Unscored(reason="the phases of the connection were not recorded")
