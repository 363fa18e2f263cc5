"""What a model declares and yields, checked in the worker: a wrong type is the model's error, told in its terms."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from connectors.local.model import Audio, Declaration, LocalModel, Output
from harness.core.audio import Int16, float_to_int16
from harness.core.errors import ConfigError


def declared(model: LocalModel) -> Declaration:
    """The declaration of `model`. Raises ConfigError for one with a field of a wrong type."""
    found = model.declaration
    if not isinstance(found, Declaration):
        raise ConfigError(f"{type(model).__name__}.declaration gives a {type(found).__name__}, not a Declaration")
    try:
        return msgspec.convert(msgspec.to_builtins(found), Declaration)
    except (msgspec.ValidationError, TypeError) as exc:
        raise ConfigError(f"the model's Declaration: {exc}") from exc


def facts_of(model: LocalModel) -> dict[str, Any]:
    """What `model` says of itself now, as it can be written into a header. Raises TypeError for what cannot."""
    try:
        return msgspec.convert(msgspec.to_builtins(model.facts), dict[str, Any])
    except (msgspec.ValidationError, TypeError) as exc:
        raise TypeError(f"the model's facts: {exc}") from exc


def checked(output: Any) -> Output:
    """`output` with fields of the right types; the samples of `Audio` are left to `as_int16`. Raises TypeError."""
    kind = type(output)
    if not isinstance(output, Output):
        raise TypeError(f"the model yielded a {kind.__name__} where none belongs")
    if isinstance(output, Audio):
        if not isinstance(output.produced_ns, int):
            raise TypeError(f"the model yielded an Audio with produced_ns={output.produced_ns!r}, it must be an int")
        return output
    try:
        msgspec.convert(msgspec.to_builtins(output), kind)
    except (msgspec.ValidationError, TypeError) as exc:
        raise TypeError(f"the model yielded a {kind.__name__} with a wrong value: {exc}") from exc
    return output


def as_int16(packet: Audio) -> Int16:
    """The packet's samples, shape (n,). Raises TypeError or ValueError for what is no mono sound."""
    samples = np.asarray(packet.samples)
    if samples.ndim != 1:
        raise TypeError(f"the model yielded audio of shape {samples.shape}, it must be mono (n,)")
    if samples.dtype == np.int16:
        return samples.astype(np.int16, copy=False)
    if samples.dtype.kind != "f":
        raise TypeError(f"the model yielded {samples.dtype} audio, it must be int16 or float32")
    if not np.isfinite(samples).all():
        raise ValueError("the model yielded audio that is not finite (NaN or infinity)")
    return float_to_int16(samples)
