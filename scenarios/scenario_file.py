"""Reading scenarios from YAML: one scenario a document, every error with file, line and column."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import cast

from harness.core.errors import ConfigError, nearest
from scenarios.impairments.spec import parse_specs
from scenarios.scenario import (
    AGENT_END_TIMEOUT_MS,
    AGENT_START_TIMEOUT_MS,
    ANCHORS,
    EARLIEST_MS,
    EXPECTATIONS,
    GENERATED_NOISE,
    KINDS_OF_SPEECH,
    LONGEST_MS,
    LONGEST_NOISE_MS,
    SOURCES,
    START_DELAY_MS,
    Anchor,
    Expect,
    HistoryTurn,
    Kind,
    Scenario,
    Source,
    UserEvent,
)
from scenarios.yaml_node import MAX_CHARACTERS, Node, documents

SUFFIXES = frozenset({".yaml", ".yml"})
SCENARIO_KEYS = (
    "id",
    "title",
    "language",
    "category",
    "tags",
    "instructions",
    "history",
    "impairments",
    "linger_ms",
    "events",
)
EVENT_KEYS = (
    *SOURCES,
    "id",
    "at",
    "after",
    "delay_ms",
    "jitter_ms",
    "timeout_ms",
    "kind",
    "expect",
    "duration_ms",
    "gain_db",
    "tags",
)
MOST_EVENTS = 200
_ANSWERED = ("respond", "stop")
_KINDS = {"noise": ("noise",), "other_speaker": ("other_speaker",), "say": KINDS_OF_SPEECH}
_USUAL_EXPECT = {"turn": "respond", "backchannel": "keep_talking", "tic": "keep_talking"}


def load_scenarios(path: Path) -> tuple[Scenario, ...]:
    """The scenarios of a YAML file, or of all YAML files of a folder in name order; ids are unique.

    Raises ConfigError, one line with file, line and column, for whatever is wrong.
    """
    try:
        files = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES) if path.is_dir() else [path]
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc
    scenarios = tuple(scenario for file in files for scenario in read_scenarios(_text(file), str(file)))
    if not scenarios:
        raise ConfigError(f"{path}: no scenarios" + (" (no .yaml file)" if path.is_dir() and not files else ""))
    first: dict[str, str] = {}
    for scenario in scenarios:
        if scenario.id in first:
            raise ConfigError(f"{scenario.where}: id {scenario.id!r} was already used at {first[scenario.id]}")
        first[scenario.id] = scenario.where
    return scenarios


def read_scenarios(text: str, file: str) -> tuple[Scenario, ...]:
    """The scenarios in `text`; `file` is its name in errors. Raises ConfigError as `load_scenarios` does."""
    return tuple(_scenario(document) for document in documents(text, file))


def check_clips(scenario: Scenario, known: Collection[str]) -> None:
    """Raises ConfigError, with the place and the nearest clip, for a clip that is not among `known` ids."""
    for event in scenario.events:
        if event.generated or event.clip in known:
            continue
        names = [*known, *GENERATED_NOISE] if event.source == "noise" else known
        clause = nearest(event.clip, names)
        raise ConfigError(f"{event.where}: {event.source}: the pack has no clip {event.clip!r}; {clause}")


def _text(file: Path) -> str:
    try:
        if not file.is_file():
            raise ConfigError(f"{file}: no such file" if not file.exists() else f"{file}: not a file")
        if file.stat().st_size > 4 * MAX_CHARACTERS:
            raise ConfigError(f"{file}: too long, a scenario file has at most {MAX_CHARACTERS} characters")
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: not UTF-8 text (byte {exc.start})") from exc
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read ({exc.strerror or exc})") from exc


def _scenario(node: Node) -> Scenario:
    keys = node.keys("a scenario", SCENARIO_KEYS)
    for needed in ("id", "events"):
        if needed not in keys:
            node.fail(f"the scenario has no {needed}")
    rows = keys["events"].items("events")
    if not 0 < len(rows) <= MOST_EVENTS:
        keys["events"].fail(f"a scenario has 1 to {MOST_EVENTS} events, not {len(rows)}")
    events: list[UserEvent] = []
    for row in rows:
        events.append(_event(row, events))
    return Scenario(
        id=keys["id"].text("id"),
        events=tuple(events),
        title=_optional(keys, "title"),
        language=_optional(keys, "language"),
        category=_optional(keys, "category"),
        tags=_texts(keys, "tags"),
        instructions=_optional(keys, "instructions"),
        history=tuple(_history(each) for each in keys["history"].items("history")) if "history" in keys else (),
        impairments=_impairments(keys),
        linger_ms=keys["linger_ms"].whole("linger_ms", 0, LONGEST_MS) if "linger_ms" in keys else None,
        where=node.where,
    )


def _event(node: Node, before: list[UserEvent]) -> UserEvent:
    keys = node.keys("an event", EVENT_KEYS)
    sources = [name for name in SOURCES if name in keys]
    if len(sources) != 1:
        node.fail(
            f"an event has exactly one of {', '.join(SOURCES)}" + (f", not {' and '.join(sources)}" * bool(sources))
        )
    source = sources[0]
    clip = keys[source].text(source)
    event_id = keys["id"].text("id") if "id" in keys else f"e{len(before) + 1}"
    if any(event.id == event_id for event in before):
        keys.get("id", node).fail(f"id {event_id!r} is used by an earlier event")
    kinds = _KINDS[source]
    kind = keys["kind"].choice(f"kind of {source}", kinds) if "kind" in keys else kinds[0]
    if "at" not in keys and before:
        node.fail(f"only the first event may leave out `at`; known: {', '.join(ANCHORS)}")
    at = keys["at"].choice("at", ANCHORS) if "at" in keys else "session_start"
    if "expect" not in keys and kind not in _USUAL_EXPECT:
        node.fail(f"{kind} needs `expect`: {', '.join(EXPECTATIONS)}")
    expect = keys["expect"].choice("expect", EXPECTATIONS) if "expect" in keys else _USUAL_EXPECT[kind]
    after = _after(keys, at, node, before)
    generated = source == "noise" and clip in GENERATED_NOISE
    if generated != ("duration_ms" in keys):
        (keys[source] if generated else keys["duration_ms"]).fail(
            f"the noise {clip!r} is generated and needs duration_ms"
            if generated
            else f"duration_ms is for generated noise ({', '.join(GENERATED_NOISE)}) only"
        )
    return UserEvent(
        id=event_id,
        source=cast(Source, source),
        clip=clip,
        at=cast(Anchor, at),
        after=after,
        delay_ms=_delay(keys, at, source, kind),
        jitter_ms=_jitter(keys),
        timeout_ms=_timeout(keys, at),
        kind=cast(Kind, kind),
        expect=cast(Expect, expect),
        duration_ms=keys["duration_ms"].whole("duration_ms", 20, LONGEST_NOISE_MS) if generated else 0,
        gain_db=keys["gain_db"].number("gain_db", -80.0, 20.0) if "gain_db" in keys else 0.0,
        tags=_texts(keys, "tags"),
        where=keys[source].where,
    )


def _after(keys: dict[str, Node], at: str, node: Node, before: list[UserEvent]) -> str:
    """The event that the anchor belongs to: as named; else the user's last words (for the end of the user's speech),
    or the last ones that want an answer (for the agent's)."""
    if at == "session_start":
        if "after" in keys:
            keys["after"].fail("after has no meaning at session_start")
        return ""
    earlier = [event.id for event in before]
    if "after" in keys:
        name = keys["after"].text("after")
        if name not in earlier:
            clause = nearest(name, earlier) if earlier else "there is none"
            keys["after"].fail(f"after names no earlier event: {name!r}; {clause}")
        return name
    said = [event for event in before if event.source == "say"]
    if at != "user_end":
        said = [event for event in said if event.expect in _ANSWERED]
    if not said:
        what = "say" if at == "user_end" else "say that expects an answer"
        keys["at"].fail(f"{at} needs an earlier {what}, or `after` with an event's id")
    return said[-1].id


def _delay(keys: dict[str, Node], at: str, source: str, kind: str) -> int:
    """Negative at user_end for what is not the user's own turn, and at agent_end (a peer that sends ahead of playout
    can be met there)."""
    if "delay_ms" not in keys:
        return START_DELAY_MS if at == "session_start" else 0
    delay = keys["delay_ms"].whole("delay_ms", EARLIEST_MS, LONGEST_MS)
    if delay < 0 and at in ("session_start", "agent_start"):
        keys["delay_ms"].fail(f"{at} takes no negative delay_ms: nothing can be said before its anchor is known")
    if delay < 0 and at == "user_end" and source == "say":
        keys["delay_ms"].fail(
            "the user cannot speak over himself: a negative delay_ms at user_end is for noise and other_speaker"
        )
    return delay


def _jitter(keys: dict[str, Node]) -> tuple[int, int]:
    if "jitter_ms" not in keys:
        return (0, 0)
    node = keys["jitter_ms"]
    if not node.is_list:
        return (0, node.whole("jitter_ms", 0, LONGEST_MS))
    ends = node.items("jitter_ms")
    if len(ends) != 2:
        node.fail("jitter_ms is one number (from 0 to it) or two, [lowest, highest]")
    low, high = (end.whole("jitter_ms", 0, LONGEST_MS) for end in ends)
    if low > high:
        node.fail(f"jitter_ms: the lowest ({low}) is above the highest ({high})")
    return (low, high)


def _timeout(keys: dict[str, Node], at: str) -> int:
    if at in ("session_start", "user_end"):
        if "timeout_ms" in keys:
            keys["timeout_ms"].fail(f"timeout_ms is for agent_start and agent_end; {at} always comes")
        return 0
    if "timeout_ms" in keys:
        return keys["timeout_ms"].whole("timeout_ms", 1, LONGEST_MS)
    return AGENT_START_TIMEOUT_MS if at == "agent_start" else AGENT_END_TIMEOUT_MS


def _history(node: Node) -> HistoryTurn:
    keys = node.keys("a turn of history", ("role", "text"))
    if len(keys) != 2:
        node.fail("a turn of history has a role and a text")
    role = keys["role"].choice("role", ("user", "assistant"))
    return HistoryTurn(role="user" if role == "user" else "assistant", text=keys["text"].text("text"))


def _impairments(keys: dict[str, Node]) -> tuple[str, ...]:
    specs = _texts(keys, "impairments")
    if specs:
        for node, spec in zip(keys["impairments"].items("impairments"), specs, strict=True):
            try:
                parse_specs(spec)
            except ConfigError as exc:
                raise ConfigError(f"{node.where}: {exc}") from exc
    return specs


def _optional(keys: dict[str, Node], name: str) -> str:
    return keys[name].text(name) if name in keys else ""


def _texts(keys: dict[str, Node], name: str) -> tuple[str, ...]:
    if name not in keys:
        return ()
    return tuple(node.text(f"a member of {name}") for node in keys[name].items(name))
