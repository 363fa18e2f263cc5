"""The stub speaks the real API: the `openai` client understands it, and what we send is what that client may send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import ConfigDict, TypeAdapter, with_config

from scoring.judge.client import Judge
from scoring.judge.options import JudgeOptions
from scoring.judge.task import JudgeTask, Message
from scoring.stage_cache import StageCache
from tests.scoring.judge.stub_judge import MODEL, Cut, Hang, Huge, Refuse, StubJudge, plausible

pytestmark = pytest.mark.interop


def complete(stub: StubJudge, **more: Any) -> Any:
    with openai.OpenAI(base_url=stub.url, api_key="sk-test", max_retries=0, timeout=more.pop("timeout", 10)) as client:
        messages: Any = [{"role": "user", "content": "two words"}]
        return client.chat.completions.create(**{"model": MODEL, "messages": messages, "temperature": 0, **more})


def test_the_openai_client_reads_an_answer() -> None:
    with StubJudge(["well: [4]"], key="sk-test") as stub:
        answer = complete(stub, seed=1)
        with openai.OpenAI(base_url=stub.url, api_key="sk-test") as client:
            assert [model.id for model in client.models.list()] == [MODEL]
    assert answer.choices[0].message.content == "well: [4]"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (4, 4, 8)
    assert answer.model == MODEL


@pytest.mark.parametrize(
    ("stub", "kind"),
    [
        (StubJudge([Refuse(429, "rate_limit_exceeded")]), openai.RateLimitError),
        (StubJudge([Refuse(500)]), openai.InternalServerError),
        (StubJudge(key="sk-other"), openai.AuthenticationError),
        (StubJudge(model="other"), openai.NotFoundError),
        (StubJudge([Cut()]), openai.APIConnectionError),
    ],
    ids=["busy", "broken", "key", "model", "cut"],
)
def test_the_openai_client_reads_errors(stub: StubJudge, kind: type[Exception]) -> None:
    with stub, pytest.raises(kind):
        complete(stub)


def test_the_openai_client_waits_in_vain() -> None:
    with StubJudge([Hang()]) as stub, pytest.raises(openai.APITimeoutError):
        complete(stub, timeout=0.2)


def test_a_flood_comes_in_full() -> None:
    with StubJudge([Huge(1 << 20)]) as stub, openai.OpenAI(base_url=stub.url, api_key="x", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": "?"}]
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=messages)
        assert len(raw.content) == 1 << 20


def test_our_requests_are_what_the_openai_client_may_send(tmp_path: Path) -> None:
    messages = (Message(role="system", content="rubric"), Message(role="user", content="answer"))
    task = JudgeTask(name="s", messages=messages, rule="digit", language="en", tries=1, default=1, prompt="own")
    with StubJudge() as stub, StageCache(tmp_path / "judge.jsonl") as cache:
        options = JudgeOptions(url=stub.url, model=MODEL, seed=1, max_tokens=9)
        with Judge(options, cache) as judge:
            judge.submit(task).result(30)
    closed = with_config(ConfigDict(extra="forbid"))(CompletionCreateParamsNonStreaming)
    adapter: TypeAdapter[Any] = TypeAdapter(closed)
    adapter.validate_python(stub.requests[0])
    with pytest.raises(ValueError, match="temprature"):
        adapter.validate_python(stub.requests[0] | {"temprature": 0})


@pytest.mark.parametrize(
    ("prompt", "forms"),
    [
        ("评分 [4]", ("[",)),
        ("输出格式：正确/错误", ("正确 ", "错误 ")),
        ("成功/失败", ("成功 ", "失败 ")),
        ("True/False", ("True ", "False ")),
        ("[Yes] or [No]", ("[Yes]", "[No]")),
        ("[Succeed Refusal] or [Failed Refusal]", ("[Succeed Refusal]", "[Failed Refusal]")),
    ],
)
def test_a_plausible_answer_has_the_asked_form(prompt: str, forms: tuple[str, ...]) -> None:
    replies = {plausible(f"{prompt} {number}") for number in range(40)}
    assert len(replies) > 1
    assert all(any(form in reply for form in forms) for reply in replies)
