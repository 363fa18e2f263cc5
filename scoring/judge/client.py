"""The judge at work: tasks in, verdicts out, on a thread of its own so that ASR and MOS run meanwhile."""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

import msgspec

from scoring.judge.chat import CallError, ChatEndpoint, Reply
from scoring.judge.options import JudgeOptions
from scoring.judge.pacer import Pacer
from scoring.judge.parsing import read_reply
from scoring.judge.task import JudgeTask, Verdict
from scoring.stage_cache import StageCache, key_of

CACHE_VERSION = 1
LONGEST_BACKOFF_S = 60.0
LONGEST_BUSY_S = 900.0
"""A call that the service keeps putting off is given up after so long."""
STOP_AFTER = 10
"""So many questions in a row that failed for no reason of their own: the judge is not there."""
COMPLETION_TOKENS = 200
"""What a reply is taken to need before it is known (a grade and its reason), for the token limit."""
BYTES_PER_TOKEN = 3
"""A Mandarin character, or most of an English word's four: errs on the side of more tokens."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What this run asked of the judge. calls: that brought a reply. cached: replies that an earlier run had got; they
    are in neither calls, tokens nor cost. failed: tasks without a verdict. unread: tasks of which no reply could be
    read. cost: None without a price.
    """

    calls: int = 0
    cached: int = 0
    failed: int = 0
    unread: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


