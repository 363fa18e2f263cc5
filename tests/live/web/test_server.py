"""The page's server with a call made of samples and a peer in memory: what is served, refused, held and kept."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest

from harness.core.clock import SystemClock
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import AudioSent, MediaAnchor, Note
from harness.core.profile import Profile
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import load_session
from harness.live.session import LiveSession
from harness.live.web import server
from harness.live.web.server import FILES, Page, _reachable, serve_page
from harness.live.web.studio import ANCHOR, Studio
from harness.live.web.visit import WORTH_NOTING_MS
from harness.run.recorder import RecordingError
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions
from tests.run.fakes import FakePeer, FakeSession

pytestmark = pytest.mark.loopback
CLOCK = SystemClock()
PATIENCE_S = 30.0


class FakeCall:
    """Opens at once; the test is its browser."""

    rate_hz, latency_ns, filled_samples, lost = 48_000, 6_500_000, 0, 0

    def __init__(self) -> None:
        self.on_open: Callable[[], None] = lambda: None
        self.on_gone: Callable[[], None] = lambda: None
        self.on_sound: Any = None
        self.played = 0
        self.is_closed = False

    async def answer(self, sdp: str) -> str:
        if sdp == "bad":
            raise ValueError("it has no fingerprint")
        if sdp == "deaf":
            asyncio.get_running_loop().call_soon(self.on_gone)
        else:
            asyncio.get_running_loop().call_soon(self.on_open)
        return "answer to " + sdp

    def play(self, samples: np.ndarray) -> None:
        assert samples.shape == (960,)
        self.played += 1

    async def closed(self) -> None:
        self.is_closed = True


class Held:
    """A page that is served, and what was made for it."""

    def __init__(self, page: Page, studio: Studio, calls: list[FakeCall], http: aiohttp.ClientSession) -> None:
        self.page, self.studio, self.calls, self.http = page, studio, calls, http

    @asynccontextmanager
    async def visit(self) -> AsyncIterator[Visitor]:
        origin = self.page.url.split("/", 3)
        async with self.http.ws_connect(self.page.url + "ws", origin="/".join(origin[:3])) as socket:
            visitor = Visitor(socket)
            await visitor.until("hello")
            yield visitor


class Visitor:
    def __init__(self, socket: Any) -> None:
        self.socket = socket

    async def send(self, **message: Any) -> None:
        await self.socket.send_str(json.dumps(message))

    async def until(self, kind: str, test: Callable[[dict[str, Any]], Any] = lambda message: True) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message: dict[str, Any] = json.loads((await self.socket.receive()).data)
                if message["type"] == kind and test(message):
                    return message


def served(
    body: Callable[[Held], Coroutine[Any, Any, None]],
    folder: Path,
    *,
    peer: FakePeer | None = None,
    host: str = "127.0.0.1",
    options: SessionOptions | None = None,
) -> Studio:
    async def main() -> Studio:
        calls: list[FakeCall] = []

        def new_call(clock: Any) -> Any:
            calls.append(FakeCall())
            return calls[-1]

        def open_directory(facts: dict[str, Any]) -> RunDirectory:
            folder.mkdir(exist_ok=True)
            return RunDirectory(folder)

        async with Rig(CLOCK) as rig:
            made: Any = peer or FakePeer()
            studio = Studio(rig, made, options or SessionOptions(), open_directory, new_call)
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connector = aiohttp.TCPConnector(ssl=context)
            async with serve_page(studio, host=host) as page, aiohttp.ClientSession(connector=connector) as http:
                await body(Held(page, studio, calls, http))
        return studio

    return asyncio.run(main())


def speak(call: FakeCall, blocks: int = 50) -> None:
    for _ in range(blocks):
        call.on_sound(np.full(960, 500, np.int16), CLOCK.now_ns(), False)


def test_files_are_served_to_who_has_the_token_and_nothing_else(tmp_path: Path) -> None:
    async def body(held: Held) -> None:
        base, token = held.page.url.rstrip("/").rsplit("/", 1)
        for name, (file, kind) in FILES.items():
            async with held.http.get(held.page.url + name) as answer:
                assert answer.status == 200
                assert answer.content_type == kind
                assert await answer.read() == file.read_bytes()
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                assert answer.headers["Referrer-Policy"] == "no-referrer"
        for path in (
            "/",
            "/x/",
            "/live.js",
            f"/{token}x/",
            f"/{token}/../live.js",
            f"/{token}/secret",
            f"/{token}/a/b",
        ):
            async with held.http.get(base + path) as answer:
                assert answer.status == 404
                assert token not in await answer.text()
        async with held.http.get(held.page.url, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 403
        for origin in ("http://evil.example", None):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await held.http.ws_connect(held.page.url + "ws", origin=origin)
            assert refused.value.status == 403
        async with held.http.get(held.page.url + "ws") as answer:
            assert answer.status == 400
        assert held.page.fingerprint == ""

    assert served(body, tmp_path / "run").directory is None


def test_sessions_are_held_one_after_the_other_and_kept(tmp_path: Path) -> None:
    async def body(held: Held) -> None:
        async with held.visit() as visitor:
            await visitor.send(type="start", sdp="offer", facts={"echoCancellation": "true", "long": "x" * 9_999})
            assert (await visitor.until("answer"))["sdp"] == "answer to offer"
            assert (await visitor.until("ready"))["session"] == "00000-live"
            call = held.calls[0]
            speak(call)
            look = await visitor.until("look", lambda look: look["user"]["points"])
            assert look["talking"]
            assert look["user"]["db"] == pytest.approx(-36.3, abs=0.2)  # 20 log10(500 / 32768)
            await visitor.send(type="mute", on=True)
            await visitor.until("look", lambda look: look["muted"])
            for jitter_ms in (30.0, 30.0 + WORTH_NOTING_MS / 2, 30.0 + WORTH_NOTING_MS):
                await visitor.send(type="delay", jitter_ms=jitter_ms, playout_ms=5.0)
            async with held.visit() as other:
                await other.send(type="start", sdp="offer")
                assert "under way" in (await other.until("error"))["message"]
            call.lost = 3
            await visitor.until("look", lambda look: any("3 packets" in line["text"] for line in look["lines"]))
            await visitor.send(type="stop")
            ended = await visitor.until("ended")
            assert (ended["session"], ended["reason"]) == ("00000-live", "")
            assert call.played > 5
            await visitor.send(type="start", sdp="offer")
            await visitor.until("ready")
            speak(held.calls[1], 5)
        # The page was closed: the session is ended, and kept.

    studio = served(body, tmp_path / "run")
    run = RunDirectory(tmp_path / "run")
    assert run.finished() == ["00000-live", "00001-live"]
    assert len(studio.results) == 2
    session = load_session(run.sessions / "00000-live")
    live = session.header.config["live"]
    assert live["source"]["facts"] == {"echoCancellation": "true", "long": "x" * 300}
    assert sum(event.samples for event in session.of(AudioSent)) > 20_000
    anchors = [event for event in session.of(MediaAnchor) if event.side == "user"]
    assert {event.source for event in anchors} == {ANCHOR}
    notes = [event.message for event in session.of(Note) if event.code == "browser_delay"]
    assert [event.code for event in session.of(Note)].count("echo") == 1
    assert [note.split(" ms")[0].rsplit(" ", 1)[1] for note in notes] == ["35", "55"]


def test_a_peer_that_is_slow_to_leave_costs_no_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(connection: FakeSession) -> None:
        await asyncio.sleep(1.0)

    async def body(held: Held) -> None:
        async with held.visit() as visitor:
            await visitor.send(type="start", sdp="offer")
            await visitor.until("ready")
            speak(held.calls[0], 5)

    monkeypatch.setattr(FakeSession, "close", slow)
    monkeypatch.setattr(server, "CLOSE_TIMEOUT_S", 0.1)
    assert len(served(body, tmp_path / "run").results) == 1
    assert RunDirectory(tmp_path / "run").finished() == ["00000-live"]


def test_what_goes_wrong_is_said_in_a_line_and_the_page_goes_on(tmp_path: Path) -> None:
    peer = FakePeer(failures=[ConnectorError("nobody there", kind="connect")])

    async def body(held: Held) -> None:
        async with held.visit() as visitor:
            await visitor.socket.send_str("{nonsense")
            assert "reload" in (await visitor.until("error"))["message"]
            await visitor.send(type="start", sdp="bad")
            assert "no fingerprint" in (await visitor.until("error"))["message"]
            await visitor.send(type="start", sdp="deaf")
            assert "no connection for sound" in (await visitor.until("error"))["message"]
            await visitor.send(type="start", sdp="offer")
            assert (await visitor.until("ended"))["reason"] == "nobody there"
            await visitor.send(type="start", sdp="offer")
            await visitor.until("ready")
            held.calls[-1].on_gone()
            await visitor.until("ended")
        assert all(call.is_closed for call in held.calls)

    studio = served(body, tmp_path / "run", peer=peer)
    assert not studio.busy


def test_a_recording_that_fails_is_told_and_ends_it_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(session: LiveSession) -> None:
        raise RecordingError("no space left on device")

    async def body(held: Held) -> None:
        async with held.visit() as visitor:
            await visitor.send(type="start", sdp="offer")
            assert (await visitor.until("error"))["message"] == "no space left on device"
            await held.studio.over.wait()
            assert held.calls[0].is_closed

    monkeypatch.setattr(LiveSession, "run", full)
    assert isinstance(served(body, tmp_path / "run").fault, RecordingError)


def test_push_to_talk_ends_manual_turns(tmp_path: Path) -> None:
    peer = FakePeer()
    peer.profile = Profile(turns=("manual",))

    async def body(held: Held) -> None:
        async with held.visit() as visitor:
            await visitor.send(type="start", sdp="offer")
            await visitor.until("ready")
            assert not (await visitor.until("look"))["talking"]
            await visitor.send(type="talk", on=True)
            await visitor.until("look", lambda look: look["talking"])
            speak(held.calls[0])
            await visitor.send(type="talk", on=False)
            await visitor.until(
                "look", lambda look: max((peak for _, peak in look["agent"]["points"]), default=0) > 0.1
            )

    served(body, tmp_path / "run", peer=peer, options=SessionOptions(turn="manual"))


def test_beyond_the_loopback_everything_goes_over_tls(tmp_path: Path) -> None:
    async def body(held: Held) -> None:
        assert held.page.url.startswith("https://")
        assert len(held.page.fingerprint.split(":")) == 32
        url = held.page.url.split("/", 3)
        port = url[2].rsplit(":", 1)[1]
        here = f"https://127.0.0.1:{port}/{url[3]}"
        digest = bytes.fromhex(held.page.fingerprint.replace(":", ""))
        async with held.http.get(here, ssl=aiohttp.Fingerprint(digest)) as answer:
            assert answer.status == 200
            assert f"wss://127.0.0.1:{port}" in answer.headers["Content-Security-Policy"]
        with pytest.raises(aiohttp.ClientError):
            await held.http.get(here.replace("https://", "http://"))

    served(body, tmp_path / "run", host="0.0.0.0")


@pytest.mark.parametrize("host", ["bücher.example", "a..b"])
def test_a_name_that_is_none_is_one_line(tmp_path: Path, host: str) -> None:
    async def nothing(held: Held) -> None:
        raise AssertionError

    with pytest.raises(ConfigError, match=r"cannot listen on .*; choose another --host"):
        served(nothing, tmp_path / "run", host=host)


@pytest.mark.parametrize(("host", "version"), [("0.0.0.0", 4), ("::", 6)])
def test_the_address_to_open_is_of_the_family_that_is_listened_at(host: str, version: int) -> None:
    assert ipaddress.ip_address(_reachable(host)).version == version


def test_an_address_that_cannot_be_listened_at_is_one_line(tmp_path: Path) -> None:
    async def nothing(held: Held) -> None:
        raise AssertionError

    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1 port 0: .*; choose another --host or --port"):
        served(nothing, tmp_path / "run", host="192.0.2.1")
