"""Moshi, shrunken and with random weights: through the harness in a worker, and its steps and files at close range."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from connectors.local.model import Audio, Session, Text
from connectors.local.models.moshi import FRAME, Moshi
from connectors.local.models.moshi_weights import package
from connectors.local.peer import LocalPeer
from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.events import AudioReceived, PeerError, TextReceived
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import load_session
from harness.core.weights_mark import has_random_weights
from harness.run.plan import PlanOptions
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions
from harness.run.suite import PeerRun, Suite, SuiteOptions
from scoring.timing.rows import session_rows
from tests.engines.packages import scoring_packages
from tests.run.fakes import ToneQuery

pytestmark = pytest.mark.loopback
TINY = {"weights": "random", "size": "tiny", "device": "cpu", "threads": "1"}


@pytest.fixture(scope="module", autouse=True)
def packages():
    scoring_packages()


@pytest.fixture(scope="module")
def moshi():
    return ready(Moshi(weights="random", size="tiny", sampling="greedy", threads=1, device="cpu"))


def ready(model):
    model.load()
    model.warm_up()
    return model


def noise(frames, seed=0):
    """Blocks of white noise, int16."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((frames, FRAME)) * 3000).astype(np.int16)


def heard(model, blocks):
    """What each block gave in a new session."""
    model.start(Session(turn="vad"))
    return [list(model.push_audio(block)) for block in blocks]


# --- through the harness ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """2.5 s with a worker of its own."""
    peer = LocalPeer(PeerOptions(target="connectors.local.models.moshi:Moshi", settings=TINY), SystemClock())
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    options = SuiteOptions(session=SessionOptions(turn="vad", timeout_s=1.2, linger_ms=200), plan=PlanOptions())

    async def main():
        async with Rig() as rig, peer:
            run = PeerRun(peer=peer, directory=directory, queries=(ToneQuery(ms=1_000),), suite="test")
            return await Suite(rig, [run], options, lambda *done: None).run()

    assert asyncio.run(main()).held == 1
    (name,) = directory.finished()
    return load_session(directory.sessions / name)


def test_it_is_full_duplex_and_clocked_by_what_it_hears(session):
    profile = session.header.profile
    assert (profile.continuous, profile.pacing, profile.unit_ms, profile.unit_delay) == (True, "input_clocked", 80, 1)
    assert profile.chunk_ms == 80
    packets = list(session.of(AudioReceived))
    assert {(packet.samples, packet.rate_hz) for packet in packets} == {(FRAME, 24_000)}
    sent = len(session.user) // FRAME
    assert 0 < len(packets) <= sent - profile.unit_delay
    assert list(session.of(PeerError)) == []


def test_words_are_stamped_before_the_sound_of_their_step(session):
    events = [event for event in session.events if isinstance(event, TextReceived | AudioReceived)]
    assert sum(isinstance(event, TextReceived) for event in events) > 0
    for before, after in pairwise(events):
        assert before.produced_ns <= after.produced_ns
        assert not (isinstance(before, TextReceived) and isinstance(after, TextReceived))
    assert all(event.produced_ns <= event.t_ns for event in events)


def test_lag_and_missed_units_are_counted(session):
    (row,) = session_rows(session)
    assert row["unit_lag_ms"] > 0
    assert row["unit_lag_p99_ms"] >= row["unit_lag_ms"]
    assert 0 <= row["unit_misses"] <= len(session.user) // FRAME
    assert row["first_packet_ms"] is None


def test_the_header_says_what_it_ran_on(session):
    facts = session.header.peer.config["facts"]
    assert has_random_weights(session.header.peer.config)
    assert (facts["device"], facts["dtype"], facts["attention"], facts["compiled"]) == (
        "cpu",
        "float32",
        "sdpa",
        "none",
    )
    assert facts["moshi"] == "0.2.13"
    assert facts["peak_memory_mb"] > 50
    assert "made-up" in facts["tokenizer"]


# --- its steps ----------------------------------------------------------------------------------------------------


def test_the_first_step_is_silent_and_every_other_has_one_frame(moshi):
    steps = heard(moshi, noise(6))
    assert steps[0] == []
    for step in steps[1:]:
        assert isinstance(step[-1], Audio)
        assert (step[-1].samples.shape, step[-1].samples.dtype) == ((FRAME,), np.float32)
        assert np.isfinite(step[-1].samples).all()
        assert [type(output) for output in step[:-1]] in ([], [Text])


def test_it_does_what_the_package_s_own_loop_does(moshi):
    """Against `LMGen` and Mimi stepped plainly on the same weights, first frame as in `moshi.server`."""
    import torch

    blocks = noise(8, seed=3)
    ours = heard(moshi, blocks)
    mimi, lm = moshi._parts.mimi, moshi._parts.lm
    gen = package("moshi.models").LMGen(lm, use_sampling=False)
    mimi.reset_streaming()
    lm._stop_streaming()  # so that a second LMGen may lead it
    texts, sounds = [], []
    with torch.no_grad(), gen.streaming(1):
        for index, block in enumerate(blocks):
            codes = mimi.encode(torch.from_numpy(block / np.float32(32768)).float()[None, None])
            if index == 0:
                mimi.reset_streaming()
            tokens = gen.step(codes)
            if tokens is not None:
                texts.append(tokens[0, 0, 0].item())
                sounds.append(mimi.decode(tokens[:, 1:])[0, 0].numpy())
    lm.streaming(1)
    said = "".join(output.text for step in ours for output in step if isinstance(output, Text))
    assert said == "".join(f" t{text}" for text in texts if text not in (0, 3))
    assert len(set(texts)) > 1
    np.testing.assert_array_equal([step[-1].samples for step in ours[1:]], sounds)


