"""What may go wrong with a sound device while it runs, found from its blocks and the clock. Pure."""

from __future__ import annotations

from harness.core.audio import NS_PER_S
from harness.core.pace import RATES_HZ

SETTLING = 50
"""Blocks at the start in which a gap is no news: devices fill their buffers."""
SILENT_NS = NS_PER_S
"""A stream without a block for so long is dead: some die without a word."""
JUDGED_NS = 5 * NS_PER_S
"""So much is needed to tell a sample rate: a block more or less is then 0.2 %."""
ODD = 0.01
"""A sound card is within 0.1 % of its rate; one that is 1 % off runs at another."""


class StreamWatch:
    """`take` every block from `start_ns` on; `dead` tells whether to give it up, `remarks` what to tell once."""

    def __init__(self, rate_hz: int, start_ns: int) -> None:
        self._rate_hz = rate_hz
        self._last_ns = start_ns
        self._begin_ns: int | None = None
        self._samples = 0
        self._odd = False
        self.overflows = 0
        self.underflows = 0
        self.blocks = 0

    def take(self, samples: int, handed_ns: int, *, overflow: bool = False, underflow: bool = False) -> list[str]:
        """A block came; what there is to say about it."""
        self.blocks += 1
        self._last_ns = handed_ns
        said: list[str] = []
        if overflow:
            self.overflows += 1
            if self.overflows == 1:
                said.append("captured sound was lost (overflow): this machine is too slow or too busy for the device")
        if underflow and self.blocks > SETTLING:
            self.underflows += 1
            if self.underflows == 1:
                said.append("what was heard had a gap (underflow): this machine is too slow or too busy for the device")
        return said + self._judge(samples, handed_ns, disturbed=overflow)

    def dead(self, now_ns: int) -> str:
        """Why the stream must be given up, "" while it lives."""
        if now_ns - self._last_ns < SILENT_NS:
            return ""
        if not self.blocks:
            return "the sound device never delivered anything: another program may hold it, or it is muted in hardware"
        return "the sound device stopped without a word: no sound came from it for 1 s; it was unplugged, or it died"

    def ending(self) -> list[str]:
        """What is to be said of the whole stream."""
        said = []
        if self.overflows:
            said.append(f"{self.overflows} times captured sound was lost (overflow)")
        if self.underflows:
            said.append(f"{self.underflows} times what was heard had a gap (underflow)")
        return said

    def _judge(self, samples: int, handed_ns: int, *, disturbed: bool) -> list[str]:
        """Whether the device keeps the rate that it was asked for."""
        if self._begin_ns is None or disturbed:
            self._begin_ns, self._samples = handed_ns, 0
            return []
        self._samples += samples
        took_ns = handed_ns - self._begin_ns
        if took_ns < JUDGED_NS:
            return []
        measured = self._samples * NS_PER_S / took_ns
        self._begin_ns, self._samples = handed_ns, 0
        if self._odd or abs(measured / self._rate_hz - 1) <= ODD:
            return []
        self._odd = True
        usual = min(RATES_HZ, key=lambda rate: abs(rate - measured))
        told = usual if abs(usual / measured - 1) <= ODD else round(measured, -2)
        return [
            f"the device delivers {told:,.0f} samples a second, not the {self._rate_hz:,} that it was asked for: what "
            "the peer hears is distorted; choose another device, or set its rate with --rate"
        ]
