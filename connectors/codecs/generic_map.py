"""The TOML map that describes a home-made WebSocket server: what is sent for each command, what each message means.

Reading and checking only; `generic_client` acts on it. The language is explained in `connectors/docs/generic.md`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Literal, get_args

import msgspec

from connectors.codecs.client import Opening
from connectors.codecs.openai_dialects import Coding
from connectors.codecs.pcm_stream import HIGHEST_RATE_HZ, LOWEST_RATE_HZ
from harness.core.errors import ConfigError, nearest
from harness.core.profile import Pacing, Profile, TurnControl

Template = dict[str, Any]
Templates = Template | list[Template]
Meaning = Literal[
    "ready",
    "configured",
    "user_speech_started",
    "user_speech_stopped",
    "input_committed",
    "user_transcript",
    "response_started",
    "text",
    "transcript",
    "audio",
    "audio_done",
    "response_done",
    "interrupted",
    "go_away",
    "error",
    "ignore",
]

VALUES = frozenset(
    {
        "audio",
        "instructions",
        "voice",
        "model",
        "language",
        "silence_ms",
        "turn",
        "input_rate_hz",
        "output_rate_hz",
        "response",
        "role",
        "text",
    }
)
"""What `$name` may stand for in a message that is sent; besides `$env.NAME`, and `$in.path` in a reply."""
FIELDS: dict[str, frozenset[str]] = {
    "ready": frozenset({"session", "model", "output_rate_hz"}),
    "configured": frozenset({"session", "model", "output_rate_hz"}),
    "user_speech_started": frozenset({"audio_ms", "item"}),
    "user_speech_stopped": frozenset({"audio_ms", "item"}),
    "input_committed": frozenset({"item"}),
    "user_transcript": frozenset({"text", "final", "item"}),
    "response_started": frozenset({"response"}),
    "text": frozenset({"text", "response", "item"}),
    "transcript": frozenset({"text", "response", "item"}),
    "audio": frozenset({"audio", "output_rate_hz", "response", "item"}),
    "audio_done": frozenset({"response"}),
    "response_done": frozenset({"response", "status", "reason", "usage"}),
    "interrupted": frozenset({"response", "reason"}),
    "go_away": frozenset({"time_left_ms"}),
    "error": frozenset({"code", "message", "fatal"}),
    "ignore": frozenset(),
}
NEEDED = {"text": "text", "transcript": "text", "user_transcript": "text", "audio": "audio"}
_RULE_KEYS = ("event", "binary", "when", "has", "reply")
_PATH = re.compile(r"\$\.?([\w.\[\]]*)$")


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """User audio, mono. chunk_ms: the piece that the server wants."""

    rate_hz: int
    chunk_ms: int | None = None
    coding: Coding = "pcm16"


class Output(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answer audio, mono; WAV headers are taken off whatever `coding` says."""

    rate_hz: int
    coding: Coding = "pcm16"


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the key in environment variable `env` is shown; it goes to the host of the map's own `url` only."""

    env: str
    header: str = "Authorization"
    scheme: str = "Bearer "


