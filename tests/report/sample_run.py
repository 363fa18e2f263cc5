"""Synthetic runs for looking at and for tests: sessions through the real writer, rows and summary with known figures.

`python -m tests.report.sample_run DIR` writes one run and its page. Nothing here measures: every instant is chosen,
and the rows state what was chosen.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.core.audio import Int16, float_to_int16, int16_to_pcm16, samples_to_ns
from harness.core.clock import WallAnchor
from harness.core.events import (
    AudioDone,
    AudioReceived,
    AudioSent,
    CommandSent,
    ConnectionPhase,
    Event,
    Note,
    PeerError,
    ResponseDone,
    ResponseStarted,
    StreamStarted,
    StreamStopped,
    TextReceived,
    TurnEnded,
    TurnStarted,
    UserSpeechStarted,
    UserSpeechStopped,
    UserTranscript,
)
from harness.core.profile import Profile
from harness.core.run_directory import RunDirectory, RunInfo
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.core.session.writer import SessionWriter

MS = 1_000_000
RATE = 24_000
CHUNK = 480
BASE_NS = 7_000_000_000_000
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1> \x1b[31m & \u2028 'quoted'"
SPOKEN = {
    "en": (
        ("en-capital", "What is the capital of Australia?", "The capital of Australia is Canberra, not Sydney."),
        ("en-boil", "Why does water boil sooner on a mountain?", "Because the air pressure is lower up there."),
        ("en-timer", "Set a timer for twelve minutes.", "Twelve minutes, starting now."),
    ),
    "zh": (
        ("zh-weather", "明天上海会下雨吗？", "明天上海多云，傍晚可能有小雨。"),
        ("zh-poem", "请背一首李白的诗。", "床前明月光，疑是地上霜。举头望明月，低头思故乡。"),
        ("zh-math", "三百六十五除以七等于多少？", "三百六十五除以七约等于五十二点一四。"),
    ),
}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One turn, by what shall happen in it. Times in ms; packets of 80 ms come `pace` times faster than real time."""

    session: str
    query: str = "en-capital"
    language: str = "en"
    asked: str = "What is the capital of Australia?"
    answer: str = "The capital of Australia is Canberra, not Sydney."
    mode: str = "vad"
    status: str = "ok"
    error: str = ""
    lead_ms: int = 250
    speech_ms: int = 1900
    endpoint_ms: float = 520.0
    think_ms: float = 430.0
    text_before_ms: float = 120.0
    silence_ms: int = 90
    answer_ms: int = 3200
    pace: float = 4.0
    stall_ms: int = 0
    own_error_ms: float = 0.21
    warmup: bool = False
    late_packet: bool = False
    interrupt_ms: int = 0


