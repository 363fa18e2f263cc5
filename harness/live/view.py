"""What the terminal shows of a live session: one snapshot, and how it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from harness.live.transcript import Line
from harness.live.turns import TurnFigures
from harness.run.progress import duration

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

QUIETEST_DB, LOUDEST_DB = -60.0, 0.0
METER = 30
SHOWN_TURNS, SHOWN_LINES = 8, 10
RED_DB, YELLOW_DB = -3.0, -12.0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """state: what the microphone does. hint, notices: lines for whoever speaks. keys: what can be pressed."""

    peer: str
    device: str
    state: str
    elapsed_s: float = 0.0
    user_db: float = -120.0
    agent_db: float = -120.0
    turns: tuple[TurnFigures, ...] = ()
    lines: tuple[Line, ...] = ()
    notices: tuple[str, ...] = ()
    hint: str = ""
    keys: str = ""


def draw(shot: Snapshot) -> Group:
    """The snapshot for a rich console."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Text | Table] = [
        Text(f"live with {plain(shot.peer)}   {duration(shot.elapsed_s)}   {shot.state}", style="bold"),
        Text(plain(shot.device), style="dim"),
        _meter("you", shot.user_db),
        _meter("agent", shot.agent_db),
        Text(""),
        _table(shot.turns[-SHOWN_TURNS:]),
        Text("as known while speaking; the report is computed from the recording", style="dim"),
        Text(""),
    ]
    for line in shot.lines[-SHOWN_LINES:]:
        who = "you  " if line.who == "user" else "agent"
        parts.append(Text(f"{who}  {plain(line.text)}", style="cyan" if line.who == "user" else ""))
    parts += [Text(plain(notice), style="yellow") for notice in shot.notices]
    if shot.hint:
        parts.append(Text(shot.hint, style="dim"))
    parts.append(Text(shot.keys, style="dim"))
    return Group(*parts)


def row_of(turn: TurnFigures) -> tuple[str, ...]:
    """The cells of one turn: number, TTFT, first packet, first audible, stop."""
    waiting = "speaking" if turn.speaking else "…"
    return (
        str(turn.number),
        _ms(turn.ttft_ms, waiting),
        _ms(turn.first_packet_ms, ""),
        _ms(turn.first_audible_ms, ""),
        _ms(turn.barge_in_stop_ms, ""),
    )


def plain(text: str) -> str:
    """A peer's words without anything that could steer a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def _table(turns: tuple[TurnFigures, ...]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("turn", "TTFT ms", "first packet ms", "first audible ms", "agent stopped after ms"):
        table.add_column(name, justify="right")
    for turn in turns:
        table.add_row(*row_of(turn))
    if not turns:
        table.add_row("–", "say something", "", "", "")
    return table


def _meter(name: str, db: float) -> Text:
    from rich.text import Text

    share = (min(max(db, QUIETEST_DB), LOUDEST_DB) - QUIETEST_DB) / (LOUDEST_DB - QUIETEST_DB)
    full = round(share * METER)
    colour = "red" if db >= RED_DB else "yellow" if db >= YELLOW_DB else "green"
    level = f"{db:4.0f} dB" if db > QUIETEST_DB else " quiet "
    return Text.assemble(f"{name:<6}", ("█" * full, colour), ("░" * (METER - full), "dim"), f" {level}")


def _ms(value: float | None, missing: str) -> str:
    return missing if value is None else f"{value:.0f}"
