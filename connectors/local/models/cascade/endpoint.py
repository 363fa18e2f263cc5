"""HTTP requests whose answers are streamed, for threads: bodies arrive piece by piece, and a stop ends them at once."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Coroutine, Iterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from connectors.codecs.chat_chunks import read_failure
from harness.core.errors import ConfigError, ConnectorError
from harness.core.secret import Secret, read_key

TIMEOUT = aiohttp.ClientTimeout(total=None, connect=10, sock_read=60)
LOOK_S = 0.01
"""How often a waiting reader looks whether it was stopped."""


class Endpoint:
    """One base URL of an OpenAI-compatible API, e.g. `http://127.0.0.1:8000/v1`. what: for messages (`llm`).

    Connections are kept alive, in a loop of its own thread. Raises ConfigError (URL) or PrerequisiteError (key).
    """

    def __init__(self, what: str, base: str, key_env: str) -> None:
        parts = urlsplit(base)
        if not parts.hostname:
            raise ConfigError(f"{what}={base}: needs a base URL such as http://127.0.0.1:8000/v1")
        if parts.username or parts.password or parts.query:
            raise ConfigError(f"{what}: a URL holds no keys; put it into an environment variable, {what}_key_env=NAME")
        self.what = what
        self.base = base.rstrip("/")
        key = read_key(key_env or None, parts.hostname, f"--set {what}_key_env")
        self._secret = Secret(key)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread
        self._session: aiohttp.ClientSession | None = None

    def post(self, path: str, body: dict[str, Any], stop: threading.Event) -> Iterator[bytes]:
        """The pieces of the answer's body. Raises ConnectorError, with the server's own words for a refusal."""
        pieces: queue.SimpleQueue[bytes | ConnectorError | None] = queue.SimpleQueue()
        asked = self._run(self._ask(path, body, pieces))
        try:
            while not stop.is_set():
                try:
                    piece = pieces.get(timeout=LOOK_S)
                except queue.Empty:
                    continue
                if piece is None:
                    return
                if isinstance(piece, ConnectorError):
                    raise piece
                yield piece
        finally:
            asked.cancel()

    def close(self) -> None:
        """End its connections and its loop; it opens new ones when it is asked again."""
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        asyncio.run_coroutine_threadsafe(self._hang_up(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()

    async def _hang_up(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _run(self, work: Coroutine[Any, Any, None]) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name=f"{self.what}-http", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _ask(
        self, path: str, body: dict[str, Any], pieces: queue.SimpleQueue[bytes | ConnectorError | None]
    ) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=TIMEOUT, trust_env=True, headers=self._headers)
        try:
            async with self._session.post(f"{self.base}{path}", json=body, allow_redirects=False) as answer:
                if answer.status != 200:
                    raise self._refused(answer.status, await answer.read())
                async for piece in answer.content.iter_any():
                    pieces.put(piece)
            pieces.put(None)
        except ConnectorError as exc:
            pieces.put(self._secret.scrubbed(exc))
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            said = ConnectorError(
                f"{self.what}={self.base} gave no answer: {exc or type(exc).__name__}", kind="connect"
            )
            pieces.put(self._secret.scrubbed(said))

    def _refused(self, status: int, body: bytes) -> ConnectorError:
        failure = read_failure(body)
        return ConnectorError(f"{self.what}={self.base} answered {status}: {failure.message}", kind="peer")
