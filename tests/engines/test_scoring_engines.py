"""The torch engines: real loaders on checkpoints of the true formats with random weights, and DistillMOS with its own.

What each gives is held against a second way to the same figure: the package's own call, or the network written out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.clip_engine import Clip, ClipEngine
from harness.engines.registry import make_engine, parse_spec
from harness.engines.weights import RANDOM_MARK
from tests.engines import shrunken
from tests.engines.packages import scoring_packages

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore")]
# Third-party warnings (torch, numba, funasr) are not this project's to fix, hence "ignore".

RATE_HZ = 16_000
PACKS = Path(__file__).parents[2] / "scenarios" / "packs"


@pytest.fixture(scope="module", autouse=True)
def _packages() -> None:
    scoring_packages()
    import torch

    torch.set_num_threads(1)


def noise(seconds: float, seed: int = 0, rate_hz: int = RATE_HZ) -> Clip:
    rng = np.random.default_rng(seed)
    return Clip((0.1 * rng.standard_normal(round(seconds * rate_hz))).astype(np.float32), rate_hz)


def engine(text: str, language: str | None = None) -> ClipEngine[Any]:
    return make_engine(parse_spec(text, language=language, device="cpu", threads=1))


CLIPS = [noise(1.0, seed=1), noise(2.5, seed=2), noise(30.5, seed=3)]


def test_openai_whisper(tmp_path: Path) -> None:
    import whisper

    path = shrunken.openai_whisper(tmp_path / "tiny.pt")
    ours = engine(f"asr:openai-whisper:{path}")
    heard = ours.run(CLIPS)
    theirs = whisper.load_model(str(path), device="cpu")
    options = whisper.DecodingOptions(temperature=0.0, fp16=False, without_timestamps=True)
    for clip, one in zip(CLIPS[:2], heard, strict=False):
        mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(clip.pcm))
        assert one.text == whisper.decode(theirs, mel, options).text.strip()
    assert all(one.text for one in heard)
    assert {one.model for one in heard} == {ours.name}
    assert "weights: random" in ours.name
    assert "greedy, language auto" in ours.name


def test_transformers_whisper(tmp_path: Path) -> None:
    import transformers

    folder = shrunken.transformers_whisper(tmp_path / "tiny")
    ours = engine(f"asr:transformers:{folder}")
    heard = ours.run(CLIPS)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    for clip, one in zip(CLIPS[:2], heard, strict=False):
        features = processor(clip.pcm, sampling_rate=RATE_HZ, return_tensors="pt").input_features
        (text,) = processor.batch_decode(model.generate(features), skip_special_tokens=True)
        assert one.text == text.strip()
    assert heard[2].text  # over 30 s: Transformers raises unless timestamps are asked for
    assert "weights: random" in ours.name


@pytest.mark.parametrize("kind", ["openai-whisper", "transformers"])
def test_language(kind: str, tmp_path: Path) -> None:
    make = {"openai-whisper": shrunken.openai_whisper, "transformers": shrunken.transformers_whisper}[kind]
    path = make(tmp_path / "tiny")
    auto, told = engine(f"asr:{kind}:{path}"), engine(f"asr:{kind}:{path}", language="zh")
    assert told.run(CLIPS[:1])[0].model == told.name
    assert "language zh" in told.name
    assert auto.fingerprint != told.fingerprint
    with pytest.raises(ConfigError, match="Whisper knows no language 'xx'"):
        engine(f"asr:{kind}:{path}", language="xx").load()


def test_utmos22_by_either_naming(tmp_path: Path) -> None:
    import torch

    state = shrunken.utmos22_state()
    official, speechmos = tmp_path / "epoch=3-step=7459.ckpt", tmp_path / "utmos22_strong.pt"
    # As in the authors' file, settings of a package that is not installed lie beside the weights.
    torch.save({"state_dict": state, "hyper_parameters": {"cfg": Path("settings")}}, official)
    torch.save(shrunken.speechmos_state(state), speechmos)
    scores = []
    for path in (official, speechmos):
        ours = engine(f"mos:utmos22:{shrunken.mark(path)}")
        assert ours.name == f"UTMOS22 strong ({path.name}, domain 0, listener 288), weights: random"
        scores.append(ours.run(CLIPS[:2]))
    assert scores[0] == scores[1]
    assert scores[0] == pytest.approx([written_out(state, clip.pcm) for clip in CLIPS[:2]], abs=1e-4)
    assert abs(scores[0][0] - scores[0][1]) > 1e-3


def written_out(state: dict[str, Any], pcm: Any) -> float:
    """UTMOS22 strong by its definition: wav2vec 2.0 base in fairseq's names, embeddings, BiLSTM, two layers."""
    import torch
    from torch.nn import functional

    def ssl(name: str) -> Any:
        return state[f"feature_extractors.0.ssl_model.{name}"]

    def linear(x: Any, name: str) -> Any:
        return functional.linear(x, ssl(f"{name}.weight"), ssl(f"{name}.bias"))

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(x, x.shape[-1:], ssl(f"{name}.weight"), ssl(f"{name}.bias"))

    x = torch.from_numpy(pcm)[None, None]
    for i, stride in enumerate((5, 2, 2, 2, 2, 2, 2)):
        x = functional.conv1d(x, ssl(f"feature_extractor.conv_layers.{i}.0.weight"), stride=stride)
        if i == 0:
            first = "feature_extractor.conv_layers.0.2"
            x = functional.group_norm(x, x.shape[1], ssl(f"{first}.weight"), ssl(f"{first}.bias"))
        x = functional.gelu(x)
    x = linear(norm(x.transpose(1, 2), "layer_norm"), "post_extract_proj")
    direction = ssl("encoder.pos_conv.0.weight_v")
    weight = ssl("encoder.pos_conv.0.weight_g") * direction / direction.norm(dim=(0, 1), keepdim=True)
    placed = functional.conv1d(x.transpose(1, 2), weight, ssl("encoder.pos_conv.0.bias"), padding=8, groups=4)
    x = norm(x + functional.gelu(placed[:, :, :-1]).transpose(1, 2), "encoder.layer_norm")
    for i in range(2):
        layer = f"encoder.layers.{i}"
        q, k, v = (
            linear(x, f"{layer}.self_attn.{name}_proj").unflatten(2, (2, 64)).transpose(1, 2)
            for name in ("q", "k", "v")
        )
        mixed = torch.softmax(q @ k.transpose(2, 3) / 8, dim=-1) @ v
        x = norm(
            x + linear(mixed.transpose(1, 2).flatten(2), f"{layer}.self_attn.out_proj"), f"{layer}.self_attn_layer_norm"
        )
        x = norm(x + linear(functional.gelu(linear(x, f"{layer}.fc1")), f"{layer}.fc2"), f"{layer}.final_layer_norm")
    conditions = torch.cat(
        (state["feature_extractors.1.embedding.weight"][0], state["output_layers.0.judge_embedding.weight"][288])
    )
    blstm = torch.nn.LSTM(144, 12, batch_first=True, bidirectional=True)
    head = "output_layers.0.decoder_rnn."
    blstm.load_state_dict({k.removeprefix(head): v for k, v in state.items() if k.startswith(head)})
    x = blstm(torch.cat((x, conditions.expand(1, x.shape[1], -1)), dim=2))[0]
    for name in ("0", "3"):
        x = functional.linear(
            torch.relu(x) if name == "3" else x,
            state[f"output_layers.1.net.{name}.weight"],
            state[f"output_layers.1.net.{name}.bias"],
        )
    return float(x.mean()) * 2 + 3


