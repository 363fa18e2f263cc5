"""Our client against Kyutai's own `moshi` server: its socket, its Opus streams, its model loop; weights at random."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from connectors.moshi import Moshi
from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.events import AudioReceived, ConnectionPhase, PeerError, SessionReady, TextReceived
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session, load_session
from harness.run.plan import PlanOptions
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions
from harness.run.suite import PeerRun, Suite, SuiteOptions, SuiteResult
from scoring.timing.rows import session_rows
from tests.interop.environments import environment
from tests.interop.processes import free_port, serving
from tests.run.fakes import ToneQuery

pytestmark = [pytest.mark.interop, pytest.mark.loopback, pytest.mark.exact]
UNIT_SAMPLES = 1920
HANDLED = re.compile(r"frame handled in ([0-9.]+)ms")
"""What the server says of each step."""


class Held(NamedTuple):
    result: SuiteResult
    sessions: list[Session]

    @property
    def row(self) -> dict[str, Any]:
        (row,) = session_rows(self.sessions[0])
        return row


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("moshi") / "server.log"


@pytest.fixture(scope="module")
def server(log: Path) -> Iterator[str]:
    """URL of the server, which holds one session at a time."""
    python, port = environment("moshi"), free_port()
    with serving([python, Path(__file__).parent / "server.py", str(port)], port, log=log):
        yield f"ws://127.0.0.1:{port}/api/chat"


@pytest.fixture(scope="module")
def held(server: str, tmp_path_factory: pytest.TempPathFactory) -> Held:
    """Two sessions, one after the other; the second only if the first has freed the server's lock."""
    peer = Moshi(PeerOptions(target=server), SystemClock())
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    queries = tuple(ToneQuery(f"q{number}", ms=1_000) for number in range(2))
    options = SuiteOptions(session=SessionOptions(turn="vad", timeout_s=1.5, linger_ms=200), plan=PlanOptions())

    async def main() -> SuiteResult:
        async with Rig() as rig:
            run = PeerRun(peer=peer, directory=directory, queries=queries, suite="interop")
            return await Suite(rig, [run], options, lambda *done: None).run()

    result = asyncio.run(main())
    return Held(result, [load_session(directory.sessions / name) for name in directory.finished()])


def test_both_sessions_were_held(held: Held) -> None:
    assert (held.result.held, held.result.hopeless) == (2, {})
    for session in held.sessions:
        phases = [event.phase for event in session.of(ConnectionPhase)]
        assert phases[-2:] == ["ready", "configured"]
        assert len(list(session.of(SessionReady))) == 1
        assert not list(session.of(PeerError))


def test_each_unit_of_ours_but_the_first_brings_one_of_theirs(held: Held) -> None:
    for session in held.sessions:
        sent = len(session.user) // UNIT_SAMPLES
        received = [event.samples + event.skipped for event in session.of(AudioReceived)]
        assert set(received) == {UNIT_SAMPLES}
        assert sent - 3 <= len(received) + Moshi.declared.unit_delay <= sent
        assert sum(event.skipped for event in session.of(AudioReceived)) == UNIT_SAMPLES + 16  # declared: 80 ms


def test_their_text_follows_the_sound_of_its_step(held: Held) -> None:
    kinds = [event for event in held.sessions[0].events if isinstance(event, AudioReceived | TextReceived)]
    texts = [index for index, event in enumerate(kinds) if isinstance(event, TextReceived)]
    assert texts
    assert all(isinstance(kinds[index - 1], AudioReceived) for index in texts)
    assert all(kinds[index].text.startswith(" t") for index in texts)  # type: ignore[union-attr]


def test_the_recording_gives_lag_and_misses(held: Held, log: Path) -> None:
    row = held.row
    units = len(held.sessions[0].user) // UNIT_SAMPLES - Moshi.declared.unit_delay
    steps_ms = [float(said) for said in HANDLED.findall(log.read_text("utf-8"))]
    # Off by one unit, the lag would be 80 ms more, or less than none.
    assert median(steps_ms) / 2 < row["unit_lag_ms"] < median(steps_ms) + 60
    assert row["unit_lag_ms"] <= row["unit_lag_p99_ms"]
    assert row["unit_misses"] == pytest.approx(row["unit_miss_rate"] * units, abs=2)
    assert row["first_packet_ms"] is None
    assert row["reasons"]["first_packet"] == "continuous peer: its audio never stops"
