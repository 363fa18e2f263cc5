"""OpenAI's agents SDK in Chromium against the agent over WebRTC: a real browser's ICE, DTLS, Opus and loudspeaker."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import soundfile

from connectors.agent import Agent
from harness.core.audio import pcm16_to_int16
from tests.connectors.agent.talk import RATE_HZ, agent_with, spoken
from tests.interop.answers import errors
from tests.interop.environments import node_environment
from tests.report.test_browser import ARGUMENTS, CHROMIUM

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.interop,
    pytest.mark.browser,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="/usr/bin/chromium is not installed (Debian: chromium)"),
]
SCRIPT = Path(__file__).with_name("browser.js")
BUNDLE = "node_modules/@openai/agents-realtime/dist/bundle/openai-realtime-agents.umd.js"
RTC_ARGUMENTS = ["--allow-loopback-in-peer-connection", "--disable-features=WebRtcHideLocalIpsWithMdns"]


def clip() -> bytes:
    file = io.BytesIO()
    soundfile.write(file, pcm16_to_int16(spoken(seconds=1.0)), RATE_HZ, format="WAV", subtype="PCM_16")
    return file.getvalue()


@asynccontextmanager
async def page_of(agent: Agent, folder: Path) -> AsyncIterator[Any]:
    """A page at the agent's own address, so that no rule on origins stands between them; it holds the SDK."""
    from playwright.async_api import async_playwright

    here = f"http://{urlsplit(agent.url).netloc}"
    files = {"/page": ("text/html", b"<!doctype html><title>interop</title>"), "/clip.wav": ("audio/wav", clip())}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS + RTC_ARGUMENTS)
        try:
            page = await browser.new_page()
            for path, (kind, body) in files.items():

                async def answer(route: Any, kind: str = kind, body: bytes = body) -> None:
                    await route.fulfill(content_type=kind, body=body)

                await page.route(here + path, answer)
            await page.goto(here + "/page")
            await page.add_script_tag(path=folder / BUNDLE)
            await page.add_script_tag(path=SCRIPT)
            yield page
        finally:
            await browser.close()


def test_spoken_turns_and_interruptions() -> None:
    folder = node_environment("agents_realtime")
    knobs: dict[str, Any] = {"think_ms": 50, "burst_x": 2.0, "answer_s": 20.0, "endpoint_ms": 300}

    async def call() -> None:
        async with agent_with(**knobs) as agent, page_of(agent, folder) as page:
            url = f"http://{urlsplit(agent.url).netloc}/v1/realtime/calls"
            seen = await page.evaluate("(given) => drive(given)", {"url": url, "clip": "/clip.wav"})
            assert seen["call"] == "rtc_1"
            assert seen["before"] == 0
            assert seen["statuses"] == [["cancelled", "turn_detected"], ["cancelled", "client_cancelled"]]
            assert {"session.updated", "output_audio_buffer.started", "output_audio_buffer.cleared"} <= set(
                seen["types"]
            )
            assert "response.output_audio.delta" not in seen["types"]
            assert seen["loudspeaker"] == [
                ["started", "resp_1"],
                ["cleared", "resp_1"],
                ["started", "resp_2"],
                ["cleared", "resp_2"],
            ]
            assert seen["errors"] == errors(agent) == []
            assert seen["failures"] == []
            assert [stop["reason"] for stop in agent.truth.records("stop")] == ["barge_in", "cancel"]

    asyncio.run(call())
