"""The embedded voice agent: a real server that speaks OpenAI Realtime, with a log of what it truly sent and when."""

from __future__ import annotations

from connectors.agent.knobs import Knobs, read_knobs
from connectors.agent.server import Agent, serve

__all__ = ["Agent", "Knobs", "read_knobs", "serve"]
