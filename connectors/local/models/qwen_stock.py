"""The stock way of Qwen's Omni models: one call of `generate`, text as it comes, all sound in one piece at the end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from connectors.local.model import Audio, Output, Pause, Text
from connectors.local.models.qwen_tokens import Pieces
from harness.core.audio import NS_PER_S, Float32
from harness.core.clock import SystemClock

POLL_S = 0.02
"""How long the answer's thread is waited for before the worker may look for an interruption."""


SILENT_S = 120.0
"""So long may `generate` make no step: then it hangs. The vocoder of a long answer on a slow CPU is one step."""


class InterruptedAnswerError(Exception):
    """Raised inside `generate` to end it."""


class Token(NamedTuple):
    """A token's id, and when it was on the host."""

    id: int
    produced_ns: int


class TokenStreamer:
    """What `generate` hands token ids to: the prompt first, then each token as soon as it is on the host.

    Each is stamped here. Unlike transformers' text streamers nothing is held back until a word ends.
    """

    def __init__(self, news: Callable[[Token], None]) -> None:
        self._news = news
        self._prompt = True

    def put(self, value: Any) -> None:
        produced_ns = SystemClock.now_ns()
        if not self._prompt:
            for token in value.reshape(-1).tolist():
                self._news(Token(token, produced_ns))
        self._prompt = False

    def end(self) -> None:
        """Nothing is held back."""


def one_shot(
    generate: Callable[[TokenStreamer], Float32],
    pieces: Pieces,
    modules: list[Any],
    said: list[int],
    silent_s: float = SILENT_S,
) -> Iterator[Output]:
    """Text and one packet of sound from `generate`, which runs in a thread of its own.

    modules: those whose every call is a step, so that closing this generator ends `generate` within one. said: gets
    the token ids. Raises TimeoutError after `silent_s` without a step.
    """
    news: queue.SimpleQueue[Token | Audio | BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()
    step_ns = SystemClock.now_ns()

    def check(*_: Any) -> None:
        nonlocal step_ns
        step_ns = SystemClock.now_ns()
        if stop.is_set():
            raise InterruptedAnswerError

    def run() -> None:
        try:
            with ExitStack() as hooks:
                for module in modules:
                    hooks.callback(module.register_forward_pre_hook(check).remove)
                samples = generate(TokenStreamer(news.put))
                news.put(Audio(samples, SystemClock.now_ns()))
        except InterruptedAnswerError:
            pass
        except BaseException as exc:  # noqa: BLE001  the worker's thread must hear of it
            news.put(exc)
        news.put(None)

    hung = False
    thread = threading.Thread(target=run, name="generate", daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = news.get(timeout=POLL_S)
            except queue.Empty:
                hung = SystemClock.now_ns() - step_ns > silent_s * NS_PER_S
                if hung:
                    raise TimeoutError(f"generate made no step for {silent_s:g} s") from None
                yield Pause(0)
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, Token):
                said.append(item.id)
                if text := pieces.push(item.id):
                    yield Text(text, item.produced_ns)
            elif len(item.samples):
                yield item
    finally:
        stop.set()
        if not hung:
            thread.join()
