"""Codec frames to sound, in blocks that grow: what both of Qwen's Omni models share.

A block is decoded with frames before it (`left`) and, where the decoder looks ahead, after it (`right`), and only its
own samples are kept. Blocks start small, for an early first packet, and double up to a limit, as each costs the same
number of kernel launches whatever its length.
"""

from __future__ import annotations

from typing import NamedTuple


class Window(NamedTuple):
    """Frames [start, end) are decoded, for the sound of the frames [first, last)."""

    start: int
    end: int
    first: int
    last: int


class Blocks:
    """Which frames are decoded next. All in frames; align: windows start at a multiple of this."""

    def __init__(self, *, first: int, largest: int, left: int, right: int = 0, align: int = 1) -> None:
        self._size = first
        self._largest = largest
        self._left = left
        self._right = right
        self._align = align
        self._sent = 0

    def next(self, have: int, final: bool) -> Window | None:
        """The next window of `have` frames, None if it must wait for more. final: there will be no more frames."""
        last = have if final else self._sent + self._size
        if last <= self._sent or (not final and have < last + self._right):
            return None
        start = max(0, self._sent - self._left) // self._align * self._align
        window = Window(start, have if final else last + self._right, self._sent, last)
        self._sent = last
        self._size = min(2 * self._size, self._largest)
        return window
