"""One answer as a list of ready-made frames with their instants: everything but the writing, done ahead.

A plan depends on the knobs, the dialect, the answer and the turn's number only, so equal turns of all sessions
share one.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import soxr

from connectors.agent.knobs import Knobs
from connectors.agent.speech import Answer, Library
from connectors.codecs.openai_names import Dialect
from connectors.codecs.openai_realtime_server import OpenAIEvents
from connectors.codecs.server import ServerEvents
from connectors.codecs.wav import wav_header
from harness.core.audio import NS_PER_MS, NS_PER_S, PCM16_BYTES, Int16, int16_to_pcm16, ms_to_samples
from harness.core.speech_edges import Edges, speech_edges

Kind = Literal["event", "text", "audio", "late", "done", "close"]
MADE_UP_INPUT_TOKENS = 40
KEPT_BYTES = 256 * 2**20
"""Plans kept for reuse: about 800 answers of five seconds."""
EDGE_MS = 2_000
"""The first and the last sound of an answer are looked for in so much of it first."""
TOKENS_PER_SECOND = 20
"""Audio tokens of OpenAI's output: one per 50 ms; usage here only has to look right."""


class Step(NamedTuple):
    """Write `frame` (bytes for the wire) `at_ns` after the end of the turn; `close`: end the connection (`frame`: why).

    Where the session's audio is continuous, an audio step's frame is PCM16 for its mouth instead.
    """

    at_ns: int
    kind: Kind
    frame: bytes
    samples: int = 0


class Plan(msgspec.Struct, kw_only=True):
    """An answer from `response.created` to the last late delta. samples: of the whole answer, at `rate_hz`. Nobody
    changes one, but a brain's grows while it is said (`brain_answer`).

    sound: the samples, int16 of shape (samples,); edges: of what can be heard in them; from_sample: where in the answer
    they begin, if it was cut short before."""

    response: str
    item: str
    answer: str
    language: str
    transcript: str
    rate_hz: int
    samples: int
    status: str
    steps: Sequence[Step]
    sound: Any
    edges: Edges | None
    from_sample: int = 0


