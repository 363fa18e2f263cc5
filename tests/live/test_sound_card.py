"""Sound cards: a virtual one with the command in a terminal, and what PortAudio does where something is wrong."""

from __future__ import annotations

import ctypes.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from harness.core.clock import SystemClock
from harness.core.errors import ConfigError, PrerequisiteError
from harness.live import sound_card
from harness.live.sound_card import ListedDevice, SoundCard, list_devices
from scenarios.pack import load_pack

ROOT = Path(__file__).parents[2]
CARD = ListedDevice(index=0, name="Card", host="ALSA", inputs=1, outputs=1, rate_hz=44_100)


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a PulseAudio server with a virtual microphone and loudspeaker."""
    missing = [name for name in ("pulseaudio", "pactl", "paplay", "tmux") if shutil.which(name) is None]
    if ctypes.util.find_library("portaudio") is None:
        missing.append("libportaudio2")
    if missing:
        pytest.skip(f"no virtual sound card: {', '.join(missing)} not installed")
    folder = tmp_path_factory.mktemp("pulse")
    environment = {
        **os.environ,
        "PULSE_SERVER": f"unix:{folder}/native",
        "PULSE_COOKIE": f"{folder}/cookie",
        "PULSE_SINK": "spk",
        "PULSE_SOURCE": "virtmic",
        "HOME": str(folder),
    }
    sink = "module-null-sink sink_name={} rate=48000 channels=1 norewinds=1"
    loads = (
        f"module-native-protocol-unix auth-anonymous=1 socket={folder}/native",
        sink.format("spk"),
        sink.format("mic"),
        "module-remap-source master=mic.monitor source_name=virtmic",
    )
    command = ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--disallow-exit", "--use-pid-file=no"]
    command += ["--high-priority=no", "--realtime=no", "--disable-shm=yes"]
    for load in loads:
        command += ["-L", load]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            for _ in range(100):
                if subprocess.run(["pactl", "info"], env=environment, capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)
            else:
                pytest.fail((folder / "log").read_text())
            yield environment
        finally:
            server.terminate()


class Tmux:
    """One command in a terminal of 110 by 34 characters."""

    def __init__(self, folder: Path, environment: dict[str, str], command: str) -> None:
        self._base = ["tmux", "-f", "/dev/null", "-S", str(folder / "tmux")]
        self._environment = {**environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self._run("new-session", "-d", "-x", "110", "-y", "34", f"{command}; echo rc=$?; sleep 60")

    def press(self, key: str) -> None:
        self._run("send-keys", key)

    def text(self) -> str:
        return self._run("capture-pane", "-p")

    def until(self, pattern: str, limit_s: float = 30.0) -> str:
        end = time.monotonic() + limit_s
        while not re.search(pattern, text := self.text()):
            if time.monotonic() > end:
                pytest.fail(f"{pattern} did not appear:\n{text}")
            time.sleep(0.1)
        return text

    def end(self) -> None:
        self._run("kill-server")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._base, *arguments], env=self._environment, capture_output=True, text=True, cwd=ROOT
        )
        return done.stdout


@pytest.mark.loopback
@pytest.mark.exact
def test_a_conversation_in_a_terminal(card: dict[str, str], tmp_path: Path) -> None:
    clip = next(clip for clip in load_pack("queries").clips if clip.id == "en-03")
    query, out = tmp_path / "query.wav", tmp_path / "run"
    soundfile.write(query, np.concatenate([clip.samples, np.zeros(clip.rate_hz // 2, np.int16)]), clip.rate_hz)
    terminal = Tmux(tmp_path, card, f"{sys.executable} -m harness.cli live --headphones --out {out} 2>{tmp_path}/said")
    try:
        text = terminal.until("listening")
        assert "20 ms in, subtracted" in text or "ms in, subtracted" in text
        subprocess.run(["paplay", "--device=mic", "--latency-msec=20", str(query)], env=card, check=True)
        text = terminal.until(r"\n +1 +\d+ +\d+ +\d+")
        shown = int(re.findall(r"\n +1 +\d+ +\d+ +(\d+)", text)[0])
        terminal.press("m")
        terminal.until("muted")
        terminal.press("C-c")
        terminal.until("rc=0", 40)
    finally:
        terminal.end()
    said = (tmp_path / "said").read_text()
    assert "offline annotator" in said
    (row,) = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert row["status"] == "ok"
    # The detector that told while speaking and the annotator afterwards follow the same windows.
    assert row["first_audible_ms"] == pytest.approx(shown, abs=60)
    header = json.loads((out / "sessions" / "00000-live" / "session.json").read_text())
    assert header["complete"]
    assert "PortAudio" in header["config"]["live"]["source"]["anchor"]
    assert (out / "report.html").stat().st_size > 10_000


@pytest.mark.unit
def test_without_the_extra_or_without_portaudio_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sound_card._portaudio.cache_clear()
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(PrerequisiteError, match=r"pip install 'firstpacket\[mic\]'"):
        list_devices()
    monkeypatch.delitem(sys.modules, "sounddevice")
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PrerequisiteError, match="apt install libportaudio2"):
        list_devices()


class FakePortAudio:
    """Takes the rates in `rates`; `refusal` is what opening a stream raises."""

    class PortAudioError(Exception):
        pass

    def __init__(self, rates: tuple[int, ...], refusal: str = "") -> None:
        self.rates, self.refusal = rates, refusal

    def check_input_settings(self, index: int, channels: int, dtype: str, samplerate: int) -> None:
        if samplerate not in self.rates:
            raise self.PortAudioError("Invalid sample rate")

    check_output_settings = check_input_settings

    def Stream(self, **options: object) -> SimpleNamespace:  # noqa: N802 - sounddevice's name
        if self.refusal:
            raise self.PortAudioError(self.refusal)
        return SimpleNamespace(**{**options, "latency": (0.0213, 0.03)})


@pytest.mark.unit
def test_a_rate_that_both_can_is_found_or_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakePortAudio((44_100,))
    monkeypatch.setattr(sound_card, "_portaudio", lambda: fake)
    facts = SoundCard(SystemClock(), CARD, CARD).facts
    assert (facts.rate_hz, facts.block_samples, facts.input_latency_ms) == (44_100, 441, 21.3)
    assert facts.source("guard").latency_ns == 21_300_000
    with pytest.raises(ConfigError, match=r"--rate 48000: Card cannot do that; 44,100 and 44,100 Hz are their own"):
        SoundCard(SystemClock(), CARD, CARD, 48_000)
    fake.rates = ()
    with pytest.raises(PrerequisiteError, match="no sample rate in common"):
        SoundCard(SystemClock(), CARD, CARD)


@pytest.mark.unit
def test_a_device_that_cannot_be_opened_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_card, "_portaudio", lambda: FakePortAudio((48_000,), "Device unavailable"))
    with pytest.raises(
        PrerequisiteError, match=r"Card cannot be opened \(Device unavailable\): another program may hold"
    ):
        SoundCard(SystemClock(), CARD, CARD)
