"""Real architectures with random numbers in them, for timing without a download: `build`.

A model is built with its weights on the meta device, where they take no memory and no time, and each is then filled
where it is needed: seven billion parameters never exist on the CPU. Buffers (rotary tables, windows, masks) are
computed for real. What such a model says means nothing; how long it takes is the same, but for lengths that depend on
what it says. Whoever uses it says `weights: random` in its facts (`connectors.local.facts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.engines.extras import require


def build(
    make: Callable[[], Any],
    *,
    device: str = "cpu",
    dtype: str = "float32",
    float32: tuple[str, ...] = (),
    seed: int = 0,
) -> Any:
    """The `torch.nn.Module` that `make()` returns, in `eval` mode on `device`, its parameters random.

    dtype: of the parameters, and torch's default one while `make` runs, as with `from_pretrained`. float32: names of
    submodules that stay in float32, where the real checkpoint's do. Matrices and kernels are normal with variance
    1/fan_in, so that activations neither die nor overflow in any depth; one-dimensional weights are 1 and biases 0.
    Raises PrerequisiteError without torch.
    """
    torch = require("torch", "local")
    with _default_dtype(getattr(torch, dtype)), _parameters_on_meta():
        model = make()
    kept = [name for name in float32 if model.get_submodule(name) is not None]
    generator = torch.Generator(device=device).manual_seed(seed)
    filled: dict[int, Any] = {}
    for path, module in model.named_modules():
        wide = any(path == name or path.startswith(f"{name}.") for name in kept)
        _fill(module, device, torch.float32 if wide else None, generator, filled)
    return model.eval()


def _fill(module: Any, device: str, dtype: Any, generator: Any, filled: dict[int, Any]) -> None:
    """Replace the parameters of `module` itself; a weight that several share stays one."""
    torch = require("torch", "local")
    for name, old in module._parameters.items():
        if old is None:
            continue
        if id(old) not in filled:
            kind = dtype if dtype is not None and old.is_floating_point() else old.dtype
            data = torch.empty(old.shape, dtype=kind, device=device)
            _random(data, name, generator)
            # The old one is kept too: its id must not be given to another.
            filled[id(old)] = (torch.nn.Parameter(data, requires_grad=False), old)
        module._parameters[name] = filled[id(old)][0]
    for name, buffer in module._buffers.items():
        if buffer is not None:
            kind = dtype if dtype is not None and buffer.is_floating_point() else buffer.dtype
            module._buffers[name] = buffer.to(device=device, dtype=kind)


def _random(data: Any, name: str, generator: Any) -> None:
    if not data.is_floating_point():
        data.zero_()
    elif data.dim() < 2:
        data.fill_(0.0 if name.endswith("bias") else 1.0)
    else:
        fan_in = max(1, data[0].numel())
        data.normal_(0.0, fan_in**-0.5, generator=generator)


@contextmanager
def _default_dtype(dtype: Any) -> Iterator[None]:
    torch = require("torch", "local")
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _parameters_on_meta() -> Iterator[None]:
    """Whatever becomes a parameter of a module meanwhile loses its numbers at once; initialising it costs nothing."""
    torch = require("torch", "local")
    kind = torch.nn.Module
    original = kind.register_parameter

    def register(module: Any, name: str, parameter: Any) -> None:
        original(module, name, parameter)
        held = module._parameters[name]
        if held is not None and not held.is_meta:
            module._parameters[name] = torch.nn.Parameter(held.to("meta"), requires_grad=held.requires_grad)

    kind.register_parameter = register
    try:
        yield
    finally:
        kind.register_parameter = original
