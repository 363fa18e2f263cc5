"""Everything that can be computed from a run's disk, computed again, kept, and compared with what stands there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.core.plugins import SCORERS, load
from harness.core.run_directory import RunDirectory
from harness.core.scorer import Scored, Scorer
from harness.core.session.audio_file import read_audio
from harness.core.session.reader import Session
from harness.run.replay_difference import Difference, Kept, differences_in

TIMING, DUPLEX = "timing", "duplex"
KEPT = {
    TIMING: Kept(rows="metrics.jsonl", summary="summary.json"),
    DUPLEX: Kept(rows="duplex.jsonl", summary="duplex.json"),
}
"""By scorer: where its figures stand."""
SCENARIO = "scenario"
"""Key of a session's config that names the scenario it played."""

Watch = Callable[[int, int], None]
"""Told after each session: how many have been read, of how many."""


class ScoredRun(RunDirectory):
    """A run that a scorer reads. verified: every recording is checked, the user's sound, which no figure needs, too."""

    def __init__(self, run: RunDirectory, *, verified: bool = False, watch: Watch | None = None) -> None:
        super().__init__(run.path)
        self._verified = verified
        self._watch = watch

    def load(self) -> Iterator[Session]:
        """As there. Raises SessionFormatError for a missing or changed sound file."""
        total = len(self.finished())
        for number, session in enumerate(super().load(), start=1):
            if self._verified:
                read_audio(session.path, session.header.user)
                _ = session.agent
            yield session
            if self._watch is not None:
                self._watch(number, total)


def scorers_of(run: RunDirectory) -> tuple[str, ...]:
    """The scorers that have something to say of a run: `duplex` where its figures are kept, its sessions play
    scenarios, or others recorded it. Raises SessionFormatError."""
    return (TIMING, DUPLEX) if is_stored(run, DUPLEX) or _holds_conversations(run) else (TIMING,)


def _holds_conversations(run: RunDirectory) -> bool:
    """By its first session: those of a run are all of a kind. A benchmark's answers are no conversations."""
    first = next(run.load(), None)
    if first is None or first.header.items:
        return False
    return bool(first.header.imported) or SCENARIO in first.header.config


def score(run: RunDirectory, name: str = TIMING, *, verified: bool = False, watch: Watch | None = None) -> Scored:
    """Run a scorer over a run directory. Raises ScoringError or SessionFormatError."""
    scorer: Scorer = load(SCORERS, name)()
    return scorer.score(ScoredRun(run, verified=verified, watch=watch))


def score_all(run: RunDirectory, *, verified: bool = False, watch: Watch | None = None) -> dict[str, Scored]:
    """Every scorer of the run by name; with `verified` the recordings are checked once. Raises as `score`."""
    names = scorers_of(run)
    return {
        name: score(run, name, verified=verified and name == names[0], watch=watch if name == names[-1] else None)
        for name in names
    }


def write_scores(run: RunDirectory, scored: Scored, name: str = TIMING) -> None:
    """Put a scorer's rows and summary into the run directory."""
    run.write_lines(KEPT[name].rows, scored.rows)
    run.write_json(KEPT[name].summary, scored.summary)


def is_stored(run: RunDirectory, name: str = TIMING) -> bool:
    """Whether the run directory holds figures of this scorer at all."""
    return any((run.path / file).exists() for file in (KEPT[name].rows, KEPT[name].summary))


def differences(run: RunDirectory, scored: Scored, name: str = TIMING) -> list[Difference]:
    """What differs between `scored` and what is stored; empty means the same bytes.

    One file without the other is a difference; neither is none, as nothing was stored yet.
    """
    return differences_in(run, scored, KEPT[name]) if is_stored(run, name) else []