def test_a_session_knows_nothing_of_the_last(moshi):
    first = heard(moshi, noise(4))
    other = heard(moshi, noise(4, seed=9))
    again = heard(moshi, noise(4))
    assert not np.array_equal(first[-1][-1].samples, other[-1][-1].samples)
    np.testing.assert_array_equal(first[-1][-1].samples, again[-1][-1].samples)


def test_padding_is_no_text(moshi, monkeypatch):
    class Padding:
        def step(self, codes):
            import torch

            return torch.tensor([3, *range(8)]).view(1, 9, 1)

        def reset_streaming(self):
            pass

    monkeypatch.setattr(moshi, "_gen", Padding())
    ((output,),) = heard(moshi, noise(1))
    assert isinstance(output, Audio)


# --- its files ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(moshi, tmp_path_factory):
    """Weights in Kyutai's layout, with names of their own and a real vocabulary."""
    import io

    sentencepiece, files = package("sentencepiece"), package("safetensors.torch")
    place = tmp_path_factory.mktemp("weights")
    model = io.BytesIO()
    words = ["you are kind and you speak with a calm voice", "a short talk of this and that"] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words), model_writer=model, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    (place / "words.model").write_bytes(model.getvalue())
    files.save_file(moshi._parts.lm.state_dict(), place / "lm.safetensors")
    files.save_file({k: v.contiguous() for k, v in moshi._parts.mimi.state_dict().items()}, place / "mimi.safetensors")
    shape, codec = tiny_shape()
    names = {"moshi_name": "lm.safetensors", "mimi_name": "mimi.safetensors", "tokenizer_name": "words.model"}
    config = {**shape, **names, "mimi_config_name": "codec.json", "model_type": "moshi", "lm_gen_config": {"temp": 0.5}}
    (place / "config.json").write_text(json.dumps(config))
    (place / "codec.json").write_text(json.dumps(codec))
    return place


def tiny_shape():
    import copy

    from connectors.local.models.moshi_weights import _shrink

    loaders = package("moshi.models.loaders")
    shape, codec = dict(loaders._lm_kwargs), copy.deepcopy(loaders._mimi_config)
    _shrink(shape, codec)
    return shape, codec


def test_weights_of_a_folder_say_what_the_same_weights_said(moshi, folder):
    stored = Moshi(weights=str(folder), sampling="greedy", threads=1, device="cpu")
    stored.load()
    assert stored._gen.temp == 0.5
    assert stored._parts.pieces.get_piece_size() > 20
    stored._parts = stored._parts._replace(pieces=moshi._parts.pieces)
    for ours, theirs in zip(heard(moshi, noise(5)), heard(stored, noise(5)), strict=True):
        assert [o.text for o in ours[:-1]] == [o.text for o in theirs[:-1]]
        if ours:
            np.testing.assert_array_equal(ours[-1].samples, theirs[-1].samples)
    facts = stored.facts
    assert facts["weights"] == folder.name
    assert len(facts["sha256"]) == 64
    assert "size" not in facts


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "stt"}, "holds a model of the type stt, not moshi"),
        ({"model_type": "personaplex"}, "local:personaplex runs it"),
        ({"mimi_name": "else.safetensors"}, "has no else.safetensors"),
        ({"num_layers": 3}, "cannot be loaded as Moshi's"),
        ({"what": 1}, "cannot be loaded as Moshi's"),
    ],
)
def test_weights_that_do_not_fit_are_one_clear_line(folder, tmp_path, change, said):
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | change))
    with pytest.raises(ConfigError, match=said) as caught:
        Moshi(weights=str(tmp_path), threads=1, device="cpu").load()
    assert "\n" not in str(caught.value)


def test_other_delays_are_refused(monkeypatch):
    model = Moshi(weights="random", size="tiny", threads=1, device="cpu")
    wide = SimpleNamespace(delays=[0, 0, 2], dep_q=8)
    monkeypatch.setattr("connectors.local.models.moshi_weights.random", lambda *given: SimpleNamespace(lm=wide, mimi=0))
    with pytest.raises(ConfigError, match="delays up to 2 and 8 codebooks"):
        model.load()


def test_settings_that_mean_nothing():
    with pytest.raises(ConfigError, match="size=tiny is for weights=random"):
        Moshi(size="tiny")
    with pytest.raises(ConfigError, match="no such model or path"):
        Moshi(weights="./not-here", device="cpu").load()


def test_a_missing_package_says_how_to_bring_it():
    with pytest.raises(PrerequisiteError, match=r"moshi\.nothing is not installed .* moshi .*python=DIR"):
        package("moshi.nothing")
