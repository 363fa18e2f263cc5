"""Impaired queries of a bench: at the peer's rate, seeded, hashed; only the spec decides."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.audio import audio_sha256, int16_to_float
from harness.core.errors import ConfigError
from scenarios.impairments.impaired_query import impaired_queries
from scenarios.pack import load_pack

pytestmark = pytest.mark.unit


def test_the_ratio_holds_at_the_peers_rate_and_the_marks_are_the_clean_ones() -> None:
    (clip,) = load_pack("queries", limit=1).clips
    (query,) = impaired_queries([clip], ["noise:white:snr=5"])
    clean, done = clip.at_rate(16_000), query.at_rate(16_000)
    assert (done.rate_hz, done.speech_start, done.speech_end) == (16_000, clean.speech_start, clean.speech_end)
    span = slice(clean.speech_start, clean.speech_end)
    speech = int16_to_float(clean.samples[span]).astype(np.float64)
    noise = int16_to_float(done.samples[span]).astype(np.float64) - speech
    assert 10 * np.log10(np.sum(speech**2) / np.sum(noise**2)) == pytest.approx(5, abs=0.1)
    assert (done.impairment, done.sha256) == ("noise:white:snr=5", audio_sha256(done.samples))
    assert clip.impairment == ""


def test_specs_are_applied_in_order_and_the_seed_decides() -> None:
    clips = load_pack("queries", limit=2).clips
    first, again = (impaired_queries(clips, ["far_field:cutoff=400", "loss:rate=0.3"], seed=1) for _ in range(2))
    other = impaired_queries(clips, ["far_field:cutoff=400+loss:rate=0.3"], seed=2)
    one, same, another = (queries[0].at_rate(24_000) for queries in (first, again, other))
    assert one.impairment == another.impairment == "far_field:cutoff=400+loss:rate=0.3"
    assert one.sha256 == same.sha256 != another.sha256


def test_a_wrong_spec_is_told_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match="did you mean noise"):
        impaired_queries(load_pack("queries", limit=1).clips, ["nois:white:snr=5"])
