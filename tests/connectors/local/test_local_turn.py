"""Whole turns with the bundled model: both turn modes, stamps, order of events, barge-in, cancel, sessions in turn."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from harness.core.audio import int16_to_pcm16, pcm16_to_int16
from harness.core.commands import AppendAudio, Cancel, Truncate
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    ConnectionPhase,
    InputCommitted,
    Interrupted,
    Note,
    PeerError,
    Received,
    ResponseDone,
    SessionReady,
    TextReceived,
    UserSpeechStarted,
    UserSpeechStopped,
)
from tests.connectors.local.local_driver import CLOCK, RATE_HZ, local, silence, talking, voice

pytestmark = pytest.mark.loopback

SET_UP = ["Note", "ConnectionPhase", "SessionReady", "ConnectionPhase", "SessionReady", "ConnectionPhase"]
ANSWER = ["ResponseStarted", "TextReceived", "AudioReceived", "AudioDone", "ResponseDone"]


def heard(talk):
    return np.concatenate([pcm16_to_int16(packet.pcm) for packet in talk.of(AudioReceived)])


def test_a_manual_turn_in_real_time(both_loops):
    said = np.concatenate((silence(100), voice(400), silence(60)))

    async def scenario():
        async with local(think_ms=30) as peer, talking(peer, "manual") as talk:
            await talk.play(said)
            sent_ns = CLOCK.now_ns()
            talk.end_turn()
            done = await talk.answer()
        return talk, done, sent_ns

    talk, done, sent_ns = both_loops(scenario())
    assert talk.names() == [*SET_UP, "InputCommitted", *ANSWER, "ConnectionClosed"]
    assert [event.phase for event in talk.of(ConnectionPhase)] == ["started", "ready", "configured"]
    assert [event.phase for event in talk.of(SessionReady)] == ["created", "updated"]
    assert (done.status, done.usage) == ("completed", None)
    assert "".join(event.text for event in talk.of(TextReceived)) == "You said 0.50 seconds of this: "
    assert {event.kind for event in talk.of(TextReceived)} == {"token"}
    # 100 ms of lead, then the voice; the silence after it is trimmed.
    np.testing.assert_array_equal(heard(talk), said[: 500 * RATE_HZ // 1000])
    assert all(event.rate_hz == RATE_HZ and event.samples * 2 == len(event.pcm) for event in talk.of(AudioReceived))
    assert talk.of(TextReceived)[0].produced_ns - sent_ns >= 30_000_000
    assert talk.of(ConnectionClosed)[0].by == "us"


def test_every_arrival_is_after_its_production_and_in_order(both_loops):
    async def scenario():
        async with local(think_ms=0) as peer, talking(peer, "manual") as talk:
            await talk.play(voice(300), speed=4)
            talk.end_turn()
            await talk.answer()
        return talk

    talk = both_loops(scenario())
    received = talk.of(Received)
    assert len(received) > 10
    for event in received:
        assert 0 < event.produced_ns <= event.t_ns
        assert event.wire_bytes > 4
        assert event.first_byte_ns == 0 or event.produced_ns <= event.first_byte_ns < event.t_ns
    stamps = [event.t_ns for event in talk.events]
    assert stamps == sorted(stamps)


def test_a_vad_turn_ends_by_level(both_loops):
    said = np.concatenate((silence(200), voice(300), silence(400)))

    async def scenario():
        async with local(think_ms=10, silence_ms=200) as peer, talking(peer, "vad") as talk:
            await talk.play(said)
            await talk.answer()
        return talk

    talk = both_loops(scenario())
    assert talk.names() == [
        *SET_UP,
        "UserSpeechStarted",
        "UserSpeechStopped",
        "InputCommitted",
        *ANSWER,
        "ConnectionClosed",
    ]
    assert talk.of(UserSpeechStarted)[0].audio_ms == 200
    assert talk.of(UserSpeechStopped)[0].audio_ms == 500
    np.testing.assert_array_equal(heard(talk), said[100 * 24 : 500 * 24])


def test_audio_that_waits_does_not_eat_the_answer():
    """On a busy machine the silence after a turn is heard before the answer's first step."""

    async def scenario():
        async with local(think_ms=0, silence_ms=100) as peer, talking(peer) as talk:
            # One chunk: all of the silence is pushed in the step that ends the turn.
            said = np.concatenate((voice(300), silence(1000)))
            talk.do(AppendAudio(pcm=int16_to_pcm16(said)))
            await talk.answer()
        return talk

    np.testing.assert_array_equal(heard(asyncio.run(scenario())), voice(300))


def test_the_session_may_set_the_silence():
    async def scenario():
        async with local(think_ms=0) as peer, talking(peer, "vad", silence_ms=60) as talk:
            await talk.play(np.concatenate((voice(200), silence(100))), speed=4)
            await talk.answer()

    asyncio.run(scenario())


def test_the_user_interrupts_and_gets_the_second_answer():
    said = np.concatenate((voice(1500), silence(140), voice(200, seed=2), silence(140)))

    async def scenario():
        async with local(think_ms=0, silence_ms=100, delivery="paced") as peer, talking(peer) as talk:
            assert peer.profile.pacing == "paced"
            await talk.play(said)
            await talk.answer(2)
        return talk

    talk = asyncio.run(scenario())
    first, second = talk.of(ResponseDone)
    assert (first.status, first.reason, second.status) == ("cancelled", "turn_detected", "completed")
    cut = talk.events.index(talk.of(Interrupted)[0])
    tail = [type(event).__name__ for event in talk.events[cut - 1 : cut + 3]]
    assert tail == ["UserSpeechStarted", "Interrupted", "AudioDone", "ResponseDone"]
    late = [e for e in talk.events[cut:] if isinstance(e, AudioReceived) and e.response == first.response]
    assert late == []
    assert {event.response for event in talk.of(AudioReceived)} == {first.response, second.response}


