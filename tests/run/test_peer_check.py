"""`doctor --peer`: the first departure from the expected order of events, named with what came instead."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.console import Console

from harness.core.clock import WallAnchor
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioReceived,
    AudioSent,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    InputCommitted,
    Note,
    PeerError,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    RtpReceived,
    SessionReady,
    StreamStarted,
    TextReceived,
    TurnEnded,
    TurnStarted,
    UserSpeechStopped,
)
from harness.core.profile import Profile
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.report.peer_check import print_peer_check
from harness.run.peer_check import PeerCheck, check_turn
from harness.run.peer_doctor import PeerRequest, examine_peer
from harness.run.session_plan import SessionOptions
from tests.run.fakes import ToneQuery

MS = 1_000_000
RATE = 24_000
STEPS = ("reach", "session", "configured", "audio sent", "end of speech heard", "answer begun", "text", "audio")
STEPS += ("audible", "done", "usage", "close")
Change = Callable[[list[Event]], list[Event]]


def header(mode: str = "vad", profile: Profile | None = None) -> Header:
    return Header(
        session="doctor",
        peer=PeerInfo(kind="k", label="peer", version="1", config={"key_env": "MY_KEY", "model": "m"}),
        mode=mode,  # type: ignore[arg-type]
        profile=profile or Profile(),
        clock=ClockInfo(name="c", resolution_ns=1),
        anchor=WallAnchor(monotonic_ns=0, wall_ns=0),
        queries=("q",),
        user=AudioInfo(file="user.wav", rate_hz=RATE),
        agent=AudioInfo(file="agent.wav", rate_hz=RATE),
    )


def ordinary(*, packets: int = 10, ms: int = 100, every_ms: float = 20) -> list[Event]:
    """A whole turn in the expected order: one second of speech, an answer of `packets` packets."""
    phases = ("started", "dns", "tcp", "tls", "upgrade", "ready")
    events: list[Event] = [ConnectionPhase(t_ns=k * MS, phase=phase) for k, phase in enumerate(phases)]
    events.insert(5, SessionReady(t_ns=5 * MS, phase="created", model="m"))
    events.append(ConnectionPhase(t_ns=6 * MS, phase="configured"))
    events.append(
        TurnStarted(t_ns=10 * MS, turn=0, query="q", clip_sample=0, clip_samples=RATE, speech_start=0, speech_end=RATE)
    )
    events.append(StreamStarted(t_ns=10 * MS, sample=0, rate_hz=RATE))
    for k in range(60):
        at = (10 + 20 * (k + 1)) * MS
        events.append(AudioSent(t_ns=at, planned_ns=at, started_ns=at, sample=480 * k, samples=480))
    events.append(UserSpeechStopped(t_ns=1510 * MS))
    events.append(InputCommitted(t_ns=1511 * MS))
    events.append(ResponseStarted(t_ns=1520 * MS, response="r"))
    events.append(TextReceived(t_ns=1600 * MS, response="r", text="Hello", kind="transcript"))
    samples = RATE * ms // 1000
    for k in range(packets):
        at = round((1700 + every_ms * k) * MS)
        events.append(AudioReceived(t_ns=at, response="r", samples=samples, rate_hz=RATE, sample=k * samples))
    last = events[-1].t_ns
    events.append(ResponseDone(t_ns=last + MS, response="r", usage={"output_tokens": 7, "details": {}}))
    events.append(TurnEnded(t_ns=last + 2 * MS, turn=0, outcome="answered"))
    events.append(ConnectionClosed(t_ns=last + 100 * MS, by="us", code=1000))
    return events


def verdict(
    change: Change = lambda events: events,
    *,
    mode: str = "vad",
    profile: Profile | None = None,
    silent: bool = False,
    events: list[Event] | None = None,
) -> PeerCheck:
    changed = change(events or ordinary())
    numbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(changed)]
    total = sum(event.samples for event in numbered if isinstance(event, AudioReceived))
    tone = np.zeros(total) if silent else np.sin(np.arange(total) * 2 * np.pi * 440 / RATE) * 8000
    return check_turn(header(mode, profile), numbered, tone.astype(np.int16))


def without(*kinds: type[Event]) -> Change:
    return lambda events: [event for event in events if not isinstance(event, kinds)]


def until(kind: type[Event], *more: Event) -> Change:
    """The events before the first of `kind`, then `more`."""

    def cut(events: list[Event]) -> list[Event]:
        at = next(index for index, event in enumerate(events) if isinstance(event, kind))
        return events[:at] + list(more)

    return cut


def states(check: PeerCheck) -> dict[str, str]:
    return {step.name: step.state for step in check.steps}


def test_an_ordinary_turn_departs_nowhere() -> None:
    check = verdict()
    assert tuple(states(check)) == STEPS
    assert set(states(check).values()) == {"ok"}
    assert (check.ok, check.departure) == (True, None)
    details = {step.name: step.detail for step in check.steps}
    assert details["reach"] == "dns 1.0 ms, tcp 1.0 ms, tls 1.0 ms, upgrade 1.0 ms"
    assert details["end of speech heard"] == "500 ms after the end of speech"
    assert details["audio"] == "1.0 s at 24000 Hz in 10 packets, first 690 ms after the end of speech"
    assert details["usage"] == "output_tokens 7"


TIMEOUT = TurnEnded(t_ns=31_000 * MS, turn=0, outcome="timeout", reason="no answer within 30 s")
CLOSED = ConnectionClosed(t_ns=1600 * MS, by="peer", code=1008, reason="policy")
FAILED: dict[str, tuple[Change, str, str, str]] = {
    "a wrong key": (
        until(ConnectionPhase, PeerError(t_ns=0, code="401", message="HTTP 401", fatal=True)),
        "reach",
        "401: HTTP 401",
        "the environment variable MY_KEY",
    ),
    "no session": (
        until(SessionReady, PeerError(t_ns=9 * MS, code="timeout", message="not open within 30 s", fatal=True)),
        "session",
        "not open within 30 s",
        "another protocol or dialect may be spoken there",
    ),
    "another dialect": (
        until(SessionReady, RawReceived(t_ns=6 * MS, name="hello"), RawReceived(t_ns=7 * MS, name="hello")),
        "session",
        "nothing; only messages without a meaning here: hello (2)",
        "dialect",
    ),
    "a refused setting": (
        lambda events: until(TurnStarted, PeerError(t_ns=8 * MS, code="invalid_value", message="no such voice"))(
            [e for e in events if getattr(e, "phase", "") != "configured"]
        ),
        "configured",
        "invalid_value: no such voice",
        "--voice",
    ),
    "cut while talking": (until(AudioSent, CLOSED), "audio sent", "closed by the peer (1008): policy", "ended"),
    "no end of speech": (until(UserSpeechStopped, TIMEOUT), "end of speech heard", "no answer within 30 s", "manual"),
    "no answer": (until(ResponseStarted, TIMEOUT), "answer begun", "no answer within 30 s", "--turn manual"),
    "a rate limit": (
        until(ResponseStarted, PeerError(t_ns=1600 * MS, code="rate_limit_exceeded", message="try again in 1 s")),
        "answer begun",
        "rate_limit_exceeded: try again in 1 s",
        "rate limit",
    ),
    "no audio": (without(AudioReceived), "audio", "nothing", "modalities"),
    "no end": (until(ResponseDone, TIMEOUT), "done", "no answer within 30 s", "--timeout"),
    "another protocol": (
        until(
            SessionReady,
            RawReceived(t_ns=6 * MS, name="hello"),
            PeerError(t_ns=9 * MS, code="timeout", message="not open within 30 s", fatal=True),
        ),
        "session",
        "not open within 30 s; only messages without a meaning here: hello",
        "another protocol",
    ),
    "an untrusted certificate": (
        until(
            ConnectionPhase,
            PeerError(t_ns=0, code="connect", message="TLS with h failed: x; --set ca=FILE trusts it", fatal=True),
        ),
        "reach",
        "TLS with h failed",
        "--insecure",
    ),
    "no HTTP": (
        until(ResponseStarted, PeerError(t_ns=1600 * MS, code="protocol", message="no HTTP server there")),
        "answer begun",
        "no HTTP server there",
        "scheme",
    ),
    "another path": (
        until(ConnectionPhase, PeerError(t_ns=0, code="400", message="HTTP 400: send an offer", fatal=True)),
        "reach",
        "send an offer",
        "another protocol",
    ),
    "closed in the middle": (until(ResponseDone, CLOSED), "done", "closed by the peer (1008): policy", "end"),
}


@pytest.mark.unit
@pytest.mark.parametrize("name", FAILED)
def test_the_first_departure_is_named_with_what_came_instead(name: str) -> None:
    change, step, instead, hint = FAILED[name]
    check = verdict(change)
    assert not check.ok
    assert check.departure is not None
    assert (check.departure.step, check.departure.state) == (step, "failed")
    assert instead in check.departure.instead
    assert hint in check.departure.hint
    assert check.departure.expected
    found = states(check)
    assert list(found.values()).count("failed") == 1  # what follows from it is not told as a failure of its own
    before = STEPS[: STEPS.index(step)]
    assert all(found[name] in ("ok", "skipped") for name in before)


@pytest.mark.unit
def test_silence_is_not_heard_and_a_failed_answer_is_not_done() -> None:
    check = verdict(silent=True)
    assert check.departure is not None
    assert (check.departure.step, check.departure.instead) == ("audible", "silence only")

    def failing(events: list[Event]) -> list[Event]:
        return [
            msgspec.structs.replace(e, status="failed", reason="server_error") if isinstance(e, ResponseDone) else e
            for e in events
        ]

    check = verdict(failing)
    assert check.departure is not None
    assert (check.departure.step, check.departure.instead) == ("done", "it is failed (server_error)")


def moved(kind: type[Event], t_ns: int) -> Change:
    """The first of `kind` at `t_ns`, in its place by time."""

    def move(events: list[Event]) -> list[Event]:
        one = next(event for event in events if isinstance(event, kind))
        rest = [event for event in events if event is not one]
        return sorted([*rest, msgspec.structs.replace(one, t_ns=t_ns)], key=lambda event: event.t_ns)

    return move


def plus(event: Event) -> Change:
    return lambda events: sorted([*events, event], key=lambda each: each.t_ns)


WARNED: dict[str, tuple[Change, str, str]] = {
    "text after audio": (moved(TextReceived, 1790 * MS), "text", "90 ms after the first audio"),
    "no text": (without(TextReceived), "text", "ttft_ms will be empty"),
    "late delta": (
        plus(AudioReceived(t_ns=1890 * MS, response="r", samples=2400, rate_hz=RATE, sample=24_000)),
        "done",
        "1 packets after it",
    ),
    "an error that stops nothing": (
        plus(PeerError(t_ns=1515 * MS, code="odd", message="never mind")),
        "answer begun",
        "odd: never mind",
    ),
    "broken JSON": (plus(PeerError(t_ns=1650 * MS, code="unreadable", message="broken JSON")), "audio", "unreadable"),
    "unconfirmed settings": (
        plus(Note(t_ns=5 * MS, code="unconfirmed", message="did not confirm")),
        "configured",
        "did not confirm",
    ),
    "closed by the peer": (
        lambda events: [*events[:-1], msgspec.structs.replace(events[-1], by="peer", code=1001)],
        "close",
        "closed by the peer (1001)",
    ),
}


@pytest.mark.unit
@pytest.mark.parametrize("name", WARNED)
def test_what_works_but_costs_a_figure_is_a_warning(name: str) -> None:
    change, step, words = WARNED[name]
    check = verdict(change)
    assert check.ok
    assert check.departure is not None
    assert (check.departure.step, check.departure.state) == (step, "warn")
    assert words in check.departure.instead


@pytest.mark.unit
def test_an_answer_before_the_end_of_the_query_is_early() -> None:
    def early(events: list[Event]) -> list[Event]:
        answer = (ResponseStarted, TextReceived, AudioReceived, ResponseDone)
        return [msgspec.structs.replace(e, t_ns=500 * MS) if isinstance(e, answer) else e for e in events]

    found = states(verdict(early))
    assert found["answer begun"] == "warn"


@pytest.mark.unit
def test_a_rate_that_contradicts_the_arrival_is_a_warning_for_a_peer_in_real_time() -> None:
    events = ordinary(packets=40, ms=100, every_ms=66.7)
    paced = verdict(events=list(events), profile=Profile(pacing="paced"))
    assert paced.departure is not None
    assert paced.departure.step == "audio"
    assert "36000" not in paced.departure.instead
    assert "1.50 times as fast" in paced.departure.instead
    assert verdict(events=list(events), profile=Profile(pacing="burst")).departure is None


@pytest.mark.unit
def test_a_word_that_a_peer_does_not_have_is_no_departure() -> None:
    check = verdict(without(UserSpeechStopped, InputCommitted))
    assert check.departure is None
    assert states(check)["end of speech heard"] == "skipped"


@pytest.mark.unit
def test_manual_turns_expect_the_commit() -> None:
    assert verdict(without(UserSpeechStopped), mode="manual").departure is None
    check = verdict(without(UserSpeechStopped, InputCommitted), mode="manual")
    assert check.departure is not None
    assert (check.departure.step, check.departure.state) == ("commit confirmed", "warn")
    unsaid = verdict(without(UserSpeechStopped, InputCommitted), mode="manual", profile=Profile(confirms_commit=False))
    assert unsaid.departure is None
    assert states(unsaid)["commit confirmed"] == "skipped"


@pytest.mark.unit
def test_a_continuous_peer_has_no_turns_on_the_wire() -> None:
    profile = Profile(continuous=True, pacing="paced", turns=("vad",), text="with_audio")
    change = without(UserSpeechStopped, InputCommitted, ResponseStarted, ResponseDone)
    events = change(ordinary(packets=30, ms=100, every_ms=100))
    check = verdict(events=events, profile=profile)
    found = states(check)
    assert (found["answer begun"], found["done"], found["end of speech heard"]) == ("skipped",) * 3
    assert check.departure is None
    assert not verdict(events=events, profile=profile, silent=True).ok


@pytest.mark.unit
def test_a_continuous_peer_with_words_of_its_turns_has_them_checked() -> None:
    profile = Profile(continuous=True, pacing="paced")
    events = [
        msgspec.structs.replace(e, response="") if isinstance(e, AudioReceived) else e
        for e in ordinary(packets=30, ms=100, every_ms=100)
    ]
    assert set(states(verdict(events=events, profile=profile)).values()) == {"ok"}


@pytest.mark.unit
def test_a_peer_that_does_not_know_our_messages_is_another_protocols() -> None:
    profile = Profile(continuous=True, pacing="paced", turns=("vad",), text="with_audio")
    first = PeerError(t_ns=8 * MS, code="invalid_value", message="unknown event type 'session.start'")
    again = PeerError(t_ns=1490 * MS, code="invalid_value", message="unknown event type 'append'")
    answer = without(UserSpeechStopped, InputCommitted, ResponseStarted, ResponseDone, TextReceived, AudioReceived)
    check = verdict(lambda events: plus(again)(plus(first)(answer(events))), profile=profile)
    assert check.departure is not None
    assert (check.departure.step, check.departure.state) == ("session", "failed")
    assert "session.start" in check.departure.instead
    assert "another protocol" in check.departure.hint
    assert states(check)["close"] == "ok"
    answered = verdict(plus(first))
    assert answered.departure is not None
    assert (answered.departure.step, answered.departure.state) == ("audio sent", "warn")


@pytest.mark.unit
def test_the_error_that_is_the_departure_did_not_stop_nothing() -> None:
    error = PeerError(t_ns=1600 * MS, code="401", message="HTTP 401")
    check = verdict(until(ResponseStarted, error, ConnectionClosed(t_ns=1700 * MS, by="us")))
    assert check.departure is not None
    assert "HTTP 401" in check.departure.instead
    close = check.steps[-1]
    assert (close.name, close.state, close.detail) == ("close", "ok", "by us")


@pytest.mark.unit
def test_a_peer_that_never_says_when_the_user_stopped_is_not_asked_for_it() -> None:
    change = until(UserSpeechStopped, TIMEOUT)
    check = verdict(change, profile=Profile(says_endpoint=False))
    assert check.departure is not None
    assert (check.departure.step, check.departure.instead) == ("answer begun", "no answer within 30 s")


@pytest.mark.unit
def test_rtp_has_a_clock_of_its_own() -> None:
    events = ordinary(packets=40, ms=100, every_ms=66.7)
    assert verdict(events=list(events), profile=Profile(pacing="paced", rtp=True)).departure is None
    rtp = RtpReceived(t_ns=1700 * MS, ssrc=1, sequence=1, timestamp=0)
    assert verdict(plus(rtp), events=list(events), profile=Profile(pacing="paced")).departure is None


@pytest.mark.unit
def test_an_upload_sets_no_session_up() -> None:
    profile = Profile(upload=True, turns=("manual",))
    change = without(SessionReady, UserSpeechStopped, InputCommitted, ConnectionClosed)

    def http(events: list[Event]) -> list[Event]:
        phases = ("upgrade", "ready", "configured")
        return [e for e in change(events) if not (isinstance(e, ConnectionPhase) and e.phase in phases)]

    check = verdict(http, mode="upload", profile=profile)
    assert check.departure is None
    assert states(check)["session"] == "skipped"
    details = {step.name: step.detail for step in check.steps}
    assert details["answer begun"] == "1490 ms after the upload"
    assert details["audio"].endswith("first 1670 ms after the upload")


@pytest.mark.unit
def test_an_upload_that_was_never_begun_did_not_reach_the_peer() -> None:
    error = PeerError(t_ns=9 * MS, code="connect", message="TLS failed", fatal=True)
    phases = [ConnectionPhase(t_ns=k * MS, phase=phase) for k, phase in enumerate(("started", "dns", "tcp"))]
    check = verdict(events=[*phases, error], mode="upload", profile=Profile(upload=True, turns=()))
    assert check.departure is not None
    assert check.departure.step == "reach"


@pytest.mark.unit
def test_the_verdict_is_shown_with_every_step_and_no_control_characters() -> None:
    file = io.StringIO()
    change = until(ResponseStarted, PeerError(t_ns=1600 * MS, code="bad", message="\x1b[2Jgone"))
    print_peer_check(Console(file=file, width=100, color_system=None), verdict(change))
    text = file.getvalue()
    assert all(step in text for step in STEPS)
    assert "first departure: answer begun" in text
    assert "expected: an answer" in text
    assert "\x1b" not in text


# --- recorded for real ------------------------------------------------------------------------------------------


def examine(out: Path | None = None, turn: str = "manual", timeout_s: float = 8.0, **knobs: object) -> PeerCheck:
    settings = {name: str(value).lower() for name, value in {"answer_s": 0.5, "think_ms": 50, **knobs}.items()}
    options = PeerOptions(settings=settings, timeout_s=timeout_s)
    request = PeerRequest(
        peer="agent", options=options, session=SessionOptions(timeout_s=timeout_s), turn=turn, out=out
    )
    return examine_peer(request, ToneQuery(ms=600))


@pytest.mark.loopback
def test_the_agent_departs_nowhere_and_the_recording_is_kept(tmp_path: Path) -> None:
    check = examine(tmp_path / "out")
    assert (check.ok, check.departure) == (True, None)
    assert check.mode == "manual"
    assert (Path(check.recording) / "session.json").exists()
    with pytest.raises(ConfigError, match="already holds a recording"):
        examine(tmp_path / "out")


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("knobs", "step"),
    [
        ({"refuse_with": 401}, "reach"),
        ({"session_limit": 0}, "session"),
        ({"never_answer": True, "timeout_s": 1.0}, "answer begun"),
        ({"error": "server_error", "timeout_s": 1.0}, "answer begun"),
        ({"silent_answer": True}, "audible"),
        ({"close_after_ms": 50, "answer_s": 3}, "done"),
        ({"broken_json": True}, "audio"),
        ({"text": "after"}, "text"),
        ({"late_delta_ms": 5}, "done"),
    ],
    ids=str,
)
def test_each_trap_of_the_agent_is_named(knobs: dict[str, object], step: str) -> None:
    check = examine(**knobs)
    assert check.departure is not None
    assert check.departure.step == step


@pytest.mark.loopback
def test_a_turn_mode_that_the_peer_has_not_is_refused(monkeypatch) -> None:
    from connectors.embedded import EmbeddedAgent

    monkeypatch.setattr(EmbeddedAgent, "profile", Profile(turns=("vad",)))
    with pytest.raises(ConfigError, match="cannot do --turn manual; it has: vad"):
        examine()


@pytest.mark.loopback
def test_the_command_prints_json_and_its_exit_code_tells() -> None:
    def doctor(*arguments: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "harness.cli", "doctor", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=100, env=dict(os.environ))
        return ran.returncode, ran.stdout, ran.stderr

    code, out, _ = doctor("--peer", "agent", "--turn", "manual", "--set", "answer_s=0.3", "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)
    code, out, _ = doctor("--peer", "agent", "--set", "refuse_with=404", "--json")
    assert (code, json.loads(out)["departure"]["step"]) == (4, "reach")
    code, _, err = doctor("--turn", "manual")
    assert code == 2
    assert "--peer" in err
