"""What a comparison of two runs comes to, in plain sentences: what is better, by how much, and does that suffice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.report.failure import plain
from harness.report.figure import number

SAID = {
    "first_audible_ms": "first audible sound",
    "first_packet_ms": "first packet",
    "ttft_ms": "first text (TTFT)",
    "endpoint_ms": "endpointing",
    "rtf": "RTF",
    "failed": "share of failed turns",
    "response_latency_ms": "response latency",
    "missed_response": "share of missed responses",
    "stop_ms": "barge-in stop",
    "yielded": "share of yields",
    "false_stop": "share of false stops",
    "false_start": "share of false starts",
}
"""Figures that get a sentence, in words. Those of a benchmark all get one when they differ."""
LATENCIES = frozenset(
    ("first_audible_ms", "first_packet_ms", "ttft_ms", "endpoint_ms", "response_latency_ms", "stop_ms")
)
LEAST_CLUSTERS = 6
CLUSTERS = {"timing": "queries", "duplex": "scenarios", "scores": "items"}
MOST_CIRCUMSTANCES = 6


def sentences(comparison: Mapping[str, Any]) -> list[str]:
    """First what it comes to, then a sentence a figure."""
    base, other = (plain(str(comparison[side]["label"])) for side in ("base", "other"))
    weighed = [figure for figure in comparison["figures"] if _is_weighed(figure)]
    lines = [_sum(weighed, base, other)]
    lines += [_sentence(figure, base, other) for figure in weighed if _is_told(figure)]
    if comparison["overall"]:
        first, second = (number(value) for value in comparison["overall"])
        lines.append(f"Overall by the benchmark's formula: {second} against {first}; it has no interval.")
    return lines


def warnings(comparison: Mapping[str, Any]) -> list[str]:
    """What weakens the comparison: forced clashes, tainted turns, random weights, noise, partners that are missing."""
    lines = []
    if comparison["forced"]:
        lines.append(f"Forced; not measured alike: {plain('; '.join(comparison['forced']))}.")
    for side in ("base", "other"):
        lines += _doubts(comparison[side])
    for kind in comparison["alone"]:
        lines.append(f"The runs share too few {kind} to pair them: intervals are wide.")
    for kind, (lost, gained) in comparison["unpaired"].items():
        lines.append(f"Left out, as the other run lacks them: {lost} {kind} of the base, {gained} of the other.")
    differs = comparison["circumstances"]
    if differs:
        more = f"; and {len(differs) - MOST_CIRCUMSTANCES} more" if len(differs) > MOST_CIRCUMSTANCES else ""
        lines.append(f"Held differently: {plain('; '.join(differs[:MOST_CIRCUMSTANCES]))}{more}.")
    return lines


def _is_weighed(figure: Mapping[str, Any]) -> bool:
    found = figure["difference"]
    return figure["scorer"] == "scores" or (
        figure["name"] in SAID and any((found["base"], found["other"], found["value"]))
    )


def _is_told(figure: Mapping[str, Any]) -> bool:
    """A benchmark has dozens of figures: only those that differ are."""
    return figure["scorer"] != "scores" or figure["difference"]["verdict"] in ("better", "worse")


def _sum(weighed: list[Mapping[str, Any]], base: str, other: str) -> str:
    by: dict[str, list[str]] = {}
    for figure in weighed:
        by.setdefault(figure["difference"]["verdict"], []).append(_name(figure))
    parts = [f"{word} in {_list(by[word])}" for word in ("better", "worse") if word in by]
    if parts:
        first, *rest = parts
        than = first.replace(" in ", f" than {base} in ", 1)
        return f"{'; it is '.join([f'{other} is {than}', *rest])}. The evidence suffices for that."
    if "none" in by:
        return f"There is no difference to be seen between {other} and {base}."
    return f"Whether {other} or {base} is better cannot be said: {_too_few(weighed)}."


def _too_few(weighed: list[Mapping[str, Any]]) -> str:
    if not weighed:
        return "they share no figure that would tell"
    kind = CLUSTERS[weighed[0]["scorer"]]
    return f"{LEAST_CLUSTERS} different {kind} at least are needed for an interval"


def _sentence(figure: Mapping[str, Any], base: str, other: str) -> str:
    found, unit = figure["difference"], str(figure["unit"])
    name = _name(figure)
    name = name[0].upper() + name[1:]
    value = amount(found["value"], unit, signed=True)
    if found["verdict"] == "too_few":
        return f"{name}: {value} ({_n(figure)}), too few to tell."
    low, high = (amount(bound, unit, signed=True, named=False) for bound in found["ci95"])
    interval = f"95 % interval {low} to {high}{_unit(unit)}, {_n(figure)}"
    if found["verdict"] == "none":
        seen = amount(found["smallest"], unit)
        within = found["resolution"] and not found["ci95"][0] <= 0 <= found["ci95"][1]
        why = ", within the harness's own error" if within else ""
        return f"{name}: no difference to be seen ({value}{why}; {interval}); one of {seen} could have been."
    way = _way(figure["name"], found["value"])
    return f"{name}: {other} is {amount(abs(found['value']), unit)} {way} than {base} ({interval})."


def _way(name: str, value: float) -> str:
    if name in LATENCIES:
        return "slower" if value > 0 else "faster"
    return "higher" if value > 0 else "lower"


def _name(figure: Mapping[str, Any]) -> str:
    return SAID.get(figure["name"]) or plain(str(figure["name"]))


def _n(figure: Mapping[str, Any]) -> str:
    found, kind = figure["difference"], CLUSTERS[figure["scorer"]]
    pairs = f"{found['n']} {'pair' if found['n'] == 1 else 'pairs'}" if found["paired"] else f"n {found['n']}, unpaired"
    return pairs if found["clusters"] == found["n"] else f"{pairs} from {found['clusters']} {kind}"


def _doubts(run: Mapping[str, Any]) -> Iterator[str]:
    label = plain(str(run["label"]))
    for said in run["random_weights"]:
        yield f"{label} ran on random weights ({plain(str(said))}): its scores say nothing of the model."
    if run["tainted"]:
        yield f"{label}: {run['tainted']} of {run['turns']} turns are tainted, the harness itself was late there."
    if run["failed"]:
        yield f"{label}: {run['failed']} of {run['turns']} turns failed and are in no latency."
    if run["missing_sessions"]:
        yield f"{label}: {run['missing_sessions']} planned sessions are missing."
    if run["quiet"] is False:
        yield f"{label}: the machine was noisy."


def amount(value: float, unit: str, *, signed: bool = False, named: bool = True) -> str:
    """A figure, with its unit if `named`; whether it is a difference: `signed`.

    >>> amount(-49.97, "ms", signed=True), amount(0.125, "ratio"), amount(3.0, "")
    ('-50.0 ms', '0.125', '3.000')
    """
    text = number(value, unit if unit in ("ms", "s", "count") else "")
    if signed and value > 0:
        text = f"+{text}"
    return text + (_unit(unit) if named else "")


def _unit(unit: str) -> str:
    return f" {unit}" if unit in ("ms", "s") else ""


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
