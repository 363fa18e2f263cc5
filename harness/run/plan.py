"""Which sessions a run holds, in which order: queries, repeats, warm-ups and peers, drawn by a seeded generator."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from harness.core.query import Query
from harness.core.run_directory import slug
from harness.core.session.writer import PARTIAL
from harness.run.session_plan import SessionPlan


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How queries become sessions. warmup: sessions held first and left out of every figure."""

    repeat: int = 1
    turns_per_session: int = 1
    warmup: int = 0
    seed: int = 0


def plan_sessions(queries: Sequence[Sequence[Query]], options: PlanOptions) -> list[tuple[int, SessionPlan]]:
    """The run as (peer index, session) pairs.

    queries: for each peer the same queries in the same order, each at that peer's rate. Query by query, every peer
    gets its session before the next query begins, in a fresh random order each time: two peers meet the same network
    and the same hour.
    """
    order = random.Random(options.seed)
    plan: list[tuple[int, SessionPlan]] = []
    for warmup in range(options.warmup):
        for peer, clips in enumerate(queries):
            plan.append((peer, SessionPlan(id=f"w{warmup:04d}", queries=(clips[warmup % len(clips)],), warmup=True)))
    index = 0
    for repeat in range(options.repeat):
        for begin in range(0, len(queries[0]), options.turns_per_session):
            peers = list(range(len(queries)))
            order.shuffle(peers)
            for peer in peers:
                turns = tuple(queries[peer][begin : begin + options.turns_per_session])
                name = f"{index:05d}-{slug(turns[0].id)}"
                name += "_" if name.endswith(PARTIAL) else ""
                plan.append((peer, SessionPlan(id=name, queries=turns, repeat=repeat)))
            index += 1
    return plan
