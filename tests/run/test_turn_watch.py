"""When an answer is over: the runner's rule, event by event."""

from __future__ import annotations

import numpy as np

from harness.core.events import AudioReceived, ConnectionClosed, PeerError, PlaybackState, ResponseDone, ResponseStarted
from harness.run.turn_watch import TurnWatch
from harness.run.utterance_watch import UtteranceWatch

MS = 1_000_000


def watch(*events, speech_end_ms: int = 1000) -> TurnWatch:
    turn = TurnWatch(speech_end_ms * MS)
    for event in events:
        turn.take(event)
    return turn


def started(ms: int, response: str = "r1") -> ResponseStarted:
    return ResponseStarted(t_ns=ms * MS, response=response)


def audio(ms: int, response: str = "r1", samples: int = 2400) -> AudioReceived:
    return AudioReceived(t_ns=ms * MS, samples=samples, rate_hz=24_000, response=response)


def done(ms: int, status: str = "completed", response: str = "r1", reason: str = "") -> ResponseDone:
    return ResponseDone(t_ns=ms * MS, response=response, status=status, reason=reason)


def test_an_answer_is_over_with_its_done() -> None:
    assert watch(started(1100), audio(1200)).outcome is None
    turn = watch(started(1100), audio(1200), done(1300))
    assert turn.outcome == "answered"
    assert turn.playout_end_ns == 1300 * MS


def test_an_early_response_answers_nothing() -> None:
    turn = watch(started(900), audio(950), done(1100, "cancelled"))
    assert turn.outcome is None
    assert turn.first_audio_ns is None
    turn.take(started(1500, "r2"))
    turn.take(audio(1600, "r2"))
    turn.take(done(1700, response="r2"))
    assert (turn.outcome, turn.first_audio_ns) == ("answered", 1600 * MS)


def test_a_cancelled_response_without_audio_is_waited_out() -> None:
    assert watch(started(1100), done(1200, "cancelled")).outcome is None
    assert watch(started(1100), audio(1150), done(1200, "cancelled")).outcome == "answered"


def test_failures_end_the_turn_with_their_words() -> None:
    turn = watch(started(1100), done(1200, "failed", reason="rate limit"))
    assert (turn.outcome, turn.reason) == ("error", "rate limit")
    turn = watch(ConnectionClosed(t_ns=1100 * MS, by="peer", code=1011, reason=""))
    assert (turn.outcome, turn.reason) == ("closed", "closed by peer (1011)")
    turn = watch(PeerError(t_ns=1100 * MS, code="x", message="boom", fatal=True))
    assert (turn.outcome, turn.reason) == ("error", "x: boom")


def test_an_error_with_nothing_under_way_starts_a_grace_that_an_answer_ends() -> None:
    error = PeerError(t_ns=1100 * MS, code="x", message="boom")
    assert watch(error).failing_ns == 1100 * MS
    assert watch(error, started(1200)).failing_ns is None
    assert watch(started(1050), error).failing_ns is None


def test_audio_after_done_is_not_played() -> None:
    turn = watch(started(1100), audio(1200), done(1300), audio(1400))
    assert turn.playout_end_ns == 1300 * MS


def _packets(begin_ms: int, end_ms: int, level: int) -> list[AudioReceived]:
    """20 ms packets of a tone (or silence) at 24 kHz that arrive in real time."""
    tone = (level * np.sin(2 * np.pi * 440 * np.arange(480) / 24_000)).astype("<i2").tobytes()
    return [AudioReceived(t_ns=ms * MS, samples=480, rate_hz=24_000, pcm=tone) for ms in range(begin_ms, end_ms, 20)]


def _watched(*stretches: tuple[int, int, int], speech_end_ms: int = 1_000) -> TurnWatch:
    turn = TurnWatch(speech_end_ms * MS, utterances=UtteranceWatch())
    for stretch in stretches:
        for packet in _packets(*stretch):
            turn.take(packet)
    return turn


def test_a_continuous_answer_is_over_after_quiet() -> None:
    assert _watched((0, 1_500, 0), (1_500, 3_000, 8_000), (3_000, 4_180, 0)).outcome is None
    turn = _watched((0, 1_500, 0), (1_500, 3_000, 8_000), (3_000, 4_220, 0))
    assert turn.outcome == "answered"
    assert turn.first_audio_ns == 1_500 * MS


def test_a_breath_does_not_end_a_continuous_answer() -> None:
    assert _watched((1_500, 2_000, 8_000), (2_000, 3_000, 0), (3_000, 3_500, 8_000), (3_500, 4_000, 0)).outcome is None


def test_continuous_silence_and_early_speech_answer_nothing() -> None:
    assert _watched((0, 20_000, 0)).outcome is None
    assert _watched((500, 1_500, 8_000), (1_500, 9_000, 0)).outcome is None


def test_a_stalled_continuous_stream_is_not_quiet() -> None:
    turn = _watched((1_500, 2_000, 8_000))
    turn.take(_packets(9_000, 9_020, 0)[0])
    assert turn.outcome is None


def test_a_done_response_that_stays_silent_is_answered() -> None:
    turn = _watched((0, 1_500, 0))
    turn.take(ResponseStarted(t_ns=1_500 * MS, response="r1"))
    turn.take(ResponseDone(t_ns=1_600 * MS, response="r1"))
    assert turn.outcome is None
    for packet in _packets(1_600, 3_700, 0):
        turn.take(packet)
    assert turn.outcome == "answered"


def test_a_pause_inside_a_named_response_ends_nothing() -> None:
    turn = _watched((0, 1_500, 0))
    turn.take(ResponseStarted(t_ns=1_490 * MS, response="r1"))
    for packet in (*_packets(1_500, 2_500, 8_000), *_packets(2_500, 4_500, 0)):
        turn.take(packet)
    assert turn.outcome is None
    for packet in (*_packets(4_500, 5_000, 8_000), *_packets(5_000, 6_000, 0)):
        turn.take(packet)
    turn.take(ResponseDone(t_ns=6_000 * MS, response="r1"))
    for packet in _packets(6_000, 6_300, 0):
        turn.take(packet)
    assert turn.outcome == "answered"


def test_playback_that_goes_on_ends_nothing_unless_forgotten() -> None:
    turn = _watched((1_500, 2_000, 8_000))
    turn.take(PlaybackState(t_ns=2_000 * MS, state="started"))
    for packet in _packets(2_000, 7_900, 0):
        turn.take(packet)
    assert turn.outcome is None
    for packet in _packets(7_900, 8_100, 0):
        turn.take(packet)
    assert turn.outcome == "answered"
