"""One question to a chat-completions endpoint over HTTP, and what went wrong with it."""

from __future__ import annotations

import ipaddress
import re
import ssl
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import aiohttp
import msgspec

from harness.core.errors import ConfigError
from harness.core.retry import LONGEST_WAIT_S, UNSAID_WAIT_S, asked_wait_s, read_retry_after
from harness.core.secret import Secret, read_key
from scoring.judge.options import JudgeOptions
from scoring.judge.parsing import without_thoughts
from scoring.judge.task import Message

MAX_BODY = 1 << 20
"""Bytes of an answer. No reply of a model comes near."""
MAX_LINE = 300
"""Characters kept of a service's own words."""
OK, REDIRECT, CLIENT_ERROR, SERVER_ERROR = 200, 300, 400, 500
UNAUTHORIZED, PAYMENT_REQUIRED, NOT_FOUND, NO_METHOD, BUSY = 401, 402, 404, 405, 429
PASSING = frozenset({408, 409, 425, BUSY})
"""Statuses below 500 that another attempt may mend."""
NO_MODEL_CODES = frozenset({"model_not_found", "modelnotfound", "invalid_model", "model_not_supported"})
NO_CREDIT_CODES = frozenset({"insufficient_quota", "arrearage", "billing_hard_limit_reached", "insufficient_balance"})

_PASSWORD = re.compile(r"://[^/\s@]*@")


