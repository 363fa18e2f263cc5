"""The embedded agent as a peer, before it is started: what it says of itself follows its settings."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.embedded import EmbeddedAgent
from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"protocol": "openai-live", "rate_hz": "16000"}, {"input_rate_hz": 16_000, "output_rate_hz": 16_000}),
        ({"protocol": "moshi", "unit_delay": "2"}, {"unit_delay": 2}),
        ({"protocol": "chat", "input_rate_hz": "48000"}, {"input_rate_hz": 48_000}),
        ({"delivery": "paced"}, {"pacing": "paced", "user_transcript": False}),
    ],
)
def test_the_profile_follows_the_settings(settings: dict[str, str], said: dict[str, Any]) -> None:
    """The user's audio is made at the profile's rate: it must be the one that the connector inside speaks at."""
    profile = EmbeddedAgent(PeerOptions(settings=settings), SystemClock()).profile
    assert {key: getattr(profile, key) for key in said} == said


def test_a_setting_that_the_connector_inside_refuses_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="unit_delay"):
        EmbeddedAgent(PeerOptions(settings={"protocol": "moshi", "unit_delay": "-1"}), SystemClock())
