"""Plain HTTP on the agent's one port, beside its WebSockets."""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
import pytest
import websockets
from aiohttp.web import BaseRequest, Response

from connectors.agent import Agent, Knobs, routes, serve

pytestmark = pytest.mark.loopback


async def _echo(agent: Agent, request: BaseRequest) -> Response:
    return Response(body=await request.read(), headers={"X-Session": str(agent.next_number())})


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "HTTP_ROUTES", [("POST", "/echo", _echo), ("DELETE", "/echo/*", _echo)])


@pytest.mark.parametrize("tls", [False, True])
def test_requests_and_upgrades_share_the_port(echo: None, tls: bool) -> None:
    async def main() -> None:
        async with serve(Knobs(), tls=tls) as agent:
            base = agent.url.replace("ws", "http", 1).removesuffix("/v1/realtime")
            trust = ssl.create_default_context(cafile=str(agent.ca)) if tls else None
            async with aiohttp.ClientSession() as session:
                for body in (b"once", b"x" * 300_000):  # the second one over the kept connection
                    async with session.post(f"{base}/echo", data=body, ssl=trust or True) as answer:
                        assert answer.status == 200
                        assert await answer.read() == body
                async with session.delete(f"{base}/echo/rtc_1", ssl=trust or True) as answer:
                    assert answer.status == 200
                async with session.post(f"{base}/nothing", ssl=trust or True) as answer:
                    assert answer.status == 404
            async with websockets.connect(agent.url, ssl=trust) as ws:
                assert "session.created" in str(await ws.recv())

    asyncio.run(main())


def test_a_refusing_agent_refuses_both(echo: None) -> None:
    async def main() -> None:
        async with serve(Knobs(refuse_with=429)) as agent:
            base = agent.url.replace("ws", "http", 1).removesuffix("/v1/realtime")
            async with aiohttp.ClientSession() as session, session.post(f"{base}/echo", data=b"x") as answer:
                assert answer.status == 429

    asyncio.run(main())


@pytest.mark.parametrize("post", [False, True])
def test_a_wrong_path_is_told_the_right_ones_in_few_words(post: bool) -> None:
    async def main() -> str:
        async with serve(Knobs()) as agent:
            url = agent.url.removesuffix("/v1/realtime") + "/nothing"
            if post:
                async with aiohttp.ClientSession() as session, session.post(url.replace("ws", "http", 1)) as answer:
                    return await answer.text()
            with pytest.raises(websockets.InvalidStatus) as caught:
                await websockets.connect(url)
            return (caught.value.response.body or b"").decode()

    said = asyncio.run(main())
    assert len(said) < 150
    assert ("/v1/chat/completions" if post else "/v1/live/sessions, and Gemini Live's") in said