def test_a_checkpoint_runs_no_code_of_its_own(tmp_path: Path) -> None:
    import torch

    class Bomb:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "exploded",)

    for zipped in (True, False):
        path = tmp_path / "bomb.ckpt"
        torch.save({"state_dict": shrunken.utmos22_state(), "x": Bomb()}, path, _use_new_zipfile_serialization=zipped)
        engine(f"mos:utmos22:{path}").load()
        assert not (tmp_path / "exploded").exists()


def test_checkpoints_that_are_none(tmp_path: Path) -> None:
    import torch

    state = shrunken.utmos22_state()
    phoneme = dict(state)
    phoneme["feature_extractors.2.embedding.weight"] = phoneme.pop("feature_extractors.1.embedding.weight")
    torch.save({"state_dict": phoneme}, tmp_path / "phoneme.ckpt")
    (tmp_path / "text.ckpt").write_text("404: Not Found")
    for name in ("phoneme", "text"):
        with pytest.raises(
            ConfigError, match=rf"{name}\.ckpt (is no checkpoint of UTMOS22|cannot be read as)"
        ) as caught:
            engine(f"mos:utmos22:{tmp_path / name}.ckpt").load()
        assert "\n" not in str(caught.value)
    for kind in ("asr:openai-whisper", "asr:transformers"):
        with pytest.raises(ConfigError):
            engine(f"{kind}:{tmp_path / 'text.ckpt'}").load()
    with pytest.raises(ConfigError, match="UTMOS22 needs its checkpoint: mos:utmos22:PATH"):
        engine("mos:utmos22")
    with pytest.raises(ConfigError, match=re.escape("python -c \"import whisper; whisper.load_model('huge', 'cpu')\"")):
        engine("asr:openai-whisper:huge")


def test_emotion2vec_is_restricted_as_vocalbench_does(tmp_path: Path) -> None:
    published = engine(f"emotion:emotion2vec:{shrunken.emotion2vec(tmp_path / 'published')}")
    # VocalBench's own way: the labels that it does not use are renamed, and funasr sets them to minus infinity.
    labels = ("angry", "unuse_0", "unuse_1", "happy", "neutral", "unuse_2", "sad", "surprised", "<unk>")
    renamed = engine(f"emotion:emotion2vec:{shrunken.emotion2vec(tmp_path / 'renamed', labels)}")
    (ours,), (theirs,) = published.run(CLIPS[:1]), renamed.run(CLIPS[:1])
    assert list(ours) == ["angry", "happy", "neutral", "sad", "surprised", "unknown"]
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert sum(ours.values()) == pytest.approx(1.0)
    assert published.run(CLIPS[1:2])[0] != ours
    assert "weights: random" in published.name
    assert published.fingerprint != renamed.fingerprint


