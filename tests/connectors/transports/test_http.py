"""The stamped HTTP client against a server that is told byte by byte what to write, and when to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme

from connectors.transports.http import HttpClient
from harness.core.clock import SystemClock
from harness.core.errors import ConnectorError

pytestmark = pytest.mark.loopback
CLOCK = SystemClock()
PATIENCE_S = 20.0
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Heard:
    """An exchange: what was heard of the answer."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.pieces: list[tuple[bytes, int]] = []
        self.ended_ns = 0
        self.lost: tuple[str, str] | None = None
        self.over = asyncio.Event()

    @property
    def body(self) -> bytes:
        return b"".join(piece for piece, _ in self.pieces)

    def on_head(self, status: int, headers: Mapping[str, str], t_ns: int) -> None:
        self.status, self.headers = status, headers

    def on_body(self, data: bytes, t_ns: int) -> None:
        self.pieces.append((data, t_ns))

    def on_end(self, t_ns: int) -> None:
        self.ended_ns = t_ns
        self.over.set()

    def on_lost(self, code: str, why: str, t_ns: int) -> None:
        self.lost = (code, why)
        self.over.set()


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    return head, await reader.readexactly(length)


class Server:
    """Runs script number n for connection number n (the last one for all that follow)."""

    def __init__(self, scripts: tuple[Script, ...]) -> None:
        self.scripts = scripts
        self.connections = 0
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self.scripts[min(self.connections, len(self.scripts) - 1)]
        self.connections += 1
        try:
            await script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*scripts: Script, tls: ssl.SSLContext | None = None):
    server = Server(scripts)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1/x?y=1"
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


@asynccontextmanager
async def client_of(url: str, phases: list[str] | None = None, **options: Any):
    kept = phases if phases is not None else []
    client = HttpClient(url, clock=CLOCK, on_phase=lambda phase, t_ns: kept.append(phase), headers={}, **options)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


async def ask(client: HttpClient, body: bytes = b"{}") -> Heard:
    heard = Heard()
    client.post(body, heard, {"Content-Type": "application/json"})
    async with asyncio.timeout(PATIENCE_S):
        await heard.over.wait()
    return heard


def whole(body: bytes, *, more: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        head, body = await read_request(reader)
        assert head.startswith(b"POST /v1/x?y=1 HTTP/1.1\r\n")
        writer.write(whole(body))


def test_requests_share_a_connection_and_the_phases_are_told() -> None:
    async def main() -> None:
        phases: list[str] = []
        async with serving(echo) as server, client_of(server.url, phases) as client:
            for body in (b"one", b"x" * 3_000_000):
                assert (await ask(client, body)).body == body
            assert server.connections == 1
            assert phases == ["started", "dns", "tcp"]

    asyncio.run(main())


def test_tls_is_trusted_stamped_and_drained() -> None:
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)

    async def main() -> None:
        phases: list[str] = []
        async with serving(echo, tls=served) as server:
            async with client_of(server.url, phases, tls=trust) as client:
                heard, drained = Heard(), []
                body = b"x" * 5_000_000
                before_ns = CLOCK.now_ns()
                client.post(body, heard, {})
                client.when_drained(drained.append)
                async with asyncio.timeout(PATIENCE_S):
                    await heard.over.wait()
                assert heard.body == body
                assert before_ns <= drained[0] <= heard.ended_ns
                assert phases == ["started", "dns", "tcp", "tls"]
            with pytest.raises(ConnectorError, match="TLS with"):
                async with client_of(server.url):
                    pass

    asyncio.run(main())


def test_a_body_is_sent_when_its_last_byte_has_left() -> None:
    """The server leaves most of it unread for a while: it cannot have left."""

    async def main() -> None:
        go = asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await go.wait()
            await echo(reader, writer)

        async with serving(slow) as server, client_of(server.url) as client:
            heard, drained = Heard(), []
            pending = client.post(b"x" * 64_000_000, heard, {})
            assert pending > 0
            client.when_drained(drained.append)
            assert drained == []
            released_ns = CLOCK.now_ns()
            go.set()
            async with asyncio.timeout(PATIENCE_S):
                await heard.over.wait()
            assert released_ns < drained[0] <= heard.ended_ns

    asyncio.run(main())


def test_pieces_carry_the_instant_of_their_read() -> None:
    marks: list[int] = []

    async def piecewise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for data in (CHUNKED[:20], CHUNKED[20:] + b"5\r\nhel", b"lo\r\n3\r\nab", b"c\r\n", b"0\r\n\r\n"):
            writer.write(data)
            await writer.drain()
            marks.append(CLOCK.now_ns())
            await asyncio.sleep(0.05)

    async def main() -> None:
        async with serving(piecewise) as server, client_of(server.url) as client:
            heard = await ask(client)
            assert heard.body == b"helloabc"
            assert heard.headers["content-type"] == "text/event-stream"
            stamps = [t_ns for _, t_ns in heard.pieces]
            assert stamps == sorted(stamps)
            assert stamps[0] < marks[2] < stamps[-1]
            assert heard.ended_ns >= stamps[-1]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (CHUNKED + b"5\r\nhel", "closed"),
        (whole(b"hello")[:-2], "closed"),
        (b"", "closed"),
        (b"HTTP/1.1 200 O", "closed"),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "protocol"),
        (CHUNKED + b"zz\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000, "protocol"),
    ],
    ids=["mid-chunk", "mid-body", "nothing", "mid-head", "no HTTP", "no chunk size", "endless head"],
)
def test_an_answer_that_breaks_off_is_lost_once(answer: bytes, code: str) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()

    async def main() -> None:
        async with serving(broken, echo) as server, client_of(server.url) as client:
            heard = await ask(client)
            assert heard.lost is not None
            assert heard.lost[0] == code
            assert heard.ended_ns == 0
            assert (await ask(client, b"again")).body == b"again"

    asyncio.run(main())


