"""The ear finds speech ahead of playout, whatever the packets, and knows stalls, flushes and ends apart."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.audio import NS_PER_MS, int16_to_pcm16, samples_to_ns
from harness.core.events import AudioReceived, PlaybackState, ResponseDone, TextReceived, UserSpeechStarted
from harness.core.playout import Packet, play
from harness.core.profile import Profile
from harness.run.agent_ear import ANNOUNCED_NS, HOLD_NS, JUDGED_NS, RUN_DRY_NS, STALL_NS, AgentEar
from harness.run.ear_channel import Started, Stopped
from harness.run.voice_heard import VoiceHeard
from scenarios.pack import load_pack
from scoring.duplex.agent_speech import agent_spans, heard_pieces
from tests.run.fakes import InlineDesk

RATE = 24_000
T0 = 5_000 * NS_PER_MS
NEAR_NS = 2 * NS_PER_MS
"""16 kHz against 24, another place in the millisecond."""


class Told:
    """Remembers what a director is told, as (what, instant[, final])."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def agent_started(self, heard_ns: int) -> None:
        if self.calls and self.calls[-1][0] == "start":  # told again: it began there after all
            before_ns = self.calls.pop()[1]
            assert abs(heard_ns - before_ns) <= 100 * NS_PER_MS
        self.calls.append(("start", heard_ns))

    def agent_stopped(self, heard_ns: int, *, final: str = "") -> None:
        self.calls.append(("stop", heard_ns, final))

    def agent_flushed(self, heard_ns: int) -> None:
        self.calls.append(("flush", heard_ns))

    def agent_wrote(self, t_ns: int) -> None:
        self.calls.append(("text", t_ns))

    @property
    def kinds(self) -> list[str]:
        return [call[0] for call in self.calls]


@pytest.fixture(scope="module")
def clip():
    return next(each for each in load_pack("queries").clips if each.id == "en-14").at_rate(RATE)


def ear_of(told: Told, *, desk: InlineDesk | None = None, **profile) -> AgentEar:
    return AgentEar(told, desk or InlineDesk(), Profile(flush_on=("user_speech_started",), **profile))


def packet(samples: np.ndarray, t_ns: int, response: str = "r") -> AudioReceived:
    return AudioReceived(
        t_ns=t_ns, samples=len(samples), rate_hz=RATE, response=response, item="i", pcm=int16_to_pcm16(samples)
    )


def spans(packets: list[AudioReceived]):
    """What the scorer finds in the finished recording of these packets."""
    sound = np.concatenate([np.frombuffer(each.pcm, dtype="<i2") for each in packets])
    starts = np.cumsum([0, *(each.samples for each in packets)])
    played = play(
        Packet(arrival_ns=each.t_ns, samples=each.samples, rate_hz=RATE, sample_start=int(at))
        for each, at in zip(packets, starts, strict=False)
    )
    return agent_spans(heard_pieces(list(played), sound, RATE), RATE)


@pytest.mark.parametrize(("size", "paced"), [(10**9, False), (480, False), (480, True), (777, True)])
def test_speech_is_found_where_the_finished_recording_has_it(clip, size: int, paced: bool) -> None:
    told = Told()
    ear = ear_of(told)
    packets = [
        packet(clip.samples[begin : begin + size], T0 + samples_to_ns(begin, RATE) * paced)
        for begin in range(0, len(clip.samples), size)
    ]
    for each in packets:
        ear.take(each)
    ear.take(ResponseDone(t_ns=T0 + 1, response="r"))
    assert told.kinds == ["start", "stop"]
    (_, start_ns), (_, stop_ns, final) = told.calls
    assert final == "response_done"
    assert ear.spoke
    scored = spans(packets)
    assert abs(start_ns - scored[0].start_ns) <= NEAR_NS
    assert abs(stop_ns - scored[-1].end_ns) <= NEAR_NS
    assert abs(start_ns - T0 - samples_to_ns(clip.speech_start, RATE)) <= 10 * NS_PER_MS


