"""Which stretches of a live user's speech are one turn: nobody says so, so a rule does; the same while speaking and
afterwards. Pure."""

from __future__ import annotations

from harness.core.audio import NS_PER_MS

JOIN_NS = 600 * NS_PER_MS
"""Across a shorter pause speech goes on, whatever came in it: an answer to a pause in a query is early (timing
definitions, section 1, where utterances are joined by the same figure)."""
GIVE_UP_NS = 4_000 * NS_PER_MS
"""After a longer pause without an answer something new is said, and the old turn was not answered."""


def goes_on(pause_ns: int, *, answered: bool, committed: bool) -> bool:
    """Whether speech after a pause belongs to the turn before it.

    answered: the peer's sound came in the pause. committed: push-to-talk was let go in it.
    """
    if committed:
        return False
    return pause_ns < JOIN_NS or (not answered and pause_ns < GIVE_UP_NS)
