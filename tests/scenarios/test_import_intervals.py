"""Intervals from JSON and CSV, and every way to get them wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.core.errors import ConfigError
from harness.core.events import Note, ScenarioEvent
from harness.core.run_directory import RunDirectory
from scenarios.importers.intervals import import_intervals
from scoring.duplex.hearing import hear
from scoring.duplex.spans import Span
from scoring.timing.scorer import TimingScorer
from tests.scenarios.recorded import only

pytestmark = pytest.mark.unit

MS = 1_000_000
ROWS = {
    "user": [[0.5, 2.0], {"start": 3.25, "end": 3.6, "kind": "backchannel", "expect": "keep_talking", "text": "mm"}],
    "agent": [[2.4, 6.001], [7, 7.5]],
    "end_s": 9,
    "language": "en",
}
TABLE = """side,start,end,kind,expect,text
user,0.5,2.0,,,
agent,2.4,6.001,,,
user,3.25,3.6,backchannel,keep_talking,mm
agent,7,7.5,,,
"""


def written(tmp_path: Path, content: object, suffix: str = ".json") -> Path:
    path = tmp_path / f"talk{suffix}"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(("content", "suffix", "end_ms"), [(ROWS, ".json", 9000), (TABLE, ".csv", 7500)])
def test_both_sides_stand_where_the_file_says(tmp_path: Path, content: object, suffix: str, end_ms: int) -> None:
    made = import_intervals(written(tmp_path, content, suffix), tmp_path / "run")
    assert made.sessions == ("talk",)
    session = only(tmp_path / "run")
    conversation = hear(session).conversation
    assert [(u.start_ns, u.end_ns, u.kind, u.expect) for u in conversation.user] == [
        (500 * MS, 2000 * MS, "turn", ""),
        (3250 * MS, 3600 * MS, "backchannel", "keep_talking"),
    ]
    assert conversation.agent == (Span(2400 * MS, 6001 * MS), Span(7000 * MS, 7500 * MS))
    assert (conversation.begin_ns, conversation.end_ns) == (0, end_ms * MS)
    notes = " ".join(note.message for note in session.of(Note))
    assert ("no end_s" in notes) == (suffix == ".csv")
    assert [event.event for event in session.of(ScenarioEvent)] == ["u1", "u2"]
    (row,) = TimingScorer().score(RunDirectory(tmp_path / "run")).rows
    assert (row["status"], row["first_packet_ms"], row["first_audible_ms"]) == ("ok", None, None)


@pytest.mark.parametrize(
    ("content", "suffix", "said"),
    [
        ("{", ".json", "not JSON"),
        ([], ".json", "not an object like"),
        ({}, ".json", "no intervals"),
        ({"usr": []}, ".json", "unknown key 'usr'; did you mean user"),
        ({"user": 3}, ".json", "user is not a list"),
        ({"user": [[1, 2], [3]]}, ".json", r"user\[1\]: an interval is"),
        ({"user": [[2, 1]]}, ".json", r"user\[0\]: ends at 1 s, begins at 2 s"),
        ({"user": [[-1, 1]]}, ".json", r"user\[0\]: start is seconds"),
        ({"user": [["NaN", 1]]}, ".json", r"user\[0\]: start is seconds"),
        ({"user": [[True, 2]]}, ".json", r"user\[0\]: start is seconds"),
        ({"user": [[0, 1e9]]}, ".json", r"user\[0\]: end is seconds"),
        ({"user": [{"start": 0, "end": 1, "kind": "turns"}]}, ".json", r"user\[0\]: kind 'turns'; did you mean turn\?"),
        ({"user": [{"start": 0, "end": 1, "expect": "stopp"}]}, ".json", "did you mean stop"),
        ({"user": [{"start": 0, "end": 1, "id": "a"}, {"start": 2, "end": 3, "id": "a"}]}, ".json", "used twice"),
        ({"agent": [[0, 2], [1, 3]]}, ".json", r"agent\[1\]: the agent already speaks there, from 0 to 2 s"),
        ({"agent": [[0, 2]], "end_s": 1}, ".json", "end_s is 1, an interval ends at 2"),
        ("start,end\n0,1\n", ".csv", ":1: no column 'side'"),
        ("side,start,end,knd\n", ".csv", ":1: unknown key 'knd'; did you mean kind"),
        ("side,start,end\nuser,0,1\nme,1,2\n", ".csv", ":3: side 'me'"),
        ("side,start,end\nuser,0,1,2\n", ".csv", ":2: more values"),
        ("side,start,end\nuser,zero,1\n", ".csv", ":2: start is seconds from the start of the recording, not 'zero'"),
        ("side,start,end\nuser,0\n", ".csv", ":2: end is seconds"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, content: object, suffix: str, said: str) -> None:
    file = written(tmp_path, content, suffix)
    with pytest.raises(ConfigError, match=said) as caught:
        import_intervals(file, tmp_path / "run")
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
