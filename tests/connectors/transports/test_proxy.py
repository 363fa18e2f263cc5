"""The way to a peer through an HTTP proxy of the environment: which one, its tunnel, its refusals, its password."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl

import pytest
import trustme
from websockets.asyncio.server import serve

from connectors.transports import proxy as proxy_module
from connectors.transports.proxy import Proxy, find_proxy, is_loopback, read_proxy
from connectors.transports.signalling import request
from harness.core.clock import SystemClock
from harness.core.errors import ConfigError, ConnectorError
from tests.connectors.transports.test_websocket import Client

pytestmark = pytest.mark.loopback
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ws_proxy", "wss_proxy", "REQUEST_METHOD")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("environment", "host", "secure", "wanted"),
    [
        ({}, "peer.test", True, None),
        ({"HTTPS_PROXY": "http://p:3128"}, "peer.test", True, ("p", 3128)),
        ({"https_proxy": "p:3128"}, "peer.test", True, ("p", 3128)),
        ({"HTTPS_PROXY": "http://p"}, "peer.test", True, ("p", 80)),
        ({"HTTPS_PROXY": "http://p:3128"}, "peer.test", False, None),
        ({"HTTP_PROXY": "http://q:1"}, "peer.test", True, None),
        ({"HTTP_PROXY": "http://q:1"}, "peer.test", False, ("q", 1)),
        ({"ALL_PROXY": "http://r:2"}, "peer.test", True, ("r", 2)),
        ({"ALL_PROXY": "http://r:2"}, "peer.test", False, ("r", 2)),
        ({"ALL_PROXY": "socks5://r:2", "HTTPS_PROXY": "http://p:1"}, "peer.test", True, ("p", 1)),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other.test,peer.test"}, "peer.test", True, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".test"}, "peer.test", True, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "peer.test", True, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "peer.test:443"}, "peer.test", True, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "est"}, "peer.test", True, ("p", 1)),
        ({"ALL_PROXY": "http://p:1"}, "127.0.0.1", False, None),
        ({"ALL_PROXY": "http://p:1"}, "localhost", False, None),
        ({"ALL_PROXY": "http://p:1"}, "::1", False, None),
    ],
    ids=str,
)
def test_the_environment_says_which_proxy(environment, host: str, secure: bool, wanted, monkeypatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = find_proxy(host, 443 if secure else 80, secure=secure)
    assert (None if found is None else (found.host, found.port)) == wanted


def test_name_and_password_go_into_the_header_and_nowhere_else() -> None:
    proxy = read_proxy("http://us%40er:p%3Aw@p:8080")
    assert proxy.authorization == "Basic " + base64.b64encode(b"us@er:p:w").decode()
    assert "p:w" not in repr(proxy)
    assert proxy.authorization not in repr(proxy)


@pytest.mark.parametrize("text", ["socks5://me:pw@s:1", "https://me:pw@s:1", "http://me:pw@s:99999", "http://:1"])
def test_a_proxy_that_cannot_be_used_is_one_clear_line_without_its_password(text: str) -> None:
    with pytest.raises(ConfigError, match="proxy") as caught:
        read_proxy(text)
    assert "pw" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "yes"), [("127.8.8.8", True), ("a.localhost", True), ("10.0.0.1", False), ("localhost.example", False)]
)
def test_loopback_is_told_apart(host: str, yes: bool) -> None:
    assert is_loopback(host) is yes


class TestProxy:
    """A CONNECT proxy on loopback that leads every tunnel to one port. answer: what it says instead of tunnelling."""

    __test__ = False

    def __init__(self, port: int, answer: bytes | None = None, *, slowly: bool = False) -> None:
        self.target, self.answer, self.slowly = port, answer, slowly
        self.requests: list[list[str]] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head.decode().split("\r\n"))
        if self.answer is not None:
            writer.write(self.answer)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
                writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        for part in [b"HTTP/1.1 200 Connection", b" established\r\nVia: x\r\n", b"\r\n"]:
            writer.write(part)
            if self.slowly:
                await asyncio.sleep(0.03)
        async with asyncio.TaskGroup() as group:
            group.create_task(pump(reader, far_writer))
            group.create_task(pump(far_reader, writer))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


def through(monkeypatch, body, *, secure: bool = False, user: str = "", **options):
    """Run `body(client, url, proxy, open options)` with a peer called peer.test that only the proxy can reach."""

    async def echo(ws) -> None:
        async for message in ws:
            await ws.send(message)

    async def main() -> None:
        authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("peer.test").configure_cert(context)
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        server_options = {"ssl": context} if secure else {}
        async with serve(echo, "127.0.0.1", 0, compression=None, **server_options) as server:
            proxy = TestProxy(server.sockets[0].getsockname()[1], **options)
            listening = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
            port = listening.sockets[0].getsockname()[1]
            monkeypatch.setenv("HTTPS_PROXY" if secure else "HTTP_PROXY", f"http://{user}127.0.0.1:{port}")
            url = f"{'wss' if secure else 'ws'}://peer.test/path"
            try:
                await body(Client(), url, proxy, {"tls": trusting if secure else None})
            finally:
                listening.close()

    asyncio.run(main())


@pytest.mark.parametrize("secure", [False, True], ids=["ws", "wss"])
def test_messages_pass_through_the_tunnel_and_the_phases_are_in_order(secure: bool, monkeypatch) -> None:
    async def body(client: Client, url: str, proxy: TestProxy, options) -> None:
        transport = await client.open(url, **options)
        assert transport.proxy == "127.0.0.1"
        transport.write(transport.prepare("hello"))
        await client.until(lambda: bool(client.messages))
        assert client.messages[0][0] == b"hello"
        assert [phase for phase, _ in client.phases] == ["started", "dns", "tcp", *["tls"] * secure, "upgrade"]
        assert [t_ns for _, t_ns in client.phases] == sorted(t_ns for _, t_ns in client.phases)
        stamps = dict(client.phases)
        assert stamps["tcp"] - stamps["dns"] > 50_000_000  # the tunnel stands at the end of the proxy's slow answer
        target = f"peer.test:{443 if secure else 80}"
        assert proxy.requests == [[f"CONNECT {target} HTTP/1.1", f"Host: {target}", "", ""]]
        await transport.close()

    through(monkeypatch, body, secure=secure, slowly=True)


def test_the_password_is_sent_to_the_proxy_and_never_told(monkeypatch) -> None:
    async def body(client: Client, url: str, proxy: TestProxy, options) -> None:
        with pytest.raises(ConnectorError, match="HTTP 407, it wants a name and a password") as caught:
            await client.open(url, **options)
        header = f"Proxy-Authorization: Basic {base64.b64encode(b'me:s3cret').decode()}"
        assert header in proxy.requests[0]
        assert not any("Bearer" in line for line in proxy.requests[0])  # the peer's key is for the peer
        shown = repr(caught.value) + repr(caught.value.__cause__)
        assert "s3cret" not in shown
        assert not caught.value.retryable

    through(monkeypatch, body, user="me:s3cret@", answer=b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("answer", "words", "retryable"),
    [
        (b"HTTP/1.1 503 Busy\r\n\r\n", "HTTP 503, no tunnel to peer.test:80", True),
        (b"HTTP/1.1 403 No\r\n\r\n", "HTTP 403", False),
        (b"", "did not answer as an HTTP proxy does", False),
        (b"SSH-2.0-x\r\n\r\n", "did not answer as an HTTP proxy does", False),
        (b"HTTP/1.1 200 OK\r\n\r\nsurplus", "did not answer as an HTTP proxy does", False),
        (b"x" * 100_000, "the proxy", False),
    ],
    ids=["busy", "forbidden", "closed", "no HTTP", "surplus", "endless"],
)
def test_a_proxy_that_gives_no_tunnel_is_one_clear_line(
    answer: bytes, words: str, retryable: bool, monkeypatch
) -> None:
    async def body(client: Client, url: str, proxy: TestProxy, options) -> None:
        with pytest.raises(ConnectorError, match=words) as caught:
            await client.open(url, **options)
        assert "the proxy 127.0.0.1" in str(caught.value)
        if len(answer) < 1000:  # else our end may be reset before the answer is read
            assert caught.value.retryable is retryable

    through(monkeypatch, body, answer=answer)


def test_a_proxy_that_is_not_there_is_named(monkeypatch) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
    with pytest.raises(ConnectorError, match=f"the proxy 127.0.0.1:{port} cannot be reached"):
        asyncio.run(Client().open("ws://peer.test/"))


def test_a_silent_proxy_ends_with_the_time_limit(monkeypatch) -> None:
    async def main() -> None:
        writers: list[asyncio.StreamWriter] = []
        listening = await asyncio.start_server(lambda reader, writer: writers.append(writer), "127.0.0.1", 0)
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        with pytest.raises(ConnectorError, match="did not answer within") as caught:
            await Client().open("ws://peer.test/", timeout_s=0.3)
        assert caught.value.kind == "timeout"
        for writer in writers:
            writer.close()
        listening.close()

    asyncio.run(main())


def test_the_system_is_asked_to_notice_a_half_open_connection() -> None:
    async def main() -> None:
        async def wait(ws) -> None:
            await ws.wait_closed()

        async with serve(wait, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            client = Client()
            transport = await client.open(f"ws://127.0.0.1:{port}/")
            sock = transport._connection.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                limit_ms = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                assert limit_ms == proxy_module.GONE_AFTER_S * 1000
            await transport.close()

    asyncio.run(main())


def test_a_lost_line_is_the_networks_end() -> None:
    """What the system tells us once it has given the line up: closed by the network, with its words."""

    async def main() -> None:
        async def wait(ws) -> None:
            await ws.wait_closed()

        async with serve(wait, "127.0.0.1", 0) as server:
            client = Client()
            transport = await client.open(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
            transport._connection.transport._force_close(TimeoutError("Connection timed out"))
            await client.until(lambda: bool(client.closed))
            assert client.closed == [("network", None, "Connection timed out")]

    asyncio.run(main())


def test_a_proxy_is_a_pair_with_a_secret() -> None:
    assert repr(Proxy("p", 1, "Basic xyz")) == "Proxy(p:1)"


@pytest.mark.parametrize("url", ["http://peer.test/x", "https://peer.test/x"])
@pytest.mark.parametrize(
    "answer", ["407 {said}", "{said}", "500 no\r\nContent-Length: 500\r\n\r\n{said} pass-word {said:500}"]
)
def test_signalling_shows_the_password_to_the_proxy_and_tells_nobody(url: str, answer: str, monkeypatch) -> None:
    heard: list[str] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heard.append(next(line[21:] for line in head.split("\r\n") if line.lower().startswith("proxy-authorization: ")))
        writer.write(f"HTTP/1.1 {answer.format(said=heard[-1])}\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def main() -> str:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        monkeypatch.setenv("ALL_PROXY", f"http://me:pass-word@127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with server:
            with pytest.raises(ConnectorError) as caught:
                await request("POST", url, clock=SystemClock(), headers={}, data=b"o", timeout_s=5)
        return str(caught.value)

    said = asyncio.run(main())
    encoded = base64.b64encode(b"me:pass-word").decode()
    assert heard == [f"Basic {encoded}"]
    assert encoded not in said
    assert "pass-word" not in said
