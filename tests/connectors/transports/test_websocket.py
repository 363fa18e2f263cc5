"""The stamped WebSocket client against the websockets library's own server: stamps, framing, failures in one line."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time

import pytest
import trustme
import uvloop
from websockets.asyncio.server import serve
from websockets.frames import Frame, Opcode
from websockets.utils import accept_key

from connectors.transports.websocket import open_websocket
from harness.core.clock import SystemClock
from harness.core.errors import ConnectorError

pytestmark = pytest.mark.loopback
LOOPS = [None, uvloop.new_event_loop]


class Client:
    """What a session would remember."""

    def __init__(self) -> None:
        self.messages: list[tuple[bytes, bool, int, int]] = []
        self.phases: list[tuple[str, int]] = []
        self.rtts: list[int] = []
        self.closed: list[tuple[str, int | None, str]] = []

    async def open(self, url: str, **options):
        self.clock = SystemClock()
        return await open_websocket(
            url,
            clock=self.clock,
            on_message=lambda *message: self.messages.append(message),
            on_phase=lambda *phase: self.phases.append(phase),
            on_rtt=lambda t_ns, rtt_ns: self.rtts.append(rtt_ns),
            on_closed=lambda t_ns, by, code, reason: self.closed.append((by, code, reason)),
            headers={"Authorization": "Bearer sk-secret"},
            **{"timeout_s": 5.0, **options},
        )

    async def until(self, condition, seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - what is waited for is a list that others fill
                await asyncio.sleep(0.005)


def scenario(handler, body, *, loop_factory=None, **server_options):
    """Serve `handler` on loopback, run `body(client, url)`."""

    async def main() -> None:
        async with serve(handler, "127.0.0.1", 0, compression=None, ping_interval=None, **server_options) as server:
            port = server.sockets[0].getsockname()[1]
            scheme = "wss" if "ssl" in server_options else "ws"
            await body(Client(), f"{scheme}://127.0.0.1:{port}/")

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def raw(data: bytes, *, fin: bool = True, opcode: Opcode = Opcode.BINARY) -> bytes:
    return Frame(opcode, data, fin=fin).serialize(mask=False)


def test_first_byte_and_completing_read_are_told_apart() -> None:
    """Split right after the header, in the middle, several messages a read, fragments with a ping between."""
    pause = 0.05

    async def handler(ws) -> None:
        message = raw(b"a" * 300)
        for part in (message[:4], message[4:100], message[100:]):  # 4 bytes: the header alone
            ws.transport.write(part)
            await asyncio.sleep(pause)
        ws.transport.write(raw(b"b") + raw(b"c") + raw(b"d" * 500)[:50])
        await asyncio.sleep(pause)
        ws.transport.write(raw(b"d" * 500)[50:])
        await asyncio.sleep(pause)
        ws.transport.write(raw(b"e1", fin=False))
        await asyncio.sleep(pause)
        ws.transport.write(raw(b"", opcode=Opcode.PING))
        await asyncio.sleep(pause)
        ws.transport.write(raw(b"e2", opcode=Opcode.CONT))
        await ws.wait_closed()

    async def body(client: Client, url: str) -> None:
        transport = await client.open(url)
        await client.until(lambda: len(client.messages) == 5)
        texts = [message[0] for message in client.messages]
        assert texts == [b"a" * 300, b"b", b"c", b"d" * 500, b"e1e2"]
        spans_ms = [(t_ns - first_ns) / 1e6 for _, _, t_ns, first_ns in client.messages]
        assert spans_ms[0] >= 1.8 * pause * 1000
        assert spans_ms[1] == spans_ms[2] == 0
        assert client.messages[1][2] == client.messages[2][2]
        assert 0.8 * pause * 1000 <= spans_ms[3]
        assert spans_ms[4] >= 1.8 * pause * 1000
        await transport.close()

    scenario(handler, body)


def test_prepared_frames_arrive_and_drain_is_stamped() -> None:
    received: list[object] = []

    async def handler(ws) -> None:
        async for message in ws:
            received.append(message)
            await ws.send("ok")

    async def body(client: Client, url: str) -> None:
        transport = await client.open(url)
        for message in ("text with ümlaut", b"\x00\x01", "x" * 100_000):
            transport.write(transport.prepare(message))
        drained: list[int] = []
        transport.when_drained(drained.append)
        await client.until(lambda: len(client.messages) == 3 and drained)
        assert received == ["text with ümlaut", b"\x00\x01", "x" * 100_000]
        assert all(is_text for _, is_text, _, _ in client.messages)
        await transport.close()
        with pytest.raises(ConnectorError, match="closed"):
            transport.write(b"")

    scenario(handler, body)


@pytest.fixture
def certificates() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """(server, client) contexts of a throw-away authority."""
    authority, server = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


@pytest.mark.parametrize("secure", [False, True], ids=["tcp", "tls"])
@pytest.mark.parametrize("loop_factory", LOOPS, ids=["asyncio", "uvloop"])
def test_back_pressure_is_seen_and_its_end_stamped(secure: bool, loop_factory, certificates) -> None:
    """A peer that does not read for 0.4 s: the writes are pending until it does, under TLS as well."""

    async def handler(ws) -> None:
        ws.transport.pause_reading()
        await asyncio.sleep(0.4)
        ws.transport.resume_reading()
        async for _ in ws:
            pass

    async def body(client: Client, url: str) -> None:
        transport = await client.open(url, tls=certificates[1] if secure else None)
        await asyncio.sleep(0.05)
        begin_ns = client.clock.now_ns()
        frame = transport.prepare(b"z" * 1_000_000)
        pending = [transport.write(frame) for _ in range(20)]
        assert pending[-1] > 0
        drained: list[int] = []
        transport.when_drained(drained.append)
        await client.until(lambda: bool(drained), 10)
        assert drained[0] - begin_ns > 200_000_000
        transport.write(transport.prepare(b"after"))
        await transport.close()

    options = {"ssl": certificates[0]} if secure else {}
    scenario(handler, body, loop_factory=loop_factory, max_size=None, **options)


def test_a_message_after_a_split_control_frame_has_its_own_first_byte() -> None:
    async def handler(ws) -> None:
        ping = raw(b"12345678", opcode=Opcode.PING)
        ws.transport.write(ping[:4])
        await asyncio.sleep(0.1)
        ws.transport.write(ping[4:] + raw(b"m"))
        await ws.wait_closed()

    async def body(client: Client, url: str) -> None:
        transport = await client.open(url)
        await client.until(lambda: bool(client.messages))
        (_, _, t_ns, first_ns) = client.messages[0]
        assert t_ns == first_ns
        await transport.close()

    scenario(handler, body)


def test_a_redirect_is_not_followed_and_the_key_stays_here() -> None:
    seen: list[str] = []

    async def handler(ws) -> None:
        await ws.wait_closed()

    def redirect(connection, request):
        seen.append(request.headers.get("Authorization", ""))
        response = connection.respond(302, "elsewhere")
        response.headers["Location"] = "ws://127.0.0.1:1/other"
        return response

    async def body(client: Client, url: str) -> None:
        with pytest.raises(ConnectorError, match="HTTP 302"):
            await client.open(url)
        assert len(seen) == 1

    scenario(handler, body, process_request=redirect)


def test_phases_rtt_and_close_codes() -> None:
    async def handler(ws) -> None:
        await asyncio.sleep(0.1)
        await ws.close(4001, "enough")

    async def body(client: Client, url: str) -> None:
        transport = await client.open(url)
        transport.ping()
        await client.until(lambda: bool(client.closed))
        assert [phase for phase, _ in client.phases] == ["started", "dns", "tcp", "upgrade"]
        stamps = [t_ns for _, t_ns in client.phases]
        assert stamps == sorted(stamps)
        assert len(client.rtts) == 1
        assert 0 < client.rtts[0] < 100_000_000
        assert client.closed == [("peer", 4001, "enough")]
        await transport.close()

    scenario(handler, body)


def test_our_own_close_and_a_dropped_line_are_told_apart() -> None:
    async def handler(ws) -> None:
        if (await ws.recv()) == "drop":
            ws.transport.abort()
        await ws.wait_closed()

    async def body(client: Client, url: str) -> None:
        transport = await client.open(url)
        transport.write(transport.prepare("drop"))
        await client.until(lambda: bool(client.closed))
        assert client.closed[0][:2] == ("network", None)
        other = Client()
        transport = await other.open(url)
        transport.write(transport.prepare("stay"))
        await transport.close()
        await other.until(lambda: bool(other.closed))
        assert other.closed[0][0] == "us"

    scenario(handler, body)


def test_tls_is_a_phase_and_an_unknown_authority_is_one_line(certificates) -> None:
    server_context, client_context = certificates

    async def handler(ws) -> None:
        await ws.send(b"hello")
        await ws.wait_closed()

    async def body(client: Client, url: str) -> None:
        transport = await client.open(url, tls=client_context)
        await client.until(lambda: bool(client.messages))
        assert [phase for phase, _ in client.phases] == ["started", "dns", "tcp", "tls", "upgrade"]
        await transport.close()
        with pytest.raises(ConnectorError, match=r"TLS with 127\.0\.0\.1") as caught:
            await Client().open(url)
        assert caught.value.kind == "connect"

    scenario(handler, body, ssl=server_context)


def test_tls_that_fails_leaves_no_traceback_under_uvloop(certificates) -> None:
    """uvloop calls `connection_lost` for a connection that was never made."""
    server_context, _ = certificates
    complaints: list[object] = []

    async def handler(ws) -> None:
        await ws.wait_closed()

    async def body(client: Client, url: str) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        with pytest.raises(ConnectorError, match="TLS with"):
            await client.open(url)
        await asyncio.sleep(0.05)

    scenario(handler, body, loop_factory=uvloop.new_event_loop, ssl=server_context)
    assert complaints == []


@pytest.mark.parametrize(("status", "words"), [(401, "key is wrong"), (429, "rate limit"), (404, "no such path")])
def test_refusals_name_the_cause_and_never_the_key(status: int, words: str) -> None:
    async def handler(ws) -> None:
        await ws.wait_closed()

    def refuse(connection, request):
        return connection.respond(status, "no sk-thing for you\n")

    async def body(client: Client, url: str) -> None:
        with pytest.raises(ConnectorError, match=words) as caught:
            await client.open(url)
        assert "sk-secret" not in str(caught.value)
        assert caught.value.retryable == (status == 429)

    scenario(handler, body, process_request=refuse)


def test_nobody_listens_no_such_host_and_a_mute_server() -> None:
    async def main() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        with pytest.raises(ConnectorError, match="connection refused"):
            await Client().open(f"ws://127.0.0.1:{port}/")
        with pytest.raises(ConnectorError, match="no such host"):
            await Client().open("ws://nobody.invalid/")

        async def mute(reader, writer) -> None:
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()

        server = await asyncio.start_server(mute, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ConnectorError, match=r"did not answer within 0\.2 s") as caught:
                await Client().open(f"ws://127.0.0.1:{port}/", timeout_s=0.2)
            assert caught.value.kind == "timeout"
            await asyncio.sleep(0.05)

    asyncio.run(main())


def test_a_server_that_is_no_websocket_is_one_line() -> None:
    async def main() -> None:
        async def http(reader, writer) -> None:
            await reader.readline()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(http, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ConnectorError) as caught:
                await Client().open(f"ws://127.0.0.1:{port}/")
            assert "\n" not in str(caught.value)

    asyncio.run(main())


@pytest.mark.parametrize("way", ["SSL_CERT_FILE", "--set ca"])
def test_a_root_of_ones_own_is_trusted_when_named(way: str, tmp_path, monkeypatch) -> None:
    from connectors.endpoint import Endpoint
    from harness.core.connector import PeerOptions

    authority, server = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    root = tmp_path / "root.pem"
    authority.cert_pem.write_to_path(str(root))

    async def handler(ws) -> None:
        await ws.wait_closed()

    async def body(client: Client, url: str) -> None:
        options = PeerOptions(target=url)
        with pytest.raises(ConnectorError, match="--set ca=FILE"):
            await client.open(url, tls=Endpoint(options).tls())
        if way == "SSL_CERT_FILE":
            monkeypatch.setenv(way, str(root))
        transport = await client.open(url, tls=Endpoint(options, ca=None if "SSL" in way else str(root)).tls())
        await transport.close()

    scenario(handler, body, ssl=server)


@pytest.mark.parametrize(("value", "seconds"), [("12", 12.0), ("nonsense", None), (None, None)])
def test_a_refusal_carries_how_long_to_stay_away(value: str | None, seconds: float | None) -> None:
    async def handler(ws) -> None:
        await ws.wait_closed()

    def refuse(connection, request):
        response = connection.respond(429, "slow down")
        if value is not None:
            response.headers["Retry-After"] = value
        return response

    async def body(client: Client, url: str) -> None:
        with pytest.raises(ConnectorError, match="rate limit reached") as caught:
            await client.open(url)
        assert caught.value.retryable
        assert caught.value.retry_after_s == seconds

    scenario(handler, body, process_request=refuse)


def test_a_flood_leaves_the_rest_of_the_program_its_turns() -> None:
    """Whoever takes longer for the messages than the peer for sending them still sees timers fire."""
    flood = Frame(Opcode.TEXT, b"x" * 100_000).serialize(mask=False) * 20

    def spout(listening: socket.socket) -> None:
        sock, _ = listening.accept()
        with sock, contextlib.suppress(OSError):
            head = sock.recv(1 << 16).decode()
            key = next(line[19:] for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key: "))
            switch = "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            sock.sendall(f"{switch}{accept_key(key)}\r\n\r\n".encode())
            while True:
                sock.sendall(flood)

    class Slow(Client):
        most = since = 0

        async def open(self, url: str, **options):
            return await open_websocket(
                url,
                clock=SystemClock(),
                on_message=lambda *message: self.take(),
                on_phase=lambda *phase: None,
                on_rtt=lambda t_ns, rtt_ns: None,
                on_closed=lambda *how: None,
                headers={},
            )

        def take(self) -> None:
            time.sleep(0.03)
            self.since += 1
            self.most = max(self.most, self.since)

    async def main(port: int) -> int:
        slow = Slow()
        transport = await slow.open(f"ws://127.0.0.1:{port}/")
        slow.most = 0
        for _ in range(40):
            await asyncio.sleep(0.001)
            slow.since = 0
        transport._connection.abort()
        return slow.most

    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=spout, args=(listening,))
    thread.start()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            assert 1 <= runner.run(main(listening.getsockname()[1])) <= 8  # of one read; without a pause, of dozens
    finally:
        listening.close()
        thread.join()
