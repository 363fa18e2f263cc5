"""A live session: what a person says goes to a peer as it is captured, what comes back to listeners and a speaker.

Knows no sound card and no page. Whoever has one hands on blocks of samples (`hear`), and takes sound from the
`Speaker`. Leaves an ordinary session directory; turns are put into it afterwards (`harness.live.annotation`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from harness.core.audio import Int16, int16_to_pcm16, pcm16_to_int16, samples_to_ns
from harness.core.commands import Cancel, Commit, Configure, CreateResponse
from harness.core.connector import Connection, Peer, Sink
from harness.core.events import AudioReceived, Event, Interrupted, PlaybackCut, ResponseDone, ResponseStarted
from harness.core.session.header import Header
from harness.live.open_microphone import OpenMicrophone
from harness.live.source import Source
from harness.live.speaker import Speaker
from harness.live.turns import LiveTurns
from harness.run.ear_channel import Conclude, Sound
from harness.run.rig import Rig
from harness.run.runner import SessionRunner
from harness.run.session_plan import SessionOptions, SessionPlan
from harness.run.voice_heard import VoiceHeard

REMEMBERED = 32
"""Answers that are over and whose late sound is not played."""
PROVISIONAL = "while the session ran, by the process that hears; the recording's marks are the offline annotator's"


class LiveSession(SessionRunner):
    """Held by `run` until `stop`, or until the peer ends it.

    source: of the user's samples. speaker: filled with the agent's sound. listeners: get every event of the session, in
    order, and return at once; so does `turns`, the figures as far as they are known while speaking. push_to_talk:
    nothing flows before `talk(True)`; in manual turns, `talk(False)` ends the turn.
    """

    def __init__(
        self,
        rig: Rig,
        peer: Peer,
        options: SessionOptions,
        sessions: Path,
        *,
        source: Source,
        speaker: Speaker,
        listeners: Sequence[Sink] = (),
        push_to_talk: bool = False,
        name: str = "00000-live",
    ) -> None:
        super().__init__(rig, peer, options, SessionPlan(id=name, queries=()), sessions)
        self.source = source
        self.speaker = speaker
        flush_on = (*peer.profile.flush_on, "playback_cut")
        self._profile = msgspec.structs.replace(peer.profile, flush_on=flush_on)
        self.turns = LiveTurns(self._profile, options.turn)
        self.ready = asyncio.Event()
        """Set when the peer is there and hears."""
        self.endings: list[Callable[[], None]] = []
        """Called when the session is over and its recording still open: the last chance for a `note`."""
        self._listeners = (self.turns.take, *listeners)
        self.push_to_talk = push_to_talk or options.turn == "manual"
        self._connection: Connection | None = None
        self._microphone: OpenMicrophone | None = None
        self._ear = -1
        self._heard = VoiceHeard() if peer.profile.truncate else None
        self._closed: deque[str] = deque(maxlen=REMEMBERED)
        self._pushes = 0
        self._answering = ""
        self._over = False

    @property
    def gone(self) -> str:
        """Why the session is over, "" while it is not."""
        return self._gone

    @property
    def over(self) -> bool:
        """Whether the session was stopped, or is gone."""
        return self._over or bool(self._gone)

    @property
    def talking(self) -> bool:
        """Whether what is said goes to the peer."""
        return self._microphone is not None and self._microphone.is_open and not self._microphone.muted

    @property
    def muted(self) -> bool:
        return self._microphone is not None and self._microphone.muted

    def hear(self, samples: Int16, handed_ns: int, *, lost: bool = False) -> None:
        """The source's next block, int16 of shape (n,), which it handed on at `handed_ns`. lost: some before it was."""
        if self._microphone is not None and not self._gone:
            self._microphone.take(samples, handed_ns, lost=lost)

    def mute(self, on: bool) -> None:
        """Silence flows instead of what is said."""
        if self._microphone is not None:
            self._microphone.muted = on

    def talk(self, on: bool) -> None:
        """Push-to-talk: the key was pressed or let go. In manual turns the peer is told, and silence stops; in turns
        that the peer ends, and for one that is clocked by its input, silence flows on."""
        microphone, connection = self._microphone, self._connection
        if microphone is None or connection is None or not self.push_to_talk or self._gone:
            return
        manual = self._options.turn == "manual"
        if on:
            self._silence(connection)
            microphone.muted = False
            microphone.open()
        elif manual and microphone.is_open and not microphone.muted:
            if self._peer.profile.pacing == "input_clocked":
                microphone.muted = True
            else:
                microphone.close()
            self._rig.ears.send(Conclude(self._ear, 0, self._rig.clock.now_ns(), False))
            for name, command in (("commit", Commit()), ("create_response", CreateResponse())):
                self._send(connection, name, connection.prepare(command), self._pushes)
            self._pushes += 1
        else:
            microphone.muted = True

    def _silence(self, connection: Connection) -> None:
        """The key makes the agent fall silent, as a push-to-talk client would: what is queued is not heard."""
        if not self.speaker.flush():
            return
        now_ns = self._rig.clock.now_ns()
        self._sink(PlaybackCut(t_ns=now_ns))
        if self._answering and self._peer.profile.cancel:
            cancel = connection.prepare(Cancel(response=self._answering))
            self._send(connection, "cancel", cancel, detail={"response": self._answering})
            self._closed.append(self._answering)
        self._truncate(now_ns)

    def note(self, code: str, message: str) -> None:
        """Something that a reader of the recording must know."""
        self._note(code, message)

    def stop(self) -> None:
        """End the session; what was recorded stays."""
        self._over = True
        self._changed.set()

    async def _hold(self) -> None:
        options = self._options
        await self._rig.ears.start()
        configure = Configure(
            turn=options.turn, instructions=options.instructions, voice=options.voice, model=options.model
        )
        connection = self._connection = await self._peer.connect(configure, self._sink)
        self._ear = self._rig.ears.open(self.turns)
        microphone = self._microphone = OpenMicrophone(
            connection,
            clock=self._rig.clock,
            record=self._sink,
            on_failure=self._failed,
            on_sent=self._sent,
            source=self.source,
            rate_hz=self._peer.profile.input_rate_hz,
            chunk_samples=self._chunk_samples,
        )
        try:
            self._ping(connection)
            if options.turn != "manual" or self._peer.profile.pacing == "input_clocked":
                microphone.muted = self.push_to_talk
                microphone.open()
            self.ready.set()
            while not (self._over or self._gone or self._fault):
                self._changed.clear()
                await self._changed.wait()
            if self._fault is not None:
                raise self._fault
            if not self._gone:
                microphone.close()
        finally:
            microphone.end()
            if self.speaker.dropped:
                unheard_s = self.speaker.dropped / self.speaker.rate_hz
                self.note("unheard", f"{unheard_s:.0f} s of the peer's sound found no room in the loudspeaker's queue")
            for ending in self.endings:
                ending()
            self._rig.ears.close(self._ear)
            self._ping_deadline.cancel()
            await connection.close()

    def _sent(self, samples: Int16, captured_ns: int) -> None:
        """What left is heard, too: where speech began and ended."""
        pcm = int16_to_pcm16(samples)
        rate_hz = self._peer.profile.input_rate_hz
        self.turns.left(captured_ns + samples_to_ns(len(samples), rate_hz), self._rig.clock.now_ns())
        self._rig.ears.send(Sound(self._ear, 0, rate_hz, len(samples), captured_ns, False, pcm))

    def _sink(self, event: Event) -> None:
        super()._sink(event)
        self._play(event)
        for listener in self._listeners:
            listener(event)

    def _play(self, event: Event) -> None:
        """As a client would: what comes is played, what the peer was interrupted in is not."""
        if isinstance(event, ResponseStarted) and self._heard is not None and not self.speaker.queued:
            self._heard = VoiceHeard()
        if event.__struct_config__.tag in self._peer.profile.flush_on and self.speaker.flush():
            self._rig.pacer.defer(partial(self._truncate, event.t_ns))
        if isinstance(event, AudioReceived) and event.samples > 0:
            if event.response not in self._closed:
                self._answering = event.response
                self.speaker.put(pcm16_to_int16(event.pcm), event.rate_hz)
                if self._heard is not None:
                    self._heard.take(event)
        elif isinstance(event, ResponseDone | Interrupted) and event.response:
            self._closed.append(event.response)
            self._answering = ""
            self.speaker.finish()

    def _truncate(self, t_ns: int) -> None:
        """Tell the peer how much of its answer was heard before `t_ns`."""
        cut = None if self._heard is None else self._heard.flush(t_ns)
        if cut is None or self._connection is None or self._gone:
            return
        detail = {"item": cut.item, "audio_end_ms": cut.audio_end_ms}
        self._send(self._connection, "truncate", self._connection.prepare(cut), detail=detail)

    def _header(self) -> Header:
        header = super()._header()
        live: dict[str, Any] = {
            "source": msgspec.to_builtins(self.source),
            "push_to_talk": self.push_to_talk,
            "shown_figures": PROVISIONAL,
        }
        return msgspec.structs.replace(header, profile=self._profile, config={**header.config, "live": live})

    def _not_run(self, reason: str, rest: SessionPlan | None) -> None:
        """No turn was planned."""

    def _move(self, why: str) -> SessionPlan | None:
        return None
