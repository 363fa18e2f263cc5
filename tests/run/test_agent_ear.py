"""The ear finds speech ahead of playout, whatever the packets, and knows stalls, flushes and ends apart."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from harness.core.audio import NS_PER_MS, int16_to_pcm16, samples_to_ns
from harness.core.events import AudioReceived, ResponseDone, UserSpeechStarted
from harness.run.agent_ear import RUN_DRY_NS, AgentEar, EarDesk
from harness.run.pacer import Pacer
from harness.run.virtual import run_virtual, virtual_timer
from harness.run.voice_heard import VoiceHeard
from scenarios.pack import load_pack

RATE = 24_000
T0 = 5_000 * NS_PER_MS
FRAME_NS, START_LAG_NS = 32 * NS_PER_MS, 64 * NS_PER_MS


class Told:
    """Remembers what a director is told, as (what, instant[, final])."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def agent_started(self, heard_ns: int) -> None:
        self.calls.append(("start", heard_ns))

    def agent_stopped(self, heard_ns: int, *, final: bool = False) -> None:
        self.calls.append(("stop", heard_ns, final))

    def agent_flushed(self, heard_ns: int) -> None:
        self.calls.append(("flush", heard_ns))


@pytest.fixture(scope="module")
def clip():
    return next(each for each in load_pack("queries").clips if each.id == "en-14").at_rate(RATE)


def ear_of(told: Told, *, continuous: bool = False) -> AgentEar:
    return AgentEar(told, lambda ear: None, flush_on=("user_speech_started",), continuous=continuous)


def hear_all(ear: AgentEar) -> None:
    while ear.hear():
        pass


def packet(samples: np.ndarray, t_ns: int, response: str = "r") -> AudioReceived:
    return AudioReceived(
        t_ns=t_ns, samples=len(samples), rate_hz=RATE, response=response, item="i", pcm=int16_to_pcm16(samples)
    )


@pytest.mark.parametrize(("size", "paced"), [(10**9, False), (480, False), (480, True), (777, True)])
def test_speech_is_found_where_it_is_heard_whatever_the_packets(clip, size: int, paced: bool) -> None:
    told = Told()
    ear = ear_of(told)
    hear_all(ear)
    for begin in range(0, len(clip.samples), size):
        piece = clip.samples[begin : begin + size]
        ear.take(packet(piece, T0 + samples_to_ns(begin, RATE) * paced))
        if paced:
            hear_all(ear)
    ear.take(ResponseDone(t_ns=T0 + 1, response="r"))
    hear_all(ear)
    assert [call[0] for call in told.calls] == ["start", "stop"]
    (_, start_ns), (_, stop_ns, final) = told.calls
    assert final
    assert ear.spoke
    assert abs(start_ns - T0 - samples_to_ns(clip.speech_start, RATE)) <= 2 * FRAME_NS
    assert abs(stop_ns - T0 - samples_to_ns(clip.speech_end, RATE)) <= 4 * FRAME_NS


def test_a_stall_in_a_response_is_no_end_but_one_of_a_continuous_peer_is(clip) -> None:
    half = clip.speech_start + (clip.speech_end - clip.speech_start) // 2
    end_ns = T0 + samples_to_ns(half, RATE)
    for continuous in (False, True):
        told = Told()
        ear = ear_of(told, continuous=continuous)
        hear_all(ear)
        ear.take(packet(clip.samples[:half], T0))
        hear_all(ear)
        ear.listen(end_ns + RUN_DRY_NS - 1)
        assert told.calls[0][0] == "start"
        assert ("stop", end_ns, False) not in told.calls
        before = len(told.calls)
        ear.listen(end_ns + RUN_DRY_NS)
        assert (len(told.calls) > before) is continuous


def test_a_flush_drops_what_was_not_heard_and_after_the_natural_end_it_is_none(clip) -> None:
    told = Told()
    ear = ear_of(told)
    hear_all(ear)
    ear.take(packet(clip.samples, T0))
    hear_all(ear)
    flush_ns = T0 + samples_to_ns(clip.speech_end, RATE) - 200 * NS_PER_MS
    ear.take(UserSpeechStarted(t_ns=flush_ns))
    ear.take(ResponseDone(t_ns=flush_ns + 1, response="r", status="cancelled"))
    ear.take(packet(clip.samples, flush_ns + 2))  # late: after its response was done
    hear_all(ear)
    assert [call[0] for call in told.calls] == ["start", "flush", "stop"]
    assert told.calls[1:] == [("flush", flush_ns), ("stop", flush_ns, True)]
    ear.take(packet(clip.samples, flush_ns + 3, "r2"))
    hear_all(ear)
    end_ns = flush_ns + 3 + samples_to_ns(len(clip.samples), RATE)
    ear.take(UserSpeechStarted(t_ns=end_ns))
    assert [call[0] for call in told.calls] == ["start", "flush", "stop", "start"]


def test_silence_is_no_speech() -> None:
    told = Told()
    ear = ear_of(told)
    ear.take(packet(np.zeros(RATE, dtype=np.int16), T0))
    hear_all(ear)
    assert told.calls == []
    assert not ear.spoke


def test_a_frame_makes_way_for_a_deadline_but_not_for_ever() -> None:
    """Deadlines 1 ms apart leave no gap of 1.5 ms; the ear gets its turn all the same."""

    async def main(clock):
        pacer = Pacer(clock, virtual_timer)
        desk, order = EarDesk(pacer), []
        ear = SimpleNamespace(hear=lambda: order.append(("ear", clock.now_ns())) or len(order) < 40)
        for ms in range(1, 30):
            pacer.call_at(ms * NS_PER_MS, lambda: order.append(("deadline", clock.now_ns())))
        pacer.call_at(NS_PER_MS // 2, lambda: None).cancel()
        assert pacer.next_ns == NS_PER_MS
        desk.ask(ear)
        await pacer.until(40 * NS_PER_MS)
        return order

    order = run_virtual(main)
    assert [t_ns for what, t_ns in order if what == "deadline"] == [ms * NS_PER_MS for ms in range(1, 30)]
    heard = [t_ns for what, t_ns in order if what == "ear"]
    assert heard[:3] == [10 * NS_PER_MS, 20 * NS_PER_MS, 29 * NS_PER_MS]
    assert len(order) == 40


def test_what_was_heard_of_an_item_when_playout_was_emptied() -> None:
    """Two packets of 100 ms at 0 and 250 ms; the flush at 300 ms comes after 100 + 50 ms of sound."""
    heard = VoiceHeard()
    assert heard.flush(0) is None
    sound = np.ones(2_400, dtype=np.int16)
    heard.take(packet(sound, 0))
    heard.take(packet(sound, 250 * NS_PER_MS))
    cut = heard.flush(300 * NS_PER_MS)
    assert cut is not None
    assert (cut.item, cut.audio_end_ms) == ("i", 150)
    heard.take(packet(sound, 310 * NS_PER_MS))
    assert heard.flush(320 * NS_PER_MS) is None  # told already


def test_an_answer_that_was_heard_to_its_end_is_not_cut() -> None:
    heard = VoiceHeard()
    heard.take(packet(np.ones(2_400, dtype=np.int16), 0))
    assert heard.flush(100 * NS_PER_MS) is None
