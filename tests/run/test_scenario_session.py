"""A session plays its scenario: events where they were planned, the agent's cues met, the end not too soon."""

from __future__ import annotations

from types import SimpleNamespace

from harness.core.audio import NS_PER_MS, NS_PER_S, int16_to_pcm16, samples_to_ns
from harness.core.commands import AppendAudio
from harness.core.events import (
    AudioReceived,
    AudioSent,
    ConnectionClosed,
    Note,
    ResponseDone,
    ResponseStarted,
    ScenarioEvent,
    TurnEnded,
    TurnStarted,
)
from harness.core.profile import Profile
from harness.run.pacer import Pacer, Slots
from harness.run.scenario_session import ScenarioRunner
from harness.run.session_plan import SessionOptions, SessionPlan
from harness.run.virtual import run_virtual, virtual_timer
from scenarios.pack import load_pack
from scenarios.play import ScenarioPlay
from scenarios.scenario_file import read_scenarios
from tests.run.fakes import FakeConnection, InlineDesk

RATE = 24_000
TEXT = """
id: cut-in
language: en
category: user_interruption
tags: [t]
events:
  - say: en-14
  - say: en-01
    at: agent_start
    delay_ms: 800
    expect: stop
"""


class Answering(FakeConnection):
    """Answers once, in one burst, when `at` samples have come; closes at `close_at`."""

    def __init__(self, clock, sink, answer, at: int, close_at: int | None) -> None:
        super().__init__(clock)
        self.sink, self.answer, self.at, self.close_at, self.taken = sink, answer, at, close_at, 0

    def send(self, prepared: object) -> int:
        pending = super().send(prepared)
        assert isinstance(prepared, AppendAudio)
        before, self.taken = self.taken, self.taken + len(prepared.pcm) // 2
        now_ns = self.clock.now_ns()
        if before < self.at <= self.taken and self.answer is not None:
            self.sink(ResponseStarted(t_ns=now_ns, response="r"))
            pcm = int16_to_pcm16(self.answer)
            self.sink(AudioReceived(t_ns=now_ns, samples=len(self.answer), rate_hz=RATE, response="r", pcm=pcm))
            self.sink(ResponseDone(t_ns=now_ns, response="r"))
        if self.close_at is not None and before < self.close_at <= self.taken:
            self.sink(ConnectionClosed(t_ns=now_ns, by="peer", code=1000))
        return pending