class Plans:
    """Makes and keeps plans."""

    def __init__(self, knobs: Knobs, library: Library) -> None:
        self._knobs = knobs
        self._library = library
        self._made: dict[tuple[str, int, str, str | None, bool], Plan] = {}
        self._kept_bytes = 0

    def get(
        self, events: ServerEvents, number: int, answer: Answer, *, previous: str | None = None, at_once: bool = False
    ) -> Plan:
        """The plan of a session's answer number `number` (from 1). previous: the item that it follows. at_once: without
        the time to think."""
        key = (events.name, number, answer.id, previous, at_once)
        plan = self._made.get(key) if events.name else None
        if plan is None:
            knobs = msgspec.structs.replace(self._knobs, think_ms=0) if at_once else self._knobs
            plan = make_plan(knobs, events, number, answer, previous=previous)
            # Turns without end must not fill the memory: what is beyond it is made when it is needed.
            if events.name and self._kept_bytes < KEPT_BYTES:
                self._made[key] = plan
                self._kept_bytes += sum(len(step.frame) for step in plan.steps) + plan.sound.nbytes
        return plan

    def rest(self, events: ServerEvents, number: int, plan: Plan, heard: int, *, previous: str | None) -> Plan:
        """What is left of `plan` after `heard` samples, as answer number `number`, without the time to think."""
        whole = Answer(
            id=plan.answer,
            text=plan.transcript,
            language=plan.language,
            rate_hz=plan.rate_hz,
            samples=plan.sound,
        )
        pieces = whole.pieces
        text = "".join(pieces[len(pieces) * heard // max(plan.samples, 1) :]).lstrip()
        left = msgspec.structs.replace(whole, text=text, samples=plan.sound[heard:])
        knobs = msgspec.structs.replace(self._knobs, think_ms=0)
        made = make_plan(knobs, events, number, left, previous=previous)
        return msgspec.structs.replace(made, from_sample=plan.from_sample + heard)

    def prepare(self, turns: int) -> None:
        """Make the plans of the first `turns` turns now, for every answer and dialect, as far as the memory goes."""
        dialects: tuple[Dialect, ...] = ("ga", "beta") if self._knobs.dialect == "auto" else (self._knobs.dialect,)
        for dialect in dialects:
            events = OpenAIEvents(dialect)
            for turn in range(1, turns + 1):
                for answer in self._library:
                    if self._kept_bytes < KEPT_BYTES:
                        self.get(events, turn, answer, previous=f"item_u{turn}")


def make_plan(knobs: Knobs, events: ServerEvents, turn: int, answer: Answer, *, previous: str | None = None) -> Plan:
    """Lay out one answer, the session's number `turn`, as the knobs ask. previous: the item that it follows."""
    events = events.of_turn(turn)
    answer = _at_rate(answer, events.mouth_rate_hz) if events.continuous else answer
    response, item = f"resp_{turn}", f"item_a{turn}"
    failed = knobs.error == "rate_limit"
    steps = _failure(events, response) if failed else _answer(knobs, events, response, item, turn, answer, previous)
    return Plan(
        response=response,
        item=item,
        answer=answer.id,
        language=answer.language,
        transcript="" if knobs.text == "none" else answer.text,
        rate_hz=answer.rate_hz,
        samples=sum(step.samples for step in steps if step.kind == "audio"),
        status="failed" if failed else "completed",
        steps=tuple(steps),
        sound=answer.samples,
        edges=None if failed else sound_edges(answer.samples, answer.rate_hz),
    )


def sound_edges(samples: Int16, rate_hz: int) -> Edges | None:
    """From the first to the last sound of an answer, or of a part of it; None where nothing can be heard."""
    n, near = len(samples), ms_to_samples(EDGE_MS, rate_hz)
    first = speech_edges(samples, rate_hz, 0, near)
    last = speech_edges(samples, rate_hz, n - near, n)
    if first is None or last is None:
        return speech_edges(samples, rate_hz, 0, n)
    return Edges(first.start, last.end)


def _at_rate(answer: Answer, rate_hz: int) -> Answer:
    """The same answer at the rate of the mouth that will say it."""
    if answer.rate_hz == rate_hz:
        return answer
    samples = soxr.resample(answer.samples, answer.rate_hz, rate_hz)
    return msgspec.structs.replace(answer, samples=samples, rate_hz=rate_hz)


def payload_steps(events: ServerEvents, at_ns: int, kind: Kind, payloads: list[bytes], samples: int = 0) -> list[Step]:
    """One step for each payload; the samples count with the last."""
    last = len(payloads) - 1
    return [Step(at_ns, kind, events.frame(each), samples if i == last else 0) for i, each in enumerate(payloads)]


def _failure(events: ServerEvents, response: str) -> list[Step]:
    created = events.response_opened(response, "", None)[:1]
    error = {"type": "tokens", "code": "rate_limit_exceeded", "message": "Rate limit reached, try again in 1 s."}
    closing = events.error_close(error["code"], error["message"])
    if closing is not None:
        return [Step(0, "close", closing[1].encode())]
    done = events.response_done(response, "failed", error=error)
    return payload_steps(events, 0, "event", created) + _end(events, 0, done)


def _answer(
    knobs: Knobs,
    events: ServerEvents,
    response: str,
    item: str,
    turn: int,
    answer: Answer,
    previous: str | None,
) -> list[Step]:
    think_ns = knobs.think_ms * NS_PER_MS
    opened = events.response_opened(response, item, previous)
    steps = payload_steps(events, 0, "event", opened)
    if knobs.text == "before":
        lead_ns = min(knobs.text_lead_ms * NS_PER_MS, think_ns)
        steps += _text(events, response, item, answer, think_ns - lead_ns, lead_ns)
    for number in range(knobs.flood):
        steps += payload_steps(events, think_ns, "event", events.other("agent.flood", {"number": number}))
    if knobs.broken_json:
        steps += payload_steps(events, think_ns, "event", events.broken())
    if events.continuous:  # no packets of its own: the mouth cuts
        knobs = msgspec.structs.replace(knobs, odd_bytes=False, wav_headers=False, empty_packets=0)
    packets = _packets(knobs, answer)
    instants = _instants(knobs, packets, answer.rate_hz, turn)
    for packet, at_ns in zip(packets, instants, strict=True):
        steps += _audio(events, response, item, at_ns, "audio", packet.data, packet.samples, answer.rate_hz)
    end_ns = instants[-1] if instants else think_ns
    if knobs.text == "after":
        steps += _text(events, response, item, answer, end_ns, 0)
    transcript = "" if knobs.text == "none" else answer.text
    usage = _usage(sum(packet.samples for packet in packets), answer, transcript) if knobs.usage else None
    sent_ns = end_ns
    if events.done_after_playout:
        end_ns = _heard_ns(packets, instants, answer.rate_hz, end_ns)
    steps += closing_steps(events, response, item, transcript, sent_ns, end_ns, usage=usage)
    steps += payload_steps(events, end_ns, "event", events.rate_limits(1000 - turn))
    if knobs.late_delta_ms is not None and packets:
        late = answer.samples[-ms_to_samples(knobs.chunk_ms, answer.rate_hz) :]
        pcm = int16_to_pcm16(late)
        data = wav_header(answer.rate_hz, len(pcm)) + pcm if knobs.wav_headers else pcm
        late_ns = end_ns + knobs.late_delta_ms * NS_PER_MS
        steps += _audio(events, response, item, late_ns, "late", data, len(late), answer.rate_hz)
    if knobs.close_after_ms is not None:
        close_ns = think_ns + knobs.close_after_ms * NS_PER_MS
        steps = [step for step in steps if step.at_ns <= close_ns] + [Step(close_ns, "close", b"")]
    return steps


def closing_steps(
    events: ServerEvents,
    response: str,
    item: str,
    transcript: str,
    sent_ns: int,
    done_ns: int,
    *,
    usage: dict[str, object] | None = None,
) -> list[Step]:
    """The end of an answer that was completed: all was sent at `sent_ns`, and it is done at `done_ns`."""
    closing = events.answer_closed(response, item, transcript, "completed")
    output = [events.answer_item(item, transcript, "completed")]
    done = events.response_done(response, "completed", usage=usage, output=output)
    return payload_steps(events, sent_ns, "event", closing) + _end(events, done_ns, done)


def _end(events: ServerEvents, at_ns: int, payloads: list[bytes]) -> list[Step]:
    """The end of the answer, one step: a protocol without such an event still has the instant."""
    frame = b"".join(events.frame(each) for each in payloads)
    return [Step(at_ns, "done", frame)]


def _audio(
    events: ServerEvents, response: str, item: str, at_ns: int, kind: Kind, data: bytes, samples: int, rate_hz: int
) -> list[Step]:
    if events.continuous:
        return [Step(at_ns, kind, data, samples)]
    return payload_steps(events, at_ns, kind, events.audio_delta(response, item, data, rate_hz), samples)


def _heard_ns(packets: list[_Packet], instants: list[int], rate_hz: int, end_ns: int) -> int:
    """When a listener without a buffer has heard everything, ns after the end of the turn; at least `end_ns`."""
    heard_ns = 0
    for packet, at_ns in zip(packets, instants, strict=True):
        heard_ns = max(heard_ns, at_ns) + packet.samples * NS_PER_S // rate_hz
    return max(heard_ns, end_ns)


class _Packet(NamedTuple):
    data: bytes
    samples: int
    """Samples that this packet completes; with odd cuts, a half sample counts for the packet that ends it."""


def _packets(knobs: Knobs, answer: Answer) -> list[_Packet]:
    pcm = int16_to_pcm16(answer.samples)
    chunk = ms_to_samples(knobs.chunk_ms, answer.rate_hz) * PCM16_BYTES
    # With odd cuts every second boundary moves on by a byte, so that all packets but the last have odd lengths.
    inner = range(chunk, len(pcm), chunk)
    cuts = [at + (index % 2 == 0 if knobs.odd_bytes else 0) for index, at in enumerate(inner)]
    bounds = [0, *(cut for cut in cuts if cut < len(pcm)), len(pcm)]
    packets = [_Packet(b"", 0)] * knobs.empty_packets
    packets += [_Packet(pcm[a:b], b // PCM16_BYTES - a // PCM16_BYTES) for a, b in itertools.pairwise(bounds)]
    if not knobs.wav_headers:
        return packets
    return [_Packet(wav_header(answer.rate_hz, len(data)) + data, samples) for data, samples in packets]


def _instants(knobs: Knobs, packets: list[_Packet], rate_hz: int, turn: int) -> list[int]:
    """When each packet leaves, in ns after the end of the turn; never earlier than the one before it."""
    chance = random.Random(f"{knobs.seed}/{turn}")
    speed = 1.0 if knobs.delivery == "paced" else knobs.burst_x
    instants: list[int] = []
    position_ns = latest = 0
    for packet in packets:
        at_ns = knobs.think_ms * NS_PER_MS + (round(position_ns / speed) if speed else 0)
        if knobs.stall_ms and position_ns >= knobs.stall_at_ms * NS_PER_MS:
            at_ns += knobs.stall_ms * NS_PER_MS
        latest = max(latest, at_ns + round(chance.uniform(0, knobs.jitter_ms) * NS_PER_MS))
        instants.append(latest)
        position_ns += packet.samples * NS_PER_S // rate_hz
    return instants


def _text(events: ServerEvents, response: str, item: str, answer: Answer, start_ns: int, length_ns: int) -> list[Step]:
    pieces = answer.pieces
    steps: list[Step] = []
    for number, piece in enumerate(pieces):
        at_ns = start_ns + length_ns * number // len(pieces)
        steps += payload_steps(events, at_ns, "text", events.transcript_delta(response, item, piece))
    return steps


def _usage(samples: int, answer: Answer, transcript: str) -> dict[str, object]:
    audio = samples * TOKENS_PER_SECOND // answer.rate_hz
    text = len(answer.pieces) if transcript else 0
    asked, answered = MADE_UP_INPUT_TOKENS, audio + text
    return {
        "total_tokens": asked + answered,
        "input_tokens": asked,
        "output_tokens": answered,
        "input_token_details": {"text_tokens": 0, "audio_tokens": asked, "cached_tokens": 0},
        "output_token_details": {"text_tokens": text, "audio_tokens": audio},
    }