class Send(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages by occasion. start: the settings; start_manual, start_vad: after it, by turn mode. begin: before the
    first audio of a manual turn. audio: None sends raw binary messages. history: one remembered message."""

    start: Templates = msgspec.field(default_factory=list)
    start_manual: Templates = msgspec.field(default_factory=list)
    start_vad: Templates = msgspec.field(default_factory=list)
    begin: Templates = msgspec.field(default_factory=list)
    audio: Template | None = None
    commit: Templates = msgspec.field(default_factory=list)
    create: Templates = msgspec.field(default_factory=list)
    clear: Templates = msgspec.field(default_factory=list)
    cancel: Templates = msgspec.field(default_factory=list)
    history: Templates = msgspec.field(default_factory=list)


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a message means. It fits when all of `when` (path -> value) are equal and all paths of `has` exist;
    `binary`: any binary message. The other fields are paths into the message, save `final` and `fatal`."""

    event: Meaning
    binary: bool = False
    when: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    has: tuple[str, ...] = ()
    reply: Templates = msgspec.field(default_factory=list)
    session: str = ""
    model: str = ""
    output_rate_hz: str = ""
    audio_ms: str = ""
    item: str = ""
    text: str = ""
    final: bool = True
    response: str = ""
    audio: str = ""
    status: str = ""
    reason: str = ""
    usage: str = ""
    time_left_ms: str = ""
    code: str = ""
    message: str = ""
    fatal: bool = False


class Map(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole map. name_field: the path whose value names messages without a rule."""

    title: str = ""
    note: str = ""
    url: str = ""
    query: dict[str, str] = msgspec.field(default_factory=dict)
    subprotocols: tuple[str, ...] = ()
    name_field: str = "type"
    turns: tuple[TurnControl, ...] = ()
    pacing: Pacing = "burst"
    continuous: bool = False
    text: Literal["none", "before_audio", "with_audio", "text_after_audio"] = "before_audio"
    key: Key | None = None
    input: Input
    output: Output
    send: Send = Send()
    receive: tuple[Rule, ...]

    @property
    def opening(self) -> Opening:
        """Follows from the rules for `ready` and `configured`."""
        ready, configured = self.means("ready"), self.means("configured")
        if ready:
            return "created_first" if configured else "created_only"
        return "configure_first" if configured else "configure_only"

    @property
    def profile(self) -> Profile:
        by_hand = bool(self.send.commit or self.send.create)
        return Profile(
            pacing=self.pacing,
            turns=self.turns or (("vad", "manual") if by_hand else ("vad",)),
            continuous=self.continuous,
            input_rate_hz=self.input.rate_hz,
            output_rate_hz=self.output.rate_hz,
            chunk_ms=self.input.chunk_ms,
            text=self.text,
            user_transcript=self.means("user_transcript"),
            cancel=bool(self.send.cancel),
            history=bool(self.send.history),
        )

    def means(self, event: Meaning) -> bool:
        """Whether any rule means `event`."""
        return any(rule.event == event for rule in self.receive)


_TABLES: dict[str, type[msgspec.Struct]] = {"key": Key, "input": Input, "output": Output, "send": Send}


def read_map(text: str, source: str) -> Map:
    """The map in `text`. Raises ConfigError: one line with `source`, the wrong key and, where it can be told, its line
    and the nearest right name."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{source}: {' '.join(str(exc).split())}") from exc
    for place, table, kind in _tables(data):
        known = {field.name for field in msgspec.structs.fields(kind)}
        for key in table:
            if key not in known:
                raise _wrong(text, source, place, key, nearest(key, known))
    try:
        found = msgspec.convert(data, Map)
    except msgspec.ValidationError as exc:
        complaint, _, path = str(exc).partition(" - at `")
        place, _, key = (_PATH.match(path.rstrip("`")) or ["", ""])[1].rpartition(".")
        if key in _TABLES or key.endswith("]"):
            place, key = key, ""
        raise _wrong(text, source, place, key, _plain(complaint, key)) from exc
    _check(found, text, source)
    return found


def messages(templates: Templates | Template | None) -> list[Template]:
    """One message or several, as a list."""
    if templates is None:
        return []
    return templates if isinstance(templates, list) else [templates]


def placeholders(template: Any) -> Iterator[str]:
    """The names after `$` in a template, in order (`$$` begins a plain string)."""
    if isinstance(template, str):
        if template.startswith("$") and not template.startswith("$$"):
            yield template[1:]
    elif isinstance(template, dict):
        for value in template.values():
            yield from placeholders(value)
    elif isinstance(template, list):
        for value in template:
            yield from placeholders(value)


def environment(found: Map) -> list[str]:
    """Environment variables that the map's messages name, in order, each once."""
    names = [name[4:] for _, _, template in _templates(found) for name in placeholders(template) if name[:4] == "env."]
    return list(dict.fromkeys(names))


def named_values(found: Map) -> set[str]:
    """What the map's messages have a `$name` for, of values that are known when a session opens and others."""
    return {name for _, _, template in _templates(found) for name in placeholders(template)}


def _tables(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], type[msgspec.Struct]]]:
    yield "", data, Map
    for name, kind in _TABLES.items():
        if isinstance(data.get(name), dict):
            yield name, data[name], kind
    for number, rule in enumerate(data["receive"] if isinstance(data.get("receive"), list) else []):
        if isinstance(rule, dict):
            yield f"receive[{number}]", rule, Rule


