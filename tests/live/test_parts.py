"""The small parts of a live session: speaker, echo guard, canceller, watch over the device, transcript, picture."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.events import TextReceived, UserTranscript
from harness.live.echo import Canceller, Guard, Headphones
from harness.live.screen import PlainScreen
from harness.live.sound_card import ListedDevice, pick
from harness.live.speaker import Speaker
from harness.live.stream_watch import StreamWatch
from harness.live.transcript import Line, Transcript
from harness.live.turn_rule import goes_on
from harness.live.turns import TurnFigures
from harness.live.view import Snapshot, draw

pytestmark = pytest.mark.unit
MS, S = 1_000_000, 1_000_000_000


def test_a_speaker_gives_what_it_has_and_silence() -> None:
    speaker = Speaker(24_000)
    speaker.put(np.arange(1, 6, dtype=np.int16), 24_000)
    first, sound = speaker.take(3)
    assert (first.tolist(), sound) == ([1, 2, 3], 3)
    second, sound = speaker.take(4)
    assert (second.tolist(), sound) == ([4, 5, 0, 0], 2)
    speaker.put(np.ones(9, np.int16), 24_000)
    assert speaker.flush() == 9
    assert speaker.take(2)[1] == 0


def test_a_speaker_resamples_and_gives_the_end_too() -> None:
    speaker = Speaker(48_000)
    tone = (np.sin(np.arange(2400) * 0.1) * 8000).astype(np.int16)
    for at in range(0, 2400, 240):
        speaker.put(tone[at : at + 240], 24_000)
    speaker.finish()
    assert speaker.queued == 4800


def test_the_guard_shuts_while_the_agent_is_heard_and_shortly_after() -> None:
    guard, voice = Guard(1000, latency_ms=100), np.full(100, 5000, np.int16)
    quiet = np.zeros(100, np.int16)
    assert guard.clean(voice, quiet).any()
    assert not guard.clean(voice, voice).any()
    # 400 ms and the latency of 100 ms, of which one block has passed.
    passed = [bool(guard.clean(voice, quiet).any()) for _ in range(6)]
    assert passed == [False, False, False, False, True, True]
    assert Headphones().clean(voice, voice) is voice


def test_the_canceller_takes_the_echo_away() -> None:
    pytest.importorskip("pywebrtc_audio")
    rate, delay = 48_000, 1440
    random = np.random.default_rng(3)
    far = (random.normal(0, 3000, 8 * rate)).astype(np.int16)
    near = np.concatenate([np.zeros(delay, np.int16), far[:-delay]]) // 2
    canceller = Canceller(rate, 30)
    out = np.concatenate([canceller.clean(near[at : at + 480], far[at : at + 480]) for at in range(0, len(far), 480)])
    assert len(out) == len(near)
    last = slice(-2 * rate, None)
    gain_db = 10 * np.log10(np.mean(out[last].astype(float) ** 2) / np.mean(near[last].astype(float) ** 2))
    assert gain_db < -15


def test_a_device_without_a_block_for_a_second_is_dead() -> None:
    watch = StreamWatch(48_000, 0)
    assert watch.dead(999 * MS) == ""
    assert "never delivered" in watch.dead(1000 * MS)
    watch.take(480, 1100 * MS)
    assert watch.dead(2050 * MS) == ""
    assert "stopped without a word" in watch.dead(2100 * MS)


def test_a_device_at_another_rate_is_told_once_with_its_rate() -> None:
    watch, said = StreamWatch(48_000, 0), []
    for number in range(2000):
        said += watch.take(480, round(number * 480 * S / 44_100))
    (line,) = said
    assert "44,100 samples a second, not the 48,000" in line


def test_a_drifting_device_is_no_other_rate() -> None:
    watch = StreamWatch(48_000, 0)
    assert not [line for n in range(2000) for line in watch.take(480, round(n * 480 * S / (48_000 * 1.0005)))]


def test_overflows_are_told_once_and_counted() -> None:
    watch = StreamWatch(48_000, 0)
    said = [line for n in range(90) for line in watch.take(480, n * 10 * MS, overflow=n > 86, underflow=n in (9, 80))]
    assert ["overflow" in line for line in said] == [False, True]
    assert watch.ending() == [
        "3 times captured sound was lost (overflow)",
        "1 times what was heard had a gap (underflow)",
    ]


def test_a_transcript_keeps_answers_together_and_takes_one_of_two_texts() -> None:
    transcript = Transcript()
    for text, final in (("Hel", False), ("lo", False), ("Hello?", True)):
        transcript.take(UserTranscript(t_ns=0, text=text, final=final, item="i"))
    for text, kind in (("Hi", "text"), ("Hi", "transcript"), (" you", "text"), (" you", "transcript")):
        transcript.take(TextReceived(t_ns=0, text=text, kind=kind, response="r"))
    transcript.take(TextReceived(t_ns=0, text="Next", response="s"))
    assert transcript.lines == (Line("user", "Hello?"), Line("agent", "Hi you"), Line("agent", "Next"))


@pytest.mark.parametrize(
    ("pause_ms", "answered", "committed", "same"),
    [
        (599, True, False, True),  # the peer took a pause for an end: its answer is early
        (600, True, False, False),
        (600, False, False, True),
        (3999, False, False, True),
        (4000, False, False, False),
        (10, False, True, False),
    ],
)
def test_what_is_one_turn(pause_ms: int, answered: bool, committed: bool, same: bool) -> None:
    assert goes_on(pause_ms * MS, answered=answered, committed=committed) is same


def shot(**changes) -> Snapshot:
    turn = TurnFigures(
        number=3, speaking=False, start_ns=0, ttft_ms=310.4, first_packet_ms=320.0, first_audible_ms=401.6
    )
    return Snapshot(peer="agent", device="Card", state="listening", user_db=-20.0, turns=(turn,), **changes)


def test_the_picture_has_levels_figures_and_words_that_steer_nothing() -> None:
    out = io.StringIO()
    words = (Line("user", "Hello"), Line("agent", "Hi \x1b[2J[bold]there[/bold]"))
    Console(file=out, width=100).print(draw(shot(lines=words, notices=("a gap",))))
    text = out.getvalue()
    assert "310" in text
    assert "402" in text
    assert "█" in text
    assert "-20 dB" in text
    assert "\x1b[2J" not in text
    assert "[bold]there[/bold]" in text
    assert "a gap" in text


def test_without_a_terminal_each_turn_is_a_line() -> None:
    said: list[str] = []
    screen = PlainScreen(said.append)
    for _ in range(3):
        screen.show(shot(notices=("a gap",)))
    assert said == ["agent: listening", "turn 3: first text 310 ms, first audible 402 ms", "a gap"]


def device(index: int, name: str, inputs: int = 1, outputs: int = 1, **more) -> ListedDevice:
    return ListedDevice(index=index, name=name, host="ALSA", inputs=inputs, outputs=outputs, rate_hz=48_000, **more)


def test_devices_are_picked_by_number_name_and_default() -> None:
    devices = [
        device(0, "Webcam", outputs=0),
        device(1, "USB headset"),
        device(2, "USB speaker", 0, default_output=True),
    ]
    assert pick(devices, None, capture=True).index == 0
    assert pick(devices, None, capture=False).index == 2
    assert pick(devices, "1", capture=True).name == "USB headset"
    assert pick(devices, "head", capture=False).index == 1
    with pytest.raises(ConfigError, match=r"several devices are called so \(1 USB headset, 2 USB speaker\)"):
        pick(devices, "usb", capture=False)
    with pytest.raises(ConfigError, match="did you mean USB headset"):
        pick(devices, "USB hedset", capture=True)
    with pytest.raises(PrerequisiteError, match="no sound device"):
        pick(devices[2:], None, capture=True)