def test_cancel_takes_effect_within_one_step():
    async def scenario():
        async with local(think_ms=0, step_ms=30, chunk_ms=10) as peer, talking(peer, "manual") as talk:
            await talk.play(voice(1000), speed=20)
            talk.end_turn()
            await talk.until(AudioReceived, 2)
            talk.do(Cancel())
            cancelled_ns = CLOCK.now_ns()
            done = await talk.answer()
            await asyncio.sleep(0.1)
        return talk, done, cancelled_ns

    talk, done, cancelled_ns = asyncio.run(scenario())
    assert (done.status, done.reason) == ("cancelled", "client_cancelled")
    # Counted in steps, not in milliseconds: those would be the host's as well.
    assert len([packet for packet in talk.of(AudioReceived) if packet.produced_ns > cancelled_ns]) <= 1
    assert not [e for e in talk.events[talk.events.index(done) :] if isinstance(e, AudioReceived)]
    assert len(talk.of(AudioReceived)) < 20


def test_silence_gets_words_and_no_audio():
    async def scenario():
        async with local(think_ms=0) as peer, talking(peer, "manual") as talk:
            await talk.play(silence(100), speed=4)
            talk.end_turn()
            await talk.answer()
        return talk

    names = asyncio.run(scenario()).names()
    assert "TextReceived" in names
    assert "AudioReceived" not in names
    assert "AudioDone" not in names


def test_two_turns_in_a_session_and_two_sessions_in_a_process():
    async def session(peer, seed):
        async with talking(peer, "manual") as talk:
            for turn in (1, 2):
                await talk.play(voice(100, seed=seed + turn), speed=4)
                talk.end_turn()
                await talk.answer(turn)
        return talk

    async def scenario():
        async with local(think_ms=0) as peer:
            return [await session(peer, 10), await session(peer, 20)]

    first, second = asyncio.run(scenario())
    np.testing.assert_array_equal(heard(first), np.concatenate((voice(100, seed=11), voice(100, seed=12))))
    np.testing.assert_array_equal(heard(second), np.concatenate((voice(100, seed=21), voice(100, seed=22))))
    assert [note.code for note in first.of(Note)] == ["model_loaded"]
    assert second.of(Note) == []


def test_a_second_session_waits_and_says_so():
    async def session(peer):
        async with talking(peer, "manual") as talk:
            await talk.play(voice(100))
            talk.end_turn()
            await talk.answer()
        return talk

    async def scenario():
        async with local(think_ms=0) as peer, asyncio.TaskGroup() as group:
            tasks = [group.create_task(session(peer)) for _ in range(3)]
            await asyncio.wait(tasks)
        return [task.result() for task in tasks]

    talks = asyncio.run(scenario())
    assert sorted("queued" in [note.code for note in talk.of(Note)] for talk in talks) == [False, True, True]


def test_out_of_place_commands_are_answered_not_fatal():
    async def scenario():
        async with local(think_ms=50) as peer, talking(peer, "manual") as talk:
            talk.do(Cancel())
            await talk.until(PeerError)
            await talk.play(voice(60))
            talk.end_turn()
            talk.end_turn()
            await talk.answer()
        return [(error.code, error.fatal) for error in talk.of(PeerError)], len(talk.of(InputCommitted))

    assert asyncio.run(scenario()) == ([("nothing_to_cancel", False), ("response_active", False)], 2)


def test_what_it_cannot_do_is_refused_ahead():
    async def scenario():
        async with local() as peer, talking(peer) as talk:
            with pytest.raises(ConfigError, match="takes no truncate"):
                talk.connection.prepare(Truncate(item="x", audio_end_ms=1))

    asyncio.run(scenario())


def test_sending_after_the_end_is_an_error_and_closing_twice_is_not():
    async def scenario():
        async with local() as peer:
            async with talking(peer) as talk:
                prepared = talk.connection.prepare(AppendAudio(pcm=b"\0\0"))
            with pytest.raises(ConnectorError, match="over"):
                talk.connection.send(prepared)
            await talk.connection.close()
            async with talking(peer):
                pass

    asyncio.run(scenario())


def test_drained_is_told_when_the_last_byte_has_left(both_loops):
    async def scenario():
        drained = []
        async with local() as peer, talking(peer, "manual") as talk:
            assert talk.do(AppendAudio(pcm=b"\0\0" * 480)) == 0
            before_ns = CLOCK.now_ns()
            talk.connection.when_drained(drained.append)
            assert len(drained) == 1
            assert drained[0] >= before_ns
            # More than the socket takes at once: some of it must wait, unless the child reads as fast as we write.
            assert any(talk.do(AppendAudio(pcm=b"\0\0" * 3_000_000)) > 0 for _ in range(5))
            talk.connection.when_drained(drained.append)
            assert len(drained) == 1
            async with asyncio.timeout(10):
                while len(drained) < 2:  # noqa: ASYNC110  the callback is what is tested
                    await asyncio.sleep(0.005)
            assert talk.connection._worker._child._transport.get_write_buffer_size() == 0

    both_loops(scenario())