def test_emotion2vec_with_other_classes_is_refused(tmp_path: Path) -> None:
    five = ("生气/angry", "开心/happy", "中立/neutral", "难过/sad", "<unk>")
    with pytest.raises(ConfigError, match=r"names 5 classes \(angry, happy, .*emotion2vec_plus_large has 9"):
        engine(f"emotion:emotion2vec:{shrunken.emotion2vec(tmp_path / 'five', five)}")
    with pytest.raises(ConfigError, match=r"model.pt has \(5, 32\) for proj.weight where config.yaml says \(9, 32\)"):
        engine(f"emotion:emotion2vec:{shrunken.emotion2vec(tmp_path / 'odd', classes=5)}").load()


def test_distillmos_is_its_package_with_windows_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr("harness.engines.quality_distillmos._AT_ONCE", 2)
    ours = engine("mos:distillmos")
    clips = [noise(3.0, seed=4), noise(9.8, seed=5)]
    scores = ours.run(clips)
    from distillmos import ConvTransformerSQAModel  # on its own it would ask for torchaudio

    theirs = ConvTransformerSQAModel().eval()
    with torch.no_grad():
        expected = [float(theirs(torch.from_numpy(clip.pcm)[None])) for clip in clips]
    assert scores == pytest.approx(expected, abs=1e-4)
    assert ours.name == "DistillMOS 0.9.1"
    with pytest.raises(ConfigError, match="leave out 'large'"):
        engine("mos:distillmos:large")


def test_weights_without_a_mark_are_called_by_their_name_alone(tmp_path: Path) -> None:
    path = shrunken.openai_whisper(tmp_path / "tiny.pt")
    marked = engine(f"asr:openai-whisper:{path}")
    path.with_name(f"{path.name}.{RANDOM_MARK}").unlink()
    plain = engine(f"asr:openai-whisper:{path}")
    assert marked.name == f"{plain.name}, weights: random"
    assert marked.fingerprint == plain.fingerprint


def test_dnsmos_windows() -> None:
    """One window by hand: the session's own raw figure through the published quadratic; a short clip is repeated."""
    import onnxruntime

    ours = engine("mos:dnsmos")
    one = noise(144_160 / RATE_HZ, seed=6)
    session = onnxruntime.InferenceSession(str(store.resolve("dnsmos-p835") / "sig_bak_ovr.onnx"))
    raw = float(session.run(None, {"input_1": one.pcm[None]})[0][0][2])
    half = Clip(one.pcm[:80_000], RATE_HZ)
    twice = Clip(np.tile(half.pcm, 2), RATE_HZ)
    scores = ours.run([one, half, twice])
    assert scores[0] == pytest.approx(-0.06766283 * raw**2 + 1.11546468 * raw + 0.04602535, abs=1e-4)
    assert scores[1] == pytest.approx(scores[2], abs=1e-6)
    # 10 s hold one window only: as published, 10 - 9.01 is rounded down, and the rest is not heard.
    assert scores[2] == pytest.approx(ours.run([Clip(twice.pcm[:144_160], RATE_HZ)])[0], abs=1e-6)


@pytest.mark.parametrize("kind", ["distillmos", "dnsmos"])
def test_speech_is_better_than_speech_in_noise(kind: str) -> None:
    pcm, rate_hz = soundfile.read(PACKS / "duplex-en" / "en-q-05.flac", dtype="float32")
    noisy = pcm + 0.05 * np.random.default_rng(0).standard_normal(len(pcm)).astype(np.float32)
    clean_mos, noisy_mos = engine(f"mos:{kind}").run([Clip(pcm, rate_hz), Clip(noisy, rate_hz)])
    assert 1.0 <= noisy_mos < clean_mos - 0.5
    assert clean_mos <= 5.0


def test_paraformer(tmp_path: Path) -> None:
    from funasr import AutoModel

    folder = shrunken.paraformer(tmp_path / "tiny")
    ours = engine(f"asr:paraformer:{folder}")
    heard = [one.text for one in ours.run(CLIPS[:2])]
    theirs = AutoModel(model=str(folder), disable_update=True, disable_pbar=True, device="cpu", ncpu=1)
    theirs.kwargs["frontend"].dither = 0.0
    # The vocabulary has one word of letters, which stands apart only from another.
    expected = [theirs.generate(clip.pcm)[0]["text"] for clip in CLIPS[:2]]
    assert heard == [text.replace(" ", "").replace("hellohello", "hello hello") for text in expected]
    assert heard[0] != heard[1]
    assert "weights: random" in ours.name
    with pytest.raises(ConfigError, match="hears Mandarin only, not 'en'"):
        engine(f"asr:paraformer:{folder}", language="en")