def voice(ms: int, seed: int) -> Int16:
    """Something that looks like speech: harmonics of a gliding pitch under syllables and pauses, shape (n,), 24 kHz."""
    rng = np.random.default_rng(seed)
    n = ms * RATE // 1000
    t = np.arange(n) / RATE
    pitch = rng.uniform(105, 210) * (1 + 0.12 * np.sin(2 * np.pi * 0.7 * t + rng.uniform(0, 6)))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    tone = sum(np.sin(k * phase + rng.uniform(0, 6)) / k for k in range(1, 14))
    knots = np.concatenate(([0.9], rng.uniform(0.05, 1.0, max(2, ms // 110)), [0.7]))
    knots[2:-2][rng.random(len(knots[2:-2])) < 0.12] = 0.02
    envelope = np.interp(np.linspace(0, 1, n), np.linspace(0, 1, len(knots)), knots)
    edge = np.minimum(1, np.minimum(np.arange(n), np.arange(n)[::-1]) / 240)
    signal = tone * envelope * edge * (0.75 + 0.25 * rng.random(n))
    return float_to_int16(0.32 * signal / np.abs(signal).max())


def write_session(sessions: Path, plan: Plan, seed: int = 0) -> dict[str, Any]:
    """Write one session with one turn; return its row, as the timing scorer would."""
    events, anchors = _events(plan, seed)
    profile = Profile(pacing="burst" if plan.pace > 1.5 else "paced")
    header = Header(
        session=plan.session,
        peer=PeerInfo(kind="openai", label="sample-realtime", version="1", config={"model": "sample", "voice": "ash"}),
        mode=plan.mode,
        profile=profile,
        clock=ClockInfo(name="virtual", resolution_ns=1),
        anchor=WallAnchor(wall_ns=1_760_000_000_000_000_000, monotonic_ns=BASE_NS),
        machine={"cpu": "2 cores, x86-64", "kernel": "6.1"},
        chunk_samples=CHUNK,
        queries=(plan.query,),
        user=AudioInfo(file="user.flac", rate_hz=RATE),
        agent=AudioInfo(file="agent.flac", rate_hz=RATE),
        firstpacket="0.1.0",
    )
    writer = SessionWriter(sessions, header)
    for event in events:
        writer.append(event)
    writer.close()
    return row_of(plan, anchors)


def row_of(plan: Plan, anchors: dict[str, int] | None = None) -> dict[str, Any]:
    """The row of a plan; `anchors` in ns from the start of the user's stream."""
    ok = plan.status == "ok"
    think = plan.think_ms
    packet = plan.endpoint_ms + think if plan.mode == "vad" else think
    heard = packet + plan.silence_ms
    if anchors and plan.mode == "vad":
        packet -= (anchors["speech_sent"] - anchors["speech_end"]) / MS
    return {
        "session": plan.session,
        "peer": "sample-realtime",
        "query": plan.query,
        "language": plan.language,
        "turn": 0,
        "turn_index": 0,
        "mode": plan.mode,
        "status": plan.status,
        "warmup": plan.warmup,
        "ttft_ms": round(packet - plan.text_before_ms, 3) if ok else None,
        "first_packet_ms": round(packet, 3) if ok else None,
        "first_audible_ms": round(heard, 3) if ok else None,
        "endpoint_ms": round(plan.endpoint_ms, 3) if ok and plan.mode == "vad" else None,
        "think_ms": round(think, 3) if ok else None,
        "leading_silence_ms": float(plan.silence_ms) if ok else None,
        "response_s": plan.answer_ms / 1000 if ok else None,
        "rtf": round(1 / plan.pace, 3) if ok and plan.pace > 1.5 else None,
        "stalls": 1 if plan.stall_ms else 0,
        "stall_ms": float(plan.stall_ms) if ok else None,
        "rtt_ms": 18.4,
        "send_late_p99_ms": 0.18,
        "own_error_ms": plan.own_error_ms,
        "tainted": plan.own_error_ms > 2,
        "usage": None,
        "error": plan.error or None,
        "reasons": {} if plan.pace > 1.5 else {"rtf": "paced peer: the ratio is about 1 by construction"},
        "anchors": anchors or {},
    }


def _events(plan: Plan, seed: int) -> tuple[list[Event], dict[str, int]]:
    speech = voice(plan.speech_ms, seed)
    start, end = plan.lead_ms * RATE // 1000, (plan.lead_ms + plan.speech_ms) * RATE // 1000
    t0 = BASE_NS + 400 * MS
    end_ns = t0 + samples_to_ns(end, RATE)
    decided_ns = end_ns + int((plan.endpoint_ms if plan.mode == "vad" else 0) * MS)
    answered = plan.status in ("ok", "early", "silent", "peer_error")
    packet_ns = decided_ns + int(plan.think_ms * MS)
    if plan.status == "early":
        packet_ns = end_ns - 700 * MS
    over_ns = packet_ns + (plan.answer_ms + plan.silence_ms + plan.stall_ms + 200) * MS
    over_ns = over_ns if answered else end_ns + 4000 * MS
    anchors = {"speech_start": t0 + samples_to_ns(start, RATE), "speech_end": end_ns}
    events: list[Event] = [
        ConnectionPhase(t_ns=BASE_NS, phase="started"),
        ConnectionPhase(t_ns=BASE_NS + 210 * MS, phase="ready"),
        StreamStarted(t_ns=t0, sample=0, rate_hz=RATE),
        TurnStarted(
            t_ns=t0,
            turn=0,
            query=plan.query,
            clip_sample=0,
            clip_samples=end,
            speech_start=start,
            speech_end=end,
            text=plan.asked,
            language=plan.language,
        ),
        UserSpeechStarted(t_ns=anchors["speech_start"] + 90 * MS),
    ]
    total = end if plan.mode == "manual" else int((over_ns - t0) * RATE / 1e9)
    user = np.zeros(-(-total // CHUNK) * CHUNK, dtype=np.int16)
    user[start:end] = speech
    for sample in range(0, len(user), CHUNK):
        due = t0 + samples_to_ns(sample + CHUNK, RATE)
        sent = due + 150_000
        events.append(
            AudioSent(
                t_ns=sent,
                planned_ns=due,
                started_ns=due + 60_000,
                sample=sample,
                samples=CHUNK,
                pcm=int16_to_pcm16(user[sample : sample + CHUNK]),
            )
        )
        if sample <= end - 1 < sample + CHUNK:
            anchors["speech_sent"] = sent
    if plan.mode == "manual":
        events.append(StreamStopped(t_ns=end_ns + MS, sample=len(user)))
        events.append(CommandSent(t_ns=end_ns + MS, started_ns=end_ns + MS, command="commit", turn=0))
        anchors["committed"] = end_ns + MS
    elif plan.status == "ok":
        events.append(UserSpeechStopped(t_ns=decided_ns))
        events.append(UserTranscript(t_ns=decided_ns + 60 * MS, text=plan.asked, final=True))
        anchors["endpoint"] = decided_ns
    if answered:
        _answer(plan, seed, packet_ns, events, anchors)
    if plan.interrupt_ms:
        events.append(UserSpeechStarted(t_ns=packet_ns + plan.interrupt_ms * MS))
    if plan.status == "peer_error":
        events.append(PeerError(t_ns=packet_ns + 900 * MS, code="server_error", message=plan.error, fatal=True))
    outcome = {"ok": "answered", "timeout": "timeout", "peer_error": "error"}.get(plan.status, "answered")
    events.append(TurnEnded(t_ns=over_ns, turn=0, outcome=outcome))
    if plan.status != "ok":
        anchors = {name: t_ns for name, t_ns in anchors.items() if name not in ("first_text", "first_packet", "done")}
        anchors.pop("first_audible", None)
        anchors.pop("last_packet", None)
    events.sort(key=lambda event: event.t_ns)
    return events, {name: t_ns - t0 for name, t_ns in anchors.items()}


def _answer(plan: Plan, seed: int, packet_ns: int, events: list[Event], anchors: dict[str, int]) -> None:
    silence = np.zeros(plan.silence_ms * RATE // 1000, dtype=np.int16)
    spoken = voice(plan.answer_ms, seed + 1000)
    if plan.status == "silent":
        spoken = np.zeros_like(spoken)
    audio = np.concatenate((silence, spoken))
    if plan.status == "peer_error":
        audio = audio[: RATE * 7 // 10]
    words = plan.answer if plan.language == "zh" else [word + " " for word in plan.answer.split()]
    text_ns = packet_ns - int(plan.text_before_ms * MS)
    events.append(ResponseStarted(t_ns=text_ns - 8 * MS, response="r1"))
    for index, word in enumerate(words):
        events.append(TextReceived(t_ns=text_ns + index * 38 * MS, text=word, kind="transcript", response="r1"))
    size = RATE * 80 // 1000
    arrival = packet_ns
    for index, sample in enumerate(range(0, len(audio), size)):
        if plan.stall_ms and index == 10:
            arrival = packet_ns + (800 + plan.stall_ms) * MS
        piece = audio[sample : sample + size]
        events.append(
            AudioReceived(
                t_ns=arrival, samples=len(piece), rate_hz=RATE, response="r1", pcm=int16_to_pcm16(piece), wire_bytes=900
            )
        )
        last = arrival
        arrival += int(80 * MS / plan.pace)
    if plan.status != "peer_error":
        usage = {"output_tokens": 81}
        events.append(AudioDone(t_ns=last + 3 * MS, response="r1"))
        events.append(ResponseDone(t_ns=last + 5 * MS, response="r1", usage=usage))
    if plan.late_packet:
        late = np.zeros(size, dtype=np.int16)
        events.append(
            AudioReceived(
                t_ns=last + 60 * MS, samples=size, rate_hz=RATE, response="r1", pcm=int16_to_pcm16(late), wire_bytes=900
            )
        )
        events.append(Note(t_ns=last + 61 * MS, code="late_audio", message="1 audio packet came after the end."))
    anchors |= {
        "first_text": text_ns,
        "first_packet": packet_ns,
        "first_audible": packet_ns + plan.silence_ms * MS,
        "last_packet": last,
        "done": last + 5 * MS,
    }


def summary_of(rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A summary with plain numpy percentiles, in the scorers' shape."""
    counted = [row for row in rows if not row["warmup"]]
    status: dict[str, int] = {}
    for row in counted:
        status[row["status"]] = status.get(row["status"], 0) + 1
    names = ("ttft_ms", "first_packet_ms", "first_audible_ms", "endpoint_ms", "think_ms", "leading_silence_ms")
    metrics = {
        name: _figures([row[name] for row in counted]) for name in (*names, "rtf", "response_s", "stall_ms", "rtt_ms")
    }
    errors = [row["own_error_ms"] for row in counted]
    return {
        "schema": 1,
        "peer": "sample-realtime",
        "turns": len(counted),
        "status": status,
        "failed": len(counted) - status.get("ok", 0),
        "metrics": metrics,
        "harness": {
            "send_late_ms": {**_figures([0.18] * len(counted)), "max": 0.31 if counted else None},
            "loop_lag_ms": {**_figures([0.09] * len(counted)), "max": 0.4 if counted else None},
            "error_ms": {**_figures(errors), "max": max(errors, default=None)},
            "tainted": sum(row["tainted"] for row in counted),
            "noise": {"n": 4000, "p50_ms": 0.06, "p99_ms": 0.22, "max_ms": 1.1, "quiet": True},
        },
        "calibration": None,
        **more,
    }


def _figures(values: list[float | None]) -> dict[str, Any]:
    there = np.array([value for value in values if value is not None], dtype=float)
    n = len(there)

    def percentile(q: float, least: int) -> float | None:
        return round(float(np.percentile(there, q)), 3) if n >= least else None

    everyone = np.sort([np.inf if value is None else value for value in values])
    every = {
        f"p{q}": (None if not len(everyone) else float(everyone[int(len(everyone) * q / 100)])) for q in (50, 90, 95)
    }
    p50 = percentile(50, 1)
    return {
        "n": n,
        "p50": p50,
        "p90": percentile(90, 1),
        "p95": percentile(95, 20),
        "p99": percentile(99, 100),
        "mean": round(float(there.mean()), 3) if n else None,
        "ci95": {"p50": [round(p50 * 0.96, 3), round(p50 * 1.05, 3)]} if n >= 5 else None,
        "percentiles_all": {
            name: "> timeout" if value is not None and np.isinf(value) else value for name, value in every.items()
        },
    }


def plans(count: int, seed: int = 7) -> list[Plan]:
    """A mixed run: English and Mandarin, a few of each trouble, latencies spread as real ones are."""
    rng = np.random.default_rng(seed)
    found = []
    for index in range(count):
        language = "en" if index % 2 else "zh"
        query, asked, answer = SPOKEN[language][index // 2 % 3]
        plan = Plan(
            session=f"{query}-{index:04d}",
            query=query,
            language=language,
            asked=asked,
            answer=answer,
            speech_ms=int(rng.uniform(1300, 2600)),
            endpoint_ms=float(np.round(rng.normal(520, 25), 3)),
            think_ms=float(np.round(rng.gamma(6, 70) + 120, 3)),
            silence_ms=int(rng.uniform(20, 130)),
            answer_ms=int(rng.uniform(2000, 4200)),
            own_error_ms=2.9 if index % 29 == 5 else round(float(rng.gamma(2, 0.1)), 3),
        )
        trouble = {
            3: {"stall_ms": 340, "pace": 1.0},
            8: {"status": "early"},
            11: {"status": "timeout", "error": "no answer within 30 s"},
            14: {"status": "peer_error", "error": HOSTILE},
            17: {"status": "silent"},
            19: {
                "status": "peer_error",
                "error": f"Rate limit reached, retry in {index} ms (req_{index}ab12cd34ef)",
            },
            21: {"late_packet": True},
        }.get(index % 24, {})
        found.append(msgspec.structs.replace(plan, **trouble))
    return found


def write_run(path: Path, wanted: list[Plan], *, sessions: int | None = None, **more: Any) -> RunDirectory:
    """A run of `wanted`; only the first `sessions` of them get a session directory (the others a row)."""
    run = RunDirectory(path)
    run.write_info(
        RunInfo(
            peer="sample-realtime",
            suite="bundled",
            created="2025-11-30T02:31:07Z",
            firstpacket="0.1.0",
            config={"peer": "sample", "chunk_ms": 20, "key_env": "OPENAI_API_KEY", "seed": 1},
            planned=tuple(plan.session for plan in wanted),
        )
    )
    rows = []
    for index, plan in enumerate(wanted):
        if sessions is None or index < sessions:
            rows.append(write_session(run.sessions, plan, seed=index))
        else:
            rows.append(row_of(plan))
    run.write_lines("metrics.jsonl", rows)
    run.write_json("summary.json", summary_of(rows, **more))
    return run


if __name__ == "__main__":
    from harness.report.html import write_report

    target = Path(sys.argv[1])
    print(write_report(write_run(target, plans(int(sys.argv[2]) if len(sys.argv) > 2 else 48))))