class Reply(NamedTuple):
    """What the model said, without its thoughts, and the service's own token counts (0 where it gives none)."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class CallError(Exception):
    """A call that brought no reply; `str()` is one line without the key.

    fatal: no other call will fare better. passing: another attempt may. wait_s: how long the service asks us to stay
    away. busy: it has too much to do, nothing is wrong with the call.
    """

    def __init__(
        self,
        line: str,
        *,
        fatal: bool = False,
        passing: bool = False,
        busy: bool = False,
        wait_s: float | None = None,
    ) -> None:
        super().__init__(line)
        self.fatal = fatal
        self.passing = passing
        self.busy = busy
        self.wait_s = wait_s


class ChatEndpoint:
    """Asks one endpoint; certificates are always verified. Use as an asynchronous context manager.

    Raises ConfigError, PrerequisiteError (the key is not set) when made.
    """

    def __init__(self, options: JudgeOptions) -> None:
        self._options = options
        self._url = options.endpoint
        self._key = read_key(options.key_env, options.host, "--judge-key-env")
        self._secret = Secret(self._key)
        self._tls: ssl.SSLContext | bool = _trust(options.ca) if options.ca else True
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        options = self._options
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        self._http = aiohttp.ClientSession(
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=options.timeout_s),
            connector=aiohttp.TCPConnector(limit=options.concurrency, ssl=self._tls),
            trust_env=not _is_loopback(urlsplit(self._url).hostname or ""),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.close()

    async def ask(self, messages: tuple[Message, ...]) -> Reply:
        """One attempt. Raises CallError."""
        assert self._http is not None
        try:
            async with self._http.post(self._url, json=self._body(messages), allow_redirects=False) as response:
                body = await _read(response, self._options.host)
                return self._take(response.status, response.headers.get("Retry-After"), body)
        except aiohttp.ClientConnectorCertificateError as exc:
            raise self._error(f"its certificate is not trusted ({exc.certificate_error})", fatal=True) from exc
        except TimeoutError as exc:
            raise self._error(f"no answer within {self._options.timeout_s:g} s", passing=True) from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise self._error(str(exc) or type(exc).__name__, passing=True) from exc

    def _body(self, messages: tuple[Message, ...]) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {
            "model": options.model,
            "messages": [msgspec.structs.asdict(message) for message in messages],
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "seed": options.seed,
        }
        return {name: value for name, value in (body | dict(options.extra)).items() if value is not None}

    def _take(self, status: int, retry_after: str | None, body: bytes) -> Reply:
        answer = _decode(body)
        if status == OK and isinstance(answer, dict) and not answer.get("error"):
            return self._reply(answer)
        raise self._refusal(status, retry_after, answer, body)

    def _reply(self, answer: dict[str, Any]) -> Reply:
        try:
            content = answer["choices"][0]["message"].get("content")
        except (KeyError, IndexError, TypeError, AttributeError) as exc:
            raise self._error("an answer without a choice", passing=True) from exc
        if isinstance(content, list):
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        text = content if isinstance(content, str) else ""
        usage = answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        return Reply(
            self._secret.scrub(without_thoughts(text)),
            _count(counts.get("prompt_tokens")),
            _count(counts.get("completion_tokens")),
        )

    def _refusal(self, status: int, retry_after: str | None, answer: Any, body: bytes) -> CallError:
        code, message = _failure(answer, body)
        said = f"HTTP {status}{': ' + message if message else ''}"
        if status < CLIENT_ERROR:
            if status >= REDIRECT:
                return self._error(f"it redirects (HTTP {status}), not followed: name the right URL", fatal=True)
            if not isinstance(answer, dict):
                return self._error("what came back is no JSON; is this a chat-completions endpoint?", passing=True)
        if status == UNAUTHORIZED:
            env = self._options.key_env
            hint = f"the key in {env} is not accepted" if env else "it wants a key, see --judge-key-env"
            return self._error(f"{hint} ({said})", fatal=True)
        if status == PAYMENT_REQUIRED or code in NO_CREDIT_CODES:
            return self._error(f"its account has no credit left ({said})", fatal=True)
        if status in (NOT_FOUND, NO_METHOD) or code in NO_MODEL_CODES or _no_model(status, message):
            return self._error(f"no model {self._options.model} or no such path there ({said})", fatal=True)
        asked_s = asked_wait_s("429" if status == BUSY else code, message)
        wait_s = read_retry_after(retry_after)
        if wait_s is None and asked_s != UNSAID_WAIT_S:
            wait_s = asked_s
        if wait_s is not None and wait_s > LONGEST_WAIT_S:
            return self._error(f"it asks us to stay away for {wait_s:.0f} s ({said})", fatal=True)
        busy = asked_s is not None
        passing = busy or status in PASSING or status >= SERVER_ERROR
        return self._error(said, passing=passing, busy=busy, wait_s=wait_s)

    def _error(
        self,
        line: str,
        *,
        fatal: bool = False,
        passing: bool = False,
        busy: bool = False,
        wait_s: float | None = None,
    ) -> CallError:
        line = _PASSWORD.sub("://", one_line(self._secret.scrub(line)))
        return CallError(f"judge {self._options.host}: {line}", fatal=fatal, passing=passing, busy=busy, wait_s=wait_s)


def one_line(text: str) -> str:
    """Text of others as one line of bounded length, without control characters."""
    words = "".join(char if char.isprintable() else " " for char in text[: 4 * MAX_LINE]).split()
    line = " ".join(words)
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…"


async def _read(response: aiohttp.ClientResponse, host: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_BODY:
            response.close()
            raise CallError(f"judge {host}: an answer of more than {MAX_BODY >> 20} MiB")
    return b"".join(parts)


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body.decode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None


def _failure(answer: Any, body: bytes) -> tuple[str, str]:
    """(code in lower case, message) of a refusal, in the forms of OpenAI, DashScope, Google (a list) and FastAPI."""
    inner = answer[0] if isinstance(answer, list) and answer else answer
    if not isinstance(inner, dict):
        return "", "" if answer is not None else body[:MAX_LINE].decode("utf-8", "replace")
    error = inner.get("error", inner)
    if not isinstance(error, dict):
        return "", str(error)
    code = error.get("code") or error.get("type") or error.get("status") or ""
    return str(code).lower(), str(error.get("message") or error.get("detail") or "")


def _no_model(status: int, message: str) -> bool:
    """Whether a refusal is about the model's name, for services that answer 400 and have no code for it."""
    words = message.lower()
    missing = ("not exist", "not found", "unknown model", "not a valid model", "invalid model")
    return status == CLIENT_ERROR and "model" in words and any(word in words for word in missing)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _trust(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as exc:
        raise ConfigError(f"--judge-ca {path}: not a readable PEM file") from exc


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
