"""The agent as a Moshi server: a frame of 80 ms for each 80 ms of the user's audio, silence where nothing is said.

As with Kyutai's server the first frame is taken for the past and brings none (protocol sheet, section 7.1).
"""

from __future__ import annotations

from websockets.http11 import Request

from connectors.agent.knobs import Knobs
from connectors.agent.mouth import Mouth
from connectors.agent.shared import Shared
from connectors.agent.wire import AgentWire
from connectors.codecs.moshi import UNIT_MS
from connectors.codecs.moshi_server import MoshiEvents, MoshiServerSession
from connectors.codecs.server import ServerSession
from harness.core.audio import samples_to_ns


def moshi(number: int, request: Request, knobs: Knobs) -> MoshiServerSession:
    """Moshi or PersonaPlex: the prompts in the URL's query change nothing here."""
    return MoshiServerSession()


def moshi_mouth(number: int, session: ServerSession, wire: AgentWire, shared: Shared) -> Mouth:
    """Clocked by the user's audio; a piece of the answer's text follows each frame of its sound."""
    events = session.events
    assert isinstance(events, MoshiEvents)

    def emit(pcm: bytes) -> tuple[int, int, int]:
        sound = events.frame(events.sound(pcm))
        before_ns, after_ns = wire.write_frame(sound)
        response, text = events.sounding, events.next_text()
        if text is not None:
            frame = events.frame(text)
            shared.truth.add(("write", number, response, "text", *wire.write_frame(frame), 0, len(frame), 0))
        return before_ns, after_ns, len(sound)

    return Mouth(
        number,
        emit,
        rate_hz=events.mouth_rate_hz,
        packet_ms=UNIT_MS,
        now_ns=shared.now_ns,
        record=shared.truth.add,
        clocked=True,
        head_start=1,
        lookahead_ns=samples_to_ns(events.lookahead_samples, events.mouth_rate_hz),
    )
