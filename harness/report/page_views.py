"""The views of a page: which sessions are drawn, which stand in the page itself and which in files beside it.

The first few are in the page, the others in `report_views/`, each a small page that hands its data to the one that
opens it in a hidden frame (a page from disk may read nothing else). Sound stands in `report_audio/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from harness.core.errors import SessionFormatError
from harness.core.run_directory import RunDirectory
from harness.core.session.header import Header
from harness.core.session.reader import Session, load_session
from harness.report.choice import MOST, Choice, chosen_turns
from harness.report.conversation import conversation
from harness.report.failure import plain
from harness.report.lanes import drawable
from harness.report.page_safety import as_json, asset, policy
from harness.report.timeline import timeline

SOUNDS, FILES = "report_audio", "report_views"
MOST_VIEWS = 20
"""Sessions drawn unless more are asked for: each takes some tenths of a second and some 100 KB, mostly sound."""

Watch = Callable[[int, int], None]


class Views(msgspec.Struct, frozen=True, kw_only=True):
    """entries: in order of choice; one with `file` is loaded when it is looked at. turns: (session, turn) to its place
    in `entries`; conversations: session to it. header: of the first session shown. left_out: sessions not drawn."""

    entries: list[dict[str, Any]]
    turns: dict[tuple[str, Any], int]
    conversations: dict[str, int]
    header: Header | None
    left_out: int


class _Plan(NamedTuple):
    """One view to be. turn: its row; None for a conversation, which has several."""

    session: str
    turn: Choice | None
    why: str
    rows: Sequence[Mapping[str, Any]] = ()

    @property
    def stem(self) -> str:
        """The name of its files without their ending."""
        number = self.turn.row.get("turn") if self.turn else None
        return f"{self.session}.t{number}" if isinstance(number, int) else self.session

    def draw(self, session: Session, sound: Path) -> dict[str, Any]:
        if self.turn is not None:
            return timeline(session, self.turn, sound=sound)
        return conversation(session, self.rows, self.why, sound=sound)


def views_of(
    run: RunDirectory,
    rows: Sequence[dict[str, Any]],
    metrics: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]] = (),
    *,
    most: int | None = MOST_VIEWS,
    watch: Watch | None = None,
) -> Views:
    """Draw at most `most` sessions (None: all), the telling ones first, and write the files beside the page.

    rows: of the turns; events: of the conversations. Files of an earlier page that no view has are removed. A session
    that cannot be read is left out. Raises OSError when the disk is full.
    """
    plans = [*_plans(rows, metrics, events)]
    entries: list[dict[str, Any]] = []
    turns: dict[tuple[str, Any], int] = {}
    conversations: dict[str, int] = {}
    header: Header | None = None
    wanted = plans if most is None else plans[:most]
    kept: set[Path] = set()
    for done, plan in enumerate(wanted):
        if watch and done:
            watch(done, len(wanted))
        try:
            session = load_session(run.sessions / plan.session)
        except SessionFormatError:
            continue
        header = header or session.header
        sound = run.path / SOUNDS / f"{plan.stem}.ogg"
        view = plan.draw(session, sound)
        if not drawable(view):
            continue
        if view["sound"]:
            kept.add(sound)
        if len(entries) >= MOST:
            file = run.path / FILES / f"{plan.stem}.html"
            _write(file, view)
            kept.add(file)
            view = _stub(view, file)
        if plan.turn is None:
            conversations[plan.session] = len(entries)
        else:
            turns[(plan.session, plan.turn.row.get("turn"))] = len(entries)
        entries.append(view)
    _sweep(run, kept)
    return Views(
        entries=entries,
        turns=turns,
        conversations=conversations,
        header=header,
        left_out=len(plans) - len(wanted),
    )


def _plans(
    rows: Sequence[dict[str, Any]], metrics: Mapping[str, Any], events: Sequence[Mapping[str, Any]]
) -> Iterator[_Plan]:
    """Chosen turns, chosen conversations, all other turns, all other conversations; each session name checked."""
    chosen = chosen_turns(rows, metrics)
    seen = {(choice.row.get("session"), choice.row.get("turn")) for choice in chosen}
    others = [
        Choice(row=row, why="")
        for row in rows
        if not row.get("warmup") and (row.get("session"), row.get("turn")) not in seen
    ]
    talks = [*_talks(events)]
    plans = (
        [_Plan(str(choice.row.get("session") or ""), choice, choice.why) for choice in chosen]
        + [talk for talk in talks if talk.why]
        + [_Plan(str(choice.row.get("session") or ""), choice, "") for choice in others]
        + [talk for talk in talks if not talk.why]
    )
    return (plan for plan in plans if plan.session and Path(plan.session).name == plan.session)


def _talks(events: Sequence[Mapping[str, Any]]) -> Iterator[_Plan]:
    """The conversations, the first of each category and each trouble named for it."""
    sessions: dict[str, list[Mapping[str, Any]]] = {}
    for row in events:
        if not row.get("warmup"):
            sessions.setdefault(str(row.get("session") or ""), []).append(row)
    named: set[str] = set()
    for session, rows in sessions.items():
        whys = [why for row in rows for why in _whys(row) if why not in named]
        named.update(whys[:1])
        yield _Plan(session, None, whys[0] if whys else "", rows)


def _whys(row: Mapping[str, Any]) -> Iterator[str]:
    category = plain(str(row.get("category") or row.get("kind") or "conversation")).replace("_", " ")
    troubles = (
        (row.get("missed_response"), "no answer"),
        (row.get("false_stop"), "stopped falsely"),
        (row.get("false_start"), "started falsely"),
        (row.get("yielded") is False, "did not yield"),
    )
    yield from (f"{category}, {trouble}" for true, trouble in troubles if true)
    yield category


def _stub(view: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """What the page itself knows of a view that stands in a file."""
    kept = ("session", "kind", "query", "language", "status", "why")
    return {**{name: view[name] for name in kept}, "file": f"{FILES}/{quote(file.name)}"}


def _write(file: Path, view: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    script = asset("view.js")
    file.write_text(
        Markup(
            '<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
            "<title>{session}</title><p>This is a part of ../report.html: open that page.</p>"
            '<script type="application/json" id="data">{data}</script><script>{script}</script>\n'
        ).format(policy=policy([script], []), session=view["session"], data=as_json(view), script=script),
        encoding="utf-8",
    )


def _sweep(run: RunDirectory, kept: set[Path]) -> None:
    """Remove the files of an earlier page."""
    for folder, ending in ((SOUNDS, "ogg"), (FILES, "html")):
        for path in (run.path / folder).glob(f"*.{ending}"):
            if path not in kept:
                path.unlink()
