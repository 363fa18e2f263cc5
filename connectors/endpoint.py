"""Where a peer is and how we prove who we are: URL, key from the environment, extra headers, trusted roots.

No key ever stands in a URL or in what is recorded.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.secret import Secret, read_key

SECRET_NAME = re.compile(r"key|token|secret|passw|auth|sig(nature)?$", re.IGNORECASE)
"""Names of URL parameters and headers that carry secrets. What stands in a URL would be recorded."""


class Endpoint:
    """A peer's address with its key. url: complete, without secrets; host: its host name; secret: scrubs the key.

    default_url, default_key_env: of the official service, used when the user names no target. path: what a URL
    without a path means. query: parameters to put into the URL (a None value is left out).
    Raises ConfigError for a URL or header that cannot be, PrerequisiteError for a key that is not set.
    """

    def __init__(
        self,
        options: PeerOptions,
        *,
        default_url: str = "",
        default_key_env: str | None = None,
        path: str = "/",
        schemes: tuple[str, ...] = ("ws", "wss"),
        query: Mapping[str, str | None] | None = None,
        ca: str | None = None,
    ) -> None:
        self._insecure = options.insecure
        self._ca = ca
        self.url = _url(options.target or default_url, path, schemes, query or {})
        self.host = urlsplit(self.url).hostname or ""
        self.official = bool(default_url) and self.host == urlsplit(default_url).hostname
        self.key_env = options.key_env or (default_key_env if self.official else None)
        self.key = read_key(self.key_env, self.host)
        self.extra_headers = read_headers(options.headers)
        self.secret = Secret(self.key, *_secret_values(options.headers))

    @property
    def netloc(self) -> str:
        return urlsplit(self.url).netloc

    def headers(self, name: str = "Authorization", scheme: str = "Bearer ") -> dict[str, str]:
        """The key as header `name` (none without a key) and the user's own headers, which win."""
        headers = {name: f"{scheme}{self.key}"} if self.key else {}
        return headers | self.extra_headers

    def tls(self) -> ssl.SSLContext | None:
        """What to trust; None for a plain connection. Raises ConfigError for an unreadable file."""
        if urlsplit(self.url).scheme not in ("wss", "https"):
            return None
        try:
            context = ssl.create_default_context(cafile=self._ca)
        except (OSError, ssl.SSLError) as exc:
            raise ConfigError(f"--set ca={self._ca}: not a readable PEM file") from exc
        if self._insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def read_headers(lines: tuple[str, ...]) -> dict[str, str]:
    """`Name: value` lines as a mapping; `$NAME` as the whole value is read from the environment, never recorded."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not name or not name.replace("-", "").isalnum():
            raise ConfigError("--header: write it as 'Name: value'")
        if value.startswith("$") and value[1:].isidentifier():
            if value[1:] not in os.environ:
                raise PrerequisiteError(f"--header {name}: set the environment variable {value[1:]}")
            value = os.environ[value[1:]].strip()
        elif SECRET_NAME.search(name):
            raise ConfigError(f"--header {name}: name an environment variable for its value ('{name}: $VARIABLE')")
        if not value.isascii() or not value.isprintable():
            raise ConfigError(f"--header {name}: its value holds characters that no header may have")
        headers[name] = value
    return headers


def _secret_values(lines: tuple[str, ...]) -> list[str]:
    """The values that `read_headers` took from the environment."""
    values = (line.partition(":")[2].strip() for line in lines)
    return [os.environ.get(value[1:], "").strip() for value in values if value.startswith("$")]


def _url(target: str, path: str, schemes: tuple[str, ...], query: Mapping[str, str | None]) -> str:
    try:
        parts = urlsplit(target)
        _ = parts.port
    except ValueError as exc:
        raise ConfigError(
            f"--peer: the URL's host or port cannot be read; write {schemes[0]}://HOST:PORT/PATH"
        ) from exc
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.username or parts.password or any(SECRET_NAME.search(name) for name in given):
        raise ConfigError("put no key into the URL: name an environment variable with --key-env")
    if parts.scheme not in schemes or not parts.hostname:
        kind = "WebSocket" if "ws" in schemes else "HTTP"
        example = f"{schemes[0]}://127.0.0.1:8000{path if path != '/' else ''}"
        raise ConfigError(f"{target!r} is no {kind} URL; it looks like {example}")
    given |= {name: value for name, value in query.items() if value is not None}
    return urlunsplit(
        (parts.scheme, parts.netloc, parts.path if parts.path not in ("", "/") else path, urlencode(given), "")
    )
