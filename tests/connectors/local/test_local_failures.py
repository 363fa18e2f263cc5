"""A model that fails ends one session with one clear line, and the next session works."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from connectors.local.transport import PRINTED_LIMIT
from harness.core.audio import int16_to_pcm16
from harness.core.commands import AppendAudio, CreateResponse
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError
from harness.core.events import AudioReceived, ConnectionClosed, Note, PeerError, ResponseDone, TextReceived
from tests.connectors.local.conftest import uvloop
from tests.connectors.local.local_driver import CLOCK, local, silence, talking, voice

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True)
def broken_models_are_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


async def answer_until_closed(talk):
    talk.do(AppendAudio(pcm=int16_to_pcm16(voice(100))))
    talk.end_turn()
    closed = await talk.until(ConnectionClosed)
    return talk.of(PeerError)[-1], closed


FAILURES = [
    ("", {"raise_after": 8}, "model_error", "RuntimeError: parrot was told to raise after 8 steps", "peer"),
    ("", {"crash_after": 8}, "crash", "was killed by SIGKILL (out of memory?)", "peer"),
    ("", {"hang_after": 8, "step_limit_s": 0.3}, "hang", "no step finished within 0.3 s", "us"),
    ("broken_models:SleepsInPush", {}, "hang", "no step finished within 0.5 s", "us"),
    ("broken_models:HoldsTheInterpreter", {}, "hang", "no step finished within 0.5 s", "us"),
    ("broken_models:OutOfMemory", {}, "out_of_memory", "MemoryError: CUDA out of memory", "peer"),
    ("broken_models:Stereo", {}, "model_error", "audio of shape (480, 2), it must be mono", "peer"),
    ("broken_models:NotFinite", {}, "model_error", "not finite", "peer"),
    ("broken_models:YieldsNonsense", {}, "model_error", "yielded a str where none belongs", "peer"),
    ("broken_models:ForgetsToYield", {}, "model_error", "end_turn of the model gave None", "peer"),
    ("broken_models:WritesIntoTheSocket", {}, "garbled", "its process sent what no worker sends", "peer"),
    ("broken_models:FloodsForEver", {}, "flood", "put out 64 MB more than could be heard", "peer"),
    ("broken_models:OneHugePacket", {}, "flood", "put out 64 MB more than could be heard", "peer"),
    ("broken_models:StartsAChildAndDies", {}, "crash", "ended with exit code 3", "peer"),
    ("broken_models:ForksAndDies", {}, "crash", "ended with exit code 3", "peer"),
]
LOOP_DIFFERS = [row for row in FAILURES if row[2] in ("crash", "hang", "garbled")][:4]
"""An end of the process that the worker does not announce: what a loop makes of it is its own."""


@pytest.mark.parametrize(("target", "settings", "code", "said", "by"), FAILURES)
def test_a_failure_in_mid_session_is_an_event_and_the_next_session_gets_a_fresh_process(
    target, settings, code, said, by
):
    fails(asyncio.run, target, settings, code, said, by)


@pytest.mark.skipif(uvloop is None, reason="no uvloop on this system")
@pytest.mark.parametrize(("target", "settings", "code", "said", "by"), LOOP_DIFFERS)
def test_it_does_on_the_other_loop(target, settings, code, said, by):
    fails(uvloop.run, target, settings, code, said, by)


def fails(run, target, settings, code, said, by):
    async def scenario():
        async with local(target, **settings) as peer:
            async with talking(peer, "manual") as talk:
                begin_ns = CLOCK.now_ns()
                error, closed = await answer_until_closed(talk)
                took_s = (CLOCK.now_ns() - begin_ns) / 1e9
                with pytest.raises(ConnectorError):
                    talk.do(CreateResponse())
            async with talking(peer, "manual") as again:
                pass
        return error, closed, took_s, talk, again

    error, closed, took_s, talk, again = run(scenario())
    assert (error.code, error.fatal, closed.by) == (code, True, by)
    assert said in error.message
    assert closed.reason == error.message
    assert "\n" not in error.message
    assert len(talk.of(ConnectionClosed)) == 1
    assert took_s < 10
    assert [note.code for note in again.of(Note)] == ["model_loaded"]


@pytest.mark.parametrize(
    ("target", "settings", "error", "said"),
    [
        ("broken_models:Nobody", {}, ConfigError, "has no Nobody"),
        ("broken_models:Floodz", {}, ConfigError, "did you mean Floods?"),
        ("broken_models:NotAModel", {}, ConfigError, "not a subclass of"),
        ("nowhere.at_all:X", {}, ConfigError, "there is no module nowhere here"),
        ("parot", {}, ConfigError, "did you mean parrot?"),
        ("broken_models:Configurable", {}, ConfigError, "needs --set size="),
        ("broken_models:Configurable", {"size": 1, "nam": "y"}, ConfigError, "did you mean name?"),
        ("broken_models:Configurable", {"size": "big"}, ConfigError, "size=big: needs a whole number"),
        ("broken_models:Configurable", {"size": 1, "fast": "so"}, ConfigError, "fast=so: needs true or false"),
        ("broken_models:Floods", {"size": 1}, ConfigError, "has no setting 'size': it takes none"),
        ("broken_models:WrongRate", {}, ConfigError, "output_rate_hz=24"),
        ("broken_models:WrongPacing", {}, ConfigError, "Invalid enum value 'fast' - at `$.pacing`"),
        ("broken_models:NeedsSomething", {}, PrerequisiteError, "get them with `fetch-weights`"),
        ("broken_models:RaisesInLoad", {}, ConnectorError, "RuntimeError: weights are damaged"),
        ("broken_models:Exits", {}, ConnectorError, "ended with exit code 7: no space left for weights"),
        ("broken_models:LoadsForEver", {}, ConnectorError, "did not load its model within 0.3 s"),
    ],
)
def test_a_failed_start_is_one_clear_line(target, settings, error, said):
    async def scenario():
        async with local(target, **settings):
            pytest.fail("it started")

    with pytest.raises(error) as caught:
        asyncio.run(scenario())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"think_m": 1}, "did you mean think_ms?"),
        ({"chunk_ms": "soon"}, "chunk_ms=soon: needs a number"),
        ({"silence_ms": "1.5"}, "silence_ms=1.5: needs a whole number"),
        ({"think_ms": "nan"}, "finite"),
        ({"threshold_db": "inf"}, "finite"),
        ({"chunk_ms": 0}, "must be above 0"),
        ({"delivery": "slow"}, "delivery=slow: needs burst or paced"),
    ],
)
def test_the_bundled_models_settings_are_checked_at_once(settings, said):
    with pytest.raises(ConfigError) as caught:
        local(**settings)
    assert said in str(caught.value)


def test_a_missing_import_names_the_package(tmp_path, monkeypatch):
    (tmp_path / "needs_more.py").write_text("import a_package_nobody_has\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    async def scenario():
        async with local("needs_more:Model"):
            pass

    with pytest.raises(PrerequisiteError, match="needs a_package_nobody_has"):
        asyncio.run(scenario())


def test_the_model_is_found_in_the_present_directory(tmp_path, monkeypatch):
    (tmp_path / "mine_here.py").write_text(
        "from connectors.local.model import LocalModel\n"
        "class Mine(LocalModel):\n    def push_audio(self, pcm):\n        return None\n"
    )
    monkeypatch.chdir(tmp_path)
    assert local("mine_here:Mine").profile.output_rate_hz == 24_000


def test_a_session_that_does_not_start_times_out():
    async def scenario():
        async with local("broken_models:SlowStart", timeout_s=0.2) as peer:
            with pytest.raises(ConnectorError, match="did not start a session within"):
                async with talking(peer):
                    pass

    asyncio.run(scenario())


def test_settings_and_model_reach_the_constructor():
    async def scenario():
        async with (
            local("broken_models:Configurable", model="m7", size=4, fast="true") as peer,
            talking(peer, "manual") as talk,
        ):
            talk.do(CreateResponse())
            await talk.answer()
        return talk.of(TextReceived)[0].text, peer.config, peer.label

    text, config, label = asyncio.run(scenario())
    assert text == "5xm7True"
    assert config == {
        "model": "m7",
        "target": "broken_models:Configurable",
        "size": "4",
        "fast": "true",
        "facts": {},
    }
    assert label == "local-broken_models.Configurable"


def test_a_flood_arrives_whole(both_loops):
    async def scenario():
        async with local("broken_models:Floods") as peer, talking(peer, "manual") as talk:
            talk.do(CreateResponse())
            await talk.answer()
        return talk

    talk = both_loops(scenario())
    assert sum(event.samples for event in talk.of(AudioReceived)) == 3000 * 480


def test_a_model_without_turns_answers_unit_by_unit():
    async def scenario():
        peer = local("broken_models:Duplex")
        asked = peer.profile
        async with peer:
            assert peer.profile == asked
            assert peer.config["facts"] == {"device": "cpu", "weights": "none"}
            async with talking(peer) as talk:
                await talk.play(voice(400), speed=4)
                await talk.until(AudioReceived, 5)
        return asked, talk

    profile, talk = asyncio.run(scenario())
    assert (profile.pacing, profile.continuous, profile.chunk_ms) == ("input_clocked", True, 80)
    assert b"".join(event.pcm for event in talk.of(AudioReceived)) == int16_to_pcm16(voice(400))
    assert "ResponseStarted" not in talk.names()


def test_an_answer_from_push_audio_is_a_response_too():
    async def scenario():
        async with local("broken_models:Continues") as peer, talking(peer) as talk:
            talk.do(AppendAudio(pcm=int16_to_pcm16(silence(20))))
            await talk.answer()
        return talk

    talk = asyncio.run(scenario())
    assert talk.names()[6:] == [
        "ResponseStarted",
        "TextReceived",
        "AudioReceived",
        "AudioDone",
        "ResponseDone",
        "ConnectionClosed",
    ]
    assert talk.of(ResponseDone)[0].usage == {"tokens": 1}


def test_closing_in_a_hang_is_bounded_and_frees_the_peer():
    async def scenario():
        async with local(hang_after=1, step_limit_s=0.4, think_ms=0) as peer:
            async with talking(peer, "manual") as talk:
                talk.end_turn()
                await asyncio.sleep(0.1)
            async with talking(peer, "manual"):
                pass

    begin = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - begin < 5


def test_leaving_in_mid_answer_leaves_no_process():
    async def scenario():
        async with local(step_ms=20) as peer, talking(peer, "manual") as talk:
            await talk.play(voice(300), speed=10)
            talk.end_turn()
            await talk.until(TextReceived)
            return peer._worker._child._process

    process = asyncio.run(scenario())
    assert process.poll() is not None
    gc.collect()


def test_a_cancelled_run_leaves_no_process():
    async def scenario():
        processes = []

        async def run():
            async with local() as peer, talking(peer):
                processes.append(peer._worker._child._process)
                await asyncio.sleep(60)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(run())
            while not processes:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            task.cancel()
        return processes[0]

    assert asyncio.run(scenario()).poll() is not None


@pytest.mark.parametrize(
    ("target", "where"),
    [
        ("broken_models:OutOfMemory", "broken_models.py:{raise MemoryError}"),
        ("deep_model:Deep", "deep_model.py:{raise KeyError}"),
        ("deep_model:InALibrary", "deep_model.py:{json.loads}"),
    ],
)
def test_an_exception_says_where_it_came_from(target, where, tmp_path, monkeypatch):
    (tmp_path / "deep_model.py").write_text(
        "import json\nfrom connectors.local.model import LocalModel, Text\n"
        "def deeper():\n    raise KeyError('x')\n"
        "class Deep(LocalModel):\n    def push_audio(self, pcm):\n        return None\n"
        "    def end_turn(self):\n        yield Text('a')\n        deeper()\n"
        "class InALibrary(Deep):\n    def end_turn(self):\n        yield Text(json.loads('{'))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    async def scenario():
        async with local(target) as peer, talking(peer, "manual") as talk:
            return (await answer_until_closed(talk))[0]

    file, _, code = where.rstrip("}").partition(":{")
    folder = tmp_path if file == "deep_model.py" else Path(__file__).parent
    lines = (folder / file).read_text().splitlines()
    number = next(number for number, line in enumerate(lines, start=1) if code in line)
    assert asyncio.run(scenario()).message.endswith(f"{file}:{number})")


def test_the_harness_is_not_blamed_where_no_line_of_the_model_is_known():
    async def scenario():
        async with local("broken_models:YieldsNonsense") as peer, talking(peer, "manual") as talk:
            return (await answer_until_closed(talk))[0]

    assert asyncio.run(scenario()).message.endswith("where none belongs")


def test_a_flood_of_words_is_bounded_too():
    async def scenario():
        async with local("broken_models:BabblesForEver") as peer, talking(peer, "manual") as talk:
            talk.do(CreateResponse())
            await talk.until(ConnectionClosed, limit_s=90)
        return talk.of(PeerError)[-1].code, len(talk.of(TextReceived))

    code, words = asyncio.run(scenario())
    assert code == "flood"
    assert words < 5_000


def test_what_a_model_prints_is_bounded():
    async def scenario():
        async with local("broken_models:Prints") as peer, talking(peer, "manual") as talk:
            talk.do(CreateResponse())
            await talk.answer()
            await asyncio.sleep(0.5)
            complaints = peer._worker._child._complaints
            return os.fstat(complaints.fileno()).st_size, peer._worker._child.complaint()

    size, complaint = asyncio.run(scenario())
    assert size <= PRINTED_LIMIT
    assert complaint == "the last line"


@pytest.mark.parametrize("target", ["StartsAChild", "StartsAChildAndDies", "ForksAndDies"])
def test_what_a_model_started_ends_with_it(target):
    async def scenario():
        async with local(f"broken_models:{target}") as peer, talking(peer, "manual") as talk:
            talk.do(CreateResponse())
            text = await talk.until(TextReceived)
            child = int(text.text)
            if target == "StartsAChild":
                assert is_running(child)
            else:
                await talk.until(ConnectionClosed)
        return child

    assert gone(asyncio.run(scenario()))


def test_what_a_module_starts_on_import_ends_with_the_question(tmp_path, monkeypatch):
    monkeypatch.setenv("CHILD_FILE", str(tmp_path / "child"))
    begin = time.monotonic()
    assert local("starts_a_child_on_import:Model").profile.output_rate_hz == 24_000
    assert time.monotonic() - begin < 30
    assert gone(int((tmp_path / "child").read_text()))


PARENT = """
import asyncio, sys, os
sys.path.insert(0, {folder!r})
from tests.connectors.local.local_driver import local, talking
async def main():
    async with local() as peer, talking(peer):
        print(peer._worker._child._process.pid, flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""
PARENT_OF_A_CHILD = """
import asyncio, sys, os
sys.path[:0] = [{folder!r}]
from harness.core.commands import CreateResponse
from harness.core.events import TextReceived
from tests.connectors.local.local_driver import local, talking
async def main():
    async with local("broken_models:StartsAChild") as peer, talking(peer, "manual") as talk:
        talk.do(CreateResponse())
        print((await talk.until(TextReceived)).text, flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("unread", [False, True])
def test_what_a_model_started_dies_with_the_harness(unread):
    program = PARENT_OF_A_CHILD.format(folder=str(Path(__file__).parent))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert is_running(child)
        if unread:
            # What the worker says meanwhile is never read: its socket is then reset instead of closed.
            parent.send_signal(signal.SIGSTOP)
            time.sleep(0.8)
        parent.kill()
    assert gone(child)


def test_the_worker_ignores_ctrl_c_and_dies_with_its_parent():
    program = PARENT.format(folder=str(Path(__file__).parent))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        os.kill(worker, signal.SIGINT)
        time.sleep(0.2)
        assert is_running(worker)
        parent.kill()
    assert gone(worker)


def gone(pid, limit_s=10):
    deadline = time.monotonic() + limit_s
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


def is_running(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
