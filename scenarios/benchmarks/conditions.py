"""The robustness subset's conditions: how its Qids, categories and levels name the 36 impairments."""

from __future__ import annotations

import re
from typing import NamedTuple

from scenarios.impairments.spec import Spec, robustness_specs

_PERCENT = re.compile(r"dropping_([1-9]0)$")


class Condition(NamedTuple):
    """As the query file says it: `packet_loss`, `dropping_0.10`."""

    category: str
    level: str

    @property
    def prefix(self) -> str:
        """What stands before the number of its Qids."""
        return f"robust-{self.category}-{self.level}"

    @property
    def folder(self) -> str:
        """Where its sound lies, below the data set's."""
        return f"robust/{self.category}/{self.level}"


def condition_of(spec: Spec) -> Condition:
    """The published name of one of `robustness_specs()`."""
    value = spec.value
    if spec.name == "noise":
        return Condition("white_noise" if spec.variant == "white" else "background_noise", f"snr_{value:g}")
    if spec.name == "reverb":
        return Condition("reverberation", f"rt60_{round(value * 10):02d}")
    if spec.name == "far_field":
        return Condition("farfield", f"filter_{value:g}hz")
    if spec.name == "loss":
        return Condition("packet_loss", f"dropping_{value:.2f}")
    return Condition("distortion", f"clipping_{value:.4f}")


def _conditions() -> dict[str, tuple[Condition, Spec]]:
    known = [(condition_of(spec), spec) for spec in robustness_specs()]
    return {condition.prefix: (condition, spec) for condition, spec in sorted(known, key=lambda pair: pair[0])}


CONDITIONS = _conditions()
"""Qid prefix to condition and the impairment that makes it, in the published order (by name)."""


def canonical(prefix: str) -> str:
    """A prefix as VocalBench-zh writes it: the English benchmark gives lost packets in percent (`dropping_10`)."""
    return _PERCENT.sub(lambda found: f"dropping_{int(found[1]) / 100:.2f}", prefix)


def spec_of(qid: str) -> Spec | None:
    """The impairment that a Qid of the subset stands for; None for any other Qid."""
    found = CONDITIONS.get(canonical(qid.rpartition("-")[0]))
    return found[1] if found else None
