"""One browser at the page: its WebSocket, and the sessions that it asks for, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import aiohttp
import msgspec
from aiohttp.web import WebSocketResponse

from harness.core.audio import NS_PER_MS, Int16
from harness.core.errors import HarnessError
from harness.live.echo import TOLD
from harness.live.web.call import Call
from harness.live.web.feed import BROWSER_DELAY
from harness.live.web.studio import Studio, Take

LOOK_NS = 100 * NS_PER_MS
"""How often the page is told what is new."""
WORTH_NOTING_MS = 20.0
"""A browser's delay that differs by so much from what was noted is noted again."""
LONGEST_WORD = 300
"""Characters of a text of the browser's that go into the session's header."""
MOST_FACTS = 24


class Asked(msgspec.Struct, kw_only=True):
    """A message of the page. start: sdp, push_to_talk, facts; mute, talk: on; delay: jitter_ms, playout_ms; stop."""

    type: str
    sdp: str = ""
    push_to_talk: bool = False
    facts: dict[str, str | int | float | bool | None] = msgspec.field(default_factory=dict)
    on: bool = False
    jitter_ms: float = 0.0
    playout_ms: float = 0.0


class Visit:
    """`run` until the page is closed; then the session under way is ended, and kept."""

    def __init__(self, socket: WebSocketResponse, studio: Studio) -> None:
        self._socket = socket
        self._studio = studio
        self._take: Take | None = None
        self._stopped = False
        self._noted_ms: float | None = None
        self._over = asyncio.Event()

    async def run(self) -> None:
        studio = self._studio
        manual = studio.options.turn == "manual"
        hello = {"peer": studio.peer.label, "manual": manual, "push_to_talk": manual or studio.push_to_talk}
        await self._send({"type": "hello", **hello})
        async with asyncio.TaskGroup() as group:
            async for message in self._socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    await self._told(message.data, group)
            self.stop()

    def stop(self) -> None:
        """End the session under way, if there is one."""
        self._stopped = True
        if self._take is not None:
            self._take.session.stop()

    async def kept(self) -> None:
        """Wait until a session that has begun is over, and on disk."""
        if self._take is not None and self._take.session.ready.is_set():
            await self._over.wait()

    async def close(self) -> None:
        """Show the page out; `run` returns when the session under way has ended."""
        await self._socket.close()

    async def _told(self, text: str, group: asyncio.TaskGroup) -> None:
        try:
            asked = msgspec.json.decode(text, type=Asked)
        except (msgspec.DecodeError, RecursionError):
            await self._send({"type": "error", "message": "the page sent what cannot be read: reload it"})
            return
        take = self._take
        if asked.type == "start":
            await self._start(asked, group)
        elif asked.type == "stop":
            self.stop()
        elif take is None or not take.session.ready.is_set():
            return
        elif asked.type == "mute":
            take.session.mute(asked.on)
        elif asked.type == "talk":
            take.session.talk(asked.on)
        elif asked.type == "delay":
            self._note_delay(take, asked)

    async def _start(self, asked: Asked, group: asyncio.TaskGroup) -> None:
        if self._studio.busy:
            message = "a session is under way already, here or in another window: end that one first"
            await self._send({"type": "error", "message": message})
            return
        self._studio.busy, self._stopped, self._noted_ms = True, False, None
        group.create_task(self._hold(asked, group))

    async def _hold(self, asked: Asked, group: asyncio.TaskGroup) -> None:
        studio = self._studio
        call = studio.new_call(studio.rig.clock)
        try:
            if await self._connect(call, asked.sdp) and not self._stopped:
                await self._hold_with(call, asked, group)
        except HarnessError as exc:
            studio.fail(exc)
            await self._send({"type": "error", "message": str(exc)})
        finally:
            studio.busy = False
            await call.closed()

    async def _connect(self, call: Call, sdp: str) -> bool:
        """Answer the browser's offer, and wait until it is through."""
        settled: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def settle(through: bool) -> None:
            if not settled.done():
                settled.set_result(through)

        call.on_open, call.on_gone = lambda: settle(True), lambda: settle(False)
        try:
            answer = await call.answer(sdp)
        except Exception as exc:  # noqa: BLE001 - aiortc raises whatever a bad offer leads to, bare assertions too
            why = str(exc) or type(exc).__name__
            await self._send({"type": "error", "message": f"the browser's offer cannot be answered: {why}"})
            return False
        await self._send({"type": "answer", "sdp": answer})
        if await settled:
            return True
        message = "no connection for sound came about between this browser and firstpacket: a firewall, or a VPN?"
        await self._send({"type": "error", "message": message})
        return False

    async def _hold_with(self, call: Call, asked: Asked, group: asyncio.TaskGroup) -> None:
        """Hold a session with a call that is through."""
        studio = self._studio
        take = Take(studio, call, _facts(asked.facts), push_to_talk=asked.push_to_talk)
        session, studio.count, self._take = take.session, studio.count + 1, take
        self._over.clear()

        def heard(samples: Int16, t_ns: int, lost: bool) -> None:
            take.feed.hear(samples, t_ns)
            session.hear(samples, t_ns, lost=lost)

        call.on_sound, call.on_gone = heard, session.stop
        take.loudspeaker.start()
        looking = group.create_task(self._look(take, call))
        try:
            result = await session.run()
        finally:
            looking.cancel()
            take.loudspeaker.stop()
            self._take = None
            self._over.set()
        studio.results.append(result)
        await self._send(take.look(studio.rig.clock.now_ns()))
        await self._send({"type": "ended", "session": take.name, "reason": result.reason})

    async def _look(self, take: Take, call: Call) -> None:
        pacer, told, lost = self._studio.rig.pacer, False, 0
        while True:
            await pacer.until(pacer.clock.now_ns() + LOOK_NS)
            ready = take.session.ready.is_set()
            if ready and call.lost > lost:
                gone = call.lost - lost
                take.session.note("microphone_lost", f"{gone} packets of the microphone never came: silence there")
                lost = call.lost
            if ready and not told:
                told = True
                if take.cancels_echo:
                    take.session.note("echo", TOLD["cancel"])
                await self._send({"type": "ready", "session": take.name})
            await self._send(take.look(pacer.clock.now_ns()))

    def _note_delay(self, take: Take, asked: Asked) -> None:
        delay_ms = asked.jitter_ms + asked.playout_ms
        if self._noted_ms is None or abs(delay_ms - self._noted_ms) >= WORTH_NOTING_MS:
            self._noted_ms = delay_ms
            text = (
                f"the browser plays sound {delay_ms:.0f} ms after it has come there, by its own figures (jitter "
                f"buffer {asked.jitter_ms:.0f}, playout {asked.playout_ms:.0f}), and it waits "
                f"{take.loudspeaker.wait_ms:.0f} ms here before; in no metric"
            )
            take.session.note(BROWSER_DELAY, text)

    async def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError):
            if not self._socket.closed:
                await self._socket.send_str(msgspec.json.encode(message).decode())


def _facts(told: dict[str, str | int | float | bool | None]) -> dict[str, Any]:
    """What the browser says of itself and its microphone, cut to size."""
    items = list(told.items())[:MOST_FACTS]
    return {key[:40]: value[:LONGEST_WORD] if isinstance(value, str) else value for key, value in items}
