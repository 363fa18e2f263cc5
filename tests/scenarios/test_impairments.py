"""Impairments: specs, and what each transform does to signals whose outcome can be worked out by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.audio import Float64, Int16, audio_sha256, float_to_int16, int16_to_float
from harness.core.errors import ConfigError, PrerequisiteError
from scenarios.clip import Clip
from scenarios.impairments import reverb
from scenarios.impairments.channel import clip_peaks, far_field, lose
from scenarios.impairments.impair import impair
from scenarios.impairments.noise import pink, rms
from scenarios.impairments.seeded import generator
from scenarios.impairments.spec import Spec, parse_spec, parse_specs, robustness_specs

pytestmark = pytest.mark.unit

RATE = 16_000


def clip_of(samples: Int16, name: str = "a", start: int = 1600, end: int | None = None) -> Clip:
    return Clip(
        id=name,
        text="words",
        language="en",
        voice="v",
        sha256=audio_sha256(samples),
        rate_hz=RATE,
        samples=samples,
        speech_start=start,
        speech_end=len(samples) - 1600 if end is None else end,
        source="test",
    )


def tone(hz: float = 500, seconds: float = 0.5, level: float = 0.2) -> Clip:
    """100 ms of silence, a sine, 100 ms of silence."""
    t = np.arange(int(seconds * RATE)) / RATE
    samples = np.pad(float_to_int16(level * np.sin(2 * np.pi * hz * t)), 1600)
    return clip_of(samples, f"tone-{hz}")


VOICES = [tone(hz, 0.9) for hz in (210, 320, 470, 660)]


def db(ratio: float) -> float:
    return 20 * float(np.log10(ratio))


def test_specs_are_read_and_written_back():
    assert parse_spec("noise:white:snr=5") == Spec("noise", "white", 5.0)
    assert parse_spec(" reverb:rt60=0.5 ") == Spec("reverb", "", 0.5)
    assert [str(spec) for spec in parse_specs("far_field:cutoff=400+loss:rate=0.30")] == [
        "far_field:cutoff=400",
        "loss:rate=0.3",
    ]
    assert str(Spec("clipping", "", 0.0001)) == "clipping:threshold=0.0001"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nose:white:snr=5", "no impairment 'nose'; did you mean noise?"),
        ("", "no impairment ''; known: clipping"),
        ("noise:wite:snr=5", "noise has no 'wite'; did you mean white?"),
        ("noise:snr=5", "needs one of white, pink, babble, as in noise:white:snr=-5"),
        ("noise:white", "needs snr=NUMBER, as in noise:white:snr=-5"),
        ("noise:white:sn=5", "no setting 'sn'; known: snr"),
        ("noise:white:snr=five", "snr is a number from -30 to 60 dB"),
        ("noise:white:snr=nan", "snr is a number from -30 to 60 dB"),
        ("noise:white:snr=61", "snr is a number from -30 to 60 dB"),
        ("loss:rate=1", "rate is a number from 0 to 0.99 of all frames"),
        ("loss:burst:rate=0.1", "too many parts, write it as in loss:rate=0.1"),
        ("reverb:room:hall:rt60=1", "too many parts, write it as in reverb:rt60=0.5"),
        ("loss:rate=0.1++", "no impairment ''; known: clipping"),
    ],
)
def test_a_wrong_spec_is_one_clear_line(text: str, said: str):
    with pytest.raises(ConfigError) as caught:
        parse_specs(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_levels_are_vocalbench_zhs_36():
    specs = robustness_specs()
    assert len(specs) == 36
    assert {str(spec) for spec in specs} >= {
        "noise:white:snr=-5",
        "noise:babble:snr=20",
        "reverb:rt60=3",
        "far_field:cutoff=400",
        "loss:rate=0.7",
        "clipping:threshold=0.0001",
    }
    assert all(parse_spec(str(spec)) == spec for spec in specs)


@pytest.mark.parametrize("snr_db", [-5, 0, 5, 10, 15, 20])
@pytest.mark.parametrize("kind", ["white", "pink", "babble"])
def test_the_ratio_holds_on_the_speech(kind: str, snr_db: float, speech: Int16):
    clip = clip_of(speech, start=4800, end=71_088)
    done = impair(clip, [Spec("noise", kind, snr_db)], seed="s", voices=VOICES)
    clean = int16_to_float(clip.samples).astype(np.float64)
    noise = int16_to_float(done.clip.samples) / 10 ** (done.gain_db / 20) - clean
    span = slice(clip.speech_start, clip.speech_end)
    assert db(rms(clean[span]) / rms(noise[span])) == pytest.approx(snr_db, abs=0.1)
    assert rms(noise[: clip.speech_start]) > 0.3 * rms(noise[span])  # it is there before the speech, too


def test_a_mixture_beyond_full_scale_is_turned_down_not_clipped():
    loud = tone(level=0.9)
    done = impair(loud, [Spec("noise", "white", 0)], seed="s")
    assert done.gain_db < 0
    peaks = np.abs(done.clip.samples.astype(int))
    assert peaks.max() == 32767
    assert (peaks >= 32766).sum() <= 2


@settings(deadline=None, max_examples=40)
@given(
    spec=st.sampled_from([*robustness_specs(), Spec("noise", "pink", 5), Spec("loss", "", 0), Spec("clipping", "", 1)]),
    seed=st.sampled_from("abc"),
)
def test_marks_length_and_seed(spec: Spec, seed: str):
    clip = tone()
    spec = Spec("reverb", "tail", spec.value) if spec.name == "reverb" else spec
    first = impair(clip, [spec], seed=seed, voices=VOICES)
    again = impair(clip, [spec], seed=seed, voices=VOICES)
    assert np.array_equal(first.clip.samples, again.clip.samples)
    tail = round(spec.value * RATE) - 1 if spec.name == "reverb" else 0
    assert len(first.clip.samples) == len(clip.samples) + tail
    assert (first.clip.speech_start, first.clip.speech_end) == (clip.speech_start, clip.speech_end)
    assert first.clip.sha256 == audio_sha256(first.clip.samples)
    assert first.applied == str(spec)
    assert not first.clip.samples.flags.writeable


def test_another_seed_or_clip_is_another_noise():
    spec = [Spec("noise", "white", 5)]
    first = impair(tone(), spec, seed="a").clip
    assert impair(tone(), spec, seed="b").clip.sha256 != first.sha256
    renamed = clip_of(tone().samples, "other")
    assert impair(renamed, spec, seed="a").clip.sha256 != first.sha256
    twice = impair(tone(), [*spec, *spec], seed="a")
    assert twice.applied == "noise:white:snr=5+noise:white:snr=5"


def test_no_impairment_is_the_clip_itself():
    clip = tone()
    assert impair(clip, [], seed="a").clip is clip


def test_nothing_to_mix_or_to_measure_is_said():
    with pytest.raises(ConfigError, match="needs other clips"):
        impair(VOICES[0], [Spec("noise", "babble", 5)], seed="a", voices=VOICES[:1])
    silent = clip_of(np.zeros(8000, dtype=np.int16))
    with pytest.raises(ConfigError, match="the speech is silent"):
        impair(silent, [Spec("noise", "white", 5)], seed="a")


def test_pink_noise_falls_by_3_db_an_octave():
    power = np.abs(np.fft.rfft(pink(1 << 17, RATE, generator("pink")))) ** 2
    hz = np.fft.rfftfreq(1 << 17, 1 / RATE)

    def octave_db(low: float) -> float:
        return 10 * float(np.log10(power[(hz >= low) & (hz < 2 * low)].mean()))

    assert octave_db(500) - octave_db(2000) == pytest.approx(6.02, abs=0.3)


@pytest.mark.parametrize(("hz", "wanted_db"), [(200, -0.017), (400, -3.01), (800, -24.1), (1600, -48.2)])
def test_far_field_is_a_fourth_order_low_pass(hz: float, wanted_db: float):
    x = np.sin(2 * np.pi * hz * np.arange(RATE) / RATE)
    inner = slice(4000, -4000)
    assert db(rms(far_field(x, RATE, 400)[inner]) / rms(x[inner])) == pytest.approx(wanted_db, abs=0.1)


def test_far_field_does_not_delay():
    x = np.zeros(8001)
    x[4000] = 1.0
    y = far_field(x, RATE, 100)
    assert int(np.argmax(y)) == 4000
    assert np.allclose(y, y[::-1], atol=1e-9)


@settings(deadline=None)
@given(frames=st.integers(1, 60), extra=st.integers(0, 319), rate=st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9]))
def test_loss_silences_whole_frames_and_so_many(frames: int, extra: int, rate: float):
    n = frames * 320 + extra
    lost = lose(np.ones(n), RATE, rate, generator("loss", frames, extra))
    blocks = [lost[at : at + 320] for at in range(0, n, 320)]
    assert all(block.all() or not block.any() for block in blocks)
    assert sum(not block.any() for block in blocks) == round(rate * len(blocks))


def test_clipping_limits_to_a_part_of_the_peak_and_keeps_the_level():
    # A ramp from -1 to 1, limited to +-0.5: half its samples stand at the limit, mean square 1/3 -> 1/6.
    x = np.linspace(-1, 1, 10_001)
    whole = slice(None)
    y = clip_peaks(x, 0.5, whole)
    assert np.max(y) == pytest.approx(0.5 * np.sqrt(2), rel=1e-3)
    assert int(np.sum(y == np.max(y))) == pytest.approx(2500, abs=2)
    assert rms(y) == pytest.approx(rms(x))


@given(st.lists(st.sampled_from([0.0001, 0.001, 0.01, 0.1, 0.5, 1.0]), min_size=2, max_size=2).map(sorted))
def test_harder_clipping_leaves_less_crest(thresholds: list[float]):
    x = generator("crest").standard_normal(4000)
    crests = [np.max(np.abs(y)) / rms(y) for y in (clip_peaks(x, each, slice(None)) for each in thresholds)]
    assert crests[0] <= crests[1] + 1e-9
    assert not np.any(np.sign(clip_peaks(x, thresholds[0], slice(None))) != np.sign(x))


def t20_s(response: Float64) -> float:
    """RT60 from the slope between -5 and -25 dB of the backward-integrated energy (M. R. Schroeder, 1965)."""
    energy = np.cumsum(np.square(response)[::-1])[::-1]
    level = 10 * np.log10(energy / energy[0] + 1e-30)
    return 3 * (int(np.argmax(level < -25)) - int(np.argmax(level < -5))) / RATE


@pytest.mark.parametrize("rt60_s", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
def test_the_tail_decays_by_60_db_in_rt60(rt60_s: float):
    response = reverb.decaying_tail(rt60_s, RATE, generator("tail"))
    assert len(response) == rt60_s * RATE
    assert t20_s(response) == pytest.approx(rt60_s, rel=0.05)
    assert response[0] == 1.0
    assert 10 * np.log10(1.0 / np.sum(np.square(response[1:]))) == pytest.approx(-9.0)


def test_reverberation_keeps_the_onset_and_the_level_of_the_speech():
    clip = tone()
    done = impair(clip, [Spec("reverb", "tail", 0.5)], seed="s").clip
    assert not done.samples[: clip.speech_start].any()
    assert done.samples[clip.speech_start : clip.speech_start + 32].any()
    span = slice(clip.speech_start, clip.speech_end)
    assert rms(int16_to_float(done.samples[span]).astype(float)) == pytest.approx(
        rms(int16_to_float(clip.samples[span]).astype(float)), rel=0.01
    )
    assert done.samples[clip.speech_end : clip.speech_end + 1600].any()


def test_reverberation_names_its_method():
    done = impair(tone(), [Spec("reverb", "", 0.5)], seed="s")
    assert done.applied == f"reverb:{reverb.method('')}:rt60=0.5"


def test_a_room_without_its_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyroomacoustics", None)
    with pytest.raises(PrerequisiteError, match=r"pip install 'firstpacket\[rooms\]'"):
        impair(tone(), [Spec("reverb", "room", 0.31)], seed="s")


@pytest.mark.parametrize("rt60_s", [0.5, 1.0, 3.0])
def test_a_room_has_its_reverberation_time(rt60_s: float):
    pytest.importorskip("pyroomacoustics")
    response = reverb.room(rt60_s, RATE)
    assert response[0] == 1.0
    assert t20_s(response) == pytest.approx(rt60_s, rel=0.15)
