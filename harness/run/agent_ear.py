"""Hears the agent for the director: voice activity on received audio, ahead of its playout.

The capture path only appends. The network hears one frame of 32 ms in each turn of the event loop, ear after ear, so
that no answer that comes at once holds up a packet or a deadline for longer than a frame takes (0.7 ms of a core).
Detection lags: a start is known 64 ms of audio after it, a stop 100 ms. Both are dated back to where they are heard
in the zero-buffer playout model; the director sees what can still be met and records what cannot.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from harness.core.audio import NS_PER_MS, NS_PER_S, Int16, pcm16_to_int16, samples_to_ns
from harness.core.events import AudioReceived, CommandSent, Event, Interrupted, ResponseDone
from harness.core.scenario import Directing
from harness.engines.resample import StreamResampler
from harness.engines.vad import FRAME_SAMPLES, VAD_RATE_HZ, StreamingVad
from harness.run.pacer import Pacer

RUN_DRY_NS = 150 * NS_PER_MS
"""So long after playout ran dry what was spoken has ended; longer gaps are heard as silence of this length."""
HOLD_NS = 2_000 * NS_PER_MS
"""A pause inside a response that is not complete is no end below this (the sentences of an answer lie that far apart);
nor is a stall in one below `STALL_NS`."""
STALL_NS = 3_000 * NS_PER_MS
BLOCK_MS = 32
"""What is heard in one turn of the loop: a frame of the network."""
FRAME_TAKES_NS = 1_500_000
"""How long a frame may take on a busy core."""
PATIENCE_NS = 10 * NS_PER_MS
"""How long ears wait for a gap between deadlines, all together: with many sessions there is none."""
PRIME_FRAMES = 16
"""Silence before speech: Silero starts cold and finds speech that begins with its stream late."""


class _Sound(NamedTuple):
    """Something to hear. start_ns: when its first sample is heard (None: silence that stands for a pause)."""

    samples: Int16
    rate_hz: int
    start_ns: int | None


class EarDesk:
    """Lets the ears of all sessions hear in turn, one frame in each turn of the loop.

    A frame that would run into the next deadline of `pacer` waits until that has passed, for a while.
    """

    def __init__(self, pacer: Pacer | None = None) -> None:
        self.pacer = pacer
        self._waiting: deque[AgentEar] = deque()
        self._called = False
        self._served_ns = 0

    def ask(self, ear: AgentEar) -> None:
        """`ear` has something to hear."""
        if ear not in self._waiting:
            self._waiting.append(ear)
        self._call()

    def forget(self, ear: AgentEar) -> None:
        if ear in self._waiting:
            self._waiting.remove(ear)

    def _call(self) -> None:
        if self._waiting and not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._called = False
        if not self._waiting or self._makes_way():
            return
        ear = self._waiting.popleft()
        if ear.hear():
            self._waiting.append(ear)
        self._call()

    def _makes_way(self) -> bool:
        """Whether a deadline comes first."""
        if self.pacer is None:
            return False
        pacer, now_ns, due_ns = self.pacer, self.pacer.clock.now_ns(), self.pacer.next_ns
        patient = now_ns < self._served_ns + PATIENCE_NS // len(self._waiting)
        if due_ns is None or due_ns > now_ns + FRAME_TAKES_NS or not patient:
            self._served_ns = now_ns
            return False
        self._called = True
        pacer.call_at(due_ns, lambda: pacer.defer(self._go_on))
        return True

    def _go_on(self) -> None:
        self._called = False
        self._call()


class AgentEar:
    """One session's ear. `take` each event; `listen` once a chunk. continuous, flush_on: of the peer's profile."""

    def __init__(
        self,
        director: Directing,
        ask: Callable[[AgentEar], None],
        *,
        flush_on: tuple[str, ...],
        continuous: bool = False,
    ) -> None:
        self._director = director
        self._flush_on = frozenset(flush_on)
        self._turns = not continuous
        self._ask = ask
        self._vad = StreamingVad()
        self._resampler: StreamResampler | None = None
        self._todo: deque[_Sound | None] = deque()  # None: the response is complete
        self._marks: list[tuple[int, int]] = []  # (sample of the network's stream, when it is heard), ascending
        self._fed = 0
        self._open = False
        self._dry = True
        self._end_ns = 0
        self._closed: set[str] = set()
        self._complete = True
        self._pause_ns: int | None = None  # when the response that is not complete fell silent
        self.spoke = False
        """Whether the agent was ever heard to speak."""
        self._prime()

    def take(self, event: Event) -> None:
        """An event of the session, in order of arrival; returns at once."""
        if event.__struct_config__.tag in self._flush_on:
            self._flush(event.t_ns)
        if isinstance(event, AudioReceived):
            if event.samples > 0 and event.response not in self._closed:
                self._packet(event)
        elif isinstance(event, ResponseDone | Interrupted):
            if event.response:
                self._closed.add(event.response)
            if isinstance(event, ResponseDone):
                self._add(None)
        elif isinstance(event, CommandSent) and event.command == "cancel" and event.detail.get("response"):
            self._closed.add(str(event.detail["response"]))

    def listen(self, now_ns: int) -> None:
        """Once a chunk: what ran dry, or has been silent for long, has ended."""
        dry_ns = RUN_DRY_NS if self._complete else STALL_NS
        if self._open and not self._todo and now_ns >= self._end_ns + dry_ns:
            self._conclude(final=False)
        elif self._pause_ns is not None and now_ns >= self._pause_ns + HOLD_NS:
            self._director.agent_stopped(self._pause_ns)
            self._pause_ns = None

    def hear(self) -> bool:
        """Hear a block; whether there is more."""
        if self._todo:
            sound = self._todo.popleft()
            if sound is None:
                self._conclude(final=True)
            else:
                self._hear(sound)
        return bool(self._todo)

    def _add(self, sound: _Sound | None) -> None:
        self._todo.append(sound)
        self._ask(self)

    def _packet(self, event: AudioReceived) -> None:
        start_ns = event.t_ns if self._dry else max(self._end_ns, event.t_ns)
        if not self._dry and start_ns > self._end_ns:
            pause_ns = min(start_ns - self._end_ns, RUN_DRY_NS)
            self._add(_silence(pause_ns * event.rate_hz // NS_PER_S, event.rate_hz))
        self._dry = False
        self._complete = not (self._turns and event.response)
        self._end_ns = start_ns + samples_to_ns(event.samples, event.rate_hz)
        self._add(_Sound(pcm16_to_int16(event.pcm), event.rate_hz, start_ns))

    def _flush(self, t_ns: int) -> None:
        """What would be heard from `t_ns` on is dropped. Sound that was heard before and not judged yet is not missed:
        the network is ahead of playout, or behind by less than speech has to last."""
        if self._dry or self._end_ns <= t_ns:
            return
        self._end_ns, self._dry = t_ns, True
        self._todo.clear()
        self._complete, self._pause_ns = True, None
        self._director.agent_flushed(t_ns)
        self._prime()

    def _hear(self, sound: _Sound) -> None:
        n = sound.rate_hz * BLOCK_MS // 1000
        if len(sound.samples) > n:
            rest_ns = None if sound.start_ns is None else sound.start_ns + samples_to_ns(n, sound.rate_hz)
            self._todo.appendleft(_Sound(sound.samples[n:], sound.rate_hz, rest_ns))
        if self._resampler is None or self._resampler.rate_in_hz != sound.rate_hz:
            self._resampler = StreamResampler(sound.rate_hz, VAD_RATE_HZ)
            self._base, self._in = self._fed, 0
        if sound.start_ns is not None:
            self._open = True
            self._marks.append((self._base + self._in * VAD_RATE_HZ // sound.rate_hz, sound.start_ns))
        block = sound.samples[:n]
        self._in += len(block)
        self._push(self._resampler.push(block))

    def _push(self, samples: Int16) -> None:
        self._fed += len(samples)
        for frame in self._vad.push(samples):
            if frame.event is None:
                continue
            heard_ns = self._instant_of(frame.event.at_sample)
            if frame.event.kind == "stop" and self._complete:
                self._director.agent_stopped(heard_ns)
            elif frame.event.kind == "stop":
                self._pause_ns = heard_ns
            else:
                self.spoke, self._pause_ns = True, None
                self._director.agent_started(heard_ns)

    def _instant_of(self, sample: int) -> int:
        at = max(bisect_right(self._marks, sample, key=lambda mark: mark[0]) - 1, 0)
        begin, t_ns = self._marks[at]
        return t_ns + max(sample - begin, 0) * NS_PER_S // VAD_RATE_HZ

    def _conclude(self, *, final: bool) -> None:
        """Nothing follows what was heard: speech that is still going on ends with it."""
        if self._resampler is not None:
            self._push(self._resampler.finish())
        stopped_ns = self._pause_ns
        if self._vad.speaking:
            silence = self._vad.silence_from
            stopped_ns = self._end_ns if silence is None else self._instant_of(silence)
        if final or stopped_ns is not None:
            self._director.agent_stopped(self._end_ns if stopped_ns is None else stopped_ns, final=final)
        self._complete, self._pause_ns = True, None
        self._prime()

    def _prime(self) -> None:
        """Forget what was heard, and be ready for the next word."""
        self._vad.reset()
        self._resampler = None
        self._open = False
        self._marks.clear()
        self._fed = self._base = self._in = 0
        self._todo.appendleft(_silence(PRIME_FRAMES * FRAME_SAMPLES, VAD_RATE_HZ))
        self._ask(self)


def _silence(samples: int, rate_hz: int) -> _Sound:
    return _Sound(np.zeros(samples, dtype=np.int16), rate_hz, None)
