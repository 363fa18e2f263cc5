"""Several sessions at once on one model: computed together, each with its own answer, the next one queued."""

from __future__ import annotations

import asyncio
import time

import pytest

from connectors.local.model import Audio, Declaration, Done, LocalModel, Text
from harness.core.audio import int16_to_pcm16, pcm16_to_int16
from harness.core.commands import AppendAudio, Cancel
from harness.core.errors import ConnectorError
from harness.core.events import AudioReceived, ConnectionClosed, Note, PeerError, ResponseDone, TextReceived
from tests.connectors.local.local_driver import local, talking, voice

pytestmark = pytest.mark.loopback
STEPS = 20


class Choir(LocalModel):
    """Says back what a seat heard last, 480 samples a step, all seats in one step of 10 ms; the text is how many."""

    def __init__(self, *, seats: int = 2, fail: bool = False) -> None:
        self.seats = [Singer() for _ in range(seats)]
        self.fail = fail

    @property
    def declaration(self):
        return Declaration(turns=("manual",), sessions=len(self.seats))

    @property
    def facts(self):
        return {"device": "cpu"}

    def seat(self, number):
        return self.seats[number]

    def push_audio(self, pcm):
        raise AssertionError("seats hear")

    def batch(self):
        singing = [number for number, seat in enumerate(self.seats) if seat.steps]
        if not singing:
            return
        if self.fail:
            raise RuntimeError("out of tune")
        time.sleep(0.01)
        for number in singing:
            seat = self.seats[number]
            seat.steps -= 1
            yield number, Text(str(len(singing)))
            yield number, Audio(seat.heard[:480])
            if not seat.steps:
                yield number, Done()


class Singer(LocalModel):
    steps = 0

    def start(self, session):
        self.steps = 0

    def push_audio(self, pcm):
        self.heard = pcm

    def end_turn(self):
        self.steps = STEPS

    def interrupt(self):
        self.steps = 0


class Alternating(Choir):
    """No batch: seats with generators, stepped in turn."""

    def seat(self, number):
        return Reciter()


class Reciter(LocalModel):
    def push_audio(self, pcm):
        return None

    def end_turn(self):
        for _ in range(STEPS):
            time.sleep(0.005)
            yield Text("a")


TARGET = f"{__name__}:Choir"


def ask(talk, seed=1):
    talk.do(AppendAudio(pcm=int16_to_pcm16(voice(100, seed=seed))))
    talk.end_turn()


def test_two_sessions_are_computed_together_and_answered_apart(both_loops):
    async def scenario():
        async with (
            local(TARGET) as peer,
            talking(peer, "manual") as one,
            talking(peer, "manual") as two,
        ):
            ask(one, seed=1)
            ask(two, seed=2)
            await one.answer()
            await two.answer()
        return peer, one, two

    peer, one, two = both_loops(scenario())
    for talk, seed in ((one, 1), (two, 2)):
        packets = talk.of(AudioReceived)
        assert len(packets) == STEPS
        assert all((pcm16_to_int16(packet.pcm) == voice(100, seed=seed)[:480]).all() for packet in packets)
        assert [note.code for note in talk.of(Note) if note.code == "queued"] == []
    assert "2" in [text.text for text in one.of(TextReceived)]
    assert peer.config["facts"] == {"device": "cpu"}


def test_the_third_waits_and_an_interruption_is_one_s_own(both_loops):
    async def scenario():
        async with local(TARGET) as peer, talking(peer, "manual") as one:
            async with talking(peer, "manual") as two:
                ask(one)
                ask(two)
                await two.until(TextReceived, 2)
                two.do(Cancel())
                await two.answer()
                async with asyncio.TaskGroup() as group:
                    waiting = group.create_task(hold(peer))
                    await asyncio.sleep(0.05)
                    assert not waiting.done()
                    await two.connection.close()
            await one.answer()
        return one, two, waiting.result()

    async def hold(peer):
        async with talking(peer, "manual") as third:
            ask(third)
            await third.answer()
        return third

    one, two, third = both_loops(scenario())
    assert two.of(ResponseDone)[0].status == "cancelled"
    assert len(two.of(TextReceived)) < STEPS
    assert one.of(ResponseDone)[0].status == "completed"
    assert len(one.of(AudioReceived)) == STEPS
    (queued,) = [note for note in third.of(Note) if note.code == "queued"]
    assert "the model serves 2 sessions at a time" in queued.message
    assert len(third.of(AudioReceived)) == STEPS


def test_a_failure_ends_every_session_and_all_get_one_new_process():
    async def scenario():
        async with (
            local(TARGET, fail="true") as peer,
            talking(peer, "manual") as one,
            talking(peer, "manual") as two,
        ):
            ask(one)
            await one.until(ConnectionClosed)
            await two.until(ConnectionClosed)
            with pytest.raises(ConnectorError):
                ask(two)
            await one.connection.close()
            await two.connection.close()
            async with talking(peer, "manual") as third, talking(peer, "manual") as fourth:
                loaded = [note.code for talk in (third, fourth) for note in talk.of(Note)]
        return one, two, loaded

    one, two, loaded = asyncio.run(scenario())
    for talk in (one, two):
        assert [error.code for error in talk.of(PeerError)] == ["model_error"]
    assert loaded == ["model_loaded"]


def test_answers_without_a_batch_are_stepped_in_turn():
    async def scenario():
        async with (
            local(f"{__name__}:Alternating") as peer,
            talking(peer, "manual") as one,
            talking(peer, "manual") as two,
        ):
            ask(one)
            ask(two)
            await one.answer()
            await two.answer()
        return one, two

    one, two = asyncio.run(scenario())
    first, second = ([text.produced_ns for text in talk.of(TextReceived)] for talk in (one, two))
    assert len(first) == len(second) == STEPS
    assert second[0] < first[-1]
    assert first[-2] < second[-1]


def test_a_model_that_declares_seats_and_has_none_says_so():
    async def scenario():
        async with local(f"{__name__}:Seatless"):
            pytest.fail("it started")

    with pytest.raises(ConnectorError, match="Seatless declares several sessions and has no seat"):
        asyncio.run(scenario())


class Seatless(LocalModel):
    @property
    def declaration(self):
        return Declaration(sessions=2)

    def push_audio(self, pcm):
        return None
