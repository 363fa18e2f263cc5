"""Which protocol answers at which path of the agent's one port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from aiohttp.web import BaseRequest, StreamResponse
from websockets.http11 import Request

from connectors.agent.gemini import GEMINI_PATHS, gemini_live
from connectors.agent.http_wire import CHAT, chat_completions
from connectors.agent.knobs import Knobs
from connectors.agent.live import LIVE_PATH, live_mouth, openai_live
from connectors.agent.moshi import moshi, moshi_mouth
from connectors.agent.mouth import Mouth
from connectors.agent.rtc_routes import CALLS, OFFER, hang_up, openai_calls, small_webrtc
from connectors.agent.shared import Shared
from connectors.agent.wire import AgentWire
from connectors.codecs.openai_names import Dialect
from connectors.codecs.openai_realtime_server import OpenAIRealtimeServer
from connectors.codecs.server import ServerSession

if TYPE_CHECKING:
    from connectors.agent.server import Agent

Factory = Callable[[int, Request, Knobs], ServerSession]
"""Makes the session of connection number (from 1) from its upgrade request."""
MouthFactory = Callable[[int, ServerSession, AgentWire, Shared], Mouth]
Handler = Callable[["Agent", BaseRequest], Awaitable[StreamResponse]]

BETA_HEADER = ("OpenAI-Beta", "realtime=v1")
BETA_SUBPROTOCOL = "openai-beta.realtime-v1"
MODEL = "firstpacket-agent"


def openai_realtime(number: int, request: Request, knobs: Knobs) -> OpenAIRealtimeServer:
    """OpenAI Realtime; the client's header or subprotocol tells beta from GA, unless a knob does."""
    name, value = BETA_HEADER
    offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
    beta = value in request.headers.get_all(name) or BETA_SUBPROTOCOL in offered
    dialect: Dialect = "beta" if beta else "ga"
    return OpenAIRealtimeServer(
        dialect if knobs.dialect == "auto" else knobs.dialect,
        session_id=f"sess_{number}",
        model=parse_qs(urlsplit(request.path).query).get("model", [MODEL])[0],
        output_rate_hz=knobs.declared_rate_hz,
    )


WS_ROUTES: dict[str, Factory] = {
    "/v1/realtime": openai_realtime,
    "/api/chat": moshi,
    LIVE_PATH: openai_live,
    **dict.fromkeys(GEMINI_PATHS, gemini_live),
}
"""By path, without a slash at its end."""

MOUTHS: dict[str, MouthFactory] = {
    "/api/chat": moshi_mouth,
    LIVE_PATH: live_mouth,
}
"""For the WebSocket paths whose audio is continuous."""

HTTP_ROUTES: list[tuple[str, str, Handler]] = [
    ("POST", CALLS, openai_calls),
    ("DELETE", CALLS + "/*", hang_up),
    ("POST", CALLS + "/*", hang_up),
    ("POST", OFFER, small_webrtc),
    ("POST", CHAT, chat_completions),
]
"""(method, path, handler); a path that ends in `*` stands for all that begin with it."""


def served(url: str) -> list[str]:
    """Every address at which an agent that listens at `url` answers: WebSockets, and POST over HTTP."""
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    posts = [path for method, path, _ in HTTP_ROUTES if method == "POST" and not path.endswith("*")]
    return [f"{scheme}://{host}{path}" for path in WS_ROUTES] + [
        f"{scheme.replace('ws', 'http')}://{host}{path}" for path in posts
    ]


def find_http(method: str, path: str) -> Handler | None:
    """The handler of a plain HTTP request, or None."""
    for known, pattern, handler in HTTP_ROUTES:
        if known == method and (path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1]))):
            return handler
    return None
