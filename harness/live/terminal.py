"""A live session in the terminal: sound device, keys, picture and session, from start to the finished recording."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

import msgspec

from harness.core.audio import NS_PER_MS, NS_PER_S
from harness.core.clock import Clock
from harness.core.connector import Peer
from harness.core.run_directory import RunDirectory
from harness.live.device import Device, DeviceFacts
from harness.live.duplex import Duplex
from harness.live.echo import TOLD, Way, echo_of
from harness.live.keyboard import Keyboard
from harness.live.run import SESSION, LiveRequest, ending, live_directory, live_peer
from harness.live.screen import Screen
from harness.live.session import LiveSession
from harness.live.speaker import Speaker
from harness.live.transcript import Transcript
from harness.live.view import SHOWN_TURNS, Snapshot
from harness.run.bench import run_async
from harness.run.rig import Rig
from harness.run.session_plan import SessionResult

PICTURE_NS = 100 * NS_PER_MS
NOTICES = 4
HINTS: dict[Way, str] = {
    "headphones": "",
    "guard": "the microphone is shut while the agent speaks; with headphones say --headphones, and interrupt it",
    "cancel": "echo cancellation is on; for barge-in figures use headphones and --headphones",
}


class LiveResult(msgspec.Struct, frozen=True, kw_only=True):
    """failure: why the device is gone. reason: what the peer said when it ended the session."""

    directory: RunDirectory
    failure: str = ""
    reason: str = ""


class Terminal:
    """One session. device: opened, not started. echo: the way it is kept out."""

    def __init__(self, request: LiveRequest, device: Device, echo: Way, screen: Screen, clock: Clock) -> None:
        self._request = request
        self._device = device
        self._echo: Way = echo
        self._screen = screen
        self._clock = clock
        self._notices: deque[str] = deque(maxlen=NOTICES)
        self._transcript = Transcript()
        self._begin_ns = clock.now_ns()
        self.directory: RunDirectory | None = None
        """Where the session is recorded, once it has begun."""
        self._held: asyncio.Task[SessionResult] | None = None

    def run(self) -> LiveResult:
        """Hold the session until it is ended. Raises HarnessError: ConnectorError where the peer never heard anything,
        with the recording kept; KeyboardInterrupt where it was ended before the peer was there."""
        peer = live_peer(self._request, self._clock)
        try:
            directory = self.directory = live_directory(self._request, peer, msgspec.to_builtins(self._device.facts))
            result, failure = run_async(lambda: self._hold(peer, directory))
        finally:
            self._device.stop()
        if result is None:
            raise KeyboardInterrupt
        if result.error is not None:
            raise result.error
        return LiveResult(directory=directory, failure=failure, reason=result.reason)

    async def _hold(self, peer: Peer, directory: RunDirectory) -> tuple[SessionResult | None, str]:
        async with AsyncExitStack() as stack:
            rig = await stack.enter_async_context(Rig(self._clock, asked=self._request.priority))
            await stack.enter_async_context(peer)
            await stack.enter_async_context(self._screen)
            session = self._session(rig, peer, directory)
            stop = partial(self._stop, session)
            keys = Keyboard({"m": partial(_toggle_mute, session), " ": partial(_toggle_talk, session), "q": stop})
            stack.enter_context(keys)
            stack.enter_context(ending(stop))
            gc.collect()
            gc.freeze()
            stack.callback(gc.unfreeze)
            rig.watch.start()
            return await self._converse(rig, session, peer.label, keys.works)

    def _stop(self, session: LiveSession) -> None:
        """End the session; one whose peer is not there yet leaves nothing."""
        session.stop()
        if not session.ready.is_set() and self._held is not None:
            self._held.cancel()

    def _session(self, rig: Rig, peer: Peer, directory: RunDirectory) -> LiveSession:
        facts = self._device.facts
        return LiveSession(
            rig,
            peer,
            self._request.session,
            directory.sessions,
            source=facts.source(self._echo),
            speaker=Speaker(facts.rate_hz),
            listeners=(self._transcript.take,),
            push_to_talk=self._request.push_to_talk,
            name=SESSION,
        )

    async def _converse(
        self, rig: Rig, session: LiveSession, peer: str, keys: bool
    ) -> tuple[SessionResult | None, str]:
        facts = self._device.facts
        latency_ms = facts.input_latency_ms + facts.output_latency_ms
        echo = echo_of(self._echo, facts.rate_hz, latency_ms, push_to_talk=session.push_to_talk)
        duplex = Duplex(self._device, session, echo, rig.pacer, self._notices.append)
        picture = partial(self._picture, session, duplex, peer, _keys(session, keys))
        try:
            async with asyncio.TaskGroup() as group:
                held = self._held = group.create_task(_until_over(session))
                group.create_task(self._attend(session, duplex))
                group.create_task(self._paint(rig, session, picture))
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        self._screen.show(picture())
        return None if held.cancelled() else held.result(), duplex.failure

    async def _attend(self, session: LiveSession, duplex: Duplex) -> None:
        await duplex.run()
        session.stop()

    async def _paint(self, rig: Rig, session: LiveSession, picture: Callable[[], Snapshot]) -> None:
        told = False
        while not session.over:
            if session.ready.is_set() and not told:
                told = True
                if TOLD[self._echo]:
                    session.note("echo", TOLD[self._echo])
            self._screen.show(picture())
            await rig.pacer.until(rig.clock.now_ns() + PICTURE_NS)

    def _picture(self, session: LiveSession, duplex: Duplex, peer: str, keys: str) -> Snapshot:
        notices = [*self._notices]
        if session.turns.deaf:
            notices.append(f"turns are not told while you speak ({session.turns.deaf}); the recording has them")
        if session.gone:
            notices.append(f"the session is over: {session.gone}")
        return Snapshot(
            peer=peer,
            device=_device_line(self._device.facts),
            state=_state(session),
            elapsed_s=(self._clock.now_ns() - self._begin_ns) / NS_PER_S,
            user_db=duplex.user_db,
            agent_db=duplex.agent_db,
            turns=tuple(session.turns.rows(SHOWN_TURNS)),
            lines=self._transcript.lines,
            notices=tuple(notices),
            hint=HINTS[self._echo],
            keys=keys,
        )


async def _until_over(session: LiveSession) -> SessionResult:
    """Hold the session; whatever ends it, the others are told."""
    try:
        return await session.run()
    finally:
        session.stop()


def _toggle_mute(session: LiveSession) -> None:
    if not session.push_to_talk:
        session.mute(not session.muted)


def _toggle_talk(session: LiveSession) -> None:
    session.talk(not session.talking)


def _state(session: LiveSession) -> str:
    if session.over:
        return "ended"
    if not session.ready.is_set():
        return "connecting"
    if session.talking:
        return "listening"
    return "press space to talk" if session.push_to_talk else "muted"


def _keys(session: LiveSession, keys: bool) -> str:
    if not keys:
        return "Ctrl-C ends"
    return "space: talk, and send   q: end" if session.push_to_talk else "m: mute   q: end"


def _device_line(facts: DeviceFacts) -> str:
    names = facts.input if facts.input == facts.output else f"{facts.input} → {facts.output}"
    return (
        f"{names} ({facts.host}, {facts.rate_hz:,} Hz; {facts.input_latency_ms:.0f} ms in, subtracted; "
        f"{facts.output_latency_ms:.0f} ms out, heard on top)"
    )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    for error in errors.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    return errors
