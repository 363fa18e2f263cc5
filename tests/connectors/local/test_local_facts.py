"""What a session knows of its model: device, weights, memory, warm-up, power; and words that name no device."""

from __future__ import annotations

import asyncio

import pytest

from connectors.local import facts
from connectors.local.device import place
from connectors.local.power import parse
from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.events import Note, RawReceived
from tests.connectors.local.local_driver import local, talking

pytestmark = pytest.mark.loopback

MODEL = """
import time
from connectors.local.model import LocalModel

class Warm(LocalModel):
    sessions = 0

    def load(self):
        time.sleep(0.02)

    def warm_up(self):
        time.sleep(0.04)

    def start(self, session):
        self.sessions += 1

    def push_audio(self, pcm):
        return None

    @property
    def facts(self):
        return {"weights": "random", "peak_memory_mb": 100 + self.sessions}
"""
NVIDIA_SMI = """#!/bin/sh
printf '0, 301.25, 93, 1000\\n1, [N/A], 0, 5\\n'
printf '0, 30'
sleep 0.1
printf '2.00, 50, 1000\\n'
exec sleep 30
"""


@pytest.fixture
def warm(tmp_path, monkeypatch):
    (tmp_path / "warm.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("warm")
def test_loading_and_warm_up_are_told_apart_and_memory_is_read_after_each_session():
    async def scenario():
        async with local("warm:Warm") as peer:
            before = peer.config["facts"]
            async with talking(peer) as first:
                pass
            async with talking(peer) as second:
                pass
            return before, peer.config["facts"], first, second

    before, after, first, second = asyncio.run(scenario())
    (note,) = first.of(Note)
    assert "loading took " in note.message
    assert int(note.message.rpartition("warm-up took ")[2].removesuffix(" ms")) >= 40
    assert second.of(Note) == []
    assert before == {"weights": "random", "peak_memory_mb": 100}
    assert after["peak_memory_mb"] == 102
    assert [(e.name, e.usage) for e in second.of(RawReceived)] == [("peak_memory", {"mb": 102})]


@pytest.mark.usefixtures("warm")
def test_power_is_sampled_into_the_session_where_it_can_be(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    async def scenario():
        async with local("warm:Warm", power="true") as peer, talking(peer) as talk:
            assert peer.config["power"] is True
            peer._power.data_received(b"0, 10.5, 20, 1000\n")
        return talk

    (sample,) = [e.usage for e in asyncio.run(scenario()).of(RawReceived) if e.name == "gpu"]
    assert sample == {"index": 0, "watts": 10.5, "utilization": 0.2, "memory_mb": 1048.576}


def test_samples_are_read_from_the_program_line_by_line(tmp_path, monkeypatch, both_loops):
    from connectors.local.power import PowerWatch
    from harness.core.clock import SystemClock

    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    async def scenario():
        watch, samples, full = PowerWatch(SystemClock()), [], asyncio.Event()

        def sink(event):
            samples.append(event.usage)
            if len(samples) == 3:
                full.set()

        deaf = watch.listen(sink)
        await watch.start()
        async with asyncio.timeout(10):
            await full.wait()
        deaf()
        watch.stop()
        await asyncio.sleep(0)
        return samples

    assert [(s["index"], s.get("watts")) for s in both_loops(scenario())] == [(0, 301.25), (1, None), (0, 302.0)]


@pytest.mark.parametrize("line", ["", "No devices were found", "a, b, c, d", "0, 1"])
def test_what_is_no_sample_gives_none(line):
    assert parse(line) == {}


def test_power_without_the_program_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    async def scenario():
        async with local(power="true"):
            pytest.fail("it started")

    with pytest.raises(PrerequisiteError, match="needs nvidia-smi"):
        asyncio.run(scenario())


def test_settings_of_the_peer_are_checked():
    with pytest.raises(ConfigError, match="power=yes: needs true or false"):
        local(power="yes")


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ({"device": "gpu"}, ConfigError, "needs cpu, cuda, cuda:N, mps or auto"),
        ({"dtype": "int8"}, ConfigError, "needs float32, bfloat16"),
    ],
)
def test_words_that_name_no_device_or_numbers(words, error, said):
    with pytest.raises(error, match=said):
        place(**words)


def test_facts_of_random_weights_and_of_a_hub_s_folder(tmp_path):
    torch = pytest.importorskip("torch")
    at = place("cpu", "auto")
    assert at == (torch.device("cpu"), torch.float32, "cpu")
    model = torch.nn.Linear(3, 4)
    found = facts.model_facts(at, weights="random", model=model, compiled="default", tokenizer="a stand-in")
    assert {k: found[k] for k in ("device", "dtype", "compiled", "parameters", "weights", "tokenizer")} == {
        "device": "cpu",
        "dtype": "float32",
        "compiled": "default",
        "parameters": 16,
        "weights": "random",
        "tokenizer": "a stand-in",
    }
    assert found["peak_memory_mb"] > 50
    assert "sha256" not in found
    snapshot = tmp_path / "models--who--what" / "snapshots" / "0123abc"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(b"numbers")
    found = facts.model_facts(at, weights=snapshot)
    assert (found["weights"], found["revision"], len(found["sha256"])) == ("who/what", "0123abc", 64)
    (snapshot / "RANDOM_WEIGHTS").touch()
    assert facts.model_facts(at, weights=snapshot)["weights"] == "random"


def test_a_gpu_that_is_not_here_says_what_to_do():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        assert place("cuda").device.type == "cuda"
        with pytest.raises(PrerequisiteError, match="counted from 0"):
            place("cuda:99")
    else:
        with pytest.raises(PrerequisiteError, match="torch sees no GPU here"):
            place("cuda:1")