class Judge:
    """Asks `options`' endpoint; every reply is kept in `cache`, which no other thread may use meanwhile.

    A task that failed is asked again by the next run, a reply that could not be read is not. The same question twice is
    asked once. Use as a context manager: leaving it waits for all verdicts, or drops what is open after an error.
    Raises ConfigError and PrerequisiteError (the key is not set).
    """

    def __init__(self, options: JudgeOptions, cache: StageCache) -> None:
        self.options = options
        self._cache = cache
        self._endpoint = ChatEndpoint(options)
        self._pacer = Pacer(options.requests_per_minute, options.tokens_per_minute)
        self._usage = Usage(cost=0.0 if options.price else None)
        self._stopped = ""
        self._failed_in_a_row = 0
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()
        self._open: set[Future[Verdict]] = set()
        self._closed = False
        self._queue: asyncio.Queue[tuple[JudgeTask, Future[Verdict]] | None] = asyncio.Queue()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._main: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="judge", daemon=True)
        self._thread.start()

    def submit(self, task: JudgeTask) -> Future[Verdict]:
        """The verdict to be. It raises PrerequisiteError when the cache's disk is full; a judge that cannot be asked is
        a verdict without value."""
        future: Future[Verdict] = Future()
        with self._guard:
            if self._closed:
                raise RuntimeError("the judge is closed")
            self._open.add(future)
            self._loop.call_soon_threadsafe(self._queue.put_nowait, (task, future))
        future.add_done_callback(self._forget)
        return future

    @property
    def usage(self) -> Usage:
        """Up to now; from any thread."""
        return self._usage

    @property
    def stopped(self) -> str:
        """Why nothing more is asked, one line; empty while all is well."""
        return self._stopped

    def close(self, *, drop: bool = False) -> None:
        """Wait for all verdicts; with `drop` cancel what is not there yet."""
        with self._guard:
            if not self._closed:
                self._closed = True
                for _ in range(self.options.concurrency):
                    self._loop.call_soon_threadsafe(self._queue.put_nowait, None)
            if drop and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(drop=error is not None)

    # --- the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        failure: BaseException = CancelledError()
        try:
            self._runner.run(self._serve())
        except asyncio.CancelledError:
            pass
        except BaseException as exc:  # noqa: BLE001 - the thread's end: whoever waits for a verdict gets to see it
            failure = exc
        finally:
            with self._guard:
                self._closed = True
                left = list(self._open)
                self._runner.close()
            for future in left:
                if not future.cancel() and not future.done():
                    future.set_exception(failure)

    def _cancel(self) -> None:
        if self._main is not None:
            self._main.cancel()

    def _forget(self, future: Future[Verdict]) -> None:
        with self._guard:
            self._open.discard(future)

    async def _serve(self) -> None:
        self._main = asyncio.current_task()
        async with self._endpoint, asyncio.TaskGroup() as group:
            for _ in range(self.options.concurrency):
                group.create_task(self._work())

    async def _work(self) -> None:
        while (entry := await self._queue.get()) is not None:
            task, future = entry
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(await self._judge(_encodable(task)))
            except Exception as exc:  # noqa: BLE001 - it belongs to whoever asked
                future.set_exception(exc)

    # --- one task -------------------------------------------------------------------------------------------

    async def _judge(self, task: JudgeTask) -> Verdict:
        """Ask until a reply can be read, at most `task.tries` times. Raises PrerequisiteError, disk full."""
        replies: list[Reply] = []
        for number in range(task.tries):
            try:
                replies.append(await self._reply(task, number))
            except CallError as exc:
                return self._failed(task, replies, exc)
            value, strict = read_reply(task, replies[-1].text)
            if value is not None:
                return self._verdict(task, replies, value=value, strict=strict)
        self._count(unread=1)
        return self._verdict(task, replies, value=task.default)

    async def _reply(self, task: JudgeTask, number: int) -> Reply:
        """The reply to try `number` (from 0), from the cache or the endpoint. Raises CallError."""
        key = self._key(task, number)
        lock = self._asking.setdefault(key, asyncio.Lock())
        async with lock:
            if (known := _kept(self._cache.get(key))) is not None:
                self._count(cached=1)
                return known
            if self._stopped:
                raise CallError(self._stopped)
            reply = await self._call(task)
            self._cache.put(key, reply)
            return reply

    def _key(self, task: JudgeTask, number: int) -> str:
        options = self.options
        sampling = (options.temperature, options.seed, options.max_tokens, dict(options.extra))
        messages = [(message.role, message.content) for message in task.messages]
        return key_of("judge", CACHE_VERSION, options.model, options.host, sampling, messages, task.rule, number)

    async def _call(self, task: JudgeTask) -> Reply:
        """Ask until the service answers, or has failed too often. Raises CallError."""
        tokens = sum(len(message.content.encode()) for message in task.messages) // BYTES_PER_TOKEN
        tokens += self.options.max_tokens or COMPLETION_TOKENS
        loop = asyncio.get_running_loop()
        started = loop.time()
        failures = postponed = 0
        while True:
            await self._wait_for_turn(tokens)
            try:
                reply = await self._endpoint.ask(task.messages)
            except CallError as exc:
                failures += not exc.busy
                postponed += exc.busy
                too_long = exc.busy and loop.time() - started > LONGEST_BUSY_S
                if not exc.passing or too_long or failures >= self.options.attempts:
                    raise
                wait_s = exc.wait_s if exc.wait_s is not None else self._backoff_s(failures + postponed)
                self._pacer.settle(tokens, 0)
                if exc.busy:
                    self._pacer.hold(loop.time() + wait_s)
                else:
                    await asyncio.sleep(wait_s)
                continue
            used = reply.prompt_tokens + reply.completion_tokens
            self._pacer.settle(tokens, used or tokens)
            self._failed_in_a_row = 0
            self._count(calls=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
            return reply

    async def _wait_for_turn(self, tokens: int) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._pacer.take(tokens, loop.time()))
            if not self._pacer.held(loop.time()):
                break
            self._pacer.settle(tokens, 0)  # a hold came while this one waited: queue up behind it
        if self._stopped:
            raise CallError(self._stopped)

    def _backoff_s(self, failures: int) -> float:
        longest = min(LONGEST_BACKOFF_S, self.options.backoff_s * 2.0 ** min(failures - 1, 16))
        return longest * random.uniform(0.5, 1.0)

    def _failed(self, task: JudgeTask, replies: list[Reply], error: CallError) -> Verdict:
        if not self._stopped:
            if error.passing or self._usage.calls == 0:  # an item that the service will not read says nothing of others
                self._failed_in_a_row += 1
            if error.fatal:
                self._stopped = str(error)
            elif self._failed_in_a_row >= STOP_AFTER:
                self._stopped = f"{STOP_AFTER} questions in a row failed: {error}"
        self._count(failed=1)
        return self._verdict(task, replies, reason=str(error))

    def _verdict(
        self,
        task: JudgeTask,
        replies: list[Reply],
        *,
        value: bool | int | None = None,
        strict: bool | int | None = None,
        reason: str = "",
    ) -> Verdict:
        return Verdict(
            value=value,
            strict=strict,
            reply=replies[-1].text if replies else "",
            calls=len(replies),
            judge=self.options.name,
            prompt=task.prompt,
            reason=reason,
            prompt_tokens=sum(reply.prompt_tokens for reply in replies),
            completion_tokens=sum(reply.completion_tokens for reply in replies),
        )

    def _count(self, **more: int) -> None:
        usage = self._usage
        usage = msgspec.structs.replace(usage, **{name: getattr(usage, name) + value for name, value in more.items()})
        if self.options.price is not None:
            cost = self.options.price.cost(usage.prompt_tokens, usage.completion_tokens)
            usage = msgspec.structs.replace(usage, cost=cost)
        self._usage = usage


def _encodable(task: JudgeTask) -> JudgeTask:
    """Without the halves of surrogate pairs, which no request can carry."""
    messages = tuple(
        msgspec.structs.replace(message, content=message.content.encode("utf-8", "replace").decode())
        for message in task.messages
    )
    return msgspec.structs.replace(task, messages=messages)


def _kept(value: object) -> Reply | None:
    """A reply of the cache; None for anything else."""
    try:
        return msgspec.convert(value, Reply)
    except msgspec.ValidationError:
        return None
