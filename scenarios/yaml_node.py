"""YAML with positions: documents as nodes that know where they stand, read by PyYAML's safe composer only.

Nothing is constructed: a scalar is its text, so `id: 007` stays "007" and `language: no` is Norwegian. Anchors,
aliases, tags and deep nesting are refused before anything is built, so a short file can't become a large one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, NoReturn

import yaml  # type: ignore[import-untyped]

from harness.core.errors import ConfigError, nearest

MAX_CHARACTERS = 200_000
"""PyYAML reads some 60 000 a second, and a scenario has about 200."""
MAX_DEPTH = 10
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and halves of characters: escapes can name them, no record or terminal should get them."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]{1,9})?")


class Node(NamedTuple):
    """One YAML node and the file it stands in."""

    file: str
    raw: Any

    @property
    def where(self) -> str:
        """file:line:column, both counted from 1."""
        return _place(self.file, self.raw.start_mark)

    def fail(self, message: str) -> NoReturn:
        """Raise a ConfigError that says where."""
        raise ConfigError(f"{self.where}: {message}")

    def text(self, what: str) -> str:
        """A scalar's text, stripped. Raises ConfigError for anything else, and for nothing."""
        if not isinstance(self.raw, yaml.ScalarNode):
            self.fail(f"{what} is one text, not a {_shape(self.raw)}")
        text = str(self.raw.value).strip()
        if not text or (self.raw.style is None and self.raw.tag == "tag:yaml.org,2002:null"):
            self.fail(f"{what} is empty")
        if _UNWRITABLE.search(text):
            self.fail(f"{what} holds a control character or half a character, by an escape")
        return text

    def whole(self, what: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        text = self.text(what)
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            self.fail(f"{what} is a whole number from {low} to {high}, not {_short(text)}")
        return int(text)

    def number(self, what: str, low: float, high: float) -> float:
        """A decimal number from `low` to `high`."""
        text = self.text(what)
        if not _NUMBER.fullmatch(text) or not low <= float(text) <= high:
            self.fail(f"{what} is a number from {low:g} to {high:g}, not {_short(text)}")
        return float(text)

    def choice(self, what: str, known: Collection[str]) -> str:
        """One of `known`."""
        text = self.text(what)
        if text not in known:
            self.fail(f"{what} cannot be {_short(text)}; {nearest(text, known)}")
        return text

    def items(self, what: str) -> list[Node]:
        """The members of a list."""
        if not isinstance(self.raw, yaml.SequenceNode):
            self.fail(f"{what} is a list, not a {_shape(self.raw)}")
        return [Node(self.file, each) for each in self.raw.value]

    @property
    def is_list(self) -> bool:
        return isinstance(self.raw, yaml.SequenceNode)

    def keys(self, what: str, known: Collection[str]) -> dict[str, Node]:
        """The values of a mapping by key. Raises ConfigError for a key that is not `known`, or there twice."""
        if not isinstance(self.raw, yaml.MappingNode):
            self.fail(f"{what} is a mapping of keys to values, not a {_shape(self.raw)}")
        found: dict[str, Node] = {}
        first: dict[str, Node] = {}
        for raw_key, raw_value in self.raw.value:
            key = Node(self.file, raw_key)
            name = key.text("a key")
            if name not in known:
                key.fail(f"{what} has no key {_short(name)}; {nearest(name, known)}")
            if name in first:
                key.fail(f"{name} was already given at {first[name].where}")
            first[name] = key
            found[name] = Node(self.file, raw_value)
        return found


def documents(text: str, file: str) -> Iterator[Node]:
    """The documents of `text`, empty ones left out. Raises ConfigError with line and column for what is no YAML, or
    more YAML than a scenario needs."""
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(f"{file}: {len(text)} characters, a scenario file has at most {MAX_CHARACTERS}")
    try:
        _check(text, file)
        for raw in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if not (isinstance(raw, yaml.ScalarNode) and not raw.value):
                yield Node(file, raw)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        said = exc.problem or exc.context or "cannot be read"
        raise ConfigError(f"{_place(file, mark)}: not YAML ({said})" if mark else f"{file}: not YAML ({said})") from exc
    except yaml.reader.ReaderError as exc:
        before = text[: exc.position]
        line, column = before.count("\n") + 1, exc.position - (before.rfind("\n") + 1) + 1
        raise ConfigError(f"{file}:{line}:{column}: not YAML (a character that YAML does not allow)") from exc
    except (ValueError, OverflowError) as exc:  # PyYAML's own, for numbers beyond all measure in escapes
        raise ConfigError(f"{file}: not YAML ({exc})") from exc


def _check(text: str, file: str) -> None:
    """Walk the flat stream of parser events; it takes no memory for nesting and follows no alias."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigError(f"{_place(file, event.start_mark)}: anchors and aliases (& and *) are not used here")
        if getattr(event, "tag", None) not in (None, "!"):
            raise ConfigError(f"{_place(file, event.start_mark)}: tags (!) are not used here")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ConfigError(f"{_place(file, event.start_mark)}: nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _place(file: str, mark: Any) -> str:
    return f"{file}:{mark.line + 1}:{mark.column + 1}"


def _shape(raw: Any) -> str:
    return {yaml.MappingNode: "mapping", yaml.SequenceNode: "list"}.get(type(raw), "single value")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
