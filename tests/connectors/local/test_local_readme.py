"""The example of the docs page runs as it stands, in both turn modes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest

from connectors.local import model
from harness.core.audio import pcm16_to_int16
from harness.core.events import AudioReceived, TextReceived
from tests.connectors.local.local_driver import local, silence, talking, voice

pytestmark = pytest.mark.loopback
PAGE = Path(model.__file__).with_name("README.md")
RATE_HZ = 16_000


@pytest.fixture
def example(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.splitlines()) < 60
    (tmp_path / "hum.py").write_text(code)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("turn", ["manual", "vad"])
def test_the_example_runs(turn):
    async def scenario():
        async with local("hum:Hum", pitch_hz=220) as peer, talking(peer, turn) as talk:
            assert peer.profile.input_rate_hz == RATE_HZ
            await talk.play(np.concatenate((voice(600, RATE_HZ), silence(440, RATE_HZ))), speed=4)
            if turn == "manual":
                talk.end_turn()
            await talk.answer()
        return talk

    talk = asyncio.run(scenario())
    assert "".join(event.text for event in talk.of(TextReceived)) == "hm hm hm"
    hum = np.concatenate([pcm16_to_int16(packet.pcm) for packet in talk.of(AudioReceived)])
    assert len(hum) == 600 * RATE_HZ // 1000
    spectrum = np.abs(np.fft.rfft(hum.astype(float)))
    assert abs(float(np.argmax(spectrum)) * RATE_HZ / len(hum) - 220) < 2


def test_the_page_names_every_output_and_method():
    page = PAGE.read_text(encoding="utf-8")
    names = [kind.__name__ for kind in model.Output.__args__]
    names += [name for name in vars(model.LocalModel) if not name.startswith("_")]
    assert [name for name in names if f"`{name}" not in page] == []
