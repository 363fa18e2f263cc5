"""The items of one conversation, and what a client may do to them: add, cut short, delete, look at."""

from __future__ import annotations

from typing import Any, Literal

from connectors.agent.plan import Plan
from connectors.codecs import openai_requests as requests
from connectors.codecs.openai_requests import Invalid
from connectors.codecs.server import ServerEvents


class Conversation:
    """Keeps the items as the protocol shows them. Methods return the frames to send, or the error to answer with."""

    def __init__(self, events: ServerEvents) -> None:
        self._events = events
        self._items: dict[str, dict[str, Any]] = {}
        self._answers: dict[str, tuple[int, int]] = {}
        """Samples sent of each answer's item, and their rate in Hz."""
        self.last: str | None = None

    def add(self, item: dict[str, Any]) -> list[bytes]:
        """Append a finished item."""
        frames = self._events.item(item, self.last)
        self._keep(item)
        return frames

    def create(self, request: requests.ItemCreate) -> list[bytes] | Invalid:
        """Append what the client made; it may have named it."""
        if not isinstance(request.item.get("type"), str):
            message = "Missing required parameter: 'item.type'."
            return Invalid(code="missing_required_parameter", message=message, event_id=request.event_id)
        ident = request.item.get("id")
        if not isinstance(ident, str):
            ident = f"item_c{len(self._items) + 1}"
        return self.add({"object": "realtime.item", "status": "completed"} | request.item | {"id": ident})

    def answer_begins(self, plan: Plan) -> None:
        """The answer's item exists, still empty; its frames are part of the plan."""
        self._keep(self._events.answer_item(plan.item, "", "in_progress"))
        self._answers[plan.item] = (0, plan.rate_hz)

    def answer_sent(self, plan: Plan, samples: int) -> None:
        """So many more samples of the answer have left."""
        self._answers[plan.item] = (self._answers[plan.item][0] + samples, plan.rate_hz)

    def answer_ends(self, plan: Plan, status: Literal["completed", "incomplete"]) -> None:
        """The answer is over. One that was cut short has no transcript: nobody knows how far it was heard."""
        if plan.item in self._items:
            transcript = plan.transcript if status == "completed" else ""
            self._items[plan.item] = self._events.answer_item(plan.item, transcript, status)

    def samples_sent(self, item: str) -> int:
        """Samples sent of an answer's item."""
        return self._answers[item][0]

    def truncate(self, request: requests.ItemTruncate) -> list[bytes] | Invalid:
        """The client says how much of an answer was heard; its transcript goes (protocol sheet, section 1.7)."""
        if request.item_id not in self._answers or request.item_id not in self._items:
            return _missing(request.item_id, request.event_id)
        samples, rate_hz = self._answers[request.item_id]
        sent_ms = samples * 1000 // rate_hz
        if not 0 <= request.audio_end_ms <= sent_ms:
            message = f"Audio content of {sent_ms} ms is already shorter than {request.audio_end_ms} ms"
            return Invalid(code="invalid_value", message=message, event_id=request.event_id)
        status = self._items[request.item_id]["status"]
        self._items[request.item_id] = self._events.answer_item(request.item_id, "", status)
        return self._events.item_truncated(request.item_id, request.content_index, request.audio_end_ms)

    def delete(self, request: requests.ItemDelete) -> list[bytes] | Invalid:
        if self._items.pop(request.item_id, None) is None:
            return _missing(request.item_id, request.event_id)
        return self._events.item_deleted(request.item_id)

    def retrieve(self, request: requests.ItemRetrieve) -> list[bytes] | Invalid:
        item = self._items.get(request.item_id)
        return _missing(request.item_id, request.event_id) if item is None else self._events.item_retrieved(item)

    def _keep(self, item: dict[str, Any]) -> None:
        self._items[item["id"]] = item
        self.last = item["id"]


def _missing(item: str, event_id: str | None) -> Invalid:
    return Invalid(code="item_not_found", message=f"Item {item!r} does not exist", event_id=event_id)
