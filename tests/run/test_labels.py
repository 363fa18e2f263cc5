"""Labels of the peers of one run, and what a peer has no place for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.events import Note
from harness.core.run_directory import RunDirectory
from harness.run.labels import distinct
from harness.run.peers import make_peer
from harness.run.rig import Rig
from harness.run.runner import SessionRunner
from harness.run.session_plan import SessionOptions, SessionPlan
from tests.run.fakes import FakePeer, ToneQuery


def labels(*texts: str, model: str | None = None) -> list[str]:
    clock = SystemClock()
    return [peer.label for peer in distinct([make_peer(text, PeerOptions(model=model), clock) for text in texts])]


def test_labels_that_differ_stay_as_they_are() -> None:
    assert labels("chat:http://h/v1", "moshi:ws://h") == ["chat-h", "moshi-h"]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (
            ("chat:http://h/v1", "chat:http://h/v1?dialect=vllm-omni"),
            ["chat-h (model=gpt-audio-1.5, dialect=openai)", "chat-h (dialect=vllm-omni)"],
        ),
        (
            ("moshi:ws://h", "moshi:ws://h?unit_delay=2", "agent"),
            ["moshi-h (unit_delay=1)", "moshi-h (unit_delay=2)", "agent"],
        ),
        (
            ("ws://h/v1/realtime", "ws://h/v1/realtime?dialect=beta"),
            ["openai-h (dialect=openai)", "openai-h (dialect=openai-beta)"],
        ),
        (("agent", "agent?think_ms=5", "agent"), ["agent", "agent (think_ms=5)", "agent #2"]),
    ],
)
def test_peers_with_one_label_are_told_apart(texts: tuple[str, ...], found: list[str]) -> None:
    assert labels(*texts) == found


def test_a_peer_under_another_label_is_the_same_in_all_else() -> None:
    first, second = FakePeer(), FakePeer()
    first.config, second.config = {"rate": 1}, {"rate": 2}
    one, two = distinct([first, second])
    assert (one.label, two.label) == ("fake (rate=1)", "fake (rate=2)")
    assert (two.kind, two.version, two.config, two.profile) == ("fake", "1", {"rate": 2}, second.profile)


@pytest.mark.parametrize(
    ("name", "target", "ignores"),
    [
        ("moshi", "ws://h", ("model", "instructions", "voice")),
        ("personaplex", "ws://h", ("model",)),
        ("small-webrtc", "http://h", ("model", "instructions", "voice")),
        ("agent?protocol=moshi", "", ("model", "instructions", "voice")),
        ("vllm-omni-turns", "ws://h", ("instructions", "voice")),
        ("hf-s2s", "ws://h", ()),
        ("gemini", "ws://h", ()),
        ("chat", "http://h", ()),
    ],
)
def test_what_a_connector_has_no_place_for(name: str, target: str, ignores: tuple[str, ...]) -> None:
    model = "m" if name == "vllm-omni-turns" else None
    peer = make_peer(f"{name}:{target}" if target else name, PeerOptions(model=model), SystemClock())
    assert getattr(peer, "ignores", ()) == ignores


def test_a_map_ignores_what_it_does_not_name(tmp_path: Path) -> None:
    described = tmp_path / "m.toml"
    described.write_text(
        '[input]\nrate_hz = 16000\n[output]\nrate_hz = 16000\n[send]\nstart = { p = ["$instructions"] }\n'
        '[[receive]]\nevent = "audio"\nbinary = true\n'
    )
    peer = make_peer(f"generic:ws://h?map={described}", PeerOptions(), SystemClock())
    assert getattr(peer, "ignores", ()) == ("model", "voice")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, []),
        ({"instructions": "Be brief."}, []),
        ({"voice": "v", "model": "m"}, ["--model and --voice ignored: this peer has no place for it"]),
    ],
)
def test_an_ignored_option_is_noted_in_the_session(tmp_path: Path, options: dict[str, str], said: list[str]) -> None:
    class Deaf(FakePeer):
        ignores = ("model", "voice")

    async def main() -> None:
        plan = SessionPlan(id="s", queries=(ToneQuery(ms=60, lead_ms=0),))
        async with Rig() as rig:
            session = SessionOptions(turn="manual", linger_ms=1, **options)
            await SessionRunner(rig, Deaf(), session, plan, tmp_path / "sessions").run()

    asyncio.run(main())
    (session,) = RunDirectory(tmp_path).load()
    assert [note.message for note in session.of(Note) if note.code == "ignored"] == said
