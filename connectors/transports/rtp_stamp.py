"""The clock is taken in the datagram's own callback; here that stamp is kept until the datagram has been worked on.

aioice queues what it reads and aiortc takes it from there one by one, so a queue of stamps beside it tells, at any
moment, when the datagram at hand was read: an RTP packet, or the one that completed a data channel's message.
Also: round trips by STUN, the one question that every WebRTC peer answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from harness.core.clock import Clock

MAX_PROBES = 10
"""Unanswered questions that are remembered."""


class DatagramStamps:
    """Stamps of one connection. ice_transport: aiortc's `RTCIceTransport`, before it has been started.

    Touches this connection only: both ends of the queue are instance attributes.
    """

    def __init__(self, ice_transport: Any, clock: Clock) -> None:
        self.read_ns = 0
        """When the datagram that is being worked on was read."""
        self.read_bytes = 0
        now_ns = clock.now_ns
        connection = ice_transport._connection
        queued: deque[int] = deque()
        put, take = connection.data_received, ice_transport._recv

        def data_received(data: bytes, component: int) -> None:
            queued.append(now_ns())
            put(data, component)

        async def receive() -> bytes:
            data: bytes = await take()
            self.read_ns = queued.popleft()
            self.read_bytes = len(data)
            return data

        connection.data_received = data_received
        ice_transport._recv = receive


class StunProbe:
    """Asks for round trips over the connection's own path; answers are reported as (t_ns, rtt_ns)."""

    def __init__(self, ice_transport: Any, clock: Clock, on_rtt: Callable[[int, int], None]) -> None:
        self._connection = ice_transport._connection
        self._clock = clock
        self._on_rtt = on_rtt
        self._open: deque[tuple[dict[bytes, Any], bytes]] = deque()

    def ask(self) -> None:
        """Send one binding request; nothing happens while there is no path."""
        pair = self._connection._nominated.get(1)
        if pair is None or self._connection.remote_password is None:
            return
        request = self._connection.build_request(pair, nominate=False)
        request.add_message_integrity(self._connection.remote_password.encode())
        transactions = pair.protocol.transactions
        if len(self._open) >= MAX_PROBES:
            forgotten, old = self._open.popleft()
            forgotten.pop(old, None)
        self._open.append((transactions, request.transaction_id))
        transactions[request.transaction_id] = _Question(self, transactions, request.transaction_id)
        pair.protocol.send_stun(request, pair.remote_addr)


class _Question:
    """Stands where aioice keeps a transaction: it is called when the answer has been read."""

    def __init__(self, probe: StunProbe, transactions: dict[bytes, Any], ident: bytes) -> None:
        self._probe = probe
        self._transactions = transactions
        self._ident = ident
        self._asked_ns = probe._clock.now_ns()

    def response_received(self, message: Any, addr: tuple[str, int]) -> None:
        t_ns = self._probe._clock.now_ns()
        if self._transactions.pop(self._ident, None) is not None:
            self._probe._on_rtt(t_ns, t_ns - self._asked_ns)
