"""Language model and voice in Transformers, with their real loaders on shrunken random weights."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from connectors.local.models.cascade.llm import LlmOptions, Message, make_llm
from connectors.local.models.cascade.tts import RATE_HZ, TtsOptions, make_voice
from harness.core.errors import ConfigError
from harness.engines.weights import RANDOM_MARK
from tests.engines.packages import scoring_packages

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore")]

LETTERS = "abcdefghijklmnopqrstuvwxyz ."
TEMPLATE = "{% for m in messages %}{{ m.content }}.{% endfor %}{% if add_generation_prompt %} {% endif %}"
ASKED: list[Message] = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module", autouse=True)
def _torch() -> None:
    scoring_packages()
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Qwen3's architecture in two thin layers over single letters."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    folder = tmp_path_factory.mktemp("qwen")
    vocabulary = {letter: number for number, letter in enumerate([*LETTERS, "<end>", "<unk>"])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    from tokenizers import decoders

    inner.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", unk_token="<unk>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(5)
    config = Qwen3Config(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        eos_token_id=vocabulary["<end>"],
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    (folder / RANDOM_MARK).touch()
    return folder


def test_the_streamed_answer_is_what_generate_gives(qwen: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    llm = make_llm(LlmOptions(spec=f"transformers:{qwen}", max_tokens=20, device="cpu"))
    llm.load()
    pieces = list(llm.stream(ASKED, threading.Event()))
    tokenizer = AutoTokenizer.from_pretrained(qwen)
    prompt = tokenizer("hello. ", return_tensors="pt")
    whole = AutoModelForCausalLM.from_pretrained(qwen).generate(**prompt, max_new_tokens=20, do_sample=False)
    answer = tokenizer.decode(whole[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    assert "".join(pieces) == answer
    assert len(pieces) > 3
    assert llm.facts["weights"] == "random"
    assert "float32 on cpu" in llm.facts["llm"]
    assert len(llm.facts["llm_sha256"]) == 64


def test_it_stops_between_two_tokens(qwen: Path) -> None:
    llm = make_llm(LlmOptions(spec=f"transformers:{qwen}", max_tokens=20, device="cpu", temperature=1.0))
    llm.load()
    stop = threading.Event()
    tokens = llm.stream(ASKED, stop)
    next(tokens)
    stop.set()
    assert list(tokens) == []


def test_what_is_no_chat_model_is_refused(qwen: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="is no language model that Transformers can load"):
        make_llm(LlmOptions(spec=f"transformers:{tmp_path}", device="cpu")).load()


def test_a_voice_by_the_pipeline_speaks_at_24_khz(tmp_path: Path) -> None:
    import torch
    from transformers import VitsConfig, VitsModel, VitsTokenizer

    letters = {letter: number for number, letter in enumerate(["<pad>", *LETTERS])}
    (tmp_path / "vocab.json").write_text(json.dumps(letters))
    tokenizer = VitsTokenizer(tmp_path / "vocab.json", pad_token="<pad>", unk_token="<pad>", phonemize=False)
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(3)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 16, "flow_size": 16}
    config = VitsConfig(
        vocab_size=len(letters),
        **small,
        spectrogram_bins=33,
        upsample_initial_channel=32,
        upsample_rates=[8, 8],
        upsample_kernel_sizes=[16, 16],
        posterior_encoder_num_wavenet_layers=1,
        prior_encoder_num_wavenet_layers=1,
        prior_encoder_num_flows=1,
        duration_predictor_num_flows=1,
        sampling_rate=16_000,
    )
    VitsModel(config).save_pretrained(tmp_path)
    (tmp_path / RANDOM_MARK).touch()
    voice = make_voice(TtsOptions(spec=f"transformers:{tmp_path}", device="cpu"))
    voice.load()
    (sound,) = voice.speak("hello there", "en", None, threading.Event())
    assert sound.dtype == np.float32
    assert np.abs(sound).max() <= 1.0
    # Frames of 64 samples at 16 kHz, three samples out for two in.
    assert len(sound) > 0
    assert len(sound) % (64 * RATE_HZ // 16_000) == 0
    assert voice.facts["weights"] == "random"
