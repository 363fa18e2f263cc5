"""Two kinds of model through the harness: one clocked by its input (Moshi), one that answers turns (Qwen's Omni)."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from harness.core.audio import NS_PER_MS, samples_to_ns
from harness.core.events import AudioReceived, TextReceived
from scoring.stats import percentile
from tests.gpu.talk import CLOCK, noise, talking

SETTLE_MS = 2000
"""After the last unit was sent: what has not come by then will not."""


async def duplex_steps(target: str, settings: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
    """Units of noise in real time; `step`: from a unit sent to the worker's stamp on the unit that answers it."""
    async with talking(target, settings) as talk:
        profile = talk.peer.profile
        assert profile.unit_ms is not None
        unit = profile.unit_ms * profile.input_rate_hz // 1000
        sound = noise(seconds, profile.input_rate_hz)
        begin_ns = CLOCK.now_ns()
        sent_ns = []
        for start in range(0, len(sound) - unit + 1, unit):
            await talk.until(begin_ns + samples_to_ns(start + unit, profile.input_rate_hz))
            sent_ns.append(talk.push(sound[start : start + unit]))
        await talk.until(CLOCK.now_ns() + SETTLE_MS * NS_PER_MS)
        packets = [event for event in talk.events if isinstance(event, AudioReceived)]
        texts = sum(isinstance(event, TextReceived) for event in talk.events)
    pairs = list(zip(sent_ns[profile.unit_delay :], packets, strict=False))
    steps = [(packet.produced_ns - sent) / NS_PER_MS for sent, packet in pairs]
    lags = [(packet.t_ns - sent) / NS_PER_MS for sent, packet in pairs]
    return {
        "units_sent": len(sent_ns),
        "units_back": len(packets),
        "texts": texts,
        "step_p50_ms": round(percentile(steps, 0.5), 2),
        "step_p99_ms": round(percentile(steps, 0.99), 2),
        "step_max_ms": round(max(steps), 2),
        "budget_ms": profile.unit_ms,
        "late_units": sum(lag > profile.unit_ms for lag in lags),
        "facts": talk.peer.config["facts"],
    }


async def answers(target: str, settings: Mapping[str, Any], *, rounds: int, query_s: float, limit_s: float) -> Any:
    """Medians over `rounds` answers to noise: first token, first packet, the whole, all from the commit on."""
    found: list[dict[str, float]] = []
    async with talking(target, settings) as talk:
        query = noise(query_s, talk.peer.profile.input_rate_hz)
        for _ in range(rounds):
            talk.push(query)
            answer = await talk.ask(limit_s=limit_s)
            whole_ms = answer.since_ms(answer.done.produced_ns)
            found.append(
                {
                    "ttft_ms": answer.since_ms(answer.texts[0].t_ns),
                    "first_packet_ms": answer.since_ms(answer.packets[0].t_ns),
                    "last_token_ms": answer.since_ms(answer.texts[-1].t_ns),
                    "whole_ms": whole_ms,
                    "rtf": whole_ms / 1e3 / answer.sound_s,
                    "sound_s": answer.sound_s,
                }
            )
    medians = {name: round(median(each[name] for each in found), 3) for name in found[0]}
    return {"rounds": rounds, **medians, "facts": talk.peer.config["facts"]}
