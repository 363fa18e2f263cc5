"""A session of schema version 1, written once: it loads and scores as it did then, whatever comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.events import AnyEvent, Unknown
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session, load_session
from scoring.timing.rows import session_rows

pytestmark = pytest.mark.unit
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def session() -> Session:
    return load_session(GOLDEN / "v1")


def test_it_is_version_1_on_disk():
    assert msgspec.json.decode((GOLDEN / "v1" / "session.json").read_bytes())["schema"] == 1


def test_every_event_loads(session: Session):
    found = {str(event.__struct_config__.tag) for event in session.events}
    assert len(session.events) == session.header.events == 71
    # All kinds of version 1; later versions may know more.
    assert len(found) == 30
    assert found <= {str(kind.__struct_config__.tag) for kind in AnyEvent.__args__}


def test_an_event_of_the_future_is_kept(session: Session):
    (event,) = session.of(Unknown)
    assert (event.name, event.data) == ("mood_detected", {"mood": "calm", "weights": [0.5, 0.25]})


def test_both_sounds_load(session: Session):
    assert (len(session.user), len(session.agent)) == (20_000, 10_400)


def test_it_scores_as_it_did(session: Session):
    stored: list[dict[str, Any]] = RunDirectory(GOLDEN).read_lines("v1_rows.jsonl")
    rows = msgspec.json.decode(msgspec.json.encode(session_rows(session)))
    assert len(rows) == len(stored) == 2
    for row, old in zip(rows, stored, strict=True):
        # Metrics that came later are columns of their own, and have reasons of their own.
        known = {*old, *old["anchors"], "status"}
        row["reasons"] = {name: why for name, why in row["reasons"].items() if name in known}
        row["undefined"] = [name for name in row["undefined"] if name in known]
        assert {name: row.get(name) for name in old} == old
