"""What forbids to compare two runs: other formulas, other definitions, other modes, other engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from scoring.compare.run import Run

_PEER = ("peer", "interleaved_with", "imported", "source")
"""Keys of a run's config that name its peer: they differ by intent."""
ABSENT = "none"
_HASH_SHOWN = 12


class Clash(NamedTuple):
    """what: name of what differs. base, other: as each run has it."""

    what: str
    base: str
    other: str

    def __str__(self) -> str:
        return f"{self.what} ({self.base} and {self.other})"


def clashes(base: Run, other: Run) -> list[Clash]:
    """Everything that makes the figures of two runs mean different things; of scorers that both runs have."""
    found = list(_timing(base.summary("timing"), other.summary("timing")))
    found += _duplex(base.summary("duplex"), other.summary("duplex"))
    found += _scores(base.summary("scores"), other.summary("scores"))
    return found


def circumstances(base: Run, other: Run) -> list[Clash]:
    """What else differs in how the runs were held: queries, session settings, version of this tool."""
    configs = [{key: value for key, value in run.info.config.items() if key not in _PEER} for run in (base, other)]
    return [
        *_changed("suite", {"": base.info.suite}, {"": other.info.suite}),
        *_changed("firstpacket", {"": base.info.firstpacket}, {"": other.info.firstpacket}),
        *_changed("", *configs),
    ]


def _timing(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Clash]:
    if not base or not other:
        return
    yield from _changed("mode", {"": base.get("mode")}, {"": other.get("mode")})
    yield from _versions("timing", base, other)
    yield from _changed("parameters", base.get("parameters") or {}, other.get("parameters") or {})
    anchors = [", ".join(sorted(summary.get("rtf_by_anchor") or {})) for summary in (base, other)]
    if all(anchors):
        yield from _changed("anchor of rtf", {"": anchors[0]}, {"": anchors[1]})


def _duplex(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Clash]:
    if not base or not other:
        return
    yield from _versions("duplex", base, other)
    yield from _changed("duplex parameters", base.get("parameters") or {}, other.get("parameters") or {})


def _scores(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Clash]:
    if not base or not other:
        return
    for name in ("benchmark", "version", "engines", "prompts", "judged", "own_wording"):
        sides = [{"": value} if not isinstance(value := side.get(name), Mapping) else value for side in (base, other)]
        yield from _changed("benchmark" if name == "benchmark" else f"benchmark {name}", *sides)


def _versions(scorer: str, base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Clash]:
    """Only of metrics that both have: a metric that one lacks is compared with nothing."""
    sides = [side.get("metric_versions") or {} for side in (base, other)]
    shared = [{name: side[name] for name in side if name in sides[0] and name in sides[1]} for side in sides]
    yield from _changed(f"{scorer} version of", *shared)
    yield from _changed(f"{scorer} scorer", base.get("scorer") or {}, other.get("scorer") or {})


def _changed(what: str, base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Clash]:
    """Leaves that differ, by dotted name."""
    sides = dict(_leaves(base)), dict(_leaves(other))
    found = []
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        first, second = (side.get(name, ABSENT) for side in sides)
        if first != second:
            found.append(Clash(f"{what} {name}".strip(), first, second))
    return found


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        yield name, ", ".join(map(str, value)) or ABSENT
    elif name.endswith("sha256"):
        yield name, str(value)[:_HASH_SHOWN]
    else:
        yield name, ABSENT if value is None else f"{value:g}" if isinstance(value, float) else str(value)
