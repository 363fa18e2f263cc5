"""How much of an answer was heard when playout was emptied: what a peer that keeps a transcript is told then."""

from __future__ import annotations

from harness.core.audio import NS_PER_MS
from harness.core.commands import Truncate
from harness.core.events import AudioReceived
from harness.core.playout import Packet, play


class VoiceHeard:
    """Keeps the packets since the last flush, by item."""

    def __init__(self) -> None:
        self._packets: list[tuple[str, Packet]] = []
        self._told: set[str] = set()

    def take(self, event: AudioReceived) -> None:
        if event.samples > 0 and event.item and event.item not in self._told:
            packet = Packet(arrival_ns=event.t_ns, samples=event.samples, rate_hz=event.rate_hz)
            self._packets.append((event.item, packet))

    def flush(self, t_ns: int) -> Truncate | None:
        """Playout was emptied: the command for the item that was cut, None where nothing was left to play."""
        items = [item for item, _ in self._packets]
        heard = play((packet for _, packet in self._packets), flushes_ns=[t_ns])
        whole = play(packet for _, packet in self._packets)
        self._packets.clear()
        cut = [item for item, a, b in zip(items, heard, whole, strict=True) if a.end_ns < b.end_ns]
        if not cut:
            return None
        self._told.update(cut)
        heard_ns = sum(p.end_ns - p.start_ns for item, p in zip(items, heard, strict=True) if item == cut[0])
        return Truncate(item=cut[0], audio_end_ms=heard_ns // NS_PER_MS)
