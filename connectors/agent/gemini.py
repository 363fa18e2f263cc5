"""The agent as a Gemini Live server."""

from __future__ import annotations

from websockets.http11 import Request

from connectors.agent.knobs import Knobs
from connectors.codecs.gemini_live_server import GeminiServerSession

SERVICE = "/ws/google.ai.generativelanguage.{}.GenerativeService.BidiGenerateContent"
VERSIONS = ("v1", "v1beta", "v1alpha")
GEMINI_PATHS = (*(SERVICE.format(version) for version in VERSIONS), SERVICE.format("v1alpha") + "Constrained")
"""Google's client takes v1 where it is given a base URL; the last is where ephemeral tokens go (section 6.1)."""


def gemini_live(number: int, request: Request, knobs: Knobs) -> GeminiServerSession:
    """Gemini Live; any key or token is taken."""
    return GeminiServerSession(session_id=f"session-{number}", declare_rate_hz=knobs.declare_rate_hz)