def _templates(found: Map) -> Iterator[tuple[str, str, Any]]:
    """(place, key, messages) of everything that may be sent."""
    for field in Send.__struct_fields__:
        yield "send", field, getattr(found.send, field)
    for number, rule in enumerate(found.receive):
        yield f"receive[{number}]", "reply", rule.reply


def _check(found: Map, text: str, source: str) -> None:
    """What types alone do not tell."""
    for place, rate_hz in (("input", found.input.rate_hz), ("output", found.output.rate_hz)):
        if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
            raise _wrong(text, source, place, "rate_hz", f"{rate_hz} Hz is no sample rate")
    if found.input.chunk_ms is not None and not 1 <= found.input.chunk_ms <= 10_000:
        raise _wrong(text, source, "input", "chunk_ms", "a piece lasts between 1 and 10000 ms")
    if "manual" in found.turns and not (found.send.commit or found.send.create):
        raise _wrong(text, source, "", "turns", "manual turns need a commit or create message in [send]")
    for number, rule in enumerate(found.receive):
        _check_rule(rule, f"receive[{number}]", text, source)
    if found.send.audio is not None and "audio" not in placeholders(found.send.audio):
        raise _wrong(text, source, "send", "audio", 'no field is "$audio"')
    for place, key, templates in _templates(found):
        for name in placeholders(templates):
            kind, _, rest = name.partition(".")
            fine = name in VALUES or (kind == "env" and rest.isidentifier()) or (kind == "in" and key == "reply")
            if not fine:
                raise _wrong(text, source, place, key, f"${name} stands for nothing: {nearest(name, VALUES)}")


def _check_rule(rule: Rule, place: str, text: str, source: str) -> None:
    if rule.binary and (rule.event != "audio" or rule.when or rule.has):
        raise _wrong(text, source, place, "binary", 'binary messages are audio: write event = "audio" and no condition')
    if not rule.binary and not rule.when and not rule.has:
        raise _wrong(text, source, place, "event", "say which messages it fits: when, has or binary = true")
    allowed = FIELDS[rule.event]
    for field in msgspec.structs.fields(Rule):
        given = getattr(rule, field.name) != field.default
        if field.name not in _RULE_KEYS and given and field.name not in allowed:
            can = ", ".join(sorted(allowed)) or "nothing"
            raise _wrong(text, source, place, field.name, f"a rule for {rule.event} takes {can}")
    needed = NEEDED.get(rule.event)
    if needed and not rule.binary and not getattr(rule, needed):
        raise _wrong(text, source, place, "event", f"a rule for {rule.event} needs {needed}, the path to it")


def _wrong(text: str, source: str, place: str, key: str, why: str) -> ConfigError:
    line = _line(text, place, key)
    spot = ".".join(part for part in (place, key) if part)
    return ConfigError(f"{source}{f', line {line}' if line else ''}: {spot + ': ' if spot else ''}{why}")


def _plain(complaint: str, key: str) -> str:
    """msgspec's complaint in plain words."""
    missing = re.fullmatch(r"Object missing required field `(\w+)`", complaint)
    if missing:
        return f"needs {missing[1]}"
    if key == "event":
        names = re.search(r"enum value '(.*)'", complaint)
        return f"no event is called {names[1]!r}: {nearest(names[1], get_args(Meaning))}" if names else complaint
    return complaint[:1].lower() + complaint[1:]


def _line(text: str, place: str, key: str) -> int:
    """The line of `key` in the table `place` (`receive[2]`: the third of its kind), or of the table; 0 for neither."""
    table, _, number = place.partition("[")
    wanted = int(number.rstrip("]")) if number else 0
    seen, header, inside = -1, 0, not table
    for at, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if re.match(r"\[\[?\s*[\w\"'-]", bare):
            name = bare.strip("[ ").partition("]")[0].strip()
            seen += name == table
            inside = bool(table) and (name == table or name.startswith(f"{table}.")) and (not number or seen == wanted)
            if name in (key, f"{table}.{key}") and (inside or not table):
                return at
            header = at if inside and not header else header
        elif inside and key and re.match(rf"""["']?{re.escape(key)}["']?[\s.=]""", bare):
            return at
    return header
