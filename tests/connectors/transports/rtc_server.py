"""A bare WebRTC answerer on aiortc, as small as one can be: no detector, no dialogue. Tests script what it does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from aiohttp import web
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from connectors.transports.ice_loopback import loopback_only
from connectors.transports.rtp_voice import SilentTrack, at_once


class Call:
    """One answered call. messages: of the data channel; heard: frames of the caller, as aiortc's own receiver and
    decoder give them (48 kHz stereo); sent: (sequence, t_ns just before the write) of every packet of ours."""

    def __init__(self) -> None:
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.channel: Any = None
        self.opened = asyncio.Event()
        self.messages: list[str] = []
        self.heard: list[np.ndarray] = []
        self.pts: list[int] = []
        self.sent: list[tuple[int, int]] = []
        self.on_message: Callable[[str], None] = lambda text: None
        self.sequence = 65_530  # the wrap comes soon
        self.timestamp = 2**32 - 960 * 10
        self._reading: asyncio.Task[None] | None = None
        self.pc.on("datachannel", self._channel_came)
        self.pc.on("track", self._track_came)

    async def answer(self, offer: str) -> str:
        self.pc.addTrack(SilentTrack())
        await self.pc.setRemoteDescription(RTCSessionDescription(sdp=offer, type="offer"))
        with loopback_only():
            await self.pc.setLocalDescription(await self.pc.createAnswer())
        return self.pc.localDescription.sdp

    def say(self, **body: Any) -> None:
        self.channel.send(json.dumps(body))

    def speak(self, payload: bytes, *, lose: bool = False) -> None:
        """One RTP packet of 20 ms leaves now, or is lost on the way."""
        transceiver = self.pc.getTransceivers()[0]
        kind = transceiver._codecs[0].payloadType
        header = struct.pack("!BBHII", 0x80, kind, self.sequence, self.timestamp, transceiver.sender._ssrc)
        if not lose:
            self.sent.append((self.sequence, time.monotonic_ns()))
            at_once(transceiver.sender.transport._send_rtp(header + payload))
        self.sequence = (self.sequence + 1) % 2**16
        self.timestamp = (self.timestamp + 960) % 2**32

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        await self.pc.close()

    def _channel_came(self, channel: Any) -> None:
        self.channel = channel
        channel.on("message", self._message_came)
        self.opened.set()

    def _message_came(self, message: str) -> None:
        self.messages.append(message)
        self.on_message(message)

    def _track_came(self, track: MediaStreamTrack) -> None:
        self._reading = asyncio.get_running_loop().create_task(self._read(track))

    async def _read(self, track: MediaStreamTrack) -> None:
        with contextlib.suppress(Exception):
            while True:
                frame: Any = await track.recv()
                self.heard.append(frame.to_ndarray().reshape(-1, 2)[:, 0].copy())
                self.pts.append(frame.pts)


class RtcServer:
    """Answers offers at any path. requests: (method, path, headers, body) of every request, in order.

    refuse: what to answer instead, if anything. on_call: sees each call before it is answered.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.refuse: Callable[[web.BaseRequest], web.Response | None] = lambda request: None
        self.on_call: Callable[[Call], None] = lambda call: None
        self.location = "/v1/realtime/calls/rtc_1"
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.path_qs, dict(request.headers), body))
        refusal = self.refuse(request)
        if refusal is not None:
            return refusal
        if request.method != "POST":
            return web.Response()
        if request.path.endswith("/client_secrets"):
            return web.json_response({"value": "ek_test_1", "expires_at": 1, "session": {}})
        offer, as_json = _offer(request, body)
        call = Call()
        self.calls.append(call)
        self.on_call(call)
        answer = await call.answer(offer)
        if as_json:
            return web.json_response({"sdp": answer, "type": "answer", "pc_id": "pc-1"})
        return web.Response(
            status=201, text=answer, content_type="application/sdp", headers={"Location": self.location}
        )


def _offer(request: web.BaseRequest, body: bytes) -> tuple[str, bool]:
    if request.content_type == "application/json":
        return json.loads(body)["sdp"], True
    if request.content_type == "multipart/form-data":
        boundary = b"--" + request.headers["Content-Type"].split("boundary=")[1].strip('"').encode()
        part = next(part for part in body.split(boundary) if b'name="sdp"' in part)
        return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n").decode(), False
    return body.decode(), False


@asynccontextmanager
async def rtc_server() -> AsyncIterator[RtcServer]:
    server = RtcServer()
    runner = web.ServerRunner(web.Server(server.handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        for call in server.calls:
            await call.close()
        await runner.cleanup()


async def until(met: Callable[[], Any], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not met():  # noqa: ASYNC110 - events come from receive hooks
            await asyncio.sleep(0.005)
