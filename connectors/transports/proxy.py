"""The TCP connection to a peer, straight or through an HTTP proxy that the environment names (CONNECT).

`wss_proxy`, `https_proxy`, `all_proxy` (for ws://: `ws_proxy`, `http_proxy`, `all_proxy`) are honoured in either case,
`no_proxy` exempts hosts; a loopback address is always reached directly. Name and password stand in the proxy's URL and
go nowhere but to the proxy. SOCKS and proxies behind TLS are not spoken.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import re
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from connectors.transports.failures import plain
from harness.core.audio import NS_PER_MS
from harness.core.clock import Clock
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import Phase

OnPhase = Callable[[Phase, int], None]
"""Called as (phase, t_ns)."""

GONE_AFTER_S = 30
"""A connection whose bytes (or probes, when nothing is said) nobody acknowledges for this long is given up: else a
half-open one would never end. What the peer's program does, or how slowly it reads, does not matter to it."""
PROBE_IDLE_S, PROBE_EVERY_S = 15, 5
LONGEST_REPLY = 64 << 10
"""Bytes of a proxy's answer."""
BREATH_NS = 20 * NS_PER_MS
"""Work on what has been read that takes longer lets the rest of the program have its turn: a flood stops no clock."""
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")


class Proxy(NamedTuple):
    """An HTTP proxy. authorization: value of `Proxy-Authorization`, empty for none; never shown."""

    host: str
    port: int
    authorization: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.host}:{self.port})"


class Opened(NamedTuple):
    """A connected, non-blocking socket. proxy: host of the proxy on the way, empty for none."""

    sock: socket.socket
    proxy: str


def find_proxy(host: str, port: int, *, secure: bool) -> Proxy | None:
    """The proxy that the environment (on Windows and macOS also the system) wants for `host`; None: go straight.

    Raises ConfigError for one that cannot be used.
    """
    if is_loopback(host) or proxy_bypass(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"):
        return None
    named = getproxies()
    names = ("wss", "https", "all") if secure else ("ws", "http", "all")
    text = next((named[name] for name in names if named.get(name)), "")
    return read_proxy(text) if text else None


def read_proxy(text: str) -> Proxy:
    """A proxy's URL, or HOST:PORT, taken apart. Raises ConfigError, which never repeats a password."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port or 80
    except ValueError as exc:
        raise ConfigError("the proxy in the environment is no URL; write http://HOST:PORT") from exc
    if parts.scheme != "http" or not parts.hostname:
        shown = f"{parts.scheme}://{parts.hostname or '?'}"
        raise ConfigError(
            f"the proxy {shown} in the environment cannot be used: only http://HOST:PORT is spoken; "
            "set HTTPS_PROXY (for ws://: HTTP_PROXY) to one, or exempt the peer with NO_PROXY"
        )
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, port, authorization)


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def open_socket(host: str, port: int, *, secure: bool, clock: Clock, on_phase: OnPhase) -> Opened:
    """Connect to `host`, through a proxy where one is wanted; `on_phase` hears of `dns` and `tcp`.

    With a proxy, `dns` is its name's and `tcp` the instant at which the tunnel stands. Raises ConnectorError, OSError
    (no address could be reached) and ConfigError (a proxy that cannot be used).
    """
    proxy = find_proxy(host, port, secure=secure)
    if proxy is None:
        sock = await _connect(host, port, clock, on_phase)
        on_phase("tcp", clock.now_ns())
        return Opened(sock, "")
    via = f"the proxy {proxy.host}:{proxy.port}"
    try:
        sock = await _connect(proxy.host, proxy.port, clock, on_phase)
    except OSError as exc:
        raise ConnectorError(f"{via} cannot be reached: {plain(exc)}", kind="connect", retryable=True) from exc
    try:
        await _tunnel(sock, proxy, host, port, via)
    except OSError as exc:
        sock.close()
        raise ConnectorError(f"{via}: {plain(exc)}", kind="connect", retryable=True) from exc
    except BaseException:
        sock.close()
        raise
    on_phase("tcp", clock.now_ns())
    return Opened(sock, proxy.host)


def keep_watch(sock: socket.socket) -> None:
    """Have the system notice a half-open connection, as far as it can."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": PROBE_IDLE_S,
        "TCP_KEEPALIVE": PROBE_IDLE_S,  # macOS
        "TCP_KEEPINTVL": PROBE_EVERY_S,
        "TCP_KEEPCNT": (GONE_AFTER_S - PROBE_IDLE_S) // PROBE_EVERY_S,
        "TCP_USER_TIMEOUT": GONE_AFTER_S * 1000,
    }
    for name, value in wanted.items():
        if hasattr(socket, name):
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _connect(host: str, port: int, clock: Clock, on_phase: OnPhase) -> socket.socket:
    """Resolve, then try each address in turn."""
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as exc:
        raise ConnectorError(f"no such host: {host}", kind="connect") from exc
    on_phase("dns", clock.now_ns())
    failure: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_watch(sock)
        except OSError as exc:
            sock.close()
            failure = exc
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


async def _tunnel(sock: socket.socket, proxy: Proxy, host: str, port: int, via: str) -> None:
    """Ask for a tunnel to `host` and wait until it stands."""
    loop = asyncio.get_running_loop()
    name = host if host.isascii() else host.encode("idna").decode()
    target = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    await loop.sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode())
    reply = b""
    while b"\r\n\r\n" not in reply:
        data = await loop.sock_recv(sock, LONGEST_REPLY)
        reply += data
        if not data or len(reply) > LONGEST_REPLY:
            raise ConnectorError(f"{via} did not answer as an HTTP proxy does", kind="connect")
    head, _, rest = reply.partition(b"\r\n\r\n")
    status = _STATUS.match(head)
    if status is None or (200 <= int(status[1]) < 300 and rest):
        raise ConnectorError(f"{via} did not answer as an HTTP proxy does", kind="connect")
    if not 200 <= int(status[1]) < 300:
        raise tunnel_refused(int(status[1]), via, target)


def tunnel_refused(status: int, via: str, target: str) -> ConnectorError:
    """The proxy `via` answered CONNECT with an HTTP status that is no success."""
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        hint = "it wants a name and a password, in the environment's proxy URL"
    else:
        hint = f"no tunnel to {target}"
    retryable = status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS
    return ConnectorError(f"{via}: HTTP {status}, {hint}", kind="connect", retryable=retryable, code=f"proxy_{status}")
