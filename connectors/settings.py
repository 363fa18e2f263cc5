"""Reading `--set key=value` pairs into a frozen struct; unknown keys and wrong values are one clear line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from harness.core.errors import ConfigError, nearest

S = TypeVar("S", bound=msgspec.Struct)


def read_settings(kind: type[S], pairs: Mapping[str, str], unknown: str) -> S:
    """Convert string settings to `kind`.

    unknown: how to begin the line about a key that is none of `kind`'s fields, e.g. "the agent has no knob".
    Raises ConfigError naming the key and, for an unknown one, the nearest.
    """
    known = {field.name: field for field in msgspec.structs.fields(kind)}
    for key, value in pairs.items():
        if key not in known:
            raise ConfigError(f"{unknown} {key!r}: {nearest(key, known)}")
        try:
            msgspec.convert(value, known[key].type, strict=False)
        except msgspec.ValidationError as exc:
            raise ConfigError(f"{key}={value}: {_wanted(str(exc), known[key].type)}") from exc
    return msgspec.convert(dict(pairs), kind, strict=False)


def read_object(key: str, text: str) -> dict[str, Any]:
    """The JSON object that is the value of setting `key`. Raises ConfigError for anything else."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as exc:
        raise ConfigError(f"--set {key}=…: not a JSON object ({exc})") from exc


def _wanted(complaint: str, kind: Any) -> str:
    """msgspec's complaint about a value that is no `kind`, in plain words."""
    if complaint.startswith("Invalid enum value"):
        return f"known: {', '.join(str(value) for value in _literals(kind))}"
    for kind, words in (("`int", "a whole number"), ("`float", "a number"), ("`bool", "true or false")):
        if f"Expected {kind}" in complaint:
            return f"needs {words}"
    return complaint.lower()


def _literals(kind: Any) -> list[Any]:
    """The values of the Literals in a type such as `Literal["a", "b"] | None`."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [value for part in get_args(kind) for value in _literals(part)]
