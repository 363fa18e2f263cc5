"""One answer under way: recognizer and language model in one thread, the voice in another, what they bring in a queue.

The voice speaks a clause while the language model writes the next one.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from connectors.local.model import Audio, Mark, Output, Pause, Text, UserTranscript
from connectors.local.models.cascade.clauses import Clauses, is_chinese, spoken
from connectors.local.models.cascade.llm import LanguageModel, Message
from connectors.local.models.cascade.tts import Language, Voice
from harness.core.audio import NS_PER_S
from harness.core.clock import SystemClock

LOOK_S = 0.02
"""Longest step of an answer: what waits for the engines looks up this often, so that an interruption is heard."""

SILENT_S = 120.0
"""So long may the engines together bring nothing: a recognizer or a voice on a slow CPU needs a while for one call."""

STAGES = ("asr", "first_token", "first_clause", "first_audio")
"""Marks of an answer, in order: transcript known, first token of the text, first clause whole, its sound made."""


class Answer:
    """Answers one turn. hear: gives the transcript (blocks). messages: the conversation before it, its prompt first.

    busy: locks of the engines, so that an answer which is abandoned in mid-step is out before the next begins.
    silent_s: after so long without anything from the engines the answer is given up.
    text: what has been written so far. asked: the transcript.
    """

    def __init__(
        self,
        hear: Callable[[], str],
        llm: LanguageModel,
        voice: Voice,
        messages: Sequence[Message],
        *,
        voice_name: str | None,
        busy: tuple[threading.Lock, threading.Lock],
        silent_s: float = SILENT_S,
    ) -> None:
        self._hear = hear
        self._llm = llm
        self._voice = voice
        self._messages = list(messages)
        self._voice_name = voice_name
        self._thinking, self._speaking = busy
        self._silent_ns = round(silent_s * NS_PER_S)
        self._out: queue.SimpleQueue[Output | BaseException | None] = queue.SimpleQueue()
        self._clauses: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._count = 0
        self._heard = self._written = False
        self.asked = ""
        self.text = ""

    def outputs(self) -> Iterator[Output]:
        """Start, and give what comes; a step lasts 20 ms at most. Closing it stops the engines between two steps of
        theirs. What an engine raises comes out here. Raises TimeoutError."""
        for work in (self._think, self._speak):
            threading.Thread(target=work, name=work.__name__, daemon=True).start()
        last_ns = SystemClock.now_ns()
        try:
            while True:
                try:
                    output = self._out.get(timeout=LOOK_S)
                except queue.Empty:
                    if SystemClock.now_ns() - last_ns > self._silent_ns:
                        limit_s = self._silent_ns / NS_PER_S
                        raise TimeoutError(f"{self._waited_for()} gave nothing for {limit_s:g} s") from None
                    yield Pause(0)
                    continue
                last_ns = SystemClock.now_ns()
                if isinstance(output, BaseException):
                    raise output
                if output is None:
                    return
                yield output
        finally:
            self._stop.set()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """What an engine raises goes to the thread that can end the session."""
        try:
            yield
        except BaseException as exc:  # noqa: BLE001  whatever it is
            self._out.put(exc)

    def _think(self) -> None:
        # In this order: the voice, which ends the answer, must not be done before a failure is told.
        with self._reporting(), self._thinking:
            if not self._stop.is_set():
                self._listen_and_write()
        self._clauses.put(None)

    def _listen_and_write(self) -> None:
        self.asked = self._hear()
        self._heard = True
        if self._stop.is_set():
            return
        self._out.put(Mark("asr"))
        self._out.put(UserTranscript(self.asked))
        if not self.asked:
            return
        clauses = Clauses()
        asked: Message = {"role": "user", "content": self.asked}
        for token in self._llm.stream([*self._messages, asked], self._stop):
            if self._stop.is_set():
                return
            if not self.text:
                self._out.put(Mark("first_token"))
            self.text += token
            self._out.put(Text(token))
            self._say(clauses.push(token))
        self._written = True
        self._say(clauses.flush())

    def _say(self, clauses: list[str]) -> None:
        for clause in filter(None, map(spoken, clauses)):
            if not self._count:
                self._out.put(Mark("first_clause"))
            self._count += 1
            self._clauses.put(clause)

    def _speak(self) -> None:
        with self._reporting(), self._speaking:
            packets = 0
            while (clause := self._clauses.get()) is not None:
                if self._stop.is_set():
                    continue
                for sound in self._voice.speak(clause, self._language(clause), self._voice_name, self._stop):
                    if self._stop.is_set():
                        break
                    if not packets:
                        self._out.put(Mark("first_audio"))
                    packets += 1
                    self._out.put(Audio(sound))
        self._out.put(None)

    def _waited_for(self) -> str:
        if not self._heard:
            return "the recognizer"
        return "the language model" if not self._written else "the voice"

    def _language(self, clause: str) -> Language:
        """A clause of Latin letters inside a Chinese answer is spoken by the Chinese voice."""
        return "zh" if is_chinese(clause) or is_chinese(self.text) else "en"
