"""The duplex metrics, in the order of the rows' columns. Formulas and edge cases in DUPLEX.md."""

from __future__ import annotations

from scoring.duplex.continuity import FALSE_START, FALSE_STOP, KEPT_TALKING, RESUME, RESUMED
from scoring.duplex.initiative import BACKCHANNELS, INTERRUPTIONS
from scoring.duplex.interruption import OVERLAP, STOP, TALK_OVER, WIRE_STOP, YIELDED
from scoring.duplex.metric import Metric
from scoring.duplex.response import FTO, MISSED, POST_INTERRUPTION, RESPONSE

METRICS: tuple[Metric, ...] = (
    RESPONSE,
    POST_INTERRUPTION,
    FTO,
    MISSED,
    STOP,
    WIRE_STOP,
    YIELDED,
    TALK_OVER,
    OVERLAP,
    KEPT_TALKING,
    FALSE_STOP,
    RESUMED,
    RESUME,
    FALSE_START,
    BACKCHANNELS,
    INTERRUPTIONS,
)