def test_every_answer_of_the_bundled_queries_begins_and_ends_within_10_ms_of_its_marks() -> None:
    """Beside the marks: also the pauses, which the ear of a continuous peer tells, are those of the recording."""
    for clip in load_pack("queries").clips[::6]:
        clip = clip.at_rate(RATE)
        told = Told()
        ear = ear_of(told, continuous=True)
        packets = [
            packet(clip.samples[at : at + 480], T0 + samples_to_ns(at, RATE), "")
            for at in range(0, len(clip.samples), 480)
        ]
        for each in packets:
            ear.take(each)
        ear.listen(T0 + samples_to_ns(len(clip.samples), RATE) + RUN_DRY_NS)
        starts = [call[1] for call in told.calls if call[0] == "start"]
        stops = [call[1] for call in told.calls if call[0] == "stop"]
        assert abs(starts[0] - T0 - samples_to_ns(clip.speech_start, RATE)) <= 10 * NS_PER_MS, clip.id
        assert abs(stops[-1] - T0 - samples_to_ns(clip.speech_end, RATE)) <= 10 * NS_PER_MS, clip.id
        assert all(stop <= start for stop, start in zip(stops, starts[1:], strict=False))


def test_a_boundary_lies_in_no_packet_of_silence(clip) -> None:
    """Sound up to the edges of a packet of zeros: windows that reach into it by 9 ms are loud, and yet it is silent."""
    half = clip.speech_start + (clip.speech_end - clip.speech_start) // 2
    edge_ns, later_ns = T0 + samples_to_ns(half, RATE), T0 + samples_to_ns(half + RATE // 2, RATE)
    told = Told()
    ear = ear_of(told, continuous=True)
    ear.take(packet(clip.samples[:half], T0, ""))
    ear.take(packet(np.zeros(RATE // 2, np.int16), edge_ns, ""))
    ear.take(packet(clip.samples[half:], later_ns, ""))
    ear.listen(later_ns + samples_to_ns(len(clip.samples) - half, RATE) + RUN_DRY_NS)
    assert told.kinds == ["start", "stop", "start", "stop"]
    assert edge_ns - NEAR_NS <= told.calls[1][1] <= edge_ns
    assert later_ns <= told.calls[2][1] <= later_ns + NEAR_NS


def test_a_stall_in_a_response_is_no_end_but_one_of_a_continuous_peer_is(clip) -> None:
    half = clip.speech_start + (clip.speech_end - clip.speech_start) // 2
    end_ns = T0 + samples_to_ns(half, RATE)
    for continuous, dry_ns in ((False, STALL_NS), (True, RUN_DRY_NS)):
        told = Told()
        ear = ear_of(told, continuous=continuous)
        ear.take(packet(clip.samples[:half], T0))
        ear.listen(end_ns + dry_ns - 1)
        assert told.kinds == ["start"]
        ear.listen(end_ns + dry_ns)
        assert told.kinds == ["start", "stop"]
        assert abs(told.calls[1][1] - end_ns) <= NEAR_NS
        assert told.calls[1][2] == ""


def test_a_pause_that_a_peer_sends_inside_a_response_is_an_end_only_after_two_seconds(clip) -> None:
    sound = np.concatenate([clip.samples, np.zeros(RATE * 3, np.int16)])
    told, desk = Told(), InlineDesk()
    ear = ear_of(told, desk=desk)
    ear.take(packet(sound, T0))
    assert told.kinds == ["start"]
    stop_ns = T0 + samples_to_ns(clip.speech_end, RATE)
    ear.listen(stop_ns + HOLD_NS - 50 * NS_PER_MS)
    assert told.kinds == ["start"]
    desk.behind = JUDGED_NS + 1  # what ends the pause may have come and not been heard
    ear.listen(stop_ns + HOLD_NS + 2 * JUDGED_NS)
    assert told.kinds == ["start"]
    desk.behind = JUDGED_NS
    ear.listen(stop_ns + HOLD_NS + 2 * JUDGED_NS)
    assert told.kinds == ["start", "stop"]
    assert abs(told.calls[1][1] - stop_ns) <= 10 * NS_PER_MS


def test_a_stall_does_not_lengthen_a_pause(clip) -> None:
    """Silent for the last 1.5 s before a stall of 2.5 s: in it and after it, a pause of 1.5 s, as it was sent."""
    sound = np.concatenate([clip.samples, np.zeros(RATE * 3 // 2 - (len(clip.samples) - clip.speech_end), np.int16)])
    told = Told()
    ear = ear_of(told)
    ear.take(packet(sound, T0))
    resumed_ns = T0 + samples_to_ns(len(sound), RATE) + 2_500 * NS_PER_MS
    ear.listen(T0 + samples_to_ns(clip.speech_end, RATE) + HOLD_NS - NS_PER_MS)
    ear.listen(resumed_ns - NS_PER_MS)
    ear.take(packet(clip.samples, resumed_ns))
    ear.listen(resumed_ns + JUDGED_NS)
    assert told.kinds == ["start"]
    # One of 3 s is an end all the same: that of the sound before it.
    end_ns = resumed_ns + samples_to_ns(len(clip.samples), RATE)
    ear.listen(end_ns + STALL_NS - 1)
    assert told.kinds == ["start"]
    ear.listen(end_ns + STALL_NS)
    assert told.kinds == ["start", "stop"]
    assert abs(told.calls[1][1] - resumed_ns - samples_to_ns(clip.speech_end, RATE)) <= 10 * NS_PER_MS


def test_speech_after_a_pause_in_a_response_is_the_same_speech(clip) -> None:
    """Two sentences with a second of silence between them that the peer sent, with and without the response's end."""
    sound = np.concatenate([clip.samples, np.zeros(RATE, np.int16), clip.samples])
    told = Told()
    ear = ear_of(told)
    ear.take(packet(sound, T0))
    assert told.kinds == ["start"]
    assert abs(told.calls[0][1] - T0 - samples_to_ns(clip.speech_start, RATE)) <= 10 * NS_PER_MS
    ear.take(ResponseDone(t_ns=T0, response="r"))
    assert told.kinds == ["start", "stop"]
    later = samples_to_ns(len(clip.samples) + RATE + clip.speech_end, RATE)
    assert abs(told.calls[1][1] - T0 - later) <= 10 * NS_PER_MS


def test_of_a_long_silence_half_a_second_is_heard_and_instants_stay_true(clip) -> None:
    """A minute of silence between two sentences of a continuous peer, in packets of 20 ms."""
    frames: list[int] = []
    told, desk = Told(), InlineDesk()
    ear = ear_of(told, desk=desk, continuous=True)
    push = desk.listeners[0]._vad.push
    desk.listeners[0]._vad.push = lambda samples: frames.extend([0] * len(found := push(samples))) or found
    sound = np.concatenate([clip.samples, np.zeros(60 * RATE, np.int16), clip.samples, np.zeros(RATE // 2, np.int16)])
    for at in range(0, len(sound), 480):
        ear.take(packet(sound[at : at + 480], T0 + samples_to_ns(at, RATE), ""))
    assert told.kinds == ["start", "stop", "start", "stop"]
    for call, at in zip(told.calls, (clip.speech_start, clip.speech_end) * 2, strict=True):
        later = (60 * RATE + len(clip.samples)) * (call is told.calls[2] or call is told.calls[3])
        assert abs(call[1] - T0 - samples_to_ns(at + later, RATE)) <= 10 * NS_PER_MS
    heard_s = 2 * len(clip.samples) / RATE + 4 * 0.5
    assert len(frames) * 0.032 <= heard_s


def test_the_next_response_does_not_complete_the_one_before(clip) -> None:
    """A reply of the process that comes late is judged by the response that its sound belongs to."""
    told, desk = Told(), InlineDesk(silent=True)
    ear = ear_of(told, desk=desk)
    ear.take(packet(clip.samples, T0, "r1"))
    ear.take(ResponseDone(t_ns=T0, response="r1"))
    ear.told(Started(0, 0, T0 + 1))
    ear.told(Stopped(0, 0, T0 + 2, True))
    ear.told(Started(0, 0, T0 + 3))
    assert told.calls == [("start", T0 + 1)]  # the same speech, after a pause


def test_a_continuous_peer_may_say_that_it_has_stopped(clip) -> None:
    sound = np.concatenate([clip.samples, np.zeros(RATE, np.int16)])
    end_ns = T0 + samples_to_ns(clip.speech_end, RATE)
    cut = clip.speech_end - RATE // 5
    # The word comes 200 ms before the last sound does, and after it, and far too early to be about sound.
    for said_ns, early, final in (
        (end_ns - 200 * NS_PER_MS, True, ["playback_stopped"]),
        (end_ns + 300 * NS_PER_MS, False, ["", "playback_stopped"]),
        (end_ns - ANNOUNCED_NS - 50 * NS_PER_MS, True, [""]),
    ):
        told = Told()
        ear = ear_of(told, continuous=True, playback_state=True)
        word = PlaybackState(t_ns=said_ns, state="stopped")
        ear.take(packet(sound[:cut], T0, ""))
        if early:
            ear.take(word)
        ear.take(ResponseDone(t_ns=T0 + 1, response="r"))  # when generating ended: no word on what sounds
        ear.take(packet(sound[cut:], T0 + samples_to_ns(cut, RATE), ""))
        if not early:
            ear.take(word)
        assert [call[2] for call in told.calls if call[0] == "stop"] == final
        assert abs(told.calls[1][1] - end_ns) <= 10 * NS_PER_MS


def test_text_of_a_continuous_peer_is_passed_on_and_that_of_a_turn_peer_is_not() -> None:
    told = Told()
    ear = ear_of(told, continuous=True)
    ear.take(TextReceived(t_ns=T0, text=" "))
    ear.take(TextReceived(t_ns=T0 + 1, text="so"))
    assert told.calls == [("text", T0 + 1)]
    ear_of(told).take(TextReceived(t_ns=T0 + 2, text="so"))
    assert len(told.calls) == 1


def test_a_flush_drops_what_was_not_heard_and_after_the_natural_end_it_is_none(clip) -> None:
    told = Told()
    ear = ear_of(told)
    ear.take(packet(clip.samples, T0))
    flush_ns = T0 + samples_to_ns(clip.speech_end, RATE) - 200 * NS_PER_MS
    ear.take(UserSpeechStarted(t_ns=flush_ns))
    ear.take(ResponseDone(t_ns=flush_ns + 1, response="r", status="cancelled"))
    ear.take(packet(clip.samples, flush_ns + 2))  # late: after its response was done
    assert told.kinds == ["start", "flush", "stop"]
    assert told.calls[1:] == [("flush", flush_ns), ("stop", flush_ns, "response_done")]
    ear.take(packet(clip.samples, flush_ns + 3, "r2"))
    end_ns = flush_ns + 3 + samples_to_ns(len(clip.samples), RATE)
    ear.take(UserSpeechStarted(t_ns=end_ns))
    assert told.kinds == ["start", "flush", "stop", "start"]


def test_what_was_found_in_sound_that_was_flushed_meanwhile_does_not_count(clip) -> None:
    told, desk = Told(), InlineDesk(silent=True)
    ear = ear_of(told, desk=desk)
    ear.take(packet(clip.samples, T0))
    ear.take(UserSpeechStarted(t_ns=T0 + 1))
    ear.told(Started(0, 0, T0 + 2))
    assert told.calls == [("flush", T0 + 1)]
    assert not ear.spoke
    ear.told(Started(0, 1, T0 + 3))
    assert told.calls[1:] == [("start", T0 + 3)]


def test_silence_is_no_speech() -> None:
    told = Told()
    ear = ear_of(told)
    ear.take(packet(np.zeros(RATE, dtype=np.int16), T0))
    ear.listen(T0 + 10_000 * NS_PER_MS)
    assert told.calls == []
    assert not ear.spoke


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
