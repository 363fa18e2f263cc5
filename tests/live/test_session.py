"""The live session without any device: what leaves when, turns as they are told, push-to-talk, and what is played."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.audio import int16_to_pcm16
from harness.core.commands import AppendAudio, Commit
from harness.core.events import (
    AudioReceived,
    AudioSent,
    CommandSent,
    ConnectionClosed,
    MediaAnchor,
    Note,
    PlaybackCut,
    ResponseDone,
    ResponseStarted,
    StreamStarted,
    StreamStopped,
    TextReceived,
    UserSpeechStarted,
)
from harness.core.profile import Profile
from harness.live import speaker
from harness.live.source import Source
from harness.run.session_plan import SessionOptions
from scenarios.pack import load_pack
from tests.live.room import RATE, hold, play_in
from tests.run.fakes import FakeConnection, ToneQuery

pytestmark = pytest.mark.unit
MS = 1_000_000


class Replier(FakeConnection):
    """Answers with 400 ms of tone `after_ms` after each of `ends` (in samples of user audio)."""

    def __init__(self, clock, sink, ends, after_ms: int = 300) -> None:
        super().__init__(clock)
        self.sink, self.ends, self.after = sink, [end + after_ms * RATE // 1000 for end in ends], 0
        self.taken = self.answers = 0

    def send(self, prepared: object) -> int:
        pending = super().send(prepared)
        if isinstance(prepared, AppendAudio):
            before, self.taken = self.taken, self.taken + len(prepared.pcm) // 2
            if any(before < end <= self.taken for end in self.ends):
                self.answer()
        elif isinstance(prepared, Commit):
            self.answer()
        return pending

    def answer(self) -> None:
        self.answers += 1
        name, now_ns = f"r{self.answers}", self.clock.now_ns()
        tone = ToneQuery(ms=500, lead_ms=100).samples[:-2400]
        self.sink(ResponseStarted(t_ns=now_ns, response=name))
        self.sink(TextReceived(t_ns=now_ns, text="beep", response=name))
        pcm = int16_to_pcm16(tone)
        self.sink(AudioReceived(t_ns=now_ns, samples=len(tone), rate_hz=RATE, response=name, pcm=pcm))
        self.sink(ResponseDone(t_ns=now_ns, response=name))


def said(name: str = "en-03", tail_s: float = 1.5):
    clip = next(clip for clip in load_pack("queries").clips if clip.id == name).at_rate(RATE)
    return clip, np.concatenate([clip.samples, np.zeros(round(tail_s * RATE), np.int16)])


def test_a_turn_is_sent_at_once_and_its_figures_stand_while_the_session_runs() -> None:
    clip, samples = said()
    made = []

    def connect(clock, sink):
        made.append(Replier(clock, sink, [clip.speech_end]))
        return made[0]

    _, session, shelf = hold(connect, lambda live, rig: play_in(live, rig, samples))
    sent = shelf.of(AudioSent)
    assert made[0].audio == int16_to_pcm16(samples)
    assert [event.samples for event in sent] == [480] * (len(samples) // 480) + [len(samples) % 480]
    assert all(event.planned_ns == event.t_ns for event in sent[:-1])
    (row,) = session.turns.rows()
    # Speech begins at sample `speech_end` of the stream; the answer comes with the 20 ms chunk that ends 300 ms later,
    # its tone 100 ms after that, found in 10 ms windows.
    assert row.first_audible_ms == pytest.approx(400, abs=40)
    assert row.ttft_ms == row.first_packet_ms == pytest.approx(300, abs=40)
    assert not row.speaking
    assert row.barge_in_stop_ms is None


def test_anchors_say_when_samples_were_captured_less_the_latency() -> None:
    source = Source(rate_hz=48_000, latency_ns=30 * MS, anchor="test card")
    samples = np.zeros(48_000 * 3, np.int16)
    _, _, shelf = hold(
        lambda clock, sink: FakeConnection(clock),
        lambda live, rig: play_in(live, rig, samples, rate_hz=48_000),
        source=source,
    )
    anchors = shelf.of(MediaAnchor)
    (started,) = shelf.of(StreamStarted)
    assert len(anchors) >= 2
    for anchor in anchors:
        assert (anchor.side, anchor.source) == ("user", "test card")
        assert anchor.t_ns - started.t_ns == anchor.sample * 1_000_000_000 // RATE
    # The first block of 10 ms was handed on when its last sample existed: captured 30 ms before.
    assert started.t_ns == -30 * MS


def test_push_to_talk_sends_only_what_is_said_while_the_key_is_down_and_commits() -> None:
    _, samples = said(tail_s=0)
    quiet = np.zeros(RATE // 2, np.int16)

    async def speak(live, rig) -> None:
        await play_in(live, rig, quiet)
        live.talk(True)
        await play_in(live, rig, samples)
        live.talk(False)
        assert not live.talking
        await play_in(live, rig, quiet)
        live.talk(True)
        await play_in(live, rig, quiet)

    made = []

    def connect(clock, sink):
        made.append(Replier(clock, sink, []))
        return made[0]

    _, session, shelf = hold(connect, speak, options=SessionOptions(turn="manual"))
    stretches, stops = shelf.of(StreamStarted), shelf.of(StreamStopped)
    assert [event.sample for event in stretches] == [0, len(samples)]
    assert stretches[0].t_ns == pytest.approx(500 * MS, abs=MS)
    assert [event.sample for event in stops] == [len(samples), len(samples) + len(quiet)]
    assert [event.command for event in shelf.of(CommandSent)] == ["commit", "create_response"]
    resumed_ns = (1000 + len(samples) * 1000 / RATE) * MS
    assert [anchor.t_ns for anchor in shelf.of(MediaAnchor) if anchor.sample == len(samples)][-1] == pytest.approx(
        resumed_ns, abs=20 * MS
    )
    rows = session.turns.rows()
    assert rows[0].ttft_ms == 0
    assert rows[0].first_audible_ms > 100


def test_the_key_cuts_an_answer_that_is_under_way_and_tells_the_peer() -> None:
    class Long(FakeConnection):
        def answer(self, sink) -> None:
            tone = ToneQuery(ms=9000, lead_ms=0).samples
            sink(ResponseStarted(t_ns=self.clock.now_ns(), response="r"))
            pcm = int16_to_pcm16(tone)
            sink(
                AudioReceived(
                    t_ns=self.clock.now_ns(), samples=len(tone), rate_hz=RATE, response="r", item="i", pcm=pcm
                )
            )

    made = []

    async def speak(live, rig) -> None:
        await play_in(live, rig, np.zeros(RATE // 2, np.int16))
        made[0].answer(live._sink)
        await play_in(live, rig, np.zeros(RATE, np.int16))
        live.talk(True)
        assert live.speaker.queued == 0
        await play_in(live, rig, np.zeros(RATE // 2, np.int16))

    def connect(clock, sink):
        made.append(Long(clock))
        return made[0]

    profile = Profile(cancel=True, truncate=True)
    _, _, shelf = hold(connect, speak, options=SessionOptions(turn="manual"), profile=profile)
    sent = {event.command: event.detail for event in shelf.of(CommandSent)}
    assert sent == {"cancel": {"response": "r"}, "truncate": {"item": "i", "audio_end_ms": 1000}}
    assert [event.t_ns for event in shelf.of(PlaybackCut)] == [1500 * MS]


def test_sound_that_found_no_room_in_the_queue_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaker, "LIMIT_S", 1)

    async def speak(session, rig) -> None:
        session.speaker.put(np.ones(RATE, np.int16), RATE)
        session.speaker.put(np.ones(2 * RATE, np.int16), RATE)

    _, _, shelf = hold(lambda clock, sink: FakeConnection(clock), speak)
    notes = [event.message for event in shelf.of(Note) if event.code == "unheard"]
    assert notes == ["2 s of the peer's sound found no room in the loudspeaker's queue"]


def test_muted_silence_flows() -> None:
    tone = ToneQuery(ms=400, lead_ms=0).samples

    async def speak(live, rig) -> None:
        live.mute(True)
        await play_in(live, rig, tone)
        assert live.turns.rows() == []

    made = []

    def connect(clock, sink):
        made.append(FakeConnection(clock))
        return made[0]

    hold(connect, speak)
    assert len(made[0].audio) == 2 * len(tone)
    assert not any(made[0].audio)


def test_what_the_user_interrupts_is_not_played_and_the_stop_is_timed() -> None:
    clip, samples = said()

    class Long(Replier):
        def answer(self) -> None:
            now_ns, tone = self.clock.now_ns(), ToneQuery(ms=9000, lead_ms=0).samples
            self.sink(ResponseStarted(t_ns=now_ns, response="r"))
            pcm = int16_to_pcm16(tone)
            self.sink(AudioReceived(t_ns=now_ns, samples=len(tone), rate_hz=RATE, response="r", pcm=pcm))

        def send(self, prepared: object) -> int:
            before = self.taken
            pending = super().send(prepared)
            onset = len(samples) + clip.speech_start + RATE // 5
            if before < onset <= self.taken:
                self.sink(UserSpeechStarted(t_ns=self.clock.now_ns()))
            return pending

    left = []

    async def speak(live, rig) -> None:
        await play_in(live, rig, samples)
        assert live.speaker.queued == 9 * RATE
        await play_in(live, rig, samples)
        left.append(live.speaker.queued)

    _, session, _ = hold(lambda clock, sink: Long(clock, sink, [clip.speech_end]), speak)
    assert left == [0]
    first, second = session.turns.rows()
    assert first.barge_in_stop_ms is None
    assert second.barge_in_stop_ms == pytest.approx(200, abs=40)


def test_a_peer_that_closes_ends_the_session_and_what_was_recorded_stays() -> None:
    _, samples = said()

    async def speak(live, rig) -> None:
        await play_in(live, rig, samples)
        live._sink(ConnectionClosed(t_ns=rig.clock.now_ns(), by="peer", code=1001, reason="enough"))
        await play_in(live, rig, samples)
        assert live.gone == "enough"

    result, _, shelf = hold(lambda clock, sink: FakeConnection(clock), speak)
    assert result.reason == "enough"
    assert sum(event.samples for event in shelf.of(AudioSent)) == len(samples) // 480 * 480