def play_scenario(text: str, *, answer=None, close_at: int | None = None, desk=None, profile=None):
    """(result, events) of one session on the virtual clock."""
    clips = load_pack("queries").clips
    (scenario,) = read_scenarios(text, "test.yaml")
    play = ScenarioPlay(scenario, clips).at_rate(RATE)
    events: list = []

    async def close(number: int, *, keep: bool) -> None:
        assert keep

    recorder = SimpleNamespace(
        open=lambda sessions, header: 0, append=lambda number, event: events.append(event), close=close
    )

    async def main(clock):
        pacer = Pacer(clock, virtual_timer)

        async def connect(configure, sink):
            return Answering(clock, sink, answer, 4 * RATE, close_at)

        peer = SimpleNamespace(
            kind="fake", label="fake", version="1", config={}, profile=profile or Profile(), connect=connect, ignores=()
        )
        rig = SimpleNamespace(
            clock=clock,
            pacer=pacer,
            slots=Slots(),
            recorder=recorder,
            ears=desk or InlineDesk(),
            machine={},
            scheduling={},
        )
        plan = SessionPlan(id="s", queries=(play,))
        return await ScenarioRunner(rig, peer, SessionOptions(), plan, None).run()

    return run_virtual(main), events


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def test_a_cue_is_met_to_the_sample_and_the_session_stays_open_for_an_answer() -> None:
    answer = next(clip for clip in load_pack("queries").clips if clip.id == "en-03").at_rate(RATE)
    result, events = play_scenario(TEXT, answer=answer.samples)
    assert result.outcomes == ("answered",)
    first, second = of(events, ScenarioEvent)
    assert (first.event, first.speech_start, first.offset_exact) == ("e1", RATE // 2, True)
    assert (second.event, second.anchor, second.tags) == ("e2", "agent_start", ("t",))
    assert second.category == "user_interruption"
    assert second.offset_exact
    start_ns = next(event.t_ns for event in events if event.__struct_config__.tag == "stream_started")
    speech_ns = start_ns + second.speech_start * NS_PER_S // RATE
    assert abs(speech_ns - second.anchor_ns - 800_000_000) <= NS_PER_S // RATE
    came_ns = of(events, AudioReceived)[0].t_ns
    assert abs(second.anchor_ns - came_ns - samples_to_ns(answer.speech_start, RATE)) <= 64_000_000
    sent = of(events, AudioSent)[-1]
    assert sent.sample + sent.samples >= second.speech_end + 5 * RATE
    assert not of(events, TurnStarted)
    assert not of(events, TurnEnded)
    pcm = b"".join(event.pcm for event in of(events, AudioSent))
    query = next(clip for clip in load_pack("queries").clips if clip.id == "en-14").at_rate(RATE)
    begin, cut = first.clip_sample, len(query.samples) - first.clip_samples
    assert pcm[2 * begin : 2 * (begin + first.clip_samples)] == int16_to_pcm16(query.samples[cut:])


def test_a_silent_peer_is_waited_for_and_the_timeout_is_told() -> None:
    result, events = play_scenario(TEXT)
    assert result.outcomes == ("timeout",)
    assert [(event.event, event.timed_out) for event in of(events, ScenarioEvent)] == [("e1", False), ("e2", True)]


def test_a_peer_that_hangs_up_ends_the_session_at_once() -> None:
    result, events = play_scenario(TEXT, close_at=RATE)
    assert result.outcomes == ("closed",)
    assert [event.event for event in of(events, ScenarioEvent)] == ["e1"]
    assert sum(event.samples for event in of(events, AudioSent)) <= 2 * RATE


def test_a_cue_that_timed_out_is_explained() -> None:
    _, events = play_scenario(TEXT)
    (note,) = of(events, Note)
    assert (note.code, note.message) == (
        "cue_timed_out",
        "e2: no answer was heard within 10000 ms of the end of e1",
    )
    answer = next(clip for clip in load_pack("queries").clips if clip.id == "en-03").at_rate(RATE)
    desk = InlineDesk(silent=True)
    desk.behind = 700 * NS_PER_MS
    _, events = play_scenario(TEXT, answer=answer.samples, desk=desk)
    (note,) = of(events, Note)
    assert note.message.endswith("of the end of e1; the process that hears was 700 ms behind")


def test_an_ear_that_hears_no_more_costs_the_cues_and_says_so() -> None:
    class Dying(InlineDesk):
        def open(self, ear) -> int:
            number = super().open(ear)
            ear.lost("the process that hears the agent ended")
            ear.dropped()
            return number

    answer = next(clip for clip in load_pack("queries").clips if clip.id == "en-03").at_rate(RATE)
    result, events = play_scenario(TEXT, answer=answer.samples, desk=Dying(silent=True))
    assert result.outcomes == ("timeout",)
    assert [(event.event, event.timed_out) for event in of(events, ScenarioEvent)] == [("e1", False), ("e2", True)]
    assert {note.code: note.message for note in of(events, Note)} == {
        "cue_timed_out": "e2: no answer was heard within 10000 ms of the end of e1; "
        "the process that hears the agent ended",
        "deaf": "cues that hang on the agent could only time out: the process that hears the agent ended",
        "unheard": "1 packets were not listened to: the process that hears could not keep up",
    }


def test_nobody_listens_to_the_agent_where_nothing_hangs_on_it() -> None:
    answer = next(clip for clip in load_pack("queries").clips if clip.id == "en-03").at_rate(RATE)
    alone = "id: alone\nlanguage: en\nlinger_ms: 3000\nevents:\n  - say: en-14\n"
    desk = InlineDesk()
    result, events = play_scenario(alone, answer=answer.samples, desk=desk)
    assert desk.ears == []
    assert result.outcomes == ("answered",)
    sent = of(events, AudioSent)[-1]
    (event,) = of(events, ScenarioEvent)
    assert event.speech_end + 3 * RATE <= sent.sample + sent.samples <= event.speech_end + 3 * RATE + RATE // 5
    play_scenario(alone.replace("linger_ms: 3000\n", ""), answer=answer.samples, desk=desk)
    assert len(desk.ears) == 1  # its end hangs on the answer's


def test_a_peer_that_cannot_take_part_is_never_called() -> None:
    result, events = play_scenario(TEXT, profile=Profile(upload=True, turns=()))
    assert result.outcomes == ("not_run",)
    assert result.error is None
    assert [note.code for note in of(events, Note)] == ["not_run"]
    assert not of(events, AudioSent)
