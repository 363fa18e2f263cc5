"""From what the user calls a peer to the peer: `NAME`, `NAME:target`, `NAME?key=value`, or a URL.

In the query of a URL, a key that is the name of one of the connector's settings is that setting; all others are the
server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from harness.core.clock import Clock
from harness.core.connector import Peer, PeerOptions
from harness.core.errors import ConfigError
from harness.core.plugins import CONNECTORS, found, load
from harness.core.profile import Profile

DEFAULT_PEER = "agent"
URL_PEER = "openai"
"""Who speaks to a bare ws:// or wss:// URL: most servers have OpenAI's names."""


class PeerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One `--peer` taken apart. settings: from `?key=value` of a named peer."""

    name: str
    target: str = ""
    settings: dict[str, str] = msgspec.field(default_factory=dict)


def parse_peer(text: str) -> PeerRequest:
    """Take a `--peer` value apart. Raises ConfigError for a scheme that no connector speaks."""
    if "://" in text.split("?")[0]:
        name, _, rest = text.partition(":")
        if not rest.startswith("//"):  # NAME:URL
            return PeerRequest(name=name, target=rest)
        if name in ("ws", "wss"):
            return PeerRequest(name=URL_PEER, target=text)
        raise ConfigError(
            f"--peer: no connector speaks {name}://; a realtime server is ws://… or wss://…, and over HTTP "
            "NAME:http://… (chat, openai-webrtc, small-webrtc)"
        )
    head, _, query = text.partition("?")
    name, _, target = head.partition(":")
    return PeerRequest(name=name, target=target, settings=dict(parse_qsl(query, keep_blank_values=True)))


def make_peer(text: str, options: PeerOptions, clock: Clock) -> Peer:
    """The peer that `text` means, with `options` for all peers and its own settings on top.

    Raises ConfigError or PrerequisiteError.
    """
    request = parse_peer(text)
    kind: Any = load(CONNECTORS, request.name)
    target, named = _split_target(request.target, getattr(kind, "settings_kind", None))
    own = {**request.settings, **named}
    merged = msgspec.structs.replace(
        options,
        target=target,
        settings={**options.settings, **own},
        alias=", ".join(f"{key}={value}" for key, value in own.items()),
    )
    peer: Peer = kind(merged, clock)
    return peer


def _split_target(target: str, settings_kind: type[msgspec.Struct] | None) -> tuple[str, dict[str, str]]:
    """A URL without the settings of ours that stand in its query, and those.

    Only keys that are written as a setting's name is: `%64ialect=…` is the server's own.
    """
    address, _, query = target.partition("?")
    if "://" not in address or not query or settings_kind is None:
        return target, {}
    known = {field.name for field in msgspec.structs.fields(settings_kind)}
    settings: dict[str, str] = {}
    kept: list[str] = []
    for piece in query.split("&"):
        key, _, value = piece.partition("=")
        if key in known:
            settings[key] = unquote_plus(value)
        else:
            kept.append(piece)
    return f"{address}?{'&'.join(kept)}" if kept else address, settings


def known_peers() -> list[tuple[str, str, Any]]:
    """(name, what it is, class or the error that hinders it) of every connector."""
    listed: list[tuple[str, str, Any]] = []
    for name in found(CONNECTORS):
        try:
            kind = load(CONNECTORS, name)
        except Exception as exc:  # noqa: BLE001 - a third party's broken plugin must not hide the others
            listed.append((name, f"cannot be loaded: {exc}", None))
        else:
            listed.append((name, (kind.__doc__ or "").strip().splitlines()[0], kind))
    return listed


def describe_peers() -> list[dict[str, Any]]:
    """For each connector: name, what it is, its capability profile where it can be told without a target, how it was
    checked (`interop-tested`, `golden only`, `live-checked <date>`; None: nothing is claimed), and its dialects.

    A class with several dialects lists them in `variants`: rows with name, title, evidence and profile.
    """
    return [
        {
            "name": name,
            "about": about,
            "version": getattr(kind, "version", None),
            "evidence": getattr(kind, "evidence", None),
            "profile": _profile(getattr(kind, "declared", None)),
            "variants": [
                {
                    "name": f"{name}?dialect={row.name}",
                    "about": row.title,
                    "evidence": row.evidence,
                    "profile": _profile(row.profile),
                }
                for row in getattr(kind, "variants", ())
            ],
        }
        for name, about, kind in known_peers()
    ]


def _profile(profile: Any) -> dict[str, Any] | None:
    return msgspec.to_builtins(profile) if isinstance(profile, Profile) else None


def split_settings(pairs: tuple[str, ...]) -> Mapping[str, str]:
    """`--set key=value` pairs as a mapping. Raises ConfigError."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {pair}: write key=value")
        settings[key] = value
    return settings
