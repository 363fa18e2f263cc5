"""One engine over many clips: in worker processes of one thread each on a CPU, in this process on a GPU.

Two workers of one thread do more than one engine of two threads: Whisper's decoder runs token by token and leaves the
second thread idle. Clips are read when their turn comes; at most one batch a worker and one more lie in memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import connection
from typing import Any, Self

import msgspec

from harness.core.errors import HarnessError, PrerequisiteError
from harness.core.scorer import Unscored
from harness.engines.batches import Batch, BatchReader, Outcome, outcomes, run_batch
from harness.engines.clip_engine import Clip, ClipEngine, EngineSpec, Load
from harness.engines.registry import make_engine

MOST_WORKERS = 8
"""Each holds the weights: Whisper large-v3 in int8 takes 1.6 GB. Further cores become threads."""
MOST_DEATHS = 3
"""Workers that may die one after another without a result between them, until the machine is called at fault."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_ARENA_MAX": "1"}
"""glibc hands big buffers back to the kernel after each pass and has them zeroed again for the next, which is a quarter
to a third of Whisper base's time on a CPU (measured); a worker keeps them. Other C libraries ignore this."""
_FAREWELL_S = 5.0


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class EnginePool:
    """An engine made from `spec`, with `workers` processes (default: by device and cores; 1 stays in this process).

    Processes start with the first clip and stay until `close`. Use from one thread at a time. Raises what `make_engine`
    raises.
    """

    def __init__(self, spec: EngineSpec, *, workers: int | None = None) -> None:
        self.engine: ClipEngine[Any] = make_engine(spec)
        fitting = min(cores(), MOST_WORKERS) if self.engine.device == "cpu" else 1
        self.workers = max(1, fitting if workers is None else workers)
        threads = spec.threads or max(1, cores() // self.workers)
        self._spec = msgspec.structs.replace(spec, threads=threads, device=self.engine.device)
        self._crew: list[_Worker] = []

    def stream(self, loads: Sequence[Load]) -> Iterator[Outcome]:
        """An outcome for each load, in the order in which they are done. Neighbours share a batch: order them by
        length. Raises ConfigError or PrerequisiteError when the engine cannot be loaded, or its workers cannot live."""
        reader = BatchReader(loads, most=self.engine.batch, workers=self.workers)
        return self._alone(reader) if self.workers == 1 else self._spread(reader)

    def _alone(self, reader: BatchReader) -> Iterator[Outcome]:
        while (batch := reader.next()) is not None:
            yield from reader.failures()
            self.engine.load()
            yield from outcomes(batch, run_batch(self.engine, batch.clips))
        yield from reader.failures()

    def _spread(self, reader: BatchReader) -> Iterator[Outcome]:
        again: deque[Batch] = deque()
        deaths = 0
        try:
            while True:
                self._hire(len(again) + reader.left)
                for worker in self._crew:
                    if worker.idle and (batch := again.popleft() if again else reader.next()) is not None:
                        worker.give(batch)
                yield from reader.failures()
                reader.prefetch()
                waited_for = {worker.pipe: worker for worker in self._crew if not worker.idle}
                if not waited_for:
                    return
                for pipe in connection.wait(list(waited_for)):
                    worker = waited_for[pipe]  # type: ignore[index]
                    batch = worker.batch
                    try:
                        reply = worker.take()
                    except (EOFError, OSError):
                        deaths += 1
                        self._dismiss(worker)
                        if deaths > MOST_DEATHS:
                            raise PrerequisiteError(
                                f"{self.engine.name}: its worker processes die: free some memory, or use one worker"
                            ) from None
                        if batch is not None and len(batch.clips) == 1:
                            yield Outcome(batch.indices[0], Unscored(reason="the engine's process died on this clip"))
                        elif batch is not None:
                            again.extend(batch.singles())  # shows which of them it was
                        continue
                    if batch is not None:
                        deaths = 0
                        yield from outcomes(batch, reply)
        finally:
            for worker in [worker for worker in self._crew if not worker.idle]:
                self._dismiss(worker)

    def _hire(self, work: int) -> None:
        starting = sum(not worker.ready for worker in self._crew)
        free = sum(worker.idle for worker in self._crew)
        for _ in range(min(self.workers - len(self._crew), work - starting - free)):
            self._crew.append(_Worker(self._spec))

    def _dismiss(self, worker: _Worker) -> None:
        self._crew.remove(worker)
        worker.close()

    def close(self) -> None:
        """End the worker processes."""
        while self._crew:
            self._dismiss(self._crew[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Worker:
    """One process and what it is at. It says once that it has loaded, then answers each batch."""

    def __init__(self, spec: EngineSpec) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.ready = False
        self.batch: Batch | None = None
        self._process = context.Process(target=_serve, args=(theirs, spec), daemon=True)
        # Read by OpenMP, BLAS and the C library as they start, so it must stand before the process does.
        with _environment({**dict.fromkeys(_THREADS, str(spec.threads)), **_KEEP_MEMORY}):
            self._process.start()
        theirs.close()

    @property
    def idle(self) -> bool:
        return self.ready and self.batch is None

    def give(self, batch: Batch) -> None:
        self.batch = batch
        with contextlib.suppress(OSError):  # it died just now; `take` tells
            self.pipe.send(batch.clips)

    def take(self) -> Any:
        """What it says: None when it has loaded, else results. Raises EOFError when it died, and its HarnessError."""
        said = self.pipe.recv()
        if isinstance(said, HarnessError):
            raise said
        self.ready, self.batch = True, None
        return said

    def close(self) -> None:
        idle = self.idle
        self.pipe.close()
        if not idle:
            self._process.terminate()
        self._process.join(_FAREWELL_S)  # an idle one ends by itself, and leaves nothing behind
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


@contextlib.contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: connection.Connection, spec: EngineSpec) -> None:
    """A worker's life; it ends when the other end of the pipe does, or by `terminate`."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    try:
        engine = make_engine(spec)
        engine.load()
    except HarnessError as exc:
        pipe.send(exc)
        return
    pipe.send(None)
    with contextlib.suppress(EOFError, OSError):
        while True:
            clips: list[Clip] = pipe.recv()
            pipe.send(run_batch(engine, clips))
