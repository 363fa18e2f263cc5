"""Finding the metrics: every module of `scoring.timing.metrics`, and entry points of third parties."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from harness.core import plugins
from harness.core.errors import ScoringError
from scoring.timing import metrics
from scoring.timing.metric import Metric

GROUP = "firstpacket.timing_metrics"
"""Entry point group of third parties' metrics: each a `Metric`."""
ORDER = (
    "ttft_ms",
    "first_packet_ms",
    "first_audible_ms",
    "endpoint_ms",
    "think_ms",
    "leading_silence_ms",
    "generation_s",
    "response_s",
    "rtf",
    "rtf_anchor",
    "stream_rtf",
    "audio_s",
    "stalls",
    "stall_ms",
    "stalls_buffered",
    "stall_buffered_ms",
    "buffer_lead_ms",
    "unit_lag_ms",
    "unit_lag_p99_ms",
    "unit_misses",
    "unit_miss_rate",
    "barge_in_stop_ms",
    "wire_stop_ms",
    "rtp_loss",
    "jitter_buffer_ms",
    "rtt_ms",
    "connect_ms",
    "connect_phases_ms",
    "ready_ms",
    "since_ready_ms",
    "send_late_p99_ms",
    "own_error_ms",
    "tainted",
)
"""Order of columns; others follow by name."""


@cache
def all_metrics() -> tuple[Metric, ...]:
    """Every metric, in the order of columns. Raises ScoringError for two of one name, PrerequisiteError for a plug-in
    that cannot be imported."""
    found: dict[str, Metric] = {}
    built_in = [
        importlib.import_module(f"{metrics.__name__}.{module.name}").METRIC
        for module in pkgutil.iter_modules(metrics.__path__)
    ]
    for metric in [*built_in, *(plugins.load(GROUP, name) for name in plugins.names(GROUP))]:
        if metric.name in found:
            raise ScoringError(f"two metrics are called {metric.name}")
        found[metric.name] = metric
    places = {name: place for place, name in enumerate(ORDER)}
    return tuple(sorted(found.values(), key=lambda metric: (places.get(metric.name, len(ORDER)), metric.name)))
