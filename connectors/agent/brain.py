"""A local model that answers for the agent instead of its recorded speech: `serve(brain=BrainOptions(...))`.

The model runs in a worker process, as for `--peer local:…`, so that it disturbs no instant of the agent's. The agent
finds the ends of turns, interrupts and writes the truth log as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np
import soxr

from connectors.agent.brain_answer import BrainAnswer
from connectors.agent.knobs import Knobs
from connectors.local.peer import LocalConnection, LocalPeer
from harness.core.audio import int16_to_pcm16, pcm16_to_int16
from harness.core.clock import Clock
from harness.core.commands import AppendAudio, Cancel, Command, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, ConnectorError, HarnessError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    Event,
    PeerError,
    RawReceived,
    ResponseDone,
    TextReceived,
    UserTranscript,
)

START_S = 600.0
"""For a session that begins: a worker that died has to load its model again."""
OF_RECORDINGS = (
    *("answer_s", "leading_silence_ms", "tail_s", "silent_answer", "empty_packets", "odd_bytes", "wav_headers"),
    *("think_ms", "text_lead_ms", "jitter_ms", "stall_at_ms", "stall_ms", "late_delta_ms", "user_transcript"),
    *("close_after_ms", "broken_json", "flood"),
)
"""Knobs that shape recorded answers ahead of time; an answer that is just being made has its own."""


class BrainOptions(msgspec.Struct, frozen=True, kw_only=True):
    """target: what follows `local:` in a peer's name (`cascade`, `package.module:Class`). settings: its `--set`."""

    target: str
    settings: dict[str, str] = msgspec.field(default_factory=dict)


