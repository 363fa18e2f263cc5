"""The page in real Chromium: a fake microphone that says a query, the embedded agent, and what the page makes of it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from connectors.transports.browser_call import BrowserCall
from harness.core.audibility import first_audible_sample
from harness.core.audio import NS_PER_MS, Int16, samples_to_ns
from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.events import AudioReceived, MediaAnchor, Note
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import load_session
from harness.live.annotation import Annotator, put_turns
from harness.live.web.server import serve_page
from harness.live.web.studio import ANCHOR, Studio
from harness.run.peers import make_peer
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions
from scenarios.annotator import annotate, annotator_name
from scenarios.pack import load_pack
from scoring.timing.scorer import TimingScorer
from tests.report.test_browser import ARGUMENTS, CHROMIUM, PAINTED, Watched

pytestmark = [
    pytest.mark.browser,
    pytest.mark.loopback,
    pytest.mark.exact,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="/usr/bin/chromium is not installed (Debian: chromium)"),
]
RATE = 48_000
LEAD_S, TAIL_S = 1.5, 30.0
CLOCK = SystemClock()
SHOTS = os.environ.get("FIRSTPACKET_SHOTS")
"""Where pictures of the page are put, for a person to look at."""
HEARD = """() => {
  const context = new AudioContext(), analyser = context.createAnalyser();
  context.createMediaStreamSource(document.getElementById('loudspeaker').srcObject).connect(analyser);
  analyser.fftSize = 256;
  const wave = new Float32Array(256);
  window.heard = null;
  const look = setInterval(() => {
    analyser.getFloatTimeDomainData(wave);
    if (Math.max(...wave.map(Math.abs)) < 0.02) return;
    window.heard = performance.timeOrigin + performance.now();
    clearInterval(look);
  }, 2);
}"""
"""Notes when sound comes out of the browser's own pipeline, on the wall clock, in ms."""


