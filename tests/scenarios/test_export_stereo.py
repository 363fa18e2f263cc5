"""A session as a stereo file, and back from it: the same spans on both sides within 10 ms."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
import soundfile

from harness.core.audio import int16_to_pcm16, samples_to_ns
from harness.core.events import AudioReceived, Event, Interrupted, ResponseStarted, StreamStarted
from harness.core.session.header import AudioInfo
from harness.core.session.reader import Session
from harness.core.session.writer import SessionWriter
from scenarios.exporters.stereo import export_stereo
from scenarios.importers.stereo import import_stereo
from scoring.duplex.hearing import hear
from scoring.duplex.spans import Span
from tests.scenarios.recorded import clip, laid, only
from tests.scenarios.test_export_fdb import BASE_NS, MS, header, said

pytestmark = pytest.mark.unit
AGENT_HZ = 24_000


class Made(NamedTuple):
    session: Session
    flushed_ns: int


def conversation(path: Path, user_hz: int) -> Made:
    """A question at 0.5 s, an answer in a burst at 3.1 s that is flushed at 5.6 s, the interruption at 5.4 s, and
    another answer, in packets, at 8.2 s."""
    question, cut = clip("en-q-03", "duplex-en", user_hz), clip("en-int-01", "duplex-en", user_hz)
    first, second = clip("en-long-01", "duplex-en", AGENT_HZ), clip("en-12", rate_hz=AGENT_HZ)
    at_question, at_cut = user_hz // 2, round(5.4 * user_hz)
    user = laid(14 * user_hz, (at_question, question.samples), (at_cut, cut.samples))
    made = header()
    writer = SessionWriter(
        path / "sessions", msgspec.structs.replace(made, user=AudioInfo(file="user.flac", rate_hz=user_hz))
    )
    flushed_ns = BASE_NS + 5_600 * MS
    events: list[Event] = [
        StreamStarted(t_ns=BASE_NS, sample=0, rate_hz=user_hz),
        said("e1", "", at_question, question.speech_start, question.speech_end, "turn", "respond"),
        said("e2", "", at_cut, cut.speech_start, cut.speech_end, "turn", "stop"),
        ResponseStarted(t_ns=BASE_NS + 3_100 * MS, response="r1"),
        AudioReceived(
            t_ns=BASE_NS + 3_100 * MS,
            samples=len(first.samples),
            rate_hz=AGENT_HZ,
            response="r1",
            pcm=int16_to_pcm16(first.samples),
        ),
        Interrupted(t_ns=flushed_ns, response="r1"),
        ResponseStarted(t_ns=BASE_NS + 8_200 * MS, response="r2"),
    ]
    for at in range(0, len(second.samples), AGENT_HZ // 50):
        piece = second.samples[at : at + AGENT_HZ // 50]
        t_ns = BASE_NS + 8_200 * MS + samples_to_ns(at, AGENT_HZ)
        events.append(
            AudioReceived(t_ns=t_ns, samples=len(piece), rate_hz=AGENT_HZ, response="r2", pcm=int16_to_pcm16(piece))
        )
    writer.add_user_audio(int16_to_pcm16(user))
    for event in events:
        writer.append(event)
    writer.close()
    return Made(only(path), flushed_ns)


def of(spans: tuple[Span, ...], origin_ns: int) -> list[tuple[float, float]]:
    """Spans in ms from the origin."""
    return [((span.start_ns - origin_ns) / MS, (span.end_ns - origin_ns) / MS) for span in spans]


@pytest.mark.parametrize("user_hz", [24_000, 16_000])
def test_the_stereo_file_of_a_session_gives_its_spans_back(tmp_path: Path, user_hz: int) -> None:
    before, flushed_ns = conversation(tmp_path / "run", user_hz)
    file = export_stereo(before, tmp_path / "stereo" / "s0.wav")
    import_stereo(file, tmp_path / "back")
    wanted, found = hear(before).conversation, hear(only(tmp_path / "back")).conversation
    assert len(wanted.user) == len(found.user) == 2
    for (start, end), (right_start, right_end) in zip(of(found.user, 0), of(wanted.user, BASE_NS), strict=True):
        assert (start, end) == pytest.approx((right_start, right_end), abs=10)
    assert len(wanted.agent) == len(found.agent) >= 2
    for (start, end), (right_start, right_end) in zip(of(found.agent, 0), of(wanted.agent, BASE_NS), strict=True):
        assert (start, end) == pytest.approx((right_start, right_end), abs=10)
    cut = [end for _, end in of(found.agent, 0) if abs(end - (flushed_ns - BASE_NS) / MS) < 10]
    assert len(cut) == 1, "what was flushed was not heard"


def test_left_is_the_user_and_right_the_agent(tmp_path: Path) -> None:
    session, flushed_ns = conversation(tmp_path / "run", 24_000)
    both, rate_hz = soundfile.read(export_stereo(session, tmp_path / "s0.wav"), dtype="int16")
    assert rate_hz == 24_000
    assert np.array_equal(both[: len(session.user), 0], session.user)
    flushed = round((flushed_ns - BASE_NS) * rate_hz / 1e9)
    first = clip("en-long-01", "duplex-en", AGENT_HZ).samples
    begin = round(3.1 * rate_hz)
    assert np.array_equal(both[begin:flushed, 1], first[: flushed - begin])
    assert not both[flushed : round(8.2 * rate_hz), 1].any()
