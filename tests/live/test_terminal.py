"""The command's own part: a session at a simulated device with the embedded agent, and options that exclude others."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError
from harness.live import sound_card
from harness.live import terminal as module
from harness.live.run import LiveRequest, live_peer
from harness.live.screen import PlainScreen
from harness.live.sound_card import ListedDevice
from harness.live.terminal import Terminal
from tests.live.simulated import SimulatedDevice


@pytest.mark.unit
def test_options_that_exclude_each_other_are_one_line() -> None:
    result = CliRunner().invoke(cli, ["live", "--headphones", "--aec"])
    assert result.exit_code == 2
    assert "no echo to cancel" in result.output


@pytest.mark.unit
def test_a_devices_name_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ListedDevice(index=0, name="Card [/dev/dsp] [red]", host="OSS", inputs=1, outputs=1, rate_hz=48_000)
    monkeypatch.setattr(sound_card, "list_devices", lambda: [device])
    listed = CliRunner(env={"COLUMNS": "120"}).invoke(cli, ["live", "--list-devices"])
    assert listed.exit_code == 0, listed.exception
    assert "Card [/dev/dsp] [red]" in listed.output


@pytest.mark.unit
def test_a_peer_that_takes_uploads_has_no_live_session() -> None:
    with pytest.raises(ConfigError, match="there is no live session with it"):
        live_peer(LiveRequest(peer="chat:http://127.0.0.1:1"), SystemClock())


class Stuck:
    """A peer that is never there."""

    kind = label = "stuck"
    version = "1"

    def __init__(self) -> None:
        self.config: dict[str, object] = {}
        from harness.core.profile import Profile

        self.profile = Profile()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error) -> None:
        pass

    async def connect(self, configure, sink):
        asyncio.get_running_loop().call_later(0.2, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)


@pytest.mark.loopback
def test_ctrl_c_while_connecting_ends_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "live_peer", lambda request, clock: Stuck())
    clock = SystemClock()
    quiet = SimpleNamespace(clock=clock, call_at=lambda t_ns, callback: None)
    said: list[str] = []
    request = LiveRequest(out=tmp_path / "run", options=PeerOptions())
    terminal = Terminal(request, SimulatedDevice(quiet), "headphones", PlainScreen(said.append), clock)
    begin_ns = clock.now_ns()
    with pytest.raises(KeyboardInterrupt):
        terminal.run()
    assert clock.now_ns() - begin_ns < 20e9
    assert said[0] == "stuck: connecting"
    assert terminal.directory is not None
    assert terminal.directory.finished() == []
