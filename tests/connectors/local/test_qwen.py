"""Qwen2.5-Omni and Qwen3-Omni with tiny random weights: both ways give one answer, and the incremental one is early."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from connectors.local.model import Audio, Session, Text  # noqa: E402
from connectors.local.models.qwen import Qwen3Omni, Qwen25Omni  # noqa: E402
from harness.core.clock import SystemClock  # noqa: E402
from harness.core.errors import ConfigError, PrerequisiteError  # noqa: E402
from harness.engines.weights import RANDOM_MARK  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Passing `repetition_penalty` with `inputs_embeds`:UserWarning"),
    pytest.mark.timeout(300),
]

TOKENS = 40
SECONDS = 0.96
SETTINGS = {"size": "tiny", "device": "cpu", "threads": 1, "text_tokens": TOKENS, "audio_s": SECONDS}
SAID = (np.random.default_rng(1).standard_normal(16_000) * 3000).astype(np.int16)


def loaded(kind, **settings):
    model = kind(**SETTINGS, weights="random", sampling="greedy", **settings)
    model.load()
    model.warm_up()
    return model


@pytest.fixture(scope="module")
def qwen25():
    return loaded(Qwen25Omni)


@pytest.fixture(scope="module")
def qwen3():
    return loaded(Qwen3Omni)


@pytest.fixture(params=["qwen25", "qwen3"])
def model(request):
    return request.getfixturevalue(request.param)


@contextmanager
def having(model, **attributes):
    """`model` with other private settings for a while: it takes long to load."""
    before = {name: getattr(model, name) for name in attributes}
    for name, value in attributes.items():
        setattr(model, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(model, name, value)


def turn(model, *, said=SAID, fresh=True):
    """The outputs of one turn, as they come."""
    if fresh:
        model.start(Session(turn="manual"))
    for start in range(0, len(said), 320):
        assert not model.push_audio(said[start : start + 320])
    yield from model.end_turn()


def words(outputs):
    return [output.text for output in outputs if isinstance(output, Text)]


def sound(outputs):
    return np.concatenate([output.samples for output in outputs if isinstance(output, Audio)])


@contextmanager
def stock_codes(model):
    """Codes that `generate` hands to the decoder, (groups, n), or (n,) where there is one group."""
    decoder, seen = (model._omni.token2wav if isinstance(model, Qwen25Omni) else model._omni.code2wav), []
    with decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0][0].numpy())):
        yield seen


@contextmanager
def streamed_codes(model):
    """The same of the incremental way."""
    make, seen = model._waves, []

    def waves(*blocks):
        made = make(*blocks)
        push = made.push
        made.push = lambda frame: (
            seen.append(frame if isinstance(frame, int) else frame[0, :, 0].numpy()),
            push(frame),
        )
        return made

    with having(model, _waves=waves):
        yield seen


def stock_way(model):
    with having(model, _mode="stock"), stock_codes(model) as whole:
        outputs = list(turn(model))
    return outputs, whole[0]


def incremental_way(model, *blocks):
    with having(model, _blocks=blocks or model._blocks), streamed_codes(model) as frames:
        outputs = list(turn(model))
    return outputs, np.stack(frames, axis=-1)


@pytest.fixture(scope="module")
def stock_answers():
    return {}


@pytest.fixture
def stock(model, stock_answers):
    """Outputs and codes of the stock way, computed once."""
    if model not in stock_answers:
        stock_answers[model] = stock_way(model)
    return stock_answers[model]


def test_streamed_text_codes_and_sound_are_those_of_generate(model, stock):
    expected, codes = stock
    streamed, frames = incremental_way(model, 999, 1, 0, 0)
    assert len(words(expected)) == TOKENS
    assert words(streamed) == words(expected)
    np.testing.assert_array_equal(frames, codes)
    assert len(np.unique(codes)) > 5
    np.testing.assert_allclose(sound(streamed), sound(expected), atol=1e-3)
    assert np.abs(sound(expected)).max() > 0.05


def test_an_answer_that_ends_by_itself_is_that_of_generate(model, monkeypatch):
    """The end marks are made ids that these weights do pick."""
    incremental_way(model)
    said = model._past[-1][1]
    token = next(token for token in said[5:] if said.index(token) >= 5)
    with having(model, _bad_tokens=(), _ends=frozenset([token])):
        _, frames = incremental_way(model)
        first = np.atleast_2d(frames)[0].tolist()
        code = next(code for code in first[6:] if first.index(code) >= 6)
        if isinstance(model, Qwen25Omni):
            monkeypatch.setattr(Qwen25Omni, "_code_ends", frozenset([code]))
        else:
            monkeypatch.setattr(model._omni.config.talker_config, "codec_eos_token_id", code)
        expected, codes = stock_way(model)
        streamed, frames = incremental_way(model)
    # The end is a word here, and said.
    assert len(words(expected)) == said.index(token) + 1
    assert words(streamed) == words(expected)
    np.testing.assert_array_equal(frames, codes)
    assert codes.shape[-1] == first.index(code)
    assert len(sound(streamed)) == len(sound(expected))


def test_blocks_change_the_sound_by_what_the_facts_say(model, stock):
    expected = sound(stock[0])
    streamed = list(turn(model))
    assert sum(isinstance(output, Audio) for output in streamed) > 1
    change = model.facts["blocks_change_sound_by"]
    # Measured on other frames, so only of the same order.
    np.testing.assert_allclose(sound(streamed), expected, atol=5 * change + 1e-4)
    assert change < 0.02
    wider = (12, 12, 48, 24) if isinstance(model, Qwen25Omni) else (4, 8, 40, 0)
    np.testing.assert_allclose(sound(incremental_way(model, *wider)[0]), expected, atol=1e-3)


def test_the_first_packet_leaves_before_the_thinkers_last_token(model):
    steps = 0

    def slow(*_):
        nonlocal steps
        steps += 1
        time.sleep(0.005)

    def instants(mode):
        nonlocal steps
        steps = 0
        packets, tokens = [], []
        with having(model, _mode=mode), model._omni.thinker.register_forward_pre_hook(slow):
            for output in turn(model):
                if isinstance(output, Audio):
                    packets.append((steps, time.monotonic_ns()))
                elif isinstance(output, Text):
                    tokens.append((steps, time.monotonic_ns()))
        return packets, tokens

    packets, tokens = instants("incremental")
    # Of 40 thinker steps: what the first block's frames need, and no more.
    needed = 12 + 12 + 1 if isinstance(model, Qwen25Omni) else 4 + 1
    assert packets[0][0] == needed
    assert packets[0][1] < tokens[-1][1] - (TOKENS - needed - 1) * 5_000_000
    assert [step for step, _ in tokens] == list(range(1, TOKENS + 1))
    packets, tokens = instants("stock")
    assert len(packets) == 1
    assert packets[0][1] > tokens[-1][1]
    assert len(tokens) == TOKENS


def test_stock_tokens_are_stamped_where_generate_puts_them(model):
    thinking = []
    hook = model._omni.thinker.register_forward_hook(lambda *_: thinking.append(SystemClock.now_ns()))
    with having(model, _mode="stock"), hook:
        texts = [output for output in turn(model) if isinstance(output, Text)]
    stamps = [text.produced_ns for text in texts]
    # Each token's stamp lies between its own forward pass and the next.
    assert all(before < stamp < after for before, stamp, after in zip(thinking, stamps, thinking[1:], strict=False))
    assert len(stamps) == len(thinking) == TOKENS


@pytest.mark.parametrize("mode", ["incremental", "stock"])
@pytest.mark.parametrize("part", [0, 1, 2])
def test_an_interruption_ends_it_within_one_step(model, mode, part):
    """Cut off in the thinker, in the talker, and in the decoder."""
    calls, begun = [0, 0, 0], threading.Event()

    def counted(index):
        def count(*_):
            calls[index] += 1
            if index == part and calls[index] == 2:
                begun.set()
            time.sleep(0.002)

        return count

    hooks = [module.register_forward_pre_hook(counted(index)) for index, module in enumerate(model._parts())]
    answer = turn(model)
    with having(model, _mode=mode, _blocks=(8, 8, 8, 0)):
        for _ in answer:
            if begun.is_set():
                break
        before = sum(calls)
        answer.close()
    after = sum(calls)
    for hook in hooks:
        hook.remove()
    assert begun.is_set() or (part, mode) == (2, "stock")
    # `generate` runs beside us: one call may have begun meanwhile, the next is not let in.
    assert after - before <= (0 if mode == "incremental" else 2)
    assert not [thread for thread in threading.enumerate() if thread.name == "generate"]
    # The model is none the worse for it.
    again = turn(model)
    assert any(isinstance(output, Text) for output in again)
    again.close()


def test_a_second_turn_is_shown_the_first(model):
    seen = []
    hook = model._omni.thinker.register_forward_pre_hook(
        lambda _, __, given: seen.append(given["input_ids"][0].tolist()), with_kwargs=True
    )
    first = list(turn(model))
    cut = turn(model, fresh=False)
    for output in cut:
        if isinstance(output, Text):
            break
    cut.close()
    list(turn(model, fresh=False))
    hook.remove()
    prompts = [ids for ids in seen if len(ids) > 1]
    marks = model._marks()
    assert [prompt.count(marks.begin) for prompt in prompts] == [1, 2, 3]
    assert len(prompts[1]) > len(prompts[0]) + len(words(first))
    answer, one_token = model._past[0][1], model._past[1][1]
    assert (len(answer), len(one_token)) == (TOKENS, 1)
    assert prompts[2][: len(prompts[1])] == prompts[1]
    assert prompts[2][len(prompts[1])] == one_token[0]


def test_each_length_of_audio_has_as_many_placeholders_as_the_encoder_has_outputs(model):
    """The model itself raises where they differ."""
    with having(model, _limits=model._limits._replace(tokens=1)):
        for samples in (0, 1, 1_600, 1_760, 4_000, 16_000, 16_160, 20_001, 32_480):
            assert len(words(turn(model, said=np.full(samples, 900, dtype=np.int16)))) == 1


def test_drawn_answers_are_repeatable_and_other_than_greedy_ones(model):
    greedy = sound(list(turn(model)))
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        with having(model, _greedy=False):
            drawn.append(sound(list(turn(model))))
    np.testing.assert_array_equal(*drawn)
    assert len(drawn[0]) == len(greedy)
    assert np.abs(drawn[0] - greedy).max() > 0.01


def test_voices(model):
    model.start(Session(turn="manual", voice="Ethan"))
    with pytest.raises(ConfigError, match="did you mean Chelsie"):
        model.start(Session(turn="manual", voice="Chelsey"))


def test_facts(model):
    facts = model.facts
    assert facts["weights"] == "random"
    assert (facts["device"], facts["dtype"], facts["attention"]) == ("cpu", "float32", "sdpa")
    assert (facts["mode"], facts["size"], facts["sampling"]) == ("incremental", "tiny", "greedy")
    assert facts["tokenizer"].startswith("stand-in")
    assert facts["peak_memory_mb"] > 100
    assert f"{TOKENS} text tokens" in facts["answer_limit"]


def test_stored_weights_load_and_answer_the_same(model, tmp_path):
    """The loader of real weights, on the random ones: it also says that they are."""
    omni = model._omni
    omni.save_pretrained(tmp_path)
    model._tokenizer.save_pretrained(tmp_path)
    model._extractor.save_pretrained(tmp_path)
    if isinstance(model, Qwen25Omni):
        torch.save(dict(omni.speaker_map), tmp_path / "spk_dict.pt")
    (tmp_path / RANDOM_MARK).touch()
    settings = {key: value for key, value in SETTINGS.items() if key != "size"}
    stored = type(model)(**settings, weights=str(tmp_path), sampling="greedy")
    stored.load()
    assert stored.facts["weights"] == "random"
    assert len(stored.facts["sha256"]) == 64
    expected, found = list(turn(model)), list(turn(stored))
    assert words(found) == words(expected)
    np.testing.assert_allclose(sound(found), sound(expected), atol=1e-4)


@pytest.mark.parametrize("kind", [Qwen25Omni, Qwen3Omni])
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"weights": "random", "size": "tyni"}, "size=tyni: known: .*tiny"),
        ({"weights": "some/model", "size": "tiny"}, "is for weights=random"),
        ({"weights": "random", "text_tokens": -1}, "cannot be negative"),
        ({"weights": "random", "first_frames": 0}, "at least 1"),
    ],
)
def test_settings_that_make_no_sense(kind, settings, said):
    with pytest.raises(ConfigError, match=said):
        kind(**settings)


def test_weights_that_are_not_there(monkeypatch):
    def offline(*_, **__):
        raise OSError("no network\nand more")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(PrerequisiteError, match=r"not to be had from the hub \(no network\); give a folder"):
        Qwen3Omni(device="cpu", threads=1).load()


def test_a_folder_without_weights(tmp_path):
    with pytest.raises(PrerequisiteError, match="cannot be loaded"):
        Qwen25Omni(weights=str(tmp_path), device="cpu", threads=1).load()
