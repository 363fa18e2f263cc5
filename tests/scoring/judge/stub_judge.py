"""A chat-completions server that answers by script: the judge of every end-to-end test.

with StubJudge() as stub:                             # a plausible grade for every prompt
    run(f"--judge {stub.url} --judge-model {stub.model}")
    assert stub.requests
StubJudge(answers=[Refuse(429, headers={"Retry-After": "0.1"}), "[4]"])   # one after another, the last one stays
StubJudge(answers=lambda prompt: "[5]" if "tea" in prompt else "[1]", latency_s=0.5, key="sk-test")
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import aiohttp.web
import msgspec

MODEL = "stub-judge"
TOKENS_PER_WORD = 2


class Refuse(NamedTuple):
    """An error in the API's own form."""

    status: int
    code: str = ""
    message: str = "no"
    headers: Mapping[str, str] = {}


class Hang(NamedTuple):
    """Nothing comes."""


class Cut(NamedTuple):
    """The connection is cut in the middle of the answer."""


class Huge(NamedTuple):
    """An endless body, `size` bytes of it."""

    size: int


class Raw(NamedTuple):
    """Any body."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}


class Say(NamedTuple):
    """A reply whose message has these fields beside its role; usage as given, counted without."""

    message: Mapping[str, Any]
    usage: Mapping[str, Any] | None = None


Answer = str | Refuse | Hang | Cut | Huge | Raw | Say
Script = Sequence[Answer] | Callable[[str], Answer]


class StubJudge:
    """A server on 127.0.0.1 in a thread of its own. url: its base URL. requests: bodies, in order of arrival.

    answers: one after another, the last one for good; or a function of the whole prompt. busiest: most at once.
    """

    def __init__(
        self,
        answers: Script | None = None,
        *,
        latency_s: float = 0,
        key: str | None = None,
        model: str = MODEL,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.model = model
        self.requests: list[dict[str, Any]] = []
        self.arrivals: list[float] = []
        self.busiest = 0
        self.url = ""
        self._answers: Script = answers if answers is not None else plausible
        self._latency_s = latency_s
        self._key = key
        self._tls = tls
        self._now = 0
        self._done: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="stub judge")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        app = aiohttp.web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        runner = aiohttp.web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"{'https' if self._tls else 'http'}://{host}:{port}/v1"
        self._ready.set()
        await self._done.wait()
        await runner.cleanup()

    async def _models(self, request: aiohttp.web.Request) -> aiohttp.web.StreamResponse:
        return aiohttp.web.json_response(
            {"object": "list", "data": [{"id": self.model, "object": "model", "created": 0, "owned_by": "tests"}]}
        )

    async def _complete(self, request: aiohttp.web.Request) -> aiohttp.web.StreamResponse:
        self.arrivals.append(asyncio.get_running_loop().time())
        if self._key is not None and request.headers.get("Authorization") != f"Bearer {self._key}":
            said = request.headers.get("Authorization", "nothing").removeprefix("Bearer ")
            return _refusal(Refuse(401, "invalid_api_key", f"Incorrect API key provided: {said}."))
        try:
            body = msgspec.json.decode(await request.read())
            prompt = "\n".join(_content(message) for message in body["messages"])
        except (msgspec.DecodeError, KeyError, TypeError):
            return _refusal(Refuse(400, "invalid_request_error", "the body is not a chat completion request"))
        self.requests.append(body)
        if body.get("model") != self.model:
            return _refusal(Refuse(404, "model_not_found", f"The model `{body.get('model')}` does not exist"))
        answer = self._next(prompt)
        self._now += 1
        self.busiest = max(self.busiest, self._now)
        try:
            await asyncio.sleep(self._latency_s)
            return await self._answer(request, answer, prompt)
        finally:
            self._now -= 1

    def _next(self, prompt: str) -> Answer:
        if callable(self._answers):
            return self._answers(prompt)
        return self._answers[min(len(self.requests), len(self._answers)) - 1]

    async def _answer(self, request: aiohttp.web.Request, answer: Answer, prompt: str) -> aiohttp.web.StreamResponse:
        match answer:
            case str():
                return aiohttp.web.json_response(self._completion({"content": answer}, None, prompt))
            case Say():
                return aiohttp.web.json_response(self._completion(answer.message, answer.usage, prompt))
            case Refuse():
                return _refusal(answer)
            case Raw():
                return aiohttp.web.Response(body=answer.body, status=answer.status, headers=answer.headers)
            case Hang():
                await asyncio.sleep(3600)
            case Cut():
                response = aiohttp.web.StreamResponse(headers={"Content-Length": "1000"})
                await response.prepare(request)
                await response.write(b'{"id":')
                assert request.transport is not None
                request.transport.abort()
            case Huge():
                response = aiohttp.web.StreamResponse()
                await response.prepare(request)
                for _ in range(answer.size >> 16):
                    await response.write(b" " * (1 << 16))
                return response
        return aiohttp.web.Response()

    def _completion(self, message: Mapping[str, Any], usage: Mapping[str, Any] | None, prompt: str) -> dict[str, Any]:
        sent = TOKENS_PER_WORD * len(prompt.split())
        said = TOKENS_PER_WORD * len(str(message.get("content") or "").split())
        counts = {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}
        choice = {
            "index": 0,
            "message": {"role": "assistant", "refusal": None, **message},
            "finish_reason": "stop",
            "logprobs": None,
        }
        return {
            "id": f"chatcmpl-{len(self.requests)}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": self.model,
            "choices": [choice],
            "usage": dict(usage) if usage is not None else counts,
            "system_fingerprint": "fp_stub",
        }


def plausible(prompt: str) -> str:
    """A reply in the form that `prompt` asks for: tags, a verdict word or a bracketed grade, by its hash."""
    draw = hashlib.sha256(prompt.encode()).digest()[0]
    for yes, no in (("[Yes]", "[No]"), ("[Succeed Refusal]", "[Failed Refusal]")):
        if yes in prompt and no in prompt:
            return yes if draw % 4 else no
    if "[4]" in prompt or "[3]" in prompt or "[5]" in prompt:
        return f"理由充分。得分：[{1 + draw % 5}]"
    for yes, no in (("成功", "失败"), ("正确", "错误"), ("True", "False")):
        if yes in prompt and no in prompt:
            return f"{yes if draw % 4 else no} 理由如上。"
    return f"Score: [{1 + draw % 5}]"


def _content(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _refusal(refuse: Refuse) -> aiohttp.web.StreamResponse:
    error = {"message": refuse.message, "type": "invalid_request_error", "param": None, "code": refuse.code or None}
    return aiohttp.web.json_response({"error": error}, status=refuse.status, headers=refuse.headers)
