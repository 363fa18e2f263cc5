"""Finding the presets: the built-in ones in the order of the timing definitions, then third parties'."""

from __future__ import annotations

from functools import cache

from harness.core import plugins
from harness.core.errors import ConfigError, ScoringError, nearest
from scoring.duplex.presets import aiewf, coval, eva, fdb, livekit, pipecat, tau
from scoring.duplex.presets.preset import Preset

GROUP = "firstpacket.presets"
"""Entry point group of third parties' presets: each a `Preset`."""
BUILT_IN = tuple(module.PRESET for module in (fdb, tau, coval, pipecat, livekit, aiewf, eva))


@cache
def all_presets() -> tuple[Preset, ...]:
    """Every preset. Raises ScoringError for two of one name, PrerequisiteError for a plug-in that cannot be loaded."""
    found: dict[str, Preset] = {}
    for preset in (*BUILT_IN, *(plugins.load(GROUP, name) for name in plugins.names(GROUP))):
        if preset.name in found:
            raise ScoringError(f"two presets are called {preset.name}")
        found[preset.name] = preset
    return tuple(found.values())


def preset(name: str) -> Preset:
    """The preset of that name. Raises ConfigError with the nearest right one."""
    known = {each.name: each for each in all_presets()}
    if name not in known:
        raise ConfigError(f"no preset is called {name!r}: {nearest(name, known)}")
    return known[name]
