"""PersonaPlex, shrunken and with random weights: what its prompts put before the model, and how its files are read."""

from __future__ import annotations

import io
import json
import tarfile

import numpy as np
import pytest

from connectors.local.model import Audio, Session, Text
from connectors.local.models import moshi_weights
from connectors.local.models.moshi import FRAME
from connectors.local.models.moshi_personaplex import STAND_IN_FRAMES, PersonaPlex, _stand_in
from connectors.local.models.moshi_prompts import PAD, SILENCE, SINE, Frame, Voice, play, replay, voice_of, words
from connectors.local.models.moshi_weights import MadeUpPieces, package, without_user_steps
from connectors.local.random_weights import build
from harness.core.errors import ConfigError
from tests.connectors.local.test_moshi import heard, noise, ready, tiny_shape
from tests.engines.packages import scoring_packages

ROLE = "You are a baker."
TEXT_START, CODE_START = 500, 2048
"""Ids that stand for what is not there yet: one past the vocabularies of the tiny model."""


@pytest.fixture(scope="module", autouse=True)
def packages():
    scoring_packages()


@pytest.fixture(scope="module")
def model():
    return ready(PersonaPlex(weights="random", size="tiny", sampling="greedy", threads=1, device="cpu"))


class Inputs:
    """Records what the model's embeddings are given: one row of 17 ids (text, agent, user) a step."""

    def __init__(self, lm):
        self.rows = []
        self._hooks = [lm.text_emb.register_forward_pre_hook(self._text)]
        self._hooks += [table.register_forward_pre_hook(self._code) for table in lm.emb]
        self._codes = []

    def _code(self, module, given):
        self._codes.append(int(given[0]))

    def _text(self, module, given):
        self.rows.append([int(given[0]), *self._codes])
        self._codes = []

    def __enter__(self):
        return self.rows

    def __exit__(self, *error):
        for hook in self._hooks:
            hook.remove()


def expected(frames, position):
    """The ids at a position, as the reference lays them out: codebooks but each stream's first lag by one."""
    begun, late = position > 0, position > 1
    now, before = frames[position], frames[position - 1]
    return [
        now.text if begun else TEXT_START,
        now.codes[0] if begun else CODE_START,
        *(before.codes[1:] if late else [CODE_START] * 7),
        SINE[0] if begun else CODE_START,
        *(SINE[1:] if late else [CODE_START] * 7),
    ]


def test_a_role_is_framed_by_pauses_and_tags():
    pieces = MadeUpPieces(500)
    frames = words(f"  {ROLE} ", pieces)
    said = pieces.encode(f"<system> {ROLE} <system>")
    assert len(said) == 6
    assert [frame.text for frame in frames] == [PAD] * 6 + said + [PAD] * 6
    assert {frame.codes for frame in frames} == {SILENCE}
    assert words(f"<system> {ROLE} <system>", pieces) == frames
    assert words("", pieces) == [Frame(PAD, SILENCE)] * 12


def test_the_model_is_given_voice_and_role_before_the_user(model):
    with Inputs(model._parts.lm) as rows:
        model.start(Session(turn="vad", instructions=ROLE))
    frames = [*_stand_in(2048), *words(ROLE, model._parts.pieces)]
    assert len(frames) == STAND_IN_FRAMES + 18
    assert rows == [expected(frames, position) for position in range(len(frames))]


def test_the_user_is_heard_from_the_first_frame_and_answered_at_once(model):
    model.start(Session(turn="vad"))
    with Inputs(model._parts.lm) as rows:
        steps = [list(model.push_audio(block)) for block in noise(2)]
    assert model.declaration.unit_delay == 0
    for step in steps:
        assert [type(output) for output in step] in ([Text, Audio], [Audio])
        assert step[-1].samples.shape == (FRAME,)
    first, second = rows
    assert first[2:9] == list(SILENCE[1:])
    assert first[10:] == list(SINE[1:])
    assert first[9] != SINE[0]
    assert second[10:] != list(SINE[1:])
    assert model._forced.text is None
    assert model._forced.codes is None


def test_a_session_knows_nothing_of_the_last(model):
    first, other, again = (heard(model, noise(4, seed)) for seed in (0, 9, 0))
    assert not np.array_equal(first[-1][-1].samples, other[-1][-1].samples)
    for before, after in zip(first, again, strict=True):
        np.testing.assert_array_equal(before[-1].samples, after[-1].samples)


def test_a_recorded_voice_brings_it_to_where_the_frames_would(model):
    """Embeddings and ring as the reference saves them, after as many steps as there are frames."""
    import torch

    lm, gen, frames = model._parts.lm, model._gen, _stand_in(2048)[:7]
    ids = torch.tensor([expected(frames, position) for position in range(len(frames))])
    tables = [lm.text_emb, *lm.emb]
    embeddings = [sum(table(row[k].view(1, 1)) for k, table in enumerate(tables)) for row in ids[:-1]]
    # Four positions wide; what is at the next one is the last frame's late codebooks.
    late = [-2, -2, *frames[-1].codes[1:], -2, *SINE[1:]]
    ring = torch.full((1, 17, 4), -2)
    for position, row in [
        (len(frames) - 2, ids[-2].tolist()),
        (len(frames) - 1, ids[-1].tolist()),
        (len(frames), late),
    ]:
        ring[0, :, position % 4] = torch.tensor(row)

    def conversation(begin):
        gen.reset_streaming()
        model._parts.mimi.reset_streaming()
        with Inputs(lm) as rows:
            play(gen, model._forced, [*begin(), *words(ROLE, model._parts.pieces)])
            sounds = [list(model.push_audio(block))[-1].samples for block in noise(4)]
        return rows, np.concatenate(sounds)

    played = conversation(lambda: frames)
    replayed = conversation(lambda: [replay(gen, Voice(torch.stack(embeddings), ring))])
    assert played[0][len(frames) - 1 :] == replayed[0]
    np.testing.assert_allclose(played[1], replayed[1], atol=1e-5)


