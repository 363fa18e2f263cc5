"""The model's thread: hands orders to the sessions, and steps their answers in turn. Knows nothing of processes.

Between any two steps every waiting order is carried out first, so a cancellation, an interruption by the user's voice
and the end of a session all take effect within one step.
"""

from __future__ import annotations

from collections.abc import Callable

from connectors.local.inbox import Inbox, Order
from connectors.local.model import LocalModel
from connectors.local.outputs import declared
from connectors.local.seat import Seat
from connectors.local.wire import Begin, Do, FromWorker
from harness.core.clock import Clock


class ModelThread:
    """Serves sessions with a loaded `model`, as many at once as it declares. send: hands a record on, any thread."""

    def __init__(
        self, model: LocalModel, name: str, inbox: Inbox, send: Callable[[FromWorker], None], clock: Clock
    ) -> None:
        sessions = declared(model).sessions
        own = [model] if sessions == 1 else [model.seat(number) for number in range(sessions)]
        self._seats = [Seat(each, model, name, inbox, send, clock) for each in own]
        self._batch = model.batch if sessions > 1 else None
        self._stirred = False
        self._inbox = inbox
        self._clock = clock
        self.step_started_ns = 0
        """When the present step began, 0 between steps; read by the watching thread."""

    def serve(self) -> None:
        """Work for ever. Whatever the model raises comes out of here."""
        while True:
            order = self._inbox.take(self._due_ns())
            self.step_started_ns = self._clock.now_ns()
            if order is not None:
                self._carry_out(order)
                self._stirred = self._batch is not None
            else:
                self._round()
            self.step_started_ns = 0

    def _due_ns(self) -> int | None:
        if self._stirred:
            return 0
        return min((seat.due_ns for seat in self._seats if seat.due_ns is not None), default=None)

    def _round(self) -> None:
        """A step of each answer, then one of the batch; orders are looked for in between."""
        for seat in self._seats:
            if self._inbox.waiting:
                return
            seat.step()
        if self._batch is None or not self._stirred:
            return
        self._stirred = False
        for number, output in self._batch() or ():
            self._stirred = True
            self._seats[number].take(output, self._clock.now_ns())

    def _carry_out(self, order: Order) -> None:
        wanted = 0 if isinstance(order, Begin) else order.session
        seat = next((seat for seat in self._seats if seat.session == wanted), None)
        if seat is None:
            return
        if isinstance(order, Begin):
            seat.begin(order.session, order.configure)
        elif isinstance(order, Do):
            seat.command(order.command)
        else:
            seat.end()
