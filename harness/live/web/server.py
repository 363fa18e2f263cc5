"""Serves the page: its files, and the WebSocket of whoever opens it. Everything else is refused."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from harness.core.errors import ConfigError, PrerequisiteError
from harness.live.web.certificate import Certificate
from harness.live.web.doorkeeper import Doorkeeper
from harness.live.web.studio import Studio
from harness.live.web.visit import Visit

STATIC = Path(__file__).parent / "static"
LIBRARY = Path(__file__).parents[2] / "report" / "assets"
FILES = {
    "": (STATIC / "live.html", "text/html"),
    "live.js": (STATIC / "live.js", "text/javascript"),
    "picture.js": (STATIC / "picture.js", "text/javascript"),
    "live.css": (STATIC / "live.css", "text/css"),
    "uPlot.iife.min.js": (LIBRARY / "uPlot.iife.min.js", "text/javascript"),
    "uPlot.min.css": (LIBRARY / "uPlot.min.css", "text/css"),
}
"""What the page is made of, by its name below the token."""
MAX_MESSAGE_BYTES = 256 << 10
"""Of the page; an offer has some kilobytes."""
CLOSE_TIMEOUT_S = 5.0
KEEP_TIMEOUT_S = 60.0
"""How long the recording of a session under way is waited for; a second Ctrl-C does not wait."""
HEARTBEAT_S = 10.0
"""A page that does not answer a ping so long is gone: a phone that was switched off."""

_EVERYWHERE = {
    "0.0.0.0": (socket.AF_INET, "192.0.2.1", "127.0.0.1"),
    "::": (socket.AF_INET6, "2001:db8::1", "::1"),
}
"""Every address of this machine, of one family: an address of its documentation's network (RFC 5737, RFC 3849), its
loopback."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """url: for a person to open. fingerprint: of the certificate, "" without TLS."""

    url: str
    fingerprint: str = ""


@asynccontextmanager
async def serve_page(studio: Studio, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Page]:
    """Listen while the block runs. At its end a session under way is ended, and kept.

    host: beyond the loopback, everything goes over TLS. Raises ConfigError for an address that cannot be listened at.
    """
    public = not _is_loopback(host)
    door = Doorkeeper(host, public=public)
    shown = _reachable(host)
    certificate = _certificate({shown, host} - set(_EVERYWHERE)) if public else None
    visits: set[Visit] = set()
    missing = [path.name for path, _ in FILES.values() if not path.is_file()]
    if missing:
        raise PrerequisiteError(f"the page's files are missing ({', '.join(missing)}): install firstpacket anew")

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        upgrade, origin = "upgrade" in request.headers, request.headers.get("Origin")
        token = request.path.lstrip("/").partition("/")[0]
        refused = door.refuses(request.headers.get("Host", ""), token, origin=origin, upgrade=upgrade)
        if refused:
            return web.Response(status=refused, text="open the address that firstpacket printed, token and all\n")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(door.headers(request.headers["Host"]))
        return response

    async def file(request: web.Request) -> web.StreamResponse:
        path, kind = FILES.get(request.match_info["name"], (None, ""))
        if path is None:
            return web.Response(status=404, text="no such file\n")
        return web.Response(body=await asyncio.to_thread(path.read_bytes), content_type=kind, charset="utf-8")

    async def visit(request: web.Request) -> web.StreamResponse:
        wire = web.WebSocketResponse(max_msg_size=MAX_MESSAGE_BYTES, heartbeat=HEARTBEAT_S, compress=False)
        if not wire.can_prepare(request).ok:
            return web.Response(status=400, text="a WebSocket is at this path\n")
        await wire.prepare(request)
        visiting = Visit(wire, studio)
        visits.add(visiting)
        try:
            await visiting.run()
        finally:
            visits.discard(visiting)
        return wire

    app = web.Application(middlewares=[guarded])
    app.router.add_get("/{token}/ws", visit)
    app.router.add_get("/{token}/{name:[^/]*}", file)
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=CLOSE_TIMEOUT_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=certificate.context if certificate else None)
        try:
            await site.start()
        except (OSError, OverflowError, UnicodeError) as exc:
            code = getattr(exc, "errno", None) or 0
            why = os.strerror(code) if code > 0 else getattr(exc, "strerror", None) or exc
            raise ConfigError(f"cannot listen on {host} port {port}: {why}; choose another --host or --port") from exc
        door.port = runner.addresses[0][1]
        yield Page(url=door.url(shown), fingerprint=certificate.fingerprint if certificate else "")
    finally:
        for visiting in visits:
            visiting.stop()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KEEP_TIMEOUT_S):
                    for visiting in list(visits):
                        await visiting.kept()
        finally:
            for visiting in list(visits):
                await visiting.close()
            await runner.cleanup()  # waits for the visits


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reachable(host: str) -> str:
    """The address to print: of this machine, as its network knows it, where all addresses are listened at."""
    if host not in _EVERYWHERE:
        return host
    family, anywhere, loopback = _EVERYWHERE[host]
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((anywhere, 9))  # chooses a route, sends nothing
        return str(probe.getsockname()[0])
    return loopback


def _certificate(hosts: set[str]) -> Certificate:
    try:
        return Certificate(sorted(hosts))
    except ValueError as exc:
        raise ConfigError(f"cannot listen on {', '.join(hosts)}: no address or name; choose another --host") from exc
