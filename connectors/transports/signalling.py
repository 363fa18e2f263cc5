"""The HTTP requests that set up and end a WebRTC call: one connection each, its steps stamped, no redirects."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from connectors.transports.failures import NO_HTTP, plain
from connectors.transports.proxy import OnPhase, Proxy, find_proxy, tunnel_refused
from connectors.transports.tls import tls_failed
from harness.core.clock import Clock
from harness.core.errors import ConnectorError
from harness.core.retry import read_retry_after
from harness.core.secret import Secret

LONGEST_ANSWER = 1 << 20
"""Bytes of a reply that are read; an SDP has some thousand."""
HINTS = {
    401: "the key is wrong or missing",
    403: "the key may not use this",
    404: "no such path or model",
    429: "rate limit reached",
}


class Reply(NamedTuple):
    """headers: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def request(
    method: str,
    url: str,
    *,
    clock: Clock,
    headers: Mapping[str, str],
    data: bytes | aiohttp.FormData | None = None,
    tls: ssl.SSLContext | None = None,
    on_phase: OnPhase = lambda phase, t_ns: None,
    timeout_s: float = 30.0,
) -> Reply:
    """Send one request and read the reply; on_phase hears of dns, tcp or tls. Raises ConnectorError, also for a status
    that is no success."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    proxy = find_proxy(host, port, secure=secure)
    through: dict[str, Any] = {}
    hidden = Secret()
    if proxy is not None:
        through["proxy"] = f"http://{f'[{proxy.host}]' if ':' in proxy.host else proxy.host}:{proxy.port}"
        if proxy.authorization:
            shown = {"Proxy-Authorization": proxy.authorization}
            if secure:
                through["proxy_headers"] = shown
            else:  # without TLS there is no tunnel, and aiohttp would show it to nobody
                headers = {**headers, **shown}
            hidden = _hidden(proxy)
    try:
        async with (
            asyncio.timeout(timeout_s),
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True, ssl=tls if tls is not None else True),
                trace_configs=[_trace(clock, on_phase, secure)],
                timeout=aiohttp.ClientTimeout(total=None),
            ) as session,
            session.request(method, url, headers=headers, data=data, allow_redirects=False, **through) as response,
        ):
            body = await _read(response)
            status = response.status
            said = {name.lower(): value for name, value in response.headers.items()}
    except TimeoutError as exc:
        raise ConnectorError(
            f"{host}:{port} did not answer within {timeout_s:g} s", kind="timeout", retryable=True
        ) from exc
    except aiohttp.ClientHttpProxyError as exc:
        via = f"the proxy {proxy.host}:{proxy.port}" if proxy else "the proxy"
        raise tunnel_refused(exc.status, via, f"{host}:{port}") from exc
    except (aiohttp.ClientError, OSError, ValueError) as exc:
        why = hidden.scrub(_why(exc, f"{host}:{port}", proxy, secure))
        retryable = not isinstance(exc, aiohttp.ClientSSLError)
        raise ConnectorError(why, kind="connect", retryable=retryable) from exc
    if not 200 <= status < 300:
        raise hidden.scrubbed(_refused(host, Reply(status, said, body)))
    return Reply(status, said, body)


def _hidden(proxy: Proxy) -> Secret:
    """The proxy's name and password, in each way in which it may send them back."""
    encoded = proxy.authorization.rpartition(" ")[2]
    return Secret(encoded, base64.b64decode(encoded).decode().partition(":")[2])


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > LONGEST_ANSWER:
            raise ValueError(f"the answer has more than {LONGEST_ANSWER} bytes")
    return bytes(body)


def _trace(clock: Clock, on_phase: OnPhase, secure: bool) -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()

    async def resolved(*_: Any) -> None:
        on_phase("dns", clock.now_ns())

    async def connected(*_: Any) -> None:
        on_phase("tls" if secure else "tcp", clock.now_ns())

    trace.on_dns_resolvehost_end.append(resolved)
    trace.on_connection_create_end.append(connected)
    return trace


def _refused(host: str, reply: Reply) -> ConnectorError:
    body = " ".join(reply.body.decode("utf-8", "replace").split())
    said = f" ({body})" if body else ""
    return ConnectorError(
        f"{host}: HTTP {reply.status}, {HINTS.get(reply.status, 'refused')}{said}",
        kind="peer",
        retryable=reply.status == 429 or reply.status >= 500,
        code=str(reply.status),
        retry_after_s=read_retry_after(reply.headers.get("retry-after")),
    )


def _why(exc: BaseException, peer: str, proxy: Proxy | None, secure: bool) -> str:
    """Why the request to `peer` (HOST:PORT) has no reply, in aiohttp's kinds of errors."""
    if isinstance(exc, aiohttp.ClientProxyConnectionError) and proxy is not None:
        return f"the proxy {proxy.host}:{proxy.port} cannot be reached: {plain(exc.os_error)}"
    if isinstance(exc, aiohttp.ClientConnectorCertificateError) and isinstance(exc.certificate_error, OSError):
        return f"TLS with {peer} failed: {tls_failed(exc.certificate_error, 'http')}"
    if isinstance(exc, aiohttp.ClientConnectorError):
        cause = exc.os_error
        broken = secure and isinstance(cause, ssl.SSLError | ConnectionResetError)
        return f"TLS with {peer} failed: {tls_failed(cause, 'http')}" if broken else f"{peer}: {plain(cause)}"
    if isinstance(exc, aiohttp.ServerDisconnectedError | aiohttp.ClientResponseError):
        return f"{peer}: {NO_HTTP}" + ("" if secure else ", or it wants https://")
    return f"{peer}: {plain(exc)}"
