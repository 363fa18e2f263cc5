"""Reading the sound of deferred queries in a process of its own: decoding disturbs no session that is being held."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Self

import msgspec

from harness.core.errors import PrerequisiteError
from harness.core.query import Deferred, Query
from harness.run.session_plan import SessionPlan

NICENESS = 10


class Loader:
    """Use as an async context manager. The process begins with the first query that needs it; one query is read at a
    time, so that as many clips are in memory as sessions are open."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def load(self, plan: SessionPlan) -> SessionPlan:
        """`plan` with the sound of its queries. Raises PrerequisiteError, also when the process was ended."""
        if not any(isinstance(query, Deferred) for query in plan.queries):
            return plan
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin)
        loop = asyncio.get_running_loop()
        try:
            queries = [
                await loop.run_in_executor(self._pool, _loaded, query) if isinstance(query, Deferred) else query
                for query in plan.queries
            ]
        except BrokenProcessPool as exc:
            raise PrerequisiteError(
                "the process that reads sound was ended (out of memory?); finished sessions are kept, --resume goes on"
            ) from exc
        return msgspec.structs.replace(plan, queries=tuple(queries))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)


def _begin() -> None:
    """The measuring process decides what Ctrl-C means, and has the cores first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def _loaded(query: Deferred) -> Query:
    return query.loaded()
