"""The doctor: finds what is there and what is not, names remedies, shows no secrets, imports nothing heavy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from importlib import metadata

import msgspec
import pytest

from harness.core.errors import HarnessError
from harness.run import doctor
from harness.run.doctor import Finding, Requirement, core_packages, disk, examine, extras, keys, parse_requirements
from harness.run.sentinel import HostNoise

pytestmark = pytest.mark.unit

LINES = [
    "numpy>=1.26",
    'uvloop>=0.19; sys_platform != "win32"',
    "torch>=2.4; extra == 'local'",
    'misaki[zh]>=0.9; extra == "tts"',
    "sounddevice; extra == 'mic'",
]


def test_requirements_are_read(monkeypatch):
    assert parse_requirements(LINES) == [
        Requirement("numpy", "1.26", ""),
        Requirement("uvloop", "0.19", ""),
        Requirement("torch", "2.4", "local"),
        Requirement("misaki", "0.9", "tts"),
        Requirement("sounddevice", "", "mic"),
    ]
    monkeypatch.setattr(sys, "platform", "win32")
    assert "uvloop" not in [each.name for each in parse_requirements(LINES)]


def test_packages_and_extras_with_remedies(monkeypatch):
    versions = {"numpy": "2.4.6", "torch": "2.3.1+cpu", "uvloop": "0.9"}

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    requirements = parse_requirements(LINES)
    numpy, uvloop = core_packages(requirements)
    assert numpy == Finding(area="packages", name="numpy", state="ok", detail="2.4.6")
    assert (uvloop.state, uvloop.detail, uvloop.remedy) == ("warn", "0.9, needs 0.19", "pip install 'uvloop>=0.19'")
    found = {each.name: each for each in extras(requirements)}
    assert found["local"].detail == "lacks torch (2.3.1+cpu, needs 2.4)"
    assert found["tts"].remedy == "pip install 'firstpacket[tts]'"
    assert found["mic"].state == "missing"


def test_keys_are_named_never_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    findings = {each.name: each.detail for each in keys(os.environ)}
    assert findings["OPENAI_API_KEY"] == "set"
    assert findings["HF_TOKEN"] == "not set"
    everything = msgspec.json.encode(examine(noise_s=0.1)).decode()
    assert "very-secret" not in everything


@pytest.mark.parametrize(("free_mb", "state"), [(5000, "ok"), (10, "warn")])
def test_disk_space_of_a_folder_that_is_not_there_yet(tmp_path, monkeypatch, free_mb, state):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(free_mb << 20))
    finding = disk(tmp_path / "not" / "yet")
    assert (finding.state, finding.detail) == (state, f"{free_mb} MB free")


def test_the_noise_verdict():
    quiet = HostNoise(n=300, p50_ms=0.05, p99_ms=0.3, max_ms=0.9, run_delay_ms=1.0, quiet=True)
    assert doctor.host_noise(quiet).state == "ok"
    loud = doctor.host_noise(msgspec.structs.replace(quiet, p99_ms=2.5, quiet=False))
    assert loud.state == "warn"
    assert "0.4 ms" in loud.remedy
    assert doctor.host_noise(HostNoise(n=20)).detail == "only 20 ticks"


def test_no_sentinel_is_a_finding_not_an_error(monkeypatch):
    class Broken:
        def __enter__(self):
            raise HarnessError("the host-noise sentinel did not start")

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(doctor, "Sentinel", Broken)
    noise = next(each for each in examine(noise_s=0) if each.name == "noise")
    assert (noise.state, noise.detail) == ("warn", "not measured: the host-noise sentinel did not start")


def test_a_whole_examination_imports_nothing_heavy():
    program = (
        "import sys; from harness.run.doctor import examine\n"
        "found = examine()\n"
        "heavy = {'torch', 'transformers', 'faster_whisper', 'onnxruntime', 'aiortc', 'ray', 'uvloop'}\n"
        "print(sorted(heavy & set(sys.modules))); print(sorted({each.area for each in found}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy, areas = done.stdout.splitlines()
    assert heavy == "[]"
    for area in ("python", "clock", "host", "keys", "connectors", "scorers", "disk", "models"):
        assert area in areas
