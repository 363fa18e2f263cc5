"""What a user may call a peer."""

from __future__ import annotations

from urllib.parse import quote_plus

import pytest

from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, PrerequisiteError
from harness.run.peers import PeerRequest, describe_peers, make_peer, parse_peer, split_settings


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("agent", PeerRequest(name="agent")),
        ("agent?think_ms=50&text=none", PeerRequest(name="agent", settings={"think_ms": "50", "text": "none"})),
        ("local:my.models:Echo", PeerRequest(name="local", target="my.models:Echo")),
        ("local:my.models:Echo?steps=2", PeerRequest(name="local", target="my.models:Echo", settings={"steps": "2"})),
        ("ws://h:1/v1/realtime?model=m", PeerRequest(name="openai", target="ws://h:1/v1/realtime?model=m")),
        ("openai:wss://h/v1", PeerRequest(name="openai", target="wss://h/v1")),
    ],
)
def test_names_targets_settings_and_urls(text: str, request_: PeerRequest) -> None:
    assert parse_peer(text) == request_


@pytest.mark.parametrize(
    ("text", "settings", "error", "words"),
    [
        ("http://x", {}, ConfigError, "no connector speaks http://"),
        ("opnai", {}, ConfigError, "did you mean openai?"),
        ("ws://", {}, ConfigError, "no WebSocket URL"),
        ("ws://h:99999/x", {}, ConfigError, "port"),
        ("ws://user:pw@h/x", {}, ConfigError, "no key into the URL"),
        ("ws://h/x", {"dialekt": "ga"}, ConfigError, "did you mean dialect?"),
        ("ws://h/x", {"dialect": "gamma"}, ConfigError, "gamma"),
        ("ws://h/x", {"session": "[1]"}, ConfigError, "not a JSON object"),
        ("chat:http://h/v1", {"dialect": "gamma"}, ConfigError, "dialect=gamma: known: openai, dashscope, vllm-omni"),
        ("openai", {}, PrerequisiteError, "OPENAI_API_KEY"),
        ("agent:thing", {}, ConfigError, "takes no target"),
    ],
)
def test_bad_peers_are_one_clear_line(text: str, settings, error, words: str, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(error, match=words) as caught:
        make_peer(text, PeerOptions(settings=settings), SystemClock())
    assert "\n" not in str(caught.value)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("where", ["NAME", "URL"])
@pytest.mark.parametrize(
    ("name", "url", "setting", "value"),
    [
        ("openai", "ws://h:1/v1/realtime", "dialect", "speaches"),
        ("openai-live", "wss://w.ap-southeast-1.maas.aliyuncs.com", "dialect", "qwen"),
        ("openai-webrtc", "http://h:1", "auth", "multipart"),
        ("gemini", "ws://h:1", "setup", '{"a": {"b": 1}}'),
        ("moshi", "ws://h:1", "unit_delay", "3"),
        ("personaplex", "ws://h:1", "voice_prompt", "NATM1.pt"),
        ("chat", "http://h:1/v1", "dialect", "vllm-omni"),
        ("small-webrtc", "http://h:1", "request_data", '{"who": "a b&c"}'),
        ("generic", "ws://h:1", "map", "deepgram-agent"),
    ],
)
def test_a_setting_may_stand_in_the_query_of_a_url(name, url, setting, value, where, monkeypatch) -> None:
    monkeypatch.setenv("DASHSCOPE_API_KEY", "k")
    model = "m" if setting == "dialect" and value == "speaches" else None
    said = f"{setting}={quote_plus(value)}"
    query, settings = (f"?{said}&tenant=7", {}) if where == "URL" else ("?tenant=7", {setting: value})
    made = make_peer(f"{name}:{url}{query}", PeerOptions(model=model, settings=settings), SystemClock())
    assert str(made.config[setting]) == value
    assert "tenant=7" in made.url
    assert (f"{setting}=" in made.url) is (name == "personaplex")  # its prompts are told in the URL


def test_a_setting_in_the_query_wins_for_its_peer_and_the_servers_own_parameter_stays_possible() -> None:
    options = PeerOptions(model="m", settings={"dialect": "localai"})
    made = make_peer("ws://h/x?dialect=speaches&%64ialect=theirs", options, SystemClock())
    assert made.config["dialect"] == "speaches"
    assert "dialect=theirs" in made.url
    assert "speaches" not in made.url


def test_a_dialect_that_needs_an_address_says_which() -> None:
    with pytest.raises(ConfigError, match=r"openai-live:wss://WORKSPACE\.\S+\?dialect=qwen$"):
        make_peer("openai-live?dialect=qwen", PeerOptions(), SystemClock())


def test_the_official_key_goes_to_the_official_host_only(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    official = make_peer("openai", PeerOptions(), SystemClock())
    assert official._headers() == {"Authorization": "Bearer sk-very-secret"}
    assert "sk-very-secret" not in str(official.config)
    other = make_peer("ws://example.com/v1/realtime", PeerOptions(), SystemClock())
    assert other._headers() == {}
    named = make_peer("ws://example.com/v1/realtime", PeerOptions(key_env="OPENAI_API_KEY"), SystemClock())
    assert "Authorization" in named._headers()


def test_every_connector_can_be_described() -> None:
    described = {peer["name"]: peer for peer in describe_peers()}
    assert {"agent", "local", "openai"} <= set(described)
    assert described["openai"]["profile"]["pacing"] == "burst"


def test_how_a_connector_was_checked_and_its_dialects_are_told(monkeypatch) -> None:
    from typing import ClassVar, NamedTuple

    from harness.core.profile import Profile
    from harness.run import peers

    class Row(NamedTuple):
        name: str
        title: str
        evidence: str
        profile: Profile

    class Mine:
        """My service."""

        version = "1"
        evidence = "live-checked 2026-01-02"
        declared = Profile(turns=("vad",))
        variants: ClassVar = [Row("old", "its older way", "golden only", Profile(input_rate_hz=8000))]

    monkeypatch.setattr(peers, "known_peers", lambda: [("mine", "My service.", Mine), ("broken", "cannot", None)])
    mine, broken = describe_peers()
    assert mine["evidence"] == "live-checked 2026-01-02"
    assert [(row["name"], row["evidence"]) for row in mine["variants"]] == [("mine?dialect=old", "golden only")]
    assert mine["variants"][0]["profile"]["input_rate_hz"] == 8000
    assert (broken["evidence"], broken["profile"], broken["variants"]) == (None, None, [])


def test_dialects_are_listed_once_under_openai() -> None:
    rows = {row["name"]: row["variants"] for row in describe_peers()}
    assert rows["openai"]
    assert not any(rows[name] for name in ("azure", "xai", "unmute"))


def test_settings_are_key_value() -> None:
    assert split_settings(("a=1", "b=x=y")) == {"a": "1", "b": "x=y"}
    with pytest.raises(ConfigError, match="write key=value"):
        split_settings(("a",))
