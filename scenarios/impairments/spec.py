"""Names of impairments: `noise:white:snr=5`, `noise:babble:snr=0`, `reverb:rt60=0.5`, `far_field:cutoff=400`,
`loss:rate=0.3`, `clipping:threshold=0.01`; several joined by `+` are applied from left to right.

The levels are those of VocalBench-zh's robustness subset (`scoring` facts: 36 condition levels, 100 items each). Its
conditions are named after their levels only, so what a level does exactly is this project's own reading.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from harness.core.errors import ConfigError, nearest

JOINT = "+"
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]{1,9})?")


class Form(NamedTuple):
    """How one impairment is written. key: its parameter, from `low` to `high`. variants: known ones. needs_variant:
    whether one must be named. levels: VocalBench-zh's."""

    key: str
    low: float
    high: float
    unit: str
    levels: tuple[float, ...]
    variants: tuple[str, ...] = ()
    needs_variant: bool = False


FORMS: dict[str, Form] = {
    "noise": Form("snr", -30, 60, "dB", (-5, 0, 5, 10, 15, 20), ("white", "pink", "babble"), True),
    "reverb": Form("rt60", 0.2, 5, "s", (0.5, 1, 1.5, 2, 2.5, 3), ("room", "tail")),
    "far_field": Form("cutoff", 20, 20_000, "Hz", (100, 200, 300, 400, 500, 600, 700, 800)),
    "loss": Form("rate", 0, 0.99, "of all frames", (0.1, 0.3, 0.5, 0.7, 0.9)),
    "clipping": Form("threshold", 0.00001, 1, "of the peak", (0.0001, 0.001, 0.01, 0.1, 0.5)),
}


class Spec(msgspec.Struct, frozen=True):
    """One impairment. variant: "" where the form has none, or leaves the choice to us. value: in the form's unit."""

    name: str
    variant: str
    value: float

    def __str__(self) -> str:
        form = FORMS[self.name]
        return ":".join([self.name, *([self.variant] if self.variant else []), f"{form.key}={self.value:.10g}"])


def parse_specs(text: str) -> tuple[Spec, ...]:
    """One or several specs joined by `+`. Raises ConfigError as `parse_spec` does."""
    return tuple(parse_spec(part) for part in text.split(JOINT))


def parse_spec(text: str) -> Spec:
    """Read one spec. Raises ConfigError, one line, with the nearest right word."""
    name, *rest = text.strip().split(":")
    form = FORMS.get(name)
    if form is None:
        raise ConfigError(f"impairment {text!r}: no impairment {name!r}; {nearest(name, FORMS)}")
    example = _example(name, form)
    if not rest or "=" not in rest[-1]:
        raise ConfigError(f"impairment {text!r}: needs {form.key}=NUMBER, as in {example}")
    *variants, setting = rest
    key, _, number = setting.partition("=")
    if key != form.key:
        raise ConfigError(f"impairment {text!r}: no setting {key!r}; {nearest(key, [form.key])}")
    if not _NUMBER.fullmatch(number) or not form.low <= float(number) <= form.high:
        raise ConfigError(f"impairment {text!r}: {key} is a number from {form.low:g} to {form.high:g} {form.unit}")
    if not variants and form.needs_variant:
        raise ConfigError(f"impairment {text!r}: needs one of {', '.join(form.variants)}, as in {example}")
    if len(variants) > 1 or (variants and not form.variants):
        raise ConfigError(f"impairment {text!r}: too many parts, write it as in {example}")
    if variants and variants[0] not in form.variants:
        raise ConfigError(f"impairment {text!r}: {name} has no {variants[0]!r}; {nearest(variants[0], form.variants)}")
    return Spec(name, variants[0] if variants else "", float(number))


def robustness_specs() -> tuple[Spec, ...]:
    """The 36 condition levels of VocalBench-zh's robustness subset; its background noise is babble here."""
    return tuple(
        Spec(name, variant, level)
        for name, form in FORMS.items()
        for variant in (("white", "babble") if name == "noise" else ("",))
        for level in form.levels
    )


def _example(name: str, form: Form) -> str:
    return str(Spec(name, form.variants[0] if form.needs_variant else "", form.levels[0]))
