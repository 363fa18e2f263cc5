"""What the agent says, and when: answers, a greeting, its own "mm-hm", the rest of an answer that was cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from connectors.agent.answering import Answering, Role
from connectors.agent.brain import BrainSession
from connectors.agent.brain_answer import BrainAnswer
from connectors.agent.plan import Plan
from connectors.agent.shared import Shared
from connectors.agent.speech import Answer
from connectors.codecs.server import ServerSession
from harness.core.audio import NS_PER_MS


class Speaker:
    """Speaks for session number `session`. fail: reports a server error instead of an answer.

    after: the user's item that what is said next follows. brain: makes the answers instead of the library.
    """

    def __init__(
        self,
        session: int,
        server: ServerSession,
        answering: Answering,
        shared: Shared,
        *,
        fail: Callable[[], None],
        brain: BrainSession | None = None,
    ) -> None:
        self._session = session
        self._server = server
        self._answering = answering
        self._shared = shared
        self._knobs = shared.knobs
        self._fail = fail
        self._loop = asyncio.get_running_loop()
        self._planned: asyncio.TimerHandle | None = None
        self._owed = False
        self.after: str | None = None
        self._brain = brain
        self._made: BrainAnswer | None = None
        answering.on_free = self._free
        answering.on_stopped = self._stopped

    def answer(self, from_ns: int, *, at_once: bool = False) -> None:
        """Answer the turn that ended at `from_ns`; at_once: without the time to think."""
        if self._knobs.never_answer:
            return
        if self._knobs.error == "server_error":
            self._fail()
            return
        if self._brain is not None:
            self._ask(self._brain, from_ns)
            return
        self._say(self._pick(), from_ns, "answer", at_once=at_once)

    def answer_next(self, from_ns: int, *, at_once: bool = False) -> None:
        """Answer now, or when what is being said has been heard: then the time to think counts from there."""
        if self._answering.busy:
            self._owed = True
        else:
            self.answer(from_ns, at_once=at_once)

    def greet(self, decided_ns: int) -> None:
        """Speak first, `greet_ms` after the decision."""
        wait_ms = self._knobs.greet_ms
        assert wait_ms is not None
        due_ns = decided_ns + wait_ms * NS_PER_MS
        self._plan(wait_ms, lambda: self._say(self._pick(), due_ns, "greeting", at_once=True))

    def resume(self, decided_ns: int) -> None:
        """Go on with the answer that was cut short, `resume_ms` after the decision."""
        cut, wait_ms = self._answering.cut, self._knobs.resume_ms
        assert cut is not None
        assert wait_ms is not None

        def go_on() -> None:
            number = self._answering.count + 1
            rest = self._shared.plans.rest(self._server.events, number, cut.plan, cut.heard, previous=self.after)
            self._answering.start(rest, decided_ns + wait_ms * NS_PER_MS, "resumed")

        self._plan(wait_ms, go_on)

    def backchannel(self, decided_ns: int) -> None:
        """Say "mm-hm" at once; nothing else may be under way."""
        self._say(self._shared.library.backchannel(*self._languages()), decided_ns, "backchannel", at_once=True)

    def give_way(self) -> None:
        """The user speaks: nothing is owed any more, and nothing that was planned is said."""
        self._owed = False
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None

    def _say(self, answer: Answer, from_ns: int, role: Role, *, at_once: bool) -> None:
        number = self._answering.count + 1
        plan = self._shared.plans.get(self._server.events, number, answer, previous=self.after, at_once=at_once)
        self._answering.start(plan, from_ns, role)

    def _ask(self, brain: BrainSession, from_ns: int) -> None:
        self._made = BrainAnswer(
            self._knobs,
            self._server.events,
            self._answering.count + 1,
            brain=brain.name,
            from_ns=from_ns,
            previous=self.after,
            now_ns=self._shared.now_ns,
            grown=self._answering.grown,
        )
        self._answering.start(self._made.plan, from_ns)
        brain.begin(self._made)

    def _stopped(self, plan: Plan) -> None:
        if self._brain is not None and self._made is not None and plan is self._made.plan:
            self._brain.stop(self._made)

    def _pick(self) -> Answer:
        # Sessions start their rotation one answer on, so that runs of one turn a session hear them all.
        language, default = self._languages()
        return self._shared.library.pick(language, self._session + self._answering.count - 1, default)

    def _languages(self) -> tuple[str, str]:
        """What is spoken, and what is where the agent cannot speak that."""
        return str(self._server.language or self._knobs.language), self._knobs.language

    def _plan(self, wait_ms: int, call: Callable[[], None]) -> None:
        # The loop may wake a little early; the plan's instants count from the right one all the same.
        self._planned = self._loop.call_later(wait_ms / 1000, call)

    def _free(self) -> None:
        if self._owed:
            self._owed = False
            self.answer(self._shared.now_ns())