class Brain:
    """The loaded model, for the life of the agent. It serves one session at a time."""

    def __init__(self, options: BrainOptions, clock: Clock) -> None:
        self.name = options.target
        self._peer = LocalPeer(PeerOptions(target=options.target, settings=options.settings, timeout_s=START_S), clock)
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Load. Raises ConfigError, PrerequisiteError or ConnectorError."""
        await self._peer.__aenter__()
        profile = self._peer.profile
        if "manual" not in profile.turns or profile.continuous:
            await self._peer.__aexit__(None, None, None)
            raise ConfigError(f"--brain {self.name}: the model must take manual turns, as the agent finds their ends")
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._running:
            task.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            await self._peer.__aexit__(None, None, None)

    @property
    def rates_hz(self) -> tuple[int, int]:
        """Of what it hears and of what it says."""
        return self._peer.profile.input_rate_hz, self._peer.profile.output_rate_hz

    def start(self, life: Callable[[LocalPeer], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Run a session's life with the peer."""
        task = self._tasks.create_task(life(self._peer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


class _Life:
    """Of one session with the model; what still comes from one that is over is not heard."""

    def __init__(self) -> None:
        self.over = asyncio.Event()


class BrainSession:
    """One session of the agent with its brain, begun with the first sound.

    on_transcript: told what the brain understood. on_stage: told the name of each stage that it finished, and when.
    """

    def __init__(
        self,
        brain: Brain,
        *,
        on_transcript: Callable[[str], None],
        on_stage: Callable[[str, int], None],
    ) -> None:
        self._brain = brain
        self._on_transcript = on_transcript
        self._on_stage = on_stage
        self._task: asyncio.Task[None] | None = None
        self._connection: LocalConnection | None = None
        self._waiting: list[Command] = []
        self._life = _Life()
        self._answer: BrainAnswer | None = None
        self._owed = 0
        """Answers that the model was asked for and has not ended."""
        self._resampler: Any = None
        self._rate_hz = 0

    @property
    def name(self) -> str:
        return self._brain.name

    def hear(self, pcm: bytes, rate_hz: int, configure: Callable[[], Configure]) -> None:
        """The user's sound, PCM16 at `rate_hz`. configure: for a session that begins with it."""
        if self._task is None:
            life, settings = _Life(), configure()
            self._life = life
            self._task = self._brain.start(lambda peer: self._live(peer, settings, life))
        wanted_hz = self._brain.rates_hz[0]
        if rate_hz != wanted_hz:
            if self._rate_hz != rate_hz:
                self._resampler = soxr.ResampleStream(rate_hz, wanted_hz, 1, dtype="int16", quality="MQ")
                self._rate_hz = rate_hz
            pcm = int16_to_pcm16(np.asarray(self._resampler.resample_chunk(pcm16_to_int16(pcm)), dtype=np.int16))
        if pcm:
            self._do(AppendAudio(pcm=pcm))

    def commit(self) -> None:
        """The turn is over."""
        self._do(Commit())

    def begin(self, answer: BrainAnswer) -> None:
        """Answer the turn: what comes goes to `answer`, until it is stopped."""
        self._answer = answer
        if self._task is None:
            answer.fail("the brain has heard nothing")
            return
        self._do(CreateResponse())
        self._owed += 1

    def stop(self, answer: BrainAnswer) -> None:
        """The answer was cut short: what still comes of it is not wanted."""
        if answer is self._answer:
            self._answer = None
            self._do(Cancel())

    def close(self) -> None:
        """The session is over."""
        self._answer = None
        self._life.over.set()
        if self._task is not None and self._connection is None:
            self._task.cancel()

    def _do(self, command: Command) -> None:
        if self._task is None:
            return
        if self._connection is None:
            self._waiting.append(command)
            return
        try:
            self._connection.send(self._connection.prepare(command))
        except ConnectorError as exc:
            self._failed(str(exc))

    async def _live(self, peer: LocalPeer, settings: Configure, life: _Life) -> None:
        def sink(event: Event) -> None:
            if life is self._life:
                self._event(event)

        try:
            connection = await peer.connect(settings, sink)
        except HarnessError as exc:
            if life is self._life:
                self._failed(str(exc))
            return
        self._connection = connection
        try:
            waiting, self._waiting = self._waiting, []
            for command in waiting:
                self._do(command)
            await life.over.wait()
        finally:
            await connection.close()

    def _event(self, event: Event) -> None:
        """What the model says; events of an answer that was stopped are let go."""
        if isinstance(event, PeerError) and event.fatal:
            self._failed(event.message)
        elif isinstance(event, ConnectionClosed):
            self._failed(event.reason or "the brain ended the session")
        elif isinstance(event, ResponseDone):
            self._owed -= 1
            if self._owed == 0 and self._answer is not None:
                answer, self._answer = self._answer, None
                answer.finish()
        elif self._owed > 1:
            return  # of an answer before the one that is wanted
        elif isinstance(event, UserTranscript):
            self._on_transcript(event.text)
        elif isinstance(event, RawReceived):
            self._on_stage(event.name.removeprefix("stage."), event.produced_ns)
        elif self._answer is not None and isinstance(event, TextReceived):
            self._answer.text(event.text)
        elif self._answer is not None and isinstance(event, AudioReceived):
            self._answer.sound(pcm16_to_int16(event.pcm), event.rate_hz)

    def _failed(self, why: str) -> None:
        """The worker is gone: this answer fails, and the next sound begins a new session."""
        self._life.over.set()
        self._life = _Life()
        self._task = self._connection = None
        self._waiting, self._owed = [], 0
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.fail(why)


def check_brain(knobs: Knobs) -> Knobs:
    """The knobs of an agent with a brain: one session at a time. Raises ConfigError for those of recorded answers."""
    plain = Knobs()
    for name in OF_RECORDINGS:
        if getattr(knobs, name) != getattr(plain, name):
            raise ConfigError(f"{name} shapes recorded answers: it goes with no brain")
    if knobs.session_limit not in (None, 1):
        raise ConfigError("session_limit: an agent with a brain serves one session at a time")
    return msgspec.structs.replace(knobs, session_limit=1)
