"""How much faster a pool is than the plain loop of one clip after another, with the same engine and decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.core.clock import Clock
from harness.engines.batches import run_batch
from harness.engines.clip_engine import EngineSpec, Load
from harness.engines.pool import EnginePool
from harness.engines.registry import make_engine


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """plain_s, pooled_s: seconds of each round, taken in turn, weights loaded beforehand. equal: clips whose results
    were the same in the last round. seconds: of sound in a round."""

    engine: str
    workers: int
    clips: int
    seconds: float
    plain_s: tuple[float, ...]
    pooled_s: tuple[float, ...]
    equal: int

    @property
    def ratio(self) -> float:
        """How many times the plain loop's work the pool does: the ratio of the sums, so that a machine with other
        work weighs on both."""
        return sum(self.plain_s) / sum(self.pooled_s)


def compare(spec: EngineSpec, loads: Sequence[Load], clock: Clock, *, workers: int = 0, rounds: int = 3) -> Comparison:
    """Both ways over the same clips, in turns. The plain loop reads and runs one clip at a time, with the threads that
    `spec` or the engine chooses. Blocks; raises what `make_engine` and `load` raise."""
    engine = make_engine(spec)
    engine.load()
    lengths = [load().seconds for load in loads]
    order = sorted(range(len(loads)), key=lambda i: -lengths[i])
    plain_s, pooled_s = [], []
    with EnginePool(spec, workers=workers or None) as pool:
        warm = [loads[order[0]]] * pool.workers * 2
        list(pool.stream(warm))
        plain: list[Any] = run_batch(engine, [loads[order[0]]()])
        pooled: dict[int, Any] = {}
        for _ in range(rounds):
            begin = clock.now_ns()
            plain = [run_batch(engine, [load()])[0] for load in loads]
            middle = clock.now_ns()
            pooled = {order[one.at]: one.value for one in pool.stream([loads[i] for i in order])}
            plain_s.append((middle - begin) / 1e9)
            pooled_s.append((clock.now_ns() - middle) / 1e9)
    return Comparison(
        engine=engine.name,
        workers=pool.workers,
        clips=len(loads),
        seconds=sum(lengths),
        plain_s=tuple(plain_s),
        pooled_s=tuple(pooled_s),
        equal=sum(pooled[i] == value for i, value in enumerate(plain)),
    )
