"""Channels as heard, Silero's raw spans, words on the session's clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.core.audio import Float32, Int16, int16_to_pcm16
from harness.core.errors import PrerequisiteError
from harness.core.events import AudioSent
from harness.core.scorer import Unscored
from harness.engines.asr import Transcript
from harness.engines.asr import Word as Recognised
from scoring.duplex.presets import words as words_module
from scoring.duplex.presets.voices import Channel, Voices, agent_channel, voices_of
from scoring.duplex.presets.words import Word, Words, recognizer_at_hand, words_of
from scoring.timing.recording import Recording
from tests.scoring.timing.recordings import MS, RATE, Script, header, tone, vad_turn

pytestmark = pytest.mark.unit
CLIPS = Path(__file__).parents[4] / "scenarios" / "packs" / "queries"


def speech(name: str) -> Int16:
    samples, rate_hz = soundfile.read(CLIPS / name, dtype="int16")
    assert rate_hz == RATE
    return np.asarray(samples, dtype=np.int16)


def at(ms: float) -> int:
    return round(ms * RATE / 1000)


def test_the_agents_channel_lies_on_the_users_stream_with_its_gaps(tmp_path: Path) -> None:
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 3000).begin(1401)
    script.audio(1500, tone(100)).audio(1800, tone(1000)).heard_start(2000).done(2001, status="cancelled")
    channel = agent_channel(Recording(script.write(tmp_path)))
    assert isinstance(channel, Channel)
    assert (channel.rate_hz, channel.origin_ns) == (RATE, script.at(0))
    assert len(channel.samples) == at(2000)  # flushed there
    assert not channel.samples[: at(1500)].any()
    assert np.array_equal(channel.samples[at(1500) : at(1600)], tone(100))
    assert not channel.samples[at(1600) : at(1800)].any()
    assert np.array_equal(channel.samples[at(1800) : at(2000)], tone(1000)[: at(200)])


def test_what_came_before_the_users_stream_is_not_on_it(tmp_path: Path) -> None:
    script = Script().audio(-50, tone(100)).stream().send(0, 100)
    channel = agent_channel(Recording(script.write(tmp_path)))
    assert isinstance(channel, Channel)
    assert np.array_equal(channel.samples, tone(100)[at(50) :])


def test_no_audio_is_no_channel(tmp_path: Path) -> None:
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400)
    recording = Recording(script.write(tmp_path))
    assert agent_channel(recording) == Unscored(reason="no audio of the agent")
    assert words_of(recording, Fake(())) == Unscored(reason="no audio of the agent")


def test_silero_hears_both_sides_where_they_speak(tmp_path: Path) -> None:
    user, agent = speech("en-01.flac"), speech("en-02.flac")
    script = Script().stream()
    script.turn(0, 0, 1000 * len(user) / RATE, clip_ms=(0, 1000 * len(user) / RATE))
    script.send(0, 1000 * len(user) / RATE)
    offset = 0
    for index, event in enumerate(script.events):
        if isinstance(event, AudioSent):
            chunk = user[offset : offset + event.samples]
            script.events[index] = AudioSent(
                t_ns=event.t_ns,
                planned_ns=event.planned_ns,
                started_ns=event.started_ns,
                sample=event.sample,
                samples=event.samples,
                pcm=int16_to_pcm16(chunk),
            )
            offset += event.samples
    begin_ms = 1000 * len(user) / RATE + 500
    script.begin(begin_ms - 1).audio(begin_ms, agent).done(begin_ms + 1)
    recording = Recording(script.write(tmp_path))
    voices = voices_of(recording)
    assert isinstance(voices, Voices)
    assert voices.detector.startswith("silero-")
    assert voices.detector.endswith(", 32 ms grid")
    assert voices.user[-1].end_ns <= script.at(1000 * len(user) / RATE)
    assert voices.user[0].start_ns < script.at(1000)
    first = voices.agent[0].start_ns
    assert script.at(begin_ms) <= first < script.at(begin_ms + 600)
    assert voices.agent[-1].end_ns <= script.at(begin_ms + 1000 * len(agent) / RATE) + MS


def test_an_upload_has_no_voices(tmp_path: Path) -> None:
    script = Script().turn(0, 300, 1000, t_ms=0, clip_ms=(0, 1200)).send(0, 1200, chunk_ms=1200)
    recording = Recording(script.write(tmp_path, header(mode="upload")))
    assert isinstance(voices_of(recording), Unscored)


class Fake:
    """A recogniser that says what it was told to, in samples of its input."""

    def __init__(self, words: tuple[Recognised, ...] | None) -> None:
        self.words = words
        self.heard: list[tuple[int, int, str]] = []

    def transcribe(self, pcm: Float32, rate_hz: int, language: str) -> Transcript:
        self.heard.append((len(pcm), rate_hz, language))
        return Transcript(text="", words=self.words, model="fake 1")


def test_words_are_placed_on_the_sessions_clock(tmp_path: Path) -> None:
    script = vad_turn()
    recording = Recording(script.write(tmp_path, header(languages=("zh",))))
    fake = Fake((Recognised(text="hi", start_sample=at(1700), end_sample=at(1750)),))
    found = words_of(recording, fake)
    assert found == Words(words=(Word(text="hi", start_ns=script.at(1700), end_ns=script.at(1750)),), asr="fake 1")
    assert fake.heard == [(at(2000), RATE, "zh")]
    assert words_of(recording, fake, "fr") == found
    assert fake.heard[-1][2] == "fr"
    words_of(Recording(script.write(tmp_path / "unsaid")), fake)
    assert fake.heard[-1][2] == "en"


def test_a_recogniser_without_times_gives_no_words(tmp_path: Path) -> None:
    assert words_of(Recording(vad_turn().write(tmp_path)), Fake(None)) == Unscored(reason="fake 1 gives no word times")


def test_no_recogniser_at_hand_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PrerequisiteError("install it")

    monkeypatch.setattr(words_module, "FasterWhisper", refuse)
    assert recognizer_at_hand() == Unscored(reason="no words: install it")