@pytest.mark.parametrize("layout", ["old", "new"])
def test_a_checkpoint_of_sixteen_steps_gives_the_same_eight(layout):
    """Old: all steps of a projection in one tensor, as PersonaPlex is published."""
    import torch

    loaders = package("moshi.models.loaders")
    shape, _ = tiny_shape()
    whole = build(lambda: loaders.get_moshi_lm(None, {**shape, "dep_q": 16}, device="meta", dtype=torch.float32))
    cut = build(lambda: loaders.get_moshi_lm(None, shape, device="meta", dtype=torch.float32), seed=1)
    state = whole.state_dict()
    cut.load_state_dict(without_user_steps(old_layout(state) if layout == "old" else state))
    token, hidden = torch.tensor([[[7]]]), torch.randn((1, 1, shape["dim"]))
    with torch.no_grad(), whole.depformer.streaming(1), cut.depformer.streaming(1):
        for step in range(8):
            ours, theirs = (lm.forward_depformer(step, token, hidden) for lm in (cut, whole))
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def old_layout(state):
    import torch

    old = {name: tensor for name, tensor in state.items() if "_projs." not in name}
    for name in state:
        if name.endswith("_projs.0.weight"):
            base = name.removesuffix("s.0.weight")
            steps = [state[f"{base}s.{i}.weight"] for i in range(16) if f"{base}s.{i}.weight" in state]
            old[f"{base}_weight" if base.endswith("in_proj") else f"{base}.weight"] = torch.cat(steps)
    return old


# --- its files ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """A checkpoint as published (no shape but for this tiny one), with two voices packed."""
    import torch

    place = tmp_path_factory.mktemp("plex")
    save = package("safetensors.torch").save_file
    save(model._parts.lm.state_dict(), place / "model.safetensors")
    mimi = {name: tensor.contiguous() for name, tensor in model._parts.mimi.state_dict().items()}
    save(mimi, place / "tokenizer-e351c8d8-checkpoint125.safetensors")
    vocabulary = io.BytesIO()
    package("sentencepiece").SentencePieceTrainer.train(
        sentence_iterator=iter(["you are a baker and you speak of bread"] * 9),
        model_writer=vocabulary,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (place / "tokenizer_spm_32k_3.model").write_bytes(vocabulary.getvalue())
    shape, codec = tiny_shape()
    (place / "codec.json").write_text(json.dumps(codec))
    config = {**shape, "dep_q": 16, "model_type": "personaplex", "version": "7b-v1", "mimi_config_name": "codec.json"}
    (place / "config.json").write_text(json.dumps(config))
    with tarfile.open(place / "voices.tgz", "w:gz") as tar:
        for name, seed in (("NATF2.pt", 2), ("NATM1.pt", 1)):
            generator = torch.Generator().manual_seed(seed)
            voice = {
                "embeddings": torch.randn((5, 1, 1, shape["dim"]), generator=generator),
                "cache": torch.randint(0, 400, (1, 17, 4), generator=generator),
            }
            packed = io.BytesIO()
            torch.save(voice, packed)
            member = tarfile.TarInfo(f"voices/{name}")
            member.size = len(packed.getvalue())
            packed.seek(0)
            tar.addfile(member, packed)
    (place / "RANDOM_WEIGHTS").touch()
    return place


def test_weights_of_a_folder_speak_with_the_voice_that_is_asked_for(folder):
    stored = PersonaPlex(weights=str(folder), sampling="greedy", threads=1, device="cpu")
    stored.load()
    sounds = {}
    for voice in (None, "NATF2.pt", "NATM1.pt"):
        stored.start(Session(turn="vad", voice=voice, instructions="you are a baker"))
        sounds[voice] = list(stored.push_audio(noise(1)[0]))[-1].samples
    np.testing.assert_array_equal(sounds[None], sounds["NATF2.pt"])
    assert not np.array_equal(sounds["NATF2.pt"], sounds["NATM1.pt"])
    facts = stored.facts
    assert (facts["weights"], len(facts["sha256"])) == ("random", 64)
    assert facts["depth_steps"].startswith("8 of 16")
    assert "voice" not in facts


def test_a_voice_may_be_a_file_of_ones_own(folder, tmp_path):
    with tarfile.open(folder / "voices.tgz") as tar:
        tar.extractall(tmp_path, filter="data")
    assert voice_of(folder, str(tmp_path / "voices" / "NATM1.pt")).cache.shape == (1, 17, 4)
    assert len(voice_of(tmp_path, "NATF2.pt").embeddings) == 5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NATM2.pt", r"did you mean NATM1\.pt"),
        ("me.wav", r"needs a recorded voice \(\.pt\)"),
        ("bad.pt", "no voice of"),
    ],
)
def test_what_is_no_voice_is_one_clear_line(folder, tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "me.wav").write_bytes(b"RIFF")
    (tmp_path / "bad.pt").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=said) as caught:
        voice_of(folder, name)
    assert "\n" not in str(caught.value)


def test_moshi_s_own_folder_is_named_as_such(folder):
    with pytest.raises(ConfigError, match="local:personaplex runs it"):
        moshi_weights.load(str(folder), "", None)
