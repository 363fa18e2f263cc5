"""Random weights: nothing big is ever made on the way, buffers are real, shared weights stay shared."""

from __future__ import annotations

import math

import pytest

from connectors.local.random_weights import build

torch = pytest.importorskip("torch")
nn = torch.nn


class Block(nn.Module):
    def __init__(self, width, steps=16):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.register_buffer("angles", torch.arange(steps) / steps, persistent=False)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width=64, depth=12):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.vocoder = Block(width)
        self.head = nn.Linear(width, 100, bias=False)
        self.head.weight = self.embed.weight
        self.devices_seen = {p.device.type for p in self.parameters()}

    def forward(self, ids):
        return self.head(self.blocks(self.embed(ids)))


def test_parameters_are_on_meta_while_it_is_built_and_filled_afterwards():
    model = build(Model)
    assert model.devices_seen == {"meta"}
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    assert not model.training
    assert torch.equal(model.blocks[3].angles, torch.arange(16) / 16)


def test_shared_weights_stay_one_and_frozen():
    model = build(Model)
    assert model.head.weight is model.embed.weight
    assert not any(p.requires_grad for p in model.parameters())


def test_the_scale_keeps_activations_alive_and_finite():
    model = build(Model)
    weight = model.blocks[0].down.weight
    assert math.isclose(weight.std().item(), (4 * 64) ** -0.5, rel_tol=0.05)
    assert torch.equal(model.blocks[0].norm.weight, torch.ones(64))
    assert torch.equal(model.blocks[0].up.bias, torch.zeros(256))
    out = model(torch.arange(100))
    assert 0.1 < out.std().item() < 100


def test_a_seed_gives_the_same_numbers_and_another_others():
    one, same, other = (build(Model, seed=seed).blocks[0].up.weight for seed in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_dtype_and_the_parts_that_stay_wide():
    model = build(Model, dtype="bfloat16", float32=("vocoder",))
    assert model.blocks[0].up.weight.dtype == torch.bfloat16
    assert model.vocoder.up.weight.dtype == torch.float32
    assert torch.get_default_dtype() == torch.float32


def test_torch_is_as_before_even_when_making_fails():
    original = nn.Module.register_parameter
    with pytest.raises(ZeroDivisionError):
        build(lambda: 1 / 0)
    assert nn.Module.register_parameter is original
    assert nn.Linear(2, 2).weight.device.type == "cpu"
