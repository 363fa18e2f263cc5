"""One session from connecting to the finished directory: queries are said, answers awaited, everything recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.core.audio import NS_PER_MS, NS_PER_S, ms_to_samples
from harness.core.clock import wall_anchor
from harness.core.commands import AddHistory, Commit, Configure, CreateResponse
from harness.core.connector import Connection, Peer, Prepared
from harness.core.errors import ConnectorError
from harness.core.events import CommandSent, ConnectionClosed, Event, GoAway, Note, PeerError, TurnEnded, TurnStarted
from harness.core.item import Item
from harness.core.query import Posed, Query
from harness.core.retry import LONGEST_WAIT_S, asked_wait_s
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.run.microphone import Cue, Microphone
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions, SessionPlan, SessionResult, TurnEnd
from harness.run.turn_watch import TurnWatch
from harness.run.utterance_watch import UtteranceWatch

TURN_GAP_MS = 300
"""Pause between the end of an answer's playout and the next query of the same session."""
ERROR_GRACE_S = 3.0
"""How long a turn waits for an answer after the peer reported an error with nothing under way."""
PING_NS = 2 * NS_PER_S


class SessionRunner:
    """Runs one planned session against `peer` and records it below `sessions`."""

    def __init__(self, rig: Rig, peer: Peer, options: SessionOptions, plan: SessionPlan, sessions: Path) -> None:
        self._rig = rig
        self._peer = peer
        self._options = options
        self._plan = plan
        self._sessions = sessions
        self._queries: tuple[Query, ...] = plan.queries
        rate_hz = peer.profile.input_rate_hz
        self._chunk_samples = ms_to_samples(options.chunk_ms or peer.profile.chunk_ms or 20, rate_hz)
        self._number = -1
        self._watch: TurnWatch | None = None
        self._utterances = UtteranceWatch() if peer.profile.continuous else None
        self._changed = asyncio.Event()
        self._outcomes: list[TurnEnd] = []
        self._gone = ""
        self._leaving = ""
        self._resume_ns = 0
        self._said = ""
        self._fault: Exception | None = None

    async def run(self) -> SessionResult:
        """Hold the session. A failed peer is a result, not an exception.

        Raises RecordingError when the disk fails; a cancelled session leaves nothing behind.
        """
        recorder = self._rig.recorder
        self._number = recorder.open(self._sessions, self._header())
        error: ConnectorError | None = None
        rest: SessionPlan | None = None
        keep = False
        self._note_ignored()
        if self._plan.takes_over:
            self._note("reopened", "a new session for the queries that were left when the peer ended the one before")
        unsayable = self._unsayable()
        try:
            try:
                if not unsayable:
                    await self._hold()
            except ConnectorError as exc:
                error = exc
                if not self._said or self._said not in str(exc):  # else the peer's own event stands there already
                    now_ns = self._rig.clock.now_ns()
                    self._sink(PeerError(t_ns=now_ns, code=exc.code or exc.kind, message=str(exc), fatal=True))
            if error is None:
                rest = self._move(self._leaving or self._gone)
            self._not_run(str(error) if error else unsayable or self._leaving or self._gone, rest)
            keep = True
        finally:
            await asyncio.shield(recorder.close(self._number, keep=keep))
        return SessionResult(
            plan=self._plan,
            outcomes=tuple(self._outcomes),
            reason=str(error) if error else unsayable or self._gone,
            error=error,
            rest=rest,
            resume_ns=self._resume_ns,
            connected=not unsayable,
        )

    def _unsayable(self) -> str:
        """Why no query of the session can be asked of this peer; empty where all can."""
        for query in self._queries:
            if isinstance(query, Posed) and query.missing:
                return query.missing
            if isinstance(query, Posed) and query.history and not self._peer.profile.history:
                rounds = len(query.history)
                return f"the peer takes no text history, and {query.id} goes on from {rounds} messages before it"
        return ""

    async def _hold(self) -> None:
        configure = Configure(
            turn=self._options.turn,
            instructions=self._options.instructions,
            voice=self._options.voice,
            model=self._options.model,
            language=self._queries[0].language or None,
        )
        connection = await self._peer.connect(configure, self._sink)
        microphone = Microphone(
            connection,
            pacer=self._rig.pacer,
            slots=self._rig.slots,
            record=self._sink,
            on_failure=self._failed,
            rate_hz=self._peer.profile.input_rate_hz,
            chunk_samples=self._chunk_samples,
        )
        try:
            self._ping(connection)
            for turn, query in enumerate(self._queries):
                if isinstance(query, Posed):
                    self._add_history(connection, query.history, turn)
                if self._gone or (turn and self._leaving):
                    break
                await self._turn(turn, query, connection, microphone)
                if self._fault is not None:
                    raise self._fault
                if turn + 1 < len(self._queries) and self._watch is not None:
                    await self._listen(self._watch)
                    if not self._leaving:
                        await self._pause(self._resume_ns)
            await self._pause(self._rig.clock.now_ns() + self._options.linger_ms * NS_PER_MS)
        finally:
            microphone.stop()
            self._ping_deadline.cancel()
            await connection.close()

    def _add_history(self, connection: Connection, history: Sequence[tuple[str, str]], turn: int | None = None) -> None:
        """Tell the peer what was said before."""
        for role, text in history:
            command = AddHistory(role="user" if role == "user" else "assistant", text=text)
            self._send(connection, "add_history", connection.prepare(command), turn)

    async def _listen(self, watch: TurnWatch) -> None:
        """Wait as a listener would until the answer has been heard; an endless one is left after the time limit."""
        now_ns = self._rig.clock.now_ns()
        limit_ns = now_ns + round(self._options.timeout_s * NS_PER_S)
        if watch.playout_end_ns > limit_ns:
            message = f"the answer plays on for more than {self._options.timeout_s:g} s; the next turn interrupts it"
            self._note("long_answer", message)
        await self._pause(min(max(watch.playout_end_ns, now_ns), limit_ns) + TURN_GAP_MS * NS_PER_MS)

    async def _turn(self, turn: int, query: Query, connection: Connection, microphone: Microphone) -> None:
        clip_sample = microphone.say(query.samples)
        speech_end = clip_sample + query.speech_end
        started = TurnStarted(
            t_ns=self._rig.clock.now_ns(),
            turn=turn,
            query=query.id,
            clip_sample=clip_sample,
            clip_samples=len(query.samples),
            speech_start=clip_sample + query.speech_start,
            speech_end=speech_end,
            text=query.text,
            language=query.language,
            annotator=query.annotator,
            impairment=query.impairment,
            audio_sha256=query.sha256 if query.impairment else "",
        )
        self._sink(started)
        if self._peer.profile.upload:
            speech_end_ns = microphone.upload(len(query.samples))  # no media time: what comes from now on may answer
        elif self._options.turn == "manual":
            self._say_manual(started, connection, microphone)
        elif not microphone.running:
            microphone.start()
        if not self._peer.profile.upload:
            speech_end_ns = microphone.instant_of(speech_end)
        earlier = self._watch.responses if self._watch else frozenset()
        self._watch = TurnWatch(speech_end_ns, earlier, self._utterances)
        outcome = await self._answer(speech_end_ns + round(self._options.timeout_s * NS_PER_S))
        self._outcomes.append(outcome)
        reason = self._watch.reason
        if outcome == "timeout":
            reason = f"no answer within {self._options.timeout_s:g} s"
        self._sink(TurnEnded(t_ns=self._rig.clock.now_ns(), turn=turn, outcome=outcome, reason=reason))
        if outcome == "closed":
            self._gone = reason or "the connection was closed"
        if self._peer.profile.upload and not turn:
            self._let_in(outcome, reason)

    def _let_in(self, outcome: TurnEnd, reason: str) -> None:
        """An upload's first request takes the place of the set-up: it shows whether we are let in at all.

        Raises ConnectorError when it was refused for good, or for now: then the session may be held again.
        """
        busy = bool(outcome == "error" and self._resume_ns and self._watch and self._watch.first_audio_ns is None)
        if self._said or busy:
            self._said = self._said or reason
            raise ConnectorError(reason, kind="peer", retryable=busy)

    def _say_manual(self, turn: TurnStarted, connection: Connection, microphone: Microphone) -> None:
        """Stream until the anchor packet (or the clip) has left, and commit in the same breath.

        Then silence stops, except for a peer that is clocked by its input: without it no answer would come.
        """
        end = turn.speech_end + self._peer.profile.encoder_lookahead_samples
        clip_end = turn.clip_sample + turn.clip_samples
        clocked = self._peer.profile.pacing == "input_clocked"
        if self._options.commit_after == "clip":
            end = clip_end
        elif not clocked:
            chunks = -(-(end - turn.clip_sample) // self._chunk_samples)
            end = min(turn.clip_sample + chunks * self._chunk_samples, clip_end)
        commands = [("commit", connection.prepare(Commit())), ("create_response", connection.prepare(CreateResponse()))]

        def commit() -> None:
            for name, prepared in commands:
                self._send(connection, name, prepared, turn.turn)

        cue = Cue(end, commit, stop=not clocked)
        if microphone.running:
            microphone.cue(cue)
        else:
            microphone.start(cue)

    def _send(
        self,
        connection: Connection,
        name: str,
        prepared: Prepared,
        turn: int | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Write a command now and record its instants."""
        started_ns = self._rig.clock.now_ns()
        try:
            pending = connection.send(prepared)
        except ConnectorError as exc:
            self._failed(exc)
            return
        sent = CommandSent(
            t_ns=self._rig.clock.now_ns(), command=name, started_ns=started_ns, turn=turn, detail=detail or {}
        )
        if pending:
            connection.when_drained(lambda t_ns: self._sink(msgspec.structs.replace(sent, t_ns=t_ns)))
        else:
            self._sink(sent)

    async def _answer(self, deadline_ns: int) -> TurnEnd:
        """Wait for the turn's outcome, at most until `deadline_ns`."""
        watch = self._watch
        assert watch is not None
        timer = self._rig.pacer.call_at(deadline_ns, self._changed.set)
        grace = None
        try:
            while watch.outcome is None:
                limit_ns = deadline_ns
                if watch.failing_ns is not None:
                    limit_ns = min(limit_ns, watch.failing_ns + round(ERROR_GRACE_S * NS_PER_S))
                    grace = grace or self._rig.pacer.call_at(limit_ns, self._changed.set)
                if self._rig.clock.now_ns() >= limit_ns:
                    return "timeout" if watch.failing_ns is None else "error"
                self._changed.clear()
                await self._changed.wait()
            return watch.outcome
        finally:
            timer.cancel()
            if grace is not None:
                grace.cancel()

    def _sink(self, event: Event) -> None:
        if isinstance(event, PeerError) and event.fatal:
            self._said = event.message
        self._rig.recorder.append(self._number, event)
        self._heed(event)
        if isinstance(event, ConnectionClosed) and event.by != "us" and not self._gone:
            self._gone = event.reason or f"closed by {event.by}" + (f" ({event.code})" if event.code else "")
            self._changed.set()
        if self._watch is not None and self._watch.outcome is None:
            self._watch.take(event)
            if self._watch.outcome is not None or self._watch.failing_ns is not None:
                self._changed.set()

    def _heed(self, event: Event) -> None:
        """Do as the peer asks: leave after this turn, or wait before the next."""
        if isinstance(event, GoAway):
            self._leaving = self._leaving or "go-away"
        elif isinstance(event, PeerError):
            if event.fatal:
                self._leaving = self._leaving or f"{event.code}: {event.message}"
            wait_s = asked_wait_s(event.code, event.message)
            if wait_s is not None:
                self._resume_ns = max(self._resume_ns, event.t_ns + round(wait_s * NS_PER_S))
                if wait_s > LONGEST_WAIT_S:
                    self._leaving = self._leaving or f"{event.code}: {event.message}"

    def _note_ignored(self) -> None:
        asked = [name for name in getattr(self._peer, "ignores", ()) if getattr(self._options, name) is not None]
        if asked:
            options = " and ".join(f"--{name}" for name in asked)
            self._note("ignored", f"{options} ignored: this peer has no place for it")

    def _note(self, code: str, message: str) -> None:
        self._sink(Note(t_ns=self._rig.clock.now_ns(), code=code, message=message))

    def _failed(self, error: Exception) -> None:
        """Sending failed: the connection is gone, or (anything but a ConnectorError) we are at fault ourselves."""
        if not isinstance(error, ConnectorError):
            self._fault = error
        self._gone = self._gone or str(error) or type(error).__name__
        if self._watch is not None:
            self._watch.take(ConnectionClosed(t_ns=self._rig.clock.now_ns(), by="network", reason=self._gone))
        self._changed.set()

    async def _pause(self, until_ns: int) -> None:
        if not self._gone:
            await self._rig.pacer.until(until_ns)

    def _ping(self, connection: Connection) -> None:
        """Ask for a round trip now and every two seconds."""
        connection.ping()
        next_ns = self._rig.clock.now_ns() + PING_NS
        self._ping_deadline = self._rig.pacer.call_at(next_ns, lambda: self._ping(connection))

    def _move(self, why: str) -> SessionPlan | None:
        """The queries that the peer, by ending the session, left unsaid; at least one counts as its victim."""
        done = max(1, len(self._outcomes))
        if not why or done >= len(self._queries):
            return None
        self._note("reopened", f"the peer ended the session before its last query ({why}); a new one took the rest")
        return self._plan.rest(done)

    def _not_run(self, reason: str, rest: SessionPlan | None) -> None:
        moved = len(self._queries) - (len(rest.queries) if rest else 0)
        for turn in range(len(self._outcomes), len(self._queries)):
            self._outcomes.append("not_run")
            moved_to = rest.id if rest and turn >= moved else ""
            now_ns = self._rig.clock.now_ns()
            self._sink(TurnEnded(t_ns=now_ns, turn=turn, outcome="not_run", reason=reason, moved_to=moved_to))

    def _header(self) -> Header:
        peer, options, clock = self._peer, self._options, self._rig.clock
        return Header(
            session=self._plan.id,
            peer=PeerInfo(kind=peer.kind, label=peer.label, version=peer.version, config=peer.config),
            mode="upload" if peer.profile.upload else options.turn,
            profile=peer.profile,
            clock=ClockInfo(name=clock.name, resolution_ns=clock.resolution_ns),
            anchor=wall_anchor(clock),
            machine={**self._rig.machine, "scheduling": msgspec.to_builtins(self._rig.scheduling)},
            config=msgspec.to_builtins(options),
            chunk_samples=self._chunk_samples,
            commit_after=options.commit_after,
            queries=tuple(query.id for query in self._queries),
            languages=tuple(query.language for query in self._queries),
            items=tuple(self._item(query) for query in self._queries if isinstance(query, Posed)),
            repeat=self._plan.repeat,
            warmup=self._plan.warmup,
            user=AudioInfo(file=f"user.{options.audio_format}", rate_hz=peer.profile.input_rate_hz),
            agent=AudioInfo(file=f"agent.{options.audio_format}", rate_hz=peer.profile.output_rate_hz),
            firstpacket=_version(),
        )

    def _item(self, query: Posed) -> Item:
        """The query's item, with what became of its history."""
        if not query.history:
            return query.item
        history: Literal["injected", "missing"] = "injected" if self._peer.profile.history else "missing"
        return msgspec.structs.replace(query.item, history=history)


def _version() -> str:
    from harness import __version__

    return __version__
