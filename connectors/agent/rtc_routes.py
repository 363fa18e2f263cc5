"""The agent's WebRTC front doors: OpenAI's `/v1/realtime/calls` and pipecat's `/api/offer`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp.web import BaseRequest, Response

from connectors.agent.dialogue import Dialogue
from connectors.agent.http_wire import BODY_TIMEOUT_S
from connectors.agent.mouth import Mouth
from connectors.agent.rtc_call import RtcCall
from connectors.codecs.openai_realtime_server import OpenAIEvents, OpenAIRealtimeServer
from connectors.codecs.openai_requests import SessionUpdate
from connectors.codecs.opus import PACKET_MS, RATE_HZ
from connectors.codecs.rtvi_server import RtviServer
from connectors.codecs.server import ServerSession
from harness.core.audio import samples_to_ns

if TYPE_CHECKING:
    from connectors.agent.server import Agent

MAX_CALLS = 100
"""Calls that one agent holds at a time, whatever its `session_limit`."""
CALLS = "/v1/realtime/calls"
OFFER = "/api/offer"


class OpenAIRtcServer(OpenAIRealtimeServer):
    """OpenAI Realtime over WebRTC: events over the data channel, audio on the tracks at 48 kHz."""

    @property
    def input_rate_hz(self) -> int:  # type: ignore[override]
        return RATE_HZ


class OpenAIRtcEvents(OpenAIEvents):
    """Messages of the data channel; no audio deltas."""

    continuous = True
    mouth_rate_hz = RATE_HZ

    def frame(self, payload: bytes) -> bytes:
        return payload


class RtcWire:
    """A call as a session's wire."""

    def __init__(self, call: RtcCall) -> None:
        self._call = call
        self.mouth: Mouth | None = None

    def write_frame(self, frame: bytes) -> tuple[int, int]:
        return self._call.write(frame)

    def buffered_bytes(self) -> int:
        return 0

    def end(self, code: int, reason: str = "") -> None:
        self._call.hang_up()

    def stop_reading(self, seconds: float) -> None:
        """Datagrams cannot be left unread: nothing to do."""


async def openai_calls(agent: Agent, request: BaseRequest) -> Response:
    """POST an offer (application/sdp, or multipart with `sdp` and `session`): 201, the answer, and where to hang up."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            sdp, session = await _offer(request)
    except (ValueError, AttributeError):  # aiohttp's words about a multipart body that is none
        sdp, session = None, None
    if sdp is None:
        return _problem(400, "invalid_offer", "send the offer as application/sdp, or multipart with a part named sdp")
    number = agent.next_number()
    server = OpenAIRtcServer(
        "ga", session_id=f"sess_{number}", model=request.query.get("model", "firstpacket-agent"), output_rate_hz=24_000
    )
    server.events = OpenAIRtcEvents("ga")
    server.events.name = "openai/ga/webrtc"
    if session is not None:
        refused = server.update(SessionUpdate(session=session))
        if refused is not None:
            return _problem(400, refused.code, refused.message)
    answer = await _take_call(agent, number, server, sdp, request.path)
    if isinstance(answer, Response):
        return answer
    headers = {"Location": f"{CALLS}/rtc_{number}"}
    return Response(status=201, body=answer.encode(), content_type="application/sdp", headers=headers)


async def hang_up(agent: Agent, request: BaseRequest) -> Response:
    """DELETE the call, or POST its `/hangup`."""
    call = agent.calls.get(request.path.removesuffix("/hangup").rpartition("rtc_")[2])
    if call is None:
        return _problem(404, "call_not_found", "no such call")
    await call.closed()
    return Response(status=200)


async def small_webrtc(agent: Agent, request: BaseRequest) -> Response:
    """POST `{"sdp", "type": "offer"}`: the answer as JSON (protocol sheet, section 11.1)."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            body = await request.read()
        offer = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return _problem(400, "invalid_json", "send a JSON object with sdp and type")
    sdp = offer.get("sdp")
    if not isinstance(sdp, str) or offer.get("type") != "offer":
        return _problem(400, "invalid_offer", 'send {"sdp": …, "type": "offer"}')
    number = agent.next_number()
    answer = await _take_call(agent, number, RtviServer(), sdp, request.path)
    if isinstance(answer, Response):
        return answer
    said = {"sdp": answer, "type": "answer", "pc_id": f"rtc_{number}"}
    return Response(body=msgspec.json.encode(said), content_type="application/json")


async def _take_call(agent: Agent, number: int, server: ServerSession, sdp: str, path: str) -> str | Response:
    """Answer the offer and give the call its dialogue."""
    shared, now_ns, truth = agent.shared, agent.clock.now_ns, agent.shared.truth.add
    truth(("open", number, now_ns(), server.events.name, path))
    if agent.full() or len(agent.calls) >= MAX_CALLS:
        truth(("error", number, now_ns(), "session_limit_reached"))
        return _problem(429, "session_limit_reached", "All sessions are in use.")
    call = RtcCall(agent.clock)
    wire = RtcWire(call)
    wire.mouth = Mouth(
        number,
        call.speak,
        rate_hz=RATE_HZ,
        packet_ms=PACKET_MS,
        now_ns=now_ns,
        record=truth,
        lookahead_ns=samples_to_ns(call.lookahead_samples, RATE_HZ),
        catches_up=True,
    )
    dialogue = Dialogue(number, server, wire, shared)
    call.on_open, call.on_audio, call.on_message = dialogue.open, dialogue.hear, dialogue.receive
    present = agent.present()

    def gone() -> None:
        dialogue.closed()
        assert wire.mouth is not None
        wire.mouth.stop()
        if agent.calls.pop(str(number), None) is not None:
            present.__exit__(None, None, None)
        truth(("close", number, now_ns(), None, "client"))

    call.on_gone = gone
    agent.calls[str(number)] = call
    present.__enter__()
    try:
        return await call.answer(sdp)
    except Exception as exc:  # noqa: BLE001 - aiortc raises whatever a bad offer leads to, bare assertions too
        await call.closed()
        why = str(exc) or type(exc).__name__
        return _problem(400, "invalid_offer", f"the offer cannot be answered: {why}")
    except BaseException:
        call.hang_up()
        raise


async def _offer(request: BaseRequest) -> tuple[str | None, dict[str, Any] | None]:
    if request.content_type == "application/sdp":
        return (await request.read()).decode("utf-8", "replace"), None
    if request.content_type != "multipart/form-data":
        return None, None
    sdp, session = None, None
    async for part in await request.multipart():
        name = getattr(part, "name", None)
        body = await part.read()  # type: ignore[union-attr]
        if name == "sdp":
            sdp = bytes(body).decode("utf-8", "replace")
        elif name == "session":
            try:
                session = msgspec.json.decode(bytes(body), type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError):
                return None, None
    return sdp, session


def _problem(status: int, code: str, message: str) -> Response:
    error = {"type": "invalid_request_error", "code": code, "message": message}
    return Response(status=status, body=msgspec.json.encode({"error": error}), content_type="application/json")
