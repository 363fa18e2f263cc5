"""The agent as a Gemini Live server."""

from __future__ import annotations

from websockets.http11 import Request

from connectors.agent.knobs import Knobs
from connectors.codecs.gemini_live_server import GeminiServerSession

SERVICE = "/ws/google.ai.generativelanguage.{}.GenerativeService.BidiGenerateContent"
GEMINI_PATHS = (SERVICE.format("v1beta"), SERVICE.format("v1alpha"), SERVICE.format("v1alpha") + "Constrained")
"""The last is where ephemeral tokens go (protocol sheet, section 6.1)."""


def gemini_live(number: int, request: Request, knobs: Knobs) -> GeminiServerSession:
    """Gemini Live; any key or token is taken."""
    return GeminiServerSession(session_id=f"session-{number}", declare_rate_hz=knobs.declare_rate_hz)
