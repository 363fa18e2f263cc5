"""Finding peers and scorers: entry points, so that a third party adds one without touching this tree."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from harness.core.errors import ConfigError, PrerequisiteError, nearest

CONNECTORS = "firstpacket.connectors"
SCORERS = "firstpacket.scorers"


def found(group: str) -> dict[str, EntryPoint]:
    """All entry points of `group` by name, sorted."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def load(group: str, name: str) -> Any:
    """Import what `name` stands for. Raises ConfigError (unknown) or PrerequisiteError (its import failed)."""
    points = found(group)
    if name not in points:
        raise ConfigError(f"no {group.rpartition('.')[2].rstrip('s')} called {name!r}: {nearest(name, points)}")
    try:
        return points[name].load()
    except ImportError as exc:
        raise PrerequisiteError(f"{name}: {exc.name or exc} is not installed; `firstpacket doctor` says how") from exc


def names(group: str) -> Iterable[str]:
    """The names in `group`, sorted."""
    return found(group).keys()
