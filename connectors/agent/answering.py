"""The answer under way: its frames leave at their instants, until it is done or something stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, NamedTuple

from connectors.agent.conversation import Conversation
from connectors.agent.heard import Heard
from connectors.agent.plan import Plan, Step
from connectors.agent.shared import Shared
from connectors.agent.wire import Wire
from connectors.codecs.server import ServerEvents
from harness.core.audio import NS_PER_S, samples_to_ns

Role = Literal["answer", "greeting", "backchannel", "resumed"]


class Cut(NamedTuple):
    """An answer that was cut short. heard: how many of its samples were heard."""

    plan: Plan
    heard: int


class Answering:
    """At most one answer at a time, of session number `session`.

    count: answers begun so far. cut: by the last interruption. on_free: called when an answer has been heard to its end
    or is stopped. on_stopped: called with a plan that is cut short. A listener without a buffer is imagined, so that
    speech over what was sent but is not yet heard counts as an interruption as well.
    """

    def __init__(
        self, session: int, events: ServerEvents, conversation: Conversation, wire: Wire, shared: Shared
    ) -> None:
        self._session = session
        self._events = events
        self._conversation = conversation
        self._wire = wire
        self._close_code = shared.knobs.close_code
        self._late_delta_ms = shared.knobs.late_delta_ms
        self._truth = shared.truth.add
        self._now_ns = shared.now_ns
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._late: asyncio.Handle | None = None
        self._plan: Plan | None = None
        self._from_ns = 0
        self._next = 0
        self._open = False
        self._sounds = False
        self._playout_end_ns = 0
        self._heard = Heard(session, shared.truth.add)
        self.count = 0
        self.cut: Cut | None = None
        self.on_free: Callable[[], None] = lambda: None
        self.on_stopped: Callable[[Plan], None] = lambda plan: None
        if wire.mouth is not None:
            wire.mouth.on_said = self._heard.said
            wire.mouth.on_state = self._mouth_state

    @property
    def active(self) -> str | None:
        """Name of the response that has begun and is not done."""
        return self._plan.response if self._plan is not None and self._open else None

    @property
    def busy(self) -> bool:
        """Whether an answer has begun and has not been heard to its end."""
        return self.active is not None or self._playing

    @property
    def sounding(self) -> bool:
        """Whether the agent is being heard, or pauses in an answer that has been heard to begin."""
        return self._sounds and self.busy

    @property
    def _playing(self) -> bool:
        mouth = self._wire.mouth
        return self._now_ns() < self._playout_end_ns or (mouth is not None and mouth.speaking)

    def start(self, plan: Plan, from_ns: int, role: Role = "answer") -> None:
        """Let `plan` out; its instants count from `from_ns`."""
        self._drop_timer()
        self.count += 1
        self._plan, self._from_ns, self._next, self._open = plan, from_ns, 0, True
        self._sounds, self.cut = False, None
        self._conversation.answer_begins(plan)
        self._heard.begins(plan)
        about = (plan.response, plan.answer, plan.language, plan.rate_hz, role, plan.from_sample)
        self._truth(("response", self._session, self._now_ns(), self.count, *about))
        self._run()

    def grown(self, plan: Plan) -> None:
        """Steps have come to a plan that is still being made."""
        if plan is self._plan and self._open:
            self._drop_timer()
            self._timer = self._loop.call_soon(self._run)

    def interrupt(self) -> None:
        """The user speaks: what is being sent stops, and what is still being heard is noted."""
        plan = self._plan
        cut = None if plan is None else Cut(plan, self._heard_samples(plan))
        if self.active is not None:
            self.cancel("turn_detected", "barge_in")
        elif plan is not None and self._playing:
            self._stopped(plan, "barge_in")
            self.silence()
        else:
            cut = None
        self._drop_timer()
        self._plan, self.cut = None, cut
        self.on_free()

    def _heard_samples(self, plan: Plan) -> int:
        mouth = self._wire.mouth
        if mouth is not None:
            return mouth.said_samples(plan.response)
        return self._heard.samples_at(plan.response, self._now_ns())

    def cancel(self, reason: Literal["turn_detected", "client_cancelled"], why: str) -> None:
        """End the active response early, with the events that say so."""
        plan = self._plan
        assert plan is not None
        self._drop_timer()
        self._stopped(plan, why)
        events = self._events
        for payload in events.answer_closed(plan.response, plan.item, "", "incomplete"):
            self._write(plan, Step(0, "event", events.frame(payload)))
        output = [events.answer_item(plan.item, "", "incomplete")]
        done = events.response_done(plan.response, "cancelled", reason=reason, output=output)
        self._done(plan, b"".join(events.frame(payload) for payload in done), "cancelled")
        self.silence()
        self._plan = None
        late = next((step for step in plan.steps if step.kind == "late"), None)
        if late is not None:
            self._late = self._loop.call_later((self._late_delta_ms or 0) / 1000, self._write, plan, late)

    def silence(self) -> None:
        """Empty the mouth of a continuous session, and say so where the protocol can."""
        plan, mouth = self._plan, self._wire.mouth
        if mouth is None or plan is None or not mouth.flush():
            return
        heard_ms = mouth.said_samples(plan.response) * 1000 // mouth.rate_hz
        cleared = self._events.playback("cleared", plan.response)
        cut = self._events.item_truncated(plan.item, 0, heard_ms) if cleared else []
        for payload in (*cleared, *cut):
            self._wire.write_frame(self._events.frame(payload))

    def drop(self, why: str) -> None:
        """Stop without a word: the connection is going or gone."""
        if self._plan is not None and self._open:
            self._stopped(self._plan, why)
        self._heard.close(self._now_ns())
        self._drop_timer()
        if self._late is not None:
            self._late.cancel()
        self._plan = None
        self._open = False

    def _run(self) -> None:
        self._timer = None
        plan = self._plan
        while plan is not None and plan is self._plan and self._next < len(plan.steps):
            step = plan.steps[self._next]
            wait_ns = self._from_ns + step.at_ns - self._now_ns()
            if wait_ns > 0:
                # uvloop rounds to whole milliseconds and may wake early: then this loop waits again.
                self._timer = self._loop.call_later(wait_ns / NS_PER_S, self._run)
                return
            self._next += 1
            if step.kind == "done":
                self._done(plan, step.frame, plan.status)
            elif step.kind == "close":
                self.drop("close")
                self._wire.end(self._close_code, step.frame.decode() or "agent closes in mid-answer")
            else:
                self._write(plan, step)
                if step.kind == "audio":
                    # uvloop passes writes on when its turn ends: a packet must not wait for those after it.
                    self._timer = self._loop.call_soon(self._run)
                    return

    def _write(self, plan: Plan, step: Step) -> None:
        if step.kind in ("audio", "late") and self._wire.mouth is not None:
            self._wire.mouth.play(plan.response, step.frame)
            self._sent(plan, step.samples, self._now_ns())
            return
        before_ns, after_ns = self._wire.write_frame(step.frame)
        size = (step.samples, len(step.frame), self._wire.buffered_bytes())
        self._truth(("write", self._session, plan.response, step.kind, before_ns, after_ns, *size))
        if step.kind == "audio":
            self._heard.said(plan.response, step.samples, samples_to_ns(step.samples, plan.rate_hz), before_ns)
            self._sent(plan, step.samples, after_ns)

    def _sent(self, plan: Plan, samples: int, t_ns: int) -> None:
        self._sounds = self._sounds or samples > 0
        self._conversation.answer_sent(plan, samples)
        self._playout_end_ns = max(self._playout_end_ns, t_ns) + samples_to_ns(samples, plan.rate_hz)

    def _done(self, plan: Plan, frame: bytes, status: str) -> None:
        before_ns, after_ns = self._wire.write_frame(frame) if frame else (self._now_ns(),) * 2
        self._open = False
        if self._wire.mouth is not None:
            self._wire.mouth.finish(plan.response)
        self._conversation.answer_ends(plan, "completed" if status == "completed" else "incomplete")
        self._truth(("done", self._session, before_ns, after_ns, plan.response, status))
        if status != "cancelled":
            self._finish(plan)

    def _mouth_state(self, state: Literal["started", "stopped"], response: str) -> None:
        for payload in self._events.playback(state, response):
            self._wire.write_frame(self._events.frame(payload))
        if state == "stopped":
            self._heard.over(response)
            self.on_free()

    def _finish(self, plan: Plan) -> None:
        """Everything was sent: when it has been heard, it is over."""
        wait_ns = self._playout_end_ns - self._now_ns()
        mouth = self._wire.mouth
        if wait_ns > 0:
            self._loop.call_later(wait_ns / NS_PER_S, self._finish, plan)
        elif mouth is None or not mouth.speaking:
            self._heard.over(plan.response)
            self.on_free()

    def _stopped(self, plan: Plan, why: str) -> None:
        now_ns = self._now_ns()
        sent = self._conversation.samples_sent(plan.item)
        self._truth(("stop", self._session, now_ns, plan.response, why, sent, now_ns < self._playout_end_ns))
        self._playout_end_ns = min(self._playout_end_ns, now_ns)
        self._heard.over(plan.response, cut_ns=now_ns if self._wire.mouth is None else None)
        self.on_stopped(plan)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
