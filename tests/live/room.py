"""A live session on the virtual clock: a user made of samples, a peer in memory, and what both left."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.core.events import Event
from harness.core.profile import Profile
from harness.core.session.writer import SessionWriter
from harness.live.session import LiveSession
from harness.live.source import Source
from harness.live.speaker import Speaker
from harness.run.pacer import Pacer, Slots
from harness.run.session_plan import SessionOptions
from harness.run.virtual import run_virtual, virtual_timer
from tests.run.fakes import InlineDesk

RATE = 24_000
Connect = Callable[[Any, Any], Any]
"""(clock, sink) to a connection."""


class Shelf:
    """A recorder that writes at once, in this process. keep: events are remembered too."""

    def __init__(self, *, keep: bool = True) -> None:
        self.events: list[Event] = []
        self._keep = keep
        self._writer: SessionWriter | None = None

    def open(self, sessions: Path | None, header: Any) -> int:
        self._writer = None if sessions is None else SessionWriter(sessions, header)
        return 0

    def append(self, number: int, event: Event) -> None:
        if self._keep:
            self.events.append(event)
        if self._writer is not None:
            self._writer.append(event)

    async def close(self, number: int, *, keep: bool) -> None:
        assert keep
        if self._writer is not None:
            self._writer.close()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def hold(
    connect: Connect,
    speak: Callable[[LiveSession, Any], Coroutine[Any, Any, None]],
    *,
    source: Source | None = None,
    profile: Profile | None = None,
    sessions: Path | None = None,
    desk: Any = None,
    shelf: Shelf | None = None,
    options: SessionOptions | None = None,
    push_to_talk: bool = False,
    name: str = "00000-live",
) -> tuple[Any, LiveSession, Shelf]:
    """Hold a session while `speak(session, rig)` runs; it stops when that returns. (result, session, shelf)."""
    shelf = shelf or Shelf()

    async def main(clock: Any) -> tuple[Any, LiveSession]:
        import asyncio

        async def connected(configure: Any, sink: Any) -> Any:
            return connect(clock, sink)

        peer = SimpleNamespace(
            kind="fake",
            label="fake",
            version="1",
            config={},
            profile=profile or Profile(),
            connect=connected,
            ignores=(),
        )
        pacer = Pacer(clock, virtual_timer)
        rig: Any = SimpleNamespace(
            clock=clock,
            pacer=pacer,
            slots=Slots(),
            recorder=shelf,
            ears=desk or InlineDesk(),
            machine={},
            scheduling={},
        )
        spoken_into = source or Source(rate_hz=RATE, anchor="test")
        session = LiveSession(
            rig,
            peer,  # type: ignore[arg-type]
            options or SessionOptions(),
            sessions,  # type: ignore[arg-type]
            source=spoken_into,
            speaker=Speaker(spoken_into.rate_hz),
            push_to_talk=push_to_talk,
            name=name,
        )

        async def spoken() -> None:
            await session.ready.wait()
            await speak(session, rig)
            session.stop()

        async with asyncio.TaskGroup() as group:
            group.create_task(spoken())
            result = await session.run()
        return result, session

    result, session = run_virtual(main)
    return result, session, shelf


async def play_in(session: LiveSession, rig: Any, samples: Any, *, rate_hz: int = RATE, block_ms: int = 10) -> None:
    """Hand `samples` on in blocks, each when its last sample exists."""
    n = rate_hz * block_ms // 1000
    begin_ns = rig.clock.now_ns()
    for at in range(0, len(samples), n):
        block = samples[at : at + n]
        await rig.pacer.until(begin_ns + -(-(at + len(block)) * 1_000_000_000 // rate_hz))
        session.hear(block, rig.clock.now_ns())
