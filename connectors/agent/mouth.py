"""An audio stream that never stops: a packet at each tick, silence where nothing is said (WebRTC, Live, Moshi)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from harness.core.audio import NS_PER_MS, NS_PER_S, PCM16_BYTES, ms_to_samples, pcm16_to_int16, samples_to_ns
from harness.core.speech_edges import is_silent

Emit = Callable[[bytes], tuple[int, int, int]]
"""Sends one packet of PCM16 and tells the instants just before and after, and the bytes on the wire."""
OnState = Callable[[Literal["started", "stopped"], str], None]
OnSaid = Callable[[str, int, int, int], None]
LATEST_TICKS = 5
"""A mouth that is more ticks than this behind (the machine stood still) goes on from now."""


class Mouth:
    """Says what it is given, in order, packet by packet, of session number `session`.

    rate_hz, packet_ms: of every packet. record: takes the truth log's `write` records, for packets with samples of an
    answer. on_state: told when a response begins and ends to sound; on_said: of every packet, whose it is (empty:
    silence), the samples of the answer, how long a listener is busy with it (ns), and when its sound left. clocked: no
    ticks of its own, a packet leaves for every packet's length of input that it is told of (`heard`); the first
    `head_start` of those bring none. lookahead_ns: of the encoder, by which sound lies behind in the packets.
    catches_up: listeners who are behind leave out packets without sound, as WebRTC's do.
    """

    def __init__(
        self,
        session: int,
        emit: Emit,
        *,
        rate_hz: int,
        packet_ms: int,
        now_ns: Callable[[], int],
        record: Callable[[tuple[Any, ...]], None],
        clocked: bool = False,
        head_start: int = 0,
        lookahead_ns: int = 0,
        catches_up: bool = False,
    ) -> None:
        self.rate_hz = rate_hz
        self.on_state: OnState = lambda state, response: None
        self.on_said: OnSaid = lambda response, samples, length_ns, at_ns: None
        self._session = session
        self._emit = emit
        self._now_ns = now_ns
        self._record = record
        self._packet_bytes = ms_to_samples(packet_ms, rate_hz) * PCM16_BYTES
        self._period_ns = packet_ms * NS_PER_MS
        self._queue: deque[tuple[str, bytes]] = deque()
        self._sounding = ""
        self._finished = ""
        self._said = ("", 0)
        self._next_ns = 0
        self._timer: asyncio.TimerHandle | None = None
        self._running = False
        self._clocked = clocked
        self._lookahead_ns = lookahead_ns
        self._catches_up = catches_up
        self._heard_ns = -head_start * self._period_ns

    def at_rate(self, rate_hz: int) -> None:
        """Speak at another rate from now on; nothing may be queued."""
        self.rate_hz = rate_hz
        self._packet_bytes = ms_to_samples(self._period_ns // NS_PER_MS, rate_hz) * PCM16_BYTES

    def start(self) -> None:
        """Begin to tick; a clocked mouth waits for its input instead."""
        if self._clocked:
            return
        self._running = True
        self._next_ns = self._now_ns()
        self._tick()

    def stop(self) -> None:
        self._running = False
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def play(self, response: str, pcm: bytes) -> None:
        """Say PCM16 of an answer after what is queued already."""
        if pcm:
            self._queue.append((response, pcm))

    @property
    def speaking(self) -> bool:
        """Whether an answer sounds, or is about to."""
        return bool(self._queue or self._sounding)

    def said_samples(self, response: str) -> int:
        """Samples of this answer that have been said so far (0 once another has begun)."""
        return self._said[1] if self._said[0] == response else 0

    def finish(self, response: str) -> None:
        """Nothing more of this answer will come: once all is said, it has stopped."""
        self._finished = response

    def flush(self) -> bool:
        """Forget what has not been said; whether an answer was cut off by that."""
        cut = self.speaking
        self._queue.clear()
        self._sounding = ""
        return cut

    def heard(self, samples: int, rate_hz: int) -> None:
        """So much more input has come."""
        if not self._clocked:
            return
        self._heard_ns += samples_to_ns(samples, rate_hz)
        while self._heard_ns >= self._period_ns:
            self._heard_ns -= self._period_ns
            self.step()

    def step(self) -> None:
        """Send the next packet now."""
        response, said = self._take()
        if said and self._sounding != response:
            self._sounding = response
            self.on_state("started", response)
        before_ns, after_ns, size = self._emit(said.ljust(self._packet_bytes, b"\0"))
        samples = len(said) // PCM16_BYTES
        left_out = self._catches_up and is_silent(pcm16_to_int16(said), self.rate_hz)
        busy_ns = 0 if left_out else self._period_ns
        self.on_said(response, samples, busy_ns, before_ns + self._lookahead_ns)
        if said:
            self._said = (response, self.said_samples(response) + samples)
            self._record(("write", self._session, response, "audio", before_ns, after_ns, samples, size, 0))
        if self._sounding and self._sounding == self._finished and not self._queue:
            ended, self._sounding = self._sounding, ""
            self.on_state("stopped", ended)

    def _take(self) -> tuple[str, bytes]:
        """Up to one packet of one response."""
        if not self._queue:
            return "", b""
        response, said = self._queue[0][0], bytearray()
        while self._queue and self._queue[0][0] == response and len(said) < self._packet_bytes:
            _, pcm = self._queue.popleft()
            room = self._packet_bytes - len(said)
            said += pcm[:room]
            if len(pcm) > room:
                self._queue.appendleft((response, pcm[room:]))
        return response, bytes(said)

    def _tick(self) -> None:
        self._timer = None
        while self._running:
            now_ns = self._now_ns()
            wait_ns = self._next_ns - now_ns
            if wait_ns > 0:
                self._timer = asyncio.get_running_loop().call_later(wait_ns / NS_PER_S, self._tick)
                return
            self._next_ns += self._period_ns
            if now_ns - self._next_ns > LATEST_TICKS * self._period_ns:
                self._next_ns = now_ns
            self.step()
