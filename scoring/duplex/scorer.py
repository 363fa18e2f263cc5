"""The duplex scorer: a run directory in, a row an event and the panel out; the same input gives the same bytes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from harness.core.audio import NS_PER_MS
from harness.core.events import ScenarioEvent
from harness.core.run_directory import RunDirectory
from harness.core.scorer import Scored
from harness.core.session.reader import Session
from harness.core.speech_edges import BELOW_LOUDEST_DB, FLOOR_DB, REACH_MS, RUN_ON_MS, WINDOW_MS
from harness.engines.vad import THRESHOLD
from scoring.duplex.floor import Floor, Parameters
from scoring.duplex.hearing import HOLD_NS, STUMBLE_NS, hear
from scoring.duplex.metrics import METRICS
from scoring.duplex.panel import offsets, panel
from scoring.duplex.rows import ROLES, roles, session_rows

SCHEMA = 1


def is_duplex(session: Session) -> bool:
    """Whether a session is about more than turns: it has events of a scenario, or others recorded it."""
    return bool(session.header.imported) or next(session.of(ScenarioEvent), None) is not None


class DuplexScorer:
    """Interruptions, backchannels, pauses and overlap (see `scoring/duplex/DUPLEX.md`).

    Sessions that `is_duplex` denies are skipped before any network hears them; every_session scores them as well, with
    each turn as an event.
    """

    name = "duplex"
    version = 1

    def __init__(
        self, *, parameters: Parameters | None = None, threshold: float = THRESHOLD, every_session: bool = False
    ) -> None:
        self._parameters = parameters or Parameters()
        self._threshold = threshold
        self._every_session = every_session

    def score(self, run: RunDirectory) -> Scored:
        """Score the sessions one by one; only numbers are kept. Raises ScoringError or SessionFormatError."""
        rows: list[dict[str, Any]] = []
        played: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        engines: set[str] = set()
        for session in run.load():
            if not (self._every_session or is_duplex(session)):
                counts["skipped"] += 1
                continue
            heard = hear(session, threshold=self._threshold)
            floor = Floor(heard.conversation, self._parameters)
            rows += session_rows(session, heard, floor)
            engines.add(heard.vad)
            counts["warmups" if session.header.warmup else "sessions"] += 1
            if not session.header.warmup:
                played += roles(floor)
        return Scored(rows=rows, summary=self._summary(rows, played, counts, engines))

    def _summary(
        self, rows: list[dict[str, Any]], played: Counter[str], counts: Counter[str], engines: set[str]
    ) -> dict[str, Any]:
        counted = [row for row in rows if not row["warmup"]]
        return {
            "schema": SCHEMA,
            "scorer": {"name": self.name, "version": self.version},
            "sessions": counts["sessions"],
            "skipped": counts["skipped"],
            "warmups": counts["warmups"],
            "events": len(counted),
            "unplaced": sum(row["demand"] is None for row in counted),
            "panel": panel(rows),
            "fto": offsets(rows),
            "agent": {"utterances": sum(played.values()), **{role: played[role] for role in ROLES}},
            "parameters": {
                **msgspec.to_builtins(self._parameters),
                "vad": ", ".join(sorted(engines)) or None,
                "vad_threshold": self._threshold,
                "hold_ms": HOLD_NS // NS_PER_MS,
                "stumble_ms": STUMBLE_NS // NS_PER_MS,
                "energy_floor_db": FLOOR_DB,
                "energy_below_loudest_db": BELOW_LOUDEST_DB,
                "energy_window_ms": WINDOW_MS,
                "energy_reach_ms": REACH_MS,
                "energy_run_on_ms": RUN_ON_MS,
            },
            "metric_versions": {metric.name: metric.version for metric in METRICS},
        }