class Tapped(BrowserCall):
    """Remembers what came from the microphone, and when."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.blocks: list[tuple[Int16, int]] = []

    def _hear(self, packet: Any) -> None:
        pass_on = self.on_sound

        def both(samples: Int16, t_ns: int, lost: bool) -> None:
            self.blocks.append((samples, t_ns))
            pass_on(samples, t_ns, lost)

        self.on_sound = both
        try:
            super()._hear(packet)
        finally:
            self.on_sound = pass_on

    def instant_of(self, clip: Int16, sample: int) -> int:
        """When `sample` of `clip` arrived: the clip is found by correlation."""
        heard = np.concatenate([samples for samples, _ in self.blocks]).astype(np.float64)
        n = 1 << (len(heard) + len(clip)).bit_length()
        match = np.fft.irfft(np.fft.rfft(heard, n) * np.conj(np.fft.rfft(clip.astype(np.float64), n)), n)
        at = int(np.argmax(match[: len(heard)])) + sample
        for samples, t_ns in self.blocks:
            if at < len(samples):
                return t_ns - samples_to_ns(len(samples) - at, RATE)
            at -= len(samples)
        raise AssertionError("the clip never came")


def microphone(path: Path) -> tuple[Int16, int]:
    """A file for the fake microphone: a query after a while. Returns its samples and its speech end."""
    clip = next(clip for clip in load_pack("queries").clips if clip.id == "en-03").at_rate(RATE)
    lead, tail = np.zeros(round(LEAD_S * RATE), np.int16), np.zeros(round(TAIL_S * RATE), np.int16)
    soundfile.write(path, np.concatenate([lead, clip.samples, tail]), RATE, subtype="PCM_16")
    return clip.samples, clip.speech_end


@asynccontextmanager
async def browser_at(url: str, wave: Path, width: int = 1280) -> AsyncIterator[Watched]:
    from playwright.async_api import async_playwright

    fake = [
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={wave}%noloop",
        "--allow-loopback-in-peer-connection",
        "--disable-features=WebRtcHideLocalIpsWithMdns",
    ]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS + fake)
        try:
            watched = Watched(await browser.new_page(viewport={"width": width, "height": 900}))
            await watched.page.goto(url)
            yield watched
        finally:
            await browser.close()


async def until(page: Any, expression: str) -> None:
    for _ in range(400):
        if await page.evaluate(expression):
            return
        await page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}; {await page.evaluate('document.body.innerText')}")


async def shoot(page: Any, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


def test_a_person_at_the_page_sees_what_the_truth_log_says(tmp_path: Path) -> None:
    clip, speech_end = microphone(tmp_path / "microphone.wav")
    truth, run = tmp_path / "truth.jsonl", RunDirectory(tmp_path / "run")
    settings = {"truth": str(truth), "think_ms": "400", "leading_silence_ms": "60", "user_transcript": "what is said"}
    peer = make_peer("agent", PeerOptions(settings=settings), CLOCK)
    calls: list[Tapped] = []

    def new_call(clock: Any) -> Any:
        calls.append(Tapped(clock))
        return calls[-1]

    def open_directory(facts: dict[str, Any]) -> RunDirectory:
        run.path.mkdir()
        return run

    async def main() -> tuple[dict[str, float], float, Watched]:
        async with Rig(CLOCK) as rig, peer:
            studio = Studio(rig, peer, SessionOptions(), open_directory, new_call)
            async with serve_page(studio) as served, browser_at(served.url, tmp_path / "microphone.wav") as watched:
                page = watched.page
                await until(page, "!document.getElementById('start').disabled")
                await shoot(page, "before")
                await page.click("#start")
                await until(page, "document.getElementById('state').textContent === 'you are heard'")
                await page.evaluate(HEARD)
                await until(page, "/^[0-9]+$/.test(document.querySelector('#turns .here')?.textContent)")
                cells = await page.evaluate(
                    "Object.fromEntries([...document.querySelectorAll('#turns tbody tr:last-child td')].map((cell) =>"
                    " [cell.className.split(' ')[1], Number(cell.textContent)]))"
                )
                await until(page, "window.heard !== null")
                heard_ms = await page.evaluate("window.heard")
                await page.wait_for_timeout(500)
                assert min(await page.evaluate(PAINTED, "picture")) > 500
                assert await page.evaluate("document.querySelectorAll('#texts .agent').length") == 1
                await shoot(page, "talking")
                await page.keyboard.press("m")
                await until(page, "document.getElementById('state').textContent === 'muted'")
                await page.keyboard.press("m")
                await until(page, "document.getElementById('state').textContent === 'you are heard'")
                for width in (420, 1280):
                    await page.set_viewport_size({"width": width, "height": 900})
                    await page.wait_for_timeout(150)
                    assert await page.evaluate("document.documentElement.scrollWidth") == width
                    await page.emulate_media(color_scheme="dark")
                    await page.wait_for_timeout(150)
                    await shoot(page, f"dark-{width}")
                    await page.emulate_media(color_scheme="light")
                assert await page.evaluate("start.click(), start.disabled")  # a new one begins when this one is kept
                await until(page, "document.getElementById('state').textContent.includes('00000-live is kept')")
                assert not await page.evaluate("start.disabled")
                outside = [url for url in watched.requests if not url.startswith(served.url)]
                assert outside == []
                assert watched.complaints == []
                return cells, heard_ms, watched

    cells, heard_ms, _ = asyncio.run(main())
    to_wall_ns = time.time_ns() - time.monotonic_ns()
    session = load_session(run.sessions / "00000-live")
    end_ns = calls[0].instant_of(clip, speech_end) - calls[0].latency_ns
    records = [json.loads(line) for line in truth.read_bytes().splitlines()]
    write = next(record for record in records if record["type"] == "write" and record["kind"] == "audio")
    arrivals = [event for event in session.of(AudioReceived) if event.samples]
    audible = first_audible_sample(session.agent, arrivals[0].rate_hz)
    assert audible is not None
    true_ms = (write["before_ns"] + samples_to_ns(audible, arrivals[0].rate_hz) - end_ns) / NS_PER_MS
    assert cells["first"] == pytest.approx(true_ms, abs=20)

    (note, *_) = [event.message for event in session.of(Note) if event.code == "browser_delay"]
    assert re.match(r"the browser plays sound \d+ ms after it has come there", note)
    added_ms = cells["here"] - cells["first"]
    assert 5 < added_ms < 400
    # The browser's own pipeline, polled every 2 ms, a threshold of its own: what it reports is about what it does.
    assert heard_ms - (end_ns + to_wall_ns) / NS_PER_MS == pytest.approx(cells["here"], abs=80)

    assert {event.source for event in session.of(MediaAnchor)} == {ANCHOR}
    assert put_turns(session.path, Annotator(annotator_name(), annotate)) == 1
    (row,) = TimingScorer().score(run).rows
    assert row["status"] == "ok"
    assert row["first_audible_ms"] == pytest.approx(true_ms, abs=20)
