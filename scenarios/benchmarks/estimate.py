"""What a run over a data set will take, before it begins: hours, gigabytes, judge calls and their cost.

A query's length is measured on a few files of each subset, and guessed from its text where there is no sound. How long
answers are, nobody knows beforehand: every assumption stands in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.core.audio import PCM16_BYTES
from scenarios.benchmarks.catalogue import Catalogue
from scenarios.benchmarks.dataset import Dataset
from scenarios.benchmarks.query import BenchmarkQuery
from scenarios.benchmarks.sound import ImpairedSound, length_of

MEASURED = 5
"""Files of each subset whose length is looked up."""
CHARS_A_SECOND = {"zh": 4.5, "en": 15.0}
"""Read aloud at about 270 Mandarin characters, or 170 English words, a minute."""
FLAC_SHARE = 0.55
"""Size of speech as FLAC to that as PCM16: 0.5 to 0.6 on the bundled clips."""
EVENTS_BYTES = 60_000
"""Event lines and header of a session of half a minute."""


class Assumptions(msgspec.Struct, frozen=True, kw_only=True):
    """answer_s: length of an answer's sound. wait_s: from the end of a query to the answer's first packet. delivery:
    how long an answer takes to arrive, of its length (1: in real time). setup_s: connecting, closing, a pause.
    prompt_tokens, reply_tokens: of one judge call. usd_in, usd_out: for a million of them."""

    answer_s: float = 20.0
    wait_s: float = 1.0
    delivery: float = 0.5
    setup_s: float = 1.0
    prompt_tokens: int = 700
    reply_tokens: int = 80
    usd_in: float = 1.6
    usd_out: float = 6.4


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Of a peer: what goes to it and what it sends, in Hz."""

    input_hz: int = 24_000
    output_hz: int = 24_000


def estimate(
    dataset: Dataset, catalogue: Catalogue, assumed: Assumptions, rates: Sequence[Rates], *, repeat: int, at_once: int
) -> dict[str, Any]:
    """Plain figures, with the assumptions that they rest on. rates: of each peer."""
    subsets: list[dict[str, Any]] = []
    for size in dataset.sizes:
        queries = [query for query in dataset.queries if query.item.subset == size.subset]
        calls = catalogue.subset(size.subset).judge_calls
        subsets.append(
            {
                "subset": size.subset,
                "queries": size.asked,
                "found": size.found,
                "published": size.published,
                "missing": size.missing,
                "query_s": round(_query_s(queries), 2),
                "judge_calls": round(size.asked * repeat * len(rates) * calls),
            }
        )
    asked_s = sum(each["queries"] * each["query_s"] for each in subsets)
    sessions = len(dataset.queries) * repeat * len(rates)
    answer_s = assumed.setup_s + assumed.wait_s + assumed.answer_s * assumed.delivery
    total_s = asked_s * repeat * len(rates) + sessions * answer_s
    calls = sum(each["judge_calls"] for each in subsets)
    return {
        "benchmark": dataset.benchmark,
        "queries": len(dataset.queries),
        "sessions": sessions,
        "missing": len(dataset.missing),
        "to_speak": len(dataset.wanted),
        "hours": round(total_s / 3600 / at_once, 4),
        "gigabytes": round(_bytes(asked_s * repeat, sessions, assumed, rates) / 1e9, 4),
        "judge_calls": calls,
        "judge_usd": round(
            calls * (assumed.prompt_tokens * assumed.usd_in + assumed.reply_tokens * assumed.usd_out) / 1e6, 4
        ),
        "assumptions": msgspec.to_builtins(assumed) | {"sessions_at_once": at_once, "flac_share": FLAC_SHARE},
        "subsets": subsets,
    }


def _bytes(asked_s: float, sessions: int, assumed: Assumptions, rates: Sequence[Rates]) -> float:
    """Silence between query and answer packs to nearly nothing."""
    sound = sum(asked_s * rate.input_hz + sessions / len(rates) * assumed.answer_s * rate.output_hz for rate in rates)
    return sound * PCM16_BYTES * FLAC_SHARE + sessions * EVENTS_BYTES


def _query_s(queries: Sequence[BenchmarkQuery]) -> float:
    """Mean length of a query in seconds."""
    if not queries:
        return 0.0
    step = -(-len(queries) // MEASURED)
    lengths = [length for query in queries[::step] if (length := _measured_s(query)) is not None]
    if lengths:
        return sum(lengths) / len(lengths)
    return sum(len(query.text) / CHARS_A_SECOND[query.language] for query in queries) / len(queries)


def _measured_s(query: BenchmarkQuery) -> float | None:
    source = query.source.clean if isinstance(query.source, ImpairedSound) else query.source
    samples, rate_hz = length_of(source) if source is not None else (0, 0)
    return samples / rate_hz if samples else None
