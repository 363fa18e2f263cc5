"""One session that plays a scenario: the director places what the user says, the ear tells it of the agent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from harness.core.audio import NS_PER_MS, ns_to_samples
from harness.core.commands import Configure, Truncate
from harness.core.connector import Connection, Peer
from harness.core.events import AudioReceived, Event, UserSpeechStarted
from harness.core.profile import Profile
from harness.core.scenario import Directing, Placed, Play
from harness.core.session.header import Header
from harness.engines.vad import THRESHOLD, vad_name
from harness.run.agent_ear import RULES, AgentEar
from harness.run.cue_report import NOT_RUN
from harness.run.ear_desk import BEHIND_NS
from harness.run.microphone import Microphone
from harness.run.rig import Rig
from harness.run.runner import SessionRunner
from harness.run.session_plan import SessionOptions, SessionPlan
from harness.run.voice_heard import VoiceHeard

LISTEN_NS = 5_200 * NS_PER_MS
"""How long a session stays open after its last event: an answer that has not come by then is missed, not censored (5 s
in the duplex definitions, and the event that ends the session is its last packet, a little earlier)."""

TRUNCATE_ON = "user_speech_started"


class ScenarioRunner(SessionRunner):
    """Plays the one scenario of its plan. No turns are recorded, but a `ScenarioEvent` for each event that was put."""

    def __init__(self, rig: Rig, peer: Peer, options: SessionOptions, plan: SessionPlan, sessions: Path) -> None:
        super().__init__(rig, peer, options, plan, sessions)
        play: Play = plan.queries[0]
        self._play = play
        self._director: Directing | None = None
        self._ear: AgentEar | None = None
        self._hears = not unable(peer.profile) and play.hangs_on_agent(plan.repeat)
        self._heard_any = False
        self._early: list[Event] = []
        self._heard = VoiceHeard() if peer.profile.truncate else None
        self._connection: Connection | None = None
        self._last_sample = 0
        self._over = False

    async def _hold(self) -> None:
        options, play, profile = self._options, self._play, self._peer.profile
        if why := unable(profile):
            self._note(NOT_RUN, why)
            return
        if self._hears:
            await self._rig.ears.start()
        configure = Configure(
            turn=options.turn,
            instructions=options.instructions or play.instructions or None,
            voice=options.voice,
            model=options.model,
            language=play.language or None,
        )
        connection = self._connection = await self._peer.connect(configure, self._sink)
        microphone = Microphone(
            connection,
            pacer=self._rig.pacer,
            slots=self._rig.slots,
            record=self._sink,
            on_failure=self._failed,
            rate_hz=profile.input_rate_hz,
            chunk_samples=self._chunk_samples,
        )
        try:
            self._ping(connection)
            self._remember(connection)
            microphone.before_chunk = partial(self._advance, microphone)
            microphone.start()
            while not (self._over or self._gone):
                self._changed.clear()
                await self._changed.wait()
            if self._fault is not None:
                raise self._fault
            await self._pause(self._rig.clock.now_ns() + options.linger_ms * NS_PER_MS)
        finally:
            microphone.stop()
            self._close_ear()
            self._ping_deadline.cancel()
            await connection.close()
        spoke = self._heard_any if self._ear is None else self._ear.spoke
        self._outcomes.append("closed" if self._gone and not self._over else "answered" if spoke else "timeout")
        if not self._over:
            self._note("scenario_cut", f"the session ended before its scenario did: {self._gone}")

    def _remember(self, connection: Connection) -> None:
        """Tell the peer of the turns before the session."""
        if not self._play.history:
            return
        if not self._peer.profile.history:
            self._note("ignored", "the scenario's history is left out: this peer has no place for it")
            return
        self._add_history(connection, self._play.history)

    def _advance(self, microphone: Microphone) -> None:
        """Before each chunk is taken: put what is due."""
        now_ns = self._rig.clock.now_ns()
        if self._director is None:
            self._director = self._play.direct(self._plan.repeat, microphone.instant_of(0), self._chunk_samples)
            if self._hears:
                self._ear = AgentEar(self._director, self._rig.ears, self._peer.profile)
                for event in self._early:
                    self._ear.take(event)
            self._early.clear()
        if self._ear is not None:
            self._ear.listen(now_ns)
        behind_ns = self._rig.ears.behind_ns() if self._hears else 0
        for placed in self._director.advance(now_ns, microphone.position, behind_ns=behind_ns):
            microphone.say(placed.samples, at=placed.clip_sample)
            self._last_sample = max(self._last_sample, placed.speech_end)
            self._sink(placed.record(now_ns, category=self._play.category, tags=self._play.tags))
            self._explain(placed)
        if self._director.over(now_ns) and self._listened(microphone):
            self._over = True
            self._changed.set()

    def _explain(self, placed: Placed) -> None:
        """Say why a cue was not met: the agent did not do what was waited for, or nobody could hear whether it did."""
        if not placed.missed:
            return
        behind_ns = self._rig.ears.behind_ns()
        if self._ear is not None and self._ear.deaf:
            why = f"; {self._ear.deaf}"
        elif behind_ns > BEHIND_NS:
            why = f"; the process that hears was {behind_ns // NS_PER_MS} ms behind"
        else:
            why = ""
        self._note("cue_timed_out", f"{placed.missed}{why}")

    def _close_ear(self) -> None:
        if self._ear is None:
            return
        self._ear.close()
        if self._ear.deaf:
            self._note("deaf", f"cues that hang on the agent could only time out: {self._ear.deaf}")
        if self._ear.unheard:
            message = f"{self._ear.unheard} packets were not listened to: the process that hears could not keep up"
            self._note("unheard", message)

    def _listened(self, microphone: Microphone) -> bool:
        if self._play.linger_ms is not None:
            return True
        wait = ns_to_samples(LISTEN_NS, microphone.rate_hz)
        return microphone.position >= self._last_sample + wait

    def _sink(self, event: Event) -> None:
        super()._sink(event)
        if self._ear is not None:
            self._ear.take(event)
        elif self._hears and self._director is None:
            self._early.append(event)
        self._heard_any = self._heard_any or (isinstance(event, AudioReceived) and event.samples > 0)
        if self._heard is None:
            return
        if isinstance(event, AudioReceived):
            self._heard.take(event)
        elif isinstance(event, UserSpeechStarted) and TRUNCATE_ON in self._peer.profile.flush_on:
            self._rig.pacer.defer(partial(self._truncate, self._heard.flush, event.t_ns))

    def _truncate(self, flush: Callable[[int], Truncate | None], t_ns: int) -> None:
        """Tell the peer how much of its answer was heard before `t_ns`."""
        cut = flush(t_ns)
        if cut is None or self._connection is None or self._gone:
            return
        detail = {"item": cut.item, "audio_end_ms": cut.audio_end_ms}
        self._send(self._connection, "truncate", self._connection.prepare(cut), detail=detail)

    def _header(self) -> Header:
        """Queries are turns, and there are none: the scenario stands in `config`."""
        header = super()._header()
        config: dict[str, Any] = {**header.config, "scenario": self._play.id}
        if self._hears:
            config["cues"] = {**self._play.rules, **RULES, "vad": vad_name(), "vad_threshold": THRESHOLD}
        return msgspec.structs.replace(header, queries=(), config=config)

    def _not_run(self, reason: str, rest: SessionPlan | None) -> None:
        """No turn was planned, so none is recorded as not run."""
        if not self._outcomes:
            self._outcomes.append("not_run")


def unable(profile: Profile) -> str:
    """Why a scenario cannot be played to a peer, "" if it can."""
    if profile.upload:
        return "this peer takes a query in one upload: a scenario needs a stream in both directions"
    if "vad" not in profile.turns and not profile.continuous:
        return "this peer is push-to-talk only: it never ends a turn by itself, so nobody can interrupt it"
    return ""
