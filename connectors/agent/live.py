"""The agent as an OpenAI Live server: a packet of audio every 100 ms, from the client's first message on."""

from __future__ import annotations

from websockets.http11 import Request

from connectors.agent.knobs import Knobs
from connectors.agent.mouth import Mouth
from connectors.agent.shared import Shared
from connectors.agent.wire import AgentWire
from connectors.codecs.openai_live_server import LiveServerSession
from connectors.codecs.server import ServerSession

LIVE_PATH = "/v1/live/sessions"
PACKET_MS = 100


def openai_live(number: int, request: Request, knobs: Knobs) -> LiveServerSession:
    """OpenAI Live; any key is taken."""
    return LiveServerSession(session_id=f"live-{number}", declare_rate_hz=knobs.declare_rate_hz)


def live_mouth(number: int, session: ServerSession, wire: AgentWire, shared: Shared) -> Mouth:
    """Ticks from the beginning, but nothing leaves before the client has started the session and chosen the rate."""
    assert isinstance(session, LiveServerSession)
    events = session.events

    def emit(pcm: bytes) -> tuple[int, int, int]:
        if not session.started:
            now_ns = shared.now_ns()
            return now_ns, now_ns, 0
        frame = events.audio_packet(pcm)
        return *wire.write_frame(frame), len(frame)

    mouth = Mouth(
        number,
        emit,
        rate_hz=events.mouth_rate_hz,
        packet_ms=PACKET_MS,
        now_ns=shared.now_ns,
        record=shared.truth.add,
    )
    session.on_start = mouth.at_rate
    return mouth