@pytest.mark.parametrize(
    "said", [whole(b"one", more="Connection: close\r\n"), whole(b"one"), b"HTTP/1.0 200 OK\r\n\r\none"]
)
def test_a_connection_that_the_server_ends_between_requests_is_opened_again(said: bytes) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(said)
        await writer.drain()

    async def main() -> None:
        async with serving(once, echo) as server, client_of(server.url) as client:
            assert (await ask(client)).body == b"one"
            async with asyncio.timeout(PATIENCE_S):
                while server.connections < 2:  # noqa: ASYNC110 - the client reopens by itself
                    await asyncio.sleep(0.01)
            heard, drained = Heard(), []
            client.post(b"two", heard, {})
            client.when_drained(drained.append)
            async with asyncio.timeout(PATIENCE_S):
                await heard.over.wait()
            assert heard.body == b"two"
            assert len(drained) == 1
            assert server.connections == 2

    asyncio.run(main())


def test_a_server_that_is_gone_loses_the_next_request() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(whole(b"one", more="Connection: close\r\n"))

    async def main() -> None:
        async with serving(once) as server:
            client = HttpClient(server.url, clock=CLOCK, on_phase=lambda phase, t_ns: None, headers={})
            await client.open()
            await ask(client)
        heard = await ask(client)
        assert heard.lost is not None
        assert heard.lost[0] == "connect"
        await client.close()
        await client.close()
        with pytest.raises(ConnectorError, match="closed"):
            client.post(b"", Heard(), {})

    asyncio.run(main())


def test_giving_up_ends_the_exchange_without_a_word() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED)
        while True:
            writer.write(b"1\r\nx\r\n")
            await writer.drain()
            await asyncio.sleep(0.005)

    async def main() -> None:
        async with serving(endless, echo) as server, client_of(server.url) as client:
            first = Heard()
            client.post(b"", first, {})
            async with asyncio.timeout(PATIENCE_S):
                while not first.pieces:  # noqa: ASYNC110 - filled by the receive hook
                    await asyncio.sleep(0.01)
            second = Heard()
            assert client.post(b"next", second, {}) == len(b"next")
            seen = len(first.pieces)
            async with asyncio.timeout(PATIENCE_S):
                await second.over.wait()
            assert second.body == b"next"
            assert (len(first.pieces), first.lost, first.ended_ns) == (seen, None, 0)

    asyncio.run(main())


def test_an_informational_answer_is_no_answer() -> None:
    async def patient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + whole(b"one"))
        await writer.drain()
        await reader.read()

    async def main() -> None:
        async with serving(patient) as server, client_of(server.url) as client:
            heard = await ask(client)
            assert (heard.status, heard.body) == (200, b"one")

    asyncio.run(main())


def test_interim_answers_without_end_are_given_up() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000)
                await writer.drain()

    async def main() -> None:
        async with serving(endless) as server, client_of(server.url) as client:
            heard = await ask(client)
            assert heard.lost is not None
            assert heard.lost[0] == "protocol"

    asyncio.run(main())


def test_a_flood_leaves_the_rest_of_the_program_its_turns() -> None:
    """Whoever takes longer for the pieces than the peer for sending them still sees timers fire."""
    uvloop = pytest.importorskip("uvloop", reason="other loops read once a turn")
    listening = socket.create_server(("127.0.0.1", 0))

    def flood() -> None:
        sock, _ = listening.accept()
        with sock, contextlib.suppress(OSError):
            sock.recv(1 << 16)
            sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                sock.sendall(bytes(1 << 20))

    class Slow(Heard):
        most = 0
        since = 0

        def on_body(self, data: bytes, t_ns: int) -> None:
            time.sleep(0.03)
            self.since += 1
            self.most = max(self.most, self.since)

    async def main() -> int:
        slow = Slow()
        async with client_of(f"http://127.0.0.1:{listening.getsockname()[1]}/") as client:
            client.post(b"{}", slow, {})
            for _ in range(40):
                await asyncio.sleep(0.001)
                slow.since = 0
        return slow.most

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            assert 1 <= runner.run(main()) <= 2
    finally:
        listening.close()
        thread.join()


def test_a_port_without_a_listener_is_a_connector_error() -> None:
    async def main() -> None:
        async with serving(echo) as server:
            url = server.url
        with pytest.raises(ConnectorError) as caught:
            async with client_of(url):
                pass
        assert caught.value.retryable

    asyncio.run(main())
