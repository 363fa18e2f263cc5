"""Where sessions of the page are held, one at a time, into one run directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from harness.core.connector import Peer
from harness.core.errors import HarnessError
from harness.core.run_directory import RunDirectory
from harness.live.session import LiveSession
from harness.live.source import Source
from harness.live.speaker import Speaker
from harness.live.web.call import Call, NewCall
from harness.live.web.feed import Feed
from harness.live.web.loudspeaker import Loudspeaker
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions, SessionResult

ANCHOR = "RTP arrival (a browser tells no instant of capture), less Opus' look-ahead"
"""For `MediaAnchor.source`."""


OpenDirectory = Callable[[dict[str, Any]], RunDirectory]
"""Makes the run directory, with what the first session's browser says of its microphone. Raises ConfigError."""


class Take:
    """One session and what stands around it. facts: what the browser says of its microphone."""

    def __init__(self, studio: Studio, call: Call, facts: dict[str, Any], *, push_to_talk: bool) -> None:
        rig = studio.rig
        self.begin_ns = rig.clock.now_ns()
        self.name = f"{studio.count:05d}-live"
        self.cancels_echo = facts.get("echoCancellation") not in (None, False, "false")
        self.feed = Feed(self.begin_ns, call.rate_hz, call.latency_ns)
        speaker = Speaker(call.rate_hz)
        self.loudspeaker = Loudspeaker(
            call, speaker, rig.pacer, self.feed.play, continuous=studio.peer.profile.continuous
        )
        self.session = LiveSession(
            rig,
            studio.peer,
            studio.options,
            studio.directory_for(facts).sessions,
            source=Source(rate_hz=call.rate_hz, latency_ns=call.latency_ns, anchor=ANCHOR, facts=facts),
            speaker=speaker,
            listeners=(self.feed.take, self.loudspeaker.take),
            push_to_talk=push_to_talk,
            name=self.name,
        )

    def look(self, now_ns: int) -> dict[str, Any]:
        """What the page is told now."""
        return self.feed.look(now_ns, self.session, self.loudspeaker.wait_ms)


class Studio:
    """rig, peer, options: as of `LiveSession`. new_call: makes a WebRTC call. open_directory: called once, when the
    first session begins."""

    def __init__(
        self, rig: Rig, peer: Peer, options: SessionOptions, open_directory: OpenDirectory, new_call: NewCall
    ) -> None:
        self.rig = rig
        self.peer = peer
        self.options = options
        self.new_call = new_call
        self._open_directory = open_directory
        self.directory: RunDirectory | None = None
        """None while nothing was recorded."""
        self.push_to_talk = False
        """What the page proposes."""
        self.busy = False
        """Whether a session is under way."""
        self.count = 0
        self.results: list[SessionResult] = []
        """Of the sessions that are over, in order."""
        self.fault: HarnessError | None = None
        """What is no browser's and no peer's fault, and ends it all."""
        self.over = asyncio.Event()
        """Set when no more sessions are held."""

    def directory_for(self, facts: dict[str, Any]) -> RunDirectory:
        """The run directory; made now if there is none yet."""
        if self.directory is None:
            self.directory = self._open_directory(facts)
        return self.directory

    def fail(self, fault: HarnessError) -> None:
        """Nothing can be recorded any more."""
        self.fault = self.fault or fault
        self.over.set()
