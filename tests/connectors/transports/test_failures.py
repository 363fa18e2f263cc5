"""What a connection that cannot be made is told as, by each of the three transports: never a library's own words."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Awaitable, Callable

import pytest
import trustme

from connectors.transports.failures import plain
from connectors.transports.http import HttpClient
from connectors.transports.signalling import request
from connectors.transports.tls import tls_failed
from harness.core.clock import SystemClock
from harness.core.errors import ConnectorError
from tests.connectors.transports.test_http import ask, client_of
from tests.connectors.transports.test_websocket import Client

pytestmark = pytest.mark.loopback
RAW = re.compile(r"Error\b|\bssl\.|_ssl|\[|Connect call|Cannot connect|message=|errno|[A-Z]_[A-Z]", re.IGNORECASE)
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def websocket(origin: str) -> None:
    await Client().open(f"{origin.replace('http', 'ws')}/v1")


async def http(origin: str) -> None:
    client = HttpClient(f"{origin}/v1", clock=SystemClock(), on_phase=lambda phase, t_ns: None, headers={}, timeout_s=9)
    try:
        await client.open()
    finally:
        await client.close()


async def signalling(origin: str) -> None:
    await request("POST", f"{origin}/v1", clock=SystemClock(), headers={}, data=b"o", timeout_s=9)


WAYS = pytest.mark.parametrize("way", [websocket, http, signalling], ids=lambda way: way.__name__)


def told(way: Callable[[str], Awaitable[None]], origin: str) -> str:
    with pytest.raises(ConnectorError) as caught:
        asyncio.run(way(origin))
    assert not RAW.search(str(caught.value))
    return str(caught.value)


def at_server(way: Callable[[str], Awaitable[None]], scheme: str, answer: Answer, tls: ssl.SSLContext | None) -> str:
    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
        async with server:
            await way(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    with pytest.raises(ConnectorError) as caught:
        asyncio.run(main())
    assert not RAW.search(str(caught.value))
    return str(caught.value)


async def banner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"SSH-2.0-OpenSSH_9.0\r\n")
    writer.close()


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@WAYS
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nothing_listens(way, scheme: str) -> None:
    port = free_port()
    assert told(way, f"{scheme}://127.0.0.1:{port}") == f"127.0.0.1:{port}: connection refused, nothing listens there"


@WAYS
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_dead_proxy_is_named_and_not_the_peer(way, scheme: str, monkeypatch) -> None:
    port = free_port()
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{port}")
    said = f"the proxy 127.0.0.1:{port} cannot be reached: connection refused, nothing listens there"
    assert told(way, f"{scheme}://peer.test") == said


@WAYS
@pytest.mark.parametrize("answer", [banner, reset])
def test_tls_is_wanted_where_none_is(way, answer: Answer) -> None:
    assert "no TLS there, try " in at_server(way, "https", answer, None)


@WAYS
def test_an_untrusted_certificate(way) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(server)
    said = at_server(way, "https", banner, server)
    assert said.startswith("TLS with 127.0.0.1:")
    assert "local issuer certificate; --set ca=FILE trusts" in said


def test_a_server_that_speaks_no_http() -> None:
    assert at_server(signalling, "http", banner, None).endswith(": no HTTP server there, or it wants https://")

    async def main(answer: Answer) -> tuple[str, str] | None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server, client_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/") as client:
            return (await ask(client)).lost

    async def alert(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x15\x03\x03\x00\x02\x02\x16")
        writer.close()

    for answer in (banner, alert):
        assert asyncio.run(main(answer)) == ("protocol", "no HTTP server there, or it wants https://")


@pytest.mark.parametrize(
    ("exc", "words"),
    [
        (OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.1', 1)"), "no route to host"),
        (ConnectionResetError(), "the connection was cut off"),
        (socket.gaierror(-2, "Name or service not known"), "no such host"),
        (ValueError("a\n b"), "a b"),
        (EOFError(), "EOFError"),
    ],
    ids=str,
)
def test_words(exc: BaseException, words: str) -> None:
    assert plain(exc) == words


def test_another_failure_of_tls_keeps_its_reason() -> None:
    exc = ssl.SSLError(1, "[SSL: SSLV3_ALERT_HANDSHAKE_FAILURE] x")
    exc.reason = "SSLV3_ALERT_HANDSHAKE_FAILURE"
    assert tls_failed(exc, "ws") == "sslv3 alert handshake failure"
