"""Who may see the page: whoever has the token, at an address that is ours. Sans-IO.

A page of somebody else's, open in the same browser, could otherwise reach the loopback: by a name that suddenly means
127.0.0.1 (DNS rebinding; the Host header tells) or by a WebSocket of its own (the Origin header tells).
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

TOKEN_BYTES = 24
_NETLOC = re.compile(r"[A-Za-z0-9.:\[\]-]+")


class Doorkeeper:
    """host: the address or name that is listened at. public: beyond this machine. port: once it is known."""

    def __init__(self, host: str, *, public: bool) -> None:
        self._host = host
        self._public = public
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.port = 0

    @property
    def scheme(self) -> str:
        return "https" if self._public else "http"

    def url(self, host: str) -> str:
        """Where the page is, for a person."""
        shown = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{shown}:{self.port}/{self.token}/"

    def refuses(self, host_header: str, token: str, *, origin: str | None = None, upgrade: bool = False) -> int:
        """HTTP status that refuses a request, 0 for one that may pass. upgrade: it asks for the WebSocket."""
        if not self._ours(host_header):
            return 403
        if not secrets.compare_digest(token.encode(errors="replace"), self.token.encode()):
            return 404
        if upgrade and origin != f"{self.scheme}://{host_header}":
            return 403
        return 0

    def headers(self, host_header: str) -> Mapping[str, str]:
        """Of every answer: the page runs our files only, asks nobody else, and tells nobody the token."""
        socket = f"{'wss' if self._public else 'ws'}://{host_header}"
        return {
            "Content-Security-Policy": (
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
                f"connect-src {socket}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
            "Cache-Control": "no-store",
        }

    def _ours(self, host_header: str) -> bool:
        """Whether the name in the browser's address bar is one of ours: a number is nobody's name."""
        try:
            parts = urlsplit(f"//{host_header}")
            name, port = parts.hostname or "", parts.port or (443 if self._public else 80)
        except ValueError:
            return False
        if not _NETLOC.fullmatch(host_header) or port != self.port:
            return False
        if name in ("localhost", self._host.lower()):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._public or address.is_loopback
