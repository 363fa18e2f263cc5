"""The answers of a run to a benchmark's items: their words, where their sound lies, how long they took to make."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.core.audio import NS_PER_S, Float32, Int16, int16_to_float, int16_to_pcm16
from harness.core.errors import ScoringError
from harness.core.events import AudioReceived
from harness.core.item import Item
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session, load_session
from harness.core.weights_mark import WHY_UNSCORED, has_random_weights
from scoring.timing.recording import Recording
from scoring.timing.rows import session_rows
from scoring.timing.turn import Turn, turns_of

TEXT_KINDS = ("text", "transcript", "token")
"""The model's own words, best first: what it wrote, what it says it says, the raw tokens."""
Row = dict[str, Any]


class Sound(NamedTuple):
    """Mono float32 in [-1, 1), shape (n,), at `rate_hz`."""

    samples: Float32
    rate_hz: int


@dataclass(frozen=True, kw_only=True)
class ItemAnswer:
    """One item's answer. Its sound stays on disk until `sound()`.

    text: the model's own words, None where the peer sent none. transcript: what somebody's ASR heard, where an import
    brought it. pieces: sample ranges [start, end) of the session's agent sound. sha256: of those samples (PCM16, with
    their rate); empty without any. generation_s: as the timing metric of that name. timing: the turn's row of
    the timing scorer. failed: why there is no answer at all, or "". not_run: that was no fault of the peer, which was
    never asked. refused: why it is not to be scored, or "".
    """

    item: Item
    session: str
    path: Path
    turn: int
    text: str | None
    transcript: str | None
    pieces: tuple[tuple[int, int], ...]
    rate_hz: int
    sha256: str
    generation_s: float | None
    timing: Row
    failed: str
    not_run: bool = False
    refused: str = ""

    @property
    def samples(self) -> int:
        """Length of the answer's sound."""
        return sum(end - start for start, end in self.pieces)

    @property
    def seconds(self) -> float:
        return self.samples / self.rate_hz if self.rate_hz else 0.0

    def sound(self) -> Sound:
        """Read the answer's sound. Raises SessionFormatError."""
        return Sound(int16_to_float(_joined(load_session(self.path), self.pieces)), self.rate_hz)


def answers_of(run: RunDirectory, benchmark: str, *, random_weights: bool = False) -> Iterator[ItemAnswer]:
    """Every answer of the run, in planned order; warm-ups are left out.

    random_weights: answers of a model with random weights are scored too, not refused.

    Raises ScoringError when no session holds an item of `benchmark`, SessionFormatError for a damaged session.
    """
    found, others = False, set()
    for session in run.load():
        items = session.header.items
        others |= {item.benchmark for item in items if item.benchmark != benchmark}
        if session.header.warmup or not any(item.benchmark == benchmark for item in items):
            continue
        refused = WHY_UNSCORED if has_random_weights(session.header.peer.config) and not random_weights else ""
        for answer in session_answers(session):
            if answer.item.benchmark == benchmark:
                found = True
                yield replace(answer, refused=refused)
    if not found:
        holds = f"its items are of {', '.join(sorted(others))}" if others else "it has no items of a benchmark"
        raise ScoringError(
            f"{run.path}: no answers to {benchmark}; {holds} (see `firstpacket bench --suite` and `import vocalbench`)"
        )


def session_answers(session: Session) -> list[ItemAnswer]:
    """The answers of one session, a turn each. Raises ScoringError where items and turns do not match."""
    items = session.header.items
    if len(items) != len(session.header.queries):
        raise ScoringError(f"{session.path}: {len(items)} items for {len(session.header.queries)} queries")
    recording = Recording(session)
    rows = {row["turn"]: row for row in session_rows(session)}
    return [
        _answer(turn, items[turn.number], rows[turn.number])
        for turn in turns_of(recording)
        if 0 <= turn.number < len(items)
    ]


def _answer(turn: Turn, item: Item, row: Row) -> ItemAnswer:
    packets = _packets(turn)
    pieces = _merged([(packet.sample, packet.sample + packet.samples) for packet in packets])
    rate_hz = turn.session.header.agent.rate_hz
    text = _text(turn)
    transcript = turn.session.header.config.get("transcript")
    failed = "" if row["status"] == "ok" else f"{row['status']}: {row['error'] or row['reasons'].get('status', '')}"
    return ItemAnswer(
        item=item,
        session=turn.session.header.session,
        path=turn.session.path,
        turn=turn.number,
        text=text,
        transcript=transcript if isinstance(transcript, str) else None,
        pieces=pieces,
        rate_hz=rate_hz if pieces else 0,
        sha256=_sha256(turn.session, pieces, rate_hz),
        generation_s=row["generation_s"],
        timing=row,
        failed=failed if text is None and not pieces else "",
        not_run=bool(failed) and not row["failed"],
    )


def _packets(turn: Turn) -> list[AudioReceived]:
    """The answer's audio. A continuous peer's answer is what comes from its first utterance to the next turn."""
    if not turn.session.header.profile.continuous:
        return turn.packets
    if turn.utterance is None:
        return []
    begin_ns = turn.utterance.start.t_ns - NS_PER_S // 2
    return [packet for packet in turn.recording.packets if begin_ns <= packet.t_ns < turn.end_ns]


def _text(turn: Turn) -> str | None:
    """Its deltas joined, responses by lines; None where there is no text at all. An import's may be empty, which is an
    answer that says nothing; of a live peer nobody can tell that from one that sends no text."""
    if turn.session.header.profile.continuous:
        texts = [event for response in turn.recording.responses for event in response.texts]
        said = [[event for event in texts if turn.begin_ns <= event.t_ns < turn.end_ns]]
    else:
        said = [response.texts for response in turn.used] or [response.texts for response in turn.later]
    for kind in TEXT_KINDS:
        lines = ["".join(event.text for event in texts if event.kind == kind).strip() for texts in said]
        joined = "\n".join(line for line in lines if line)
        if joined:
            return joined
    return "" if turn.session.header.imported and any(said) else None


def _merged(pieces: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same samples in fewer ranges."""
    merged: list[tuple[int, int]] = []
    for start, end in pieces:
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        elif end > start:
            merged.append((start, end))
    return tuple(merged)


def _joined(session: Session, pieces: tuple[tuple[int, int], ...]) -> Int16:
    parts = [session.agent[start:end] for start, end in pieces]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int16)


def _sha256(session: Session, pieces: tuple[tuple[int, int], ...], rate_hz: int) -> str:
    if not pieces:
        return ""
    digest = hashlib.sha256(f"{rate_hz};".encode())
    digest.update(int16_to_pcm16(_joined(session, pieces)))
    return digest.hexdigest()
