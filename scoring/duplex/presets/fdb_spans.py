"""Full-Duplex-Bench v1.5: stop and response from the Silero spans of both channels.

Source: Full-Duplex-Bench v1.5, `get_timing.py`. Its comments say that pauses up to 300 ms and splits up to 50 ms are
joined; its constants, which are what runs, say 0.6 s and 0.5 s. (It also drops all but one of several intervals that
end in the same ms; once spans are joined, overlaps never do.)
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.audio import NS_PER_MS
from scoring.duplex.spans import Span, clip, merge

USER_GAP_NS = 600 * NS_PER_MS
AGENT_GAP_NS = 500 * NS_PER_MS


def stops(user: Sequence[Span], agent: Sequence[Span]) -> list[Span]:
    """Every stretch in which both sides sound: its length is their stop latency, whoever it was that stopped."""
    joined = merge(agent, AGENT_GAP_NS)
    shared = (clip(a, u.start_ns, u.end_ns) for u in merge(user, USER_GAP_NS) for a in joined)
    return sorted(span for span in shared if span is not None)


def responses(user: Sequence[Span], agent: Sequence[Span]) -> list[Span]:
    """From each user span's end to the next agent start after it; of several with one start, the shortest."""
    starts = [span.start_ns for span in merge(agent, AGENT_GAP_NS)]
    best: dict[int, Span] = {}
    for spoken in merge(user, USER_GAP_NS):
        following = next((start for start in starts if start > spoken.end_ns), None)
        if following is not None:
            best[following] = Span(spoken.end_ns, following)  # the later user span's gap is the shorter one
    return sorted(best.values())
