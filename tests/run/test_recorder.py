"""Recording through the writer process: whole sessions only, drops counted, disk failures told, nothing lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from harness.core.clock import SystemClock, WallAnchor
from harness.core.events import AudioReceived, AudioSent, LoopLag, Note
from harness.core.profile import Profile
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.core.session.reader import load_session, session_paths
from harness.run.pacer import Pacer
from harness.run.recorder import Recorder, RecordingError


def header(name: str = "s1") -> Header:
    return Header(
        session=name,
        peer=PeerInfo(kind="fake", label="fake", version="1"),
        mode="vad",
        profile=Profile(),
        clock=ClockInfo(name="test", resolution_ns=1),
        anchor=WallAnchor(wall_ns=0, monotonic_ns=0),
        user=AudioInfo(file="user.flac", rate_hz=24_000),
        agent=AudioInfo(file="agent.flac", rate_hz=24_000),
    )


def record(body, **options):
    async def main():
        pacer = Pacer(SystemClock())
        async with Recorder(pacer, **options) as recorder:
            result = await body(recorder)
        pacer.close()
        return result

    return asyncio.run(main())


def test_events_and_audio_come_back_as_they_went_in(tmp_path: Path) -> None:
    pcm = (np.arange(48_000) % 997).astype("<i2").tobytes()

    async def body(recorder: Recorder) -> int:
        number = recorder.open(tmp_path, header())
        for k in range(100):
            chunk = pcm[k * 960 : (k + 1) * 960]
            recorder.append(
                number, AudioSent(t_ns=k, planned_ns=k, started_ns=k, sample=k * 480, samples=480, pcm=chunk)
            )
            recorder.append(number, AudioReceived(t_ns=k, samples=480, rate_hz=24_000, pcm=chunk))
        recorder.broadcast(LoopLag(t_ns=101, window_ns=50, max_lag_ns=3))
        return await recorder.close(number)

    assert record(body) == 201
    session = load_session(tmp_path / "s1")
    assert session.user.astype("<i2").tobytes() == pcm
    assert session.agent.astype("<i2").tobytes() == pcm
    assert [event.seq for event in session.events] == list(range(201))
    received = list(session.of(AudioReceived))
    assert [event.sample for event in received] == [k * 480 for k in range(100)]
    assert session.header.complete
    assert session.header.dropped == 0
    assert next(session.of(LoopLag)).max_lag_ns == 3


def test_a_full_buffer_drops_and_counts(tmp_path: Path) -> None:
    async def body(recorder: Recorder) -> None:
        number = recorder.open(tmp_path, header())
        for k in range(300):  # no await in between: nothing can be flushed
            recorder.append(number, Note(t_ns=k, code="x", message="y" * 1000))
        await recorder.close(number)

    record(body, limit_bytes=100_000)
    session = load_session(tmp_path / "s1")
    assert 80 < len(session.events) < 120
    assert session.header.dropped == 300 - len(session.events)


def test_a_session_that_is_not_kept_leaves_nothing(tmp_path: Path) -> None:
    async def body(recorder: Recorder) -> None:
        await recorder.close(recorder.open(tmp_path, header()), keep=False)

    record(body)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    async def body(recorder: Recorder) -> None:
        number = recorder.open(tmp_path / "file", header())
        with pytest.raises(RecordingError, match="could not be recorded") as caught:
            await recorder.close(number)
        assert "\n" not in str(caught.value)

    record(body)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_told_and_earlier_sessions_stay(tmp_path: Path) -> None:
    async def body(recorder: Recorder) -> None:
        good = recorder.open(tmp_path, header("good"))
        recorder.append(good, Note(t_ns=1, code="a", message="b"))
        await recorder.close(good)
        bad = recorder.open(tmp_path, header("bad"))
        for _ in range(100):
            if (tmp_path / "bad.partial" / "session.json").exists():
                break
            await asyncio.sleep(0.02)
        (tmp_path / "bad.partial" / "user.flac").symlink_to("/dev/full")
        pcm = np.random.default_rng(0).integers(-9000, 9000, 48_000).astype("<i2").tobytes()
        for k in range(20):
            recorder.append(bad, AudioSent(t_ns=k, planned_ns=k, started_ns=k, sample=0, samples=48_000, pcm=pcm))
        with pytest.raises(RecordingError):
            await recorder.close(bad)

    record(body)
    assert [path.name for path in session_paths(tmp_path)] == ["good"]


def test_a_dead_writer_process_is_told(tmp_path: Path) -> None:
    async def body(recorder: Recorder) -> None:
        number = recorder.open(tmp_path, header())
        assert recorder._process is not None
        recorder._process.kill()
        with pytest.raises(RecordingError, match="writer process"):
            await recorder.close(number)
        with pytest.raises(RecordingError, match="writer process"):
            await recorder.close(recorder.open(tmp_path, header("s2")))

    record(body)


def test_a_killed_measuring_process_leaves_finished_sessions_and_partials(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import asyncio, sys, pathlib
        from tests.run.test_recorder import header
        from harness.core.clock import SystemClock
        from harness.core.events import Note
        from harness.run.pacer import Pacer
        from harness.run.recorder import Recorder

        async def main():
            pacer = Pacer(SystemClock())
            async with Recorder(pacer) as recorder:
                where = pathlib.Path(sys.argv[1])
                done = recorder.open(where, header("done"))
                recorder.append(done, Note(t_ns=1, code="a", message="b"))
                await recorder.close(done)
                recorder.append(recorder.open(where, header("open")), Note(t_ns=1, code="a", message="b"))
                await pacer.until(pacer.clock.now_ns() + 50_000_000)
                print("ready", flush=True)
                await asyncio.sleep(60)

        asyncio.run(main())
    """)
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert [path.name for path in session_paths(tmp_path)] == ["done"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["done", "open.partial"]
    assert len(load_session(tmp_path / "done").events) == 1
