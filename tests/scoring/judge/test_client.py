"""Tasks in, verdicts out: against a server that answers, refuses, hangs, cuts, floods."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
import trustme

from harness.core.errors import ConfigError, PrerequisiteError
from scoring.judge.client import STOP_AFTER, Judge, Usage
from scoring.judge.options import JudgeOptions, Price, parse_extra, parse_price
from scoring.judge.task import JudgeTask, Message, ParseRule, Verdict
from scoring.stage_cache import StageCache
from tests.scoring.judge.stub_judge import MODEL, Cut, Hang, Huge, Raw, Refuse, Say, StubJudge

KEY = "sk-judge-0123456789abcdef"


def task(content: str = "grade this", rule: ParseRule = "digit", tries: int = 3, default: bool | int = 1) -> JudgeTask:
    messages = (Message(role="system", content="a judge"), Message(role="user", content=content))
    return JudgeTask(
        name="score", messages=messages, rule=rule, language="zh", tries=tries, default=default, prompt="own"
    )


def options(stub: StubJudge | str, **more: Any) -> JudgeOptions:
    url = stub if isinstance(stub, str) else stub.url
    return JudgeOptions(**{"url": url, "model": MODEL, "backoff_s": 0.01, **more})


def ask(stub: StubJudge | str, cache: Path, *tasks: JudgeTask, **more: Any) -> tuple[list[Verdict], Usage]:
    with StageCache(cache) as kept, Judge(options(stub, **more), kept) as judge:
        futures = [judge.submit(each) for each in tasks]
        verdicts = [future.result(30) for future in futures]
    return verdicts, judge.usage


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "judge.jsonl"


def test_a_verdict_says_where_it_comes_from(cache: Path) -> None:
    with StubJudge(["好。得分：[4]"], key=KEY) as stub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGE_KEY", KEY)
        (verdict,), usage = ask(stub, cache, task(), key_env="JUDGE_KEY", seed=7, max_tokens=50, price=Price(2.0, 8.0))
    assert verdict == Verdict(
        value=4,
        strict=4,
        reply="好。得分：[4]",
        calls=1,
        judge=f"{MODEL} ({stub.url[7:-3]})",
        prompt="own",
        prompt_tokens=8,
        completion_tokens=2,
    )
    assert usage == Usage(calls=1, prompt_tokens=8, completion_tokens=2, cost=32 / 1_000_000)
    (body,) = stub.requests
    assert body == {
        "model": MODEL,
        "messages": [{"role": "system", "content": "a judge"}, {"role": "user", "content": "grade this"}],
        "temperature": 0,
        "max_tokens": 50,
        "seed": 7,
    }


def test_extra_fields_lie_over_the_request(cache: Path) -> None:
    with StubJudge() as stub:
        ask(stub, cache, task(), extra={"temperature": None, "enable_thinking": False})
    assert "temperature" not in stub.requests[0]
    assert "seed" not in stub.requests[0]
    assert stub.requests[0]["enable_thinking"] is False


def test_tries_until_a_reply_can_be_read(cache: Path) -> None:
    with StubJudge(["hm", "", "[2]"]) as stub:
        (verdict,), usage = ask(stub, cache, task(tries=10))
    assert (verdict.value, verdict.strict, verdict.calls) == (2, 2, 3)
    assert (usage.calls, usage.unread) == (3, 0)


def test_nonsense_for_good_takes_the_published_default(cache: Path) -> None:
    with StubJudge(["nonsense"]) as stub:
        (verdict,), usage = ask(stub, cache, task(tries=3, rule="verdict", default=False))
    assert (verdict.value, verdict.strict, verdict.calls, verdict.reason) == (False, None, 3, "")
    assert (usage.calls, usage.unread, usage.failed) == (3, 1, 0)


def test_a_second_run_asks_nothing_again_and_flips_nothing(cache: Path) -> None:
    tasks = [task("a"), task("b", tries=2)]
    script = {"a": "[3]", "b": "unreadable"}
    with StubJudge(lambda prompt: script[prompt[-1]]) as stub:
        first, _ = ask(stub, cache, *tasks)
        script.update(a="[5]", b="[5]")
        again, usage = ask(stub, cache, *tasks)
        assert again == first
        assert usage == Usage(cached=3, unread=1)
        # More tries than before: the known replies count, the new one is asked for.
        (more,), usage = ask(stub, cache, task("b", tries=3))
    assert (more.value, more.calls, usage.calls, usage.cached) == (5, 3, 1, 2)
    assert len(stub.requests) == 4


@pytest.mark.parametrize(
    "other", [{"model": "other"}, {"seed": 1}, {"max_tokens": 9}, {"temperature": 0.5}, {"extra": {"top_p": 0.5}}]
)
def test_what_shapes_a_reply_is_part_of_its_key(cache: Path, other: dict[str, Any]) -> None:
    with StubJudge(["[3]"]) as stub:
        ask(stub, cache, task())
        stub.model = other.get("model", MODEL)
        _, usage = ask(stub, cache, task(), **other)
    assert usage.calls == 1


def test_failures_are_asked_again_by_the_next_run(cache: Path) -> None:
    with StubJudge([Refuse(400, "data_inspection_failed", "unsafe"), "[3]"]) as stub:
        (verdict,), usage = ask(stub, cache, task())
        assert (verdict.value, verdict.calls, usage.failed) == (None, 0, 1)
        assert verdict.reason == f"judge {stub.url[7:-3]}: HTTP 400: unsafe"
        (verdict,), _ = ask(stub, cache, task())
    assert verdict.value == 3


def test_an_interrupted_task_goes_on_at_its_try(cache: Path) -> None:
    with StubJudge(["x", "y", Refuse(400), "[2]"]) as stub:
        (verdict,), _ = ask(stub, cache, task(tries=10))
        assert (verdict.value, verdict.calls, verdict.reply) == (None, 2, "y")
        (verdict,), usage = ask(stub, cache, task(tries=10))
    assert (verdict.value, verdict.calls, usage.calls, usage.cached) == (2, 3, 1, 2)


def test_a_torn_or_foreign_cache_line_is_asked_anew(cache: Path) -> None:
    with StubJudge(["[3]"]) as stub:
        ask(stub, cache, task())
        good = cache.read_bytes()
        for bad in (good[:-9], good.replace(b"[3]", b"").replace(b'"",', b"7,"), b"\xff\n"):
            cache.write_bytes(bad)
            (verdict,), usage = ask(stub, cache, task())
            assert (verdict.value, usage.calls) == (3, 1)


def test_the_same_question_twice_is_asked_once(cache: Path) -> None:
    with StubJudge(latency_s=0.05) as stub:
        verdicts, usage = ask(stub, cache, *[task("same")] * 5)
    assert len(stub.requests) == 1
    assert len({verdict.value for verdict in verdicts}) == 1
    assert (usage.calls, usage.cached) == (1, 4)


PASSING = [
    Refuse(500),
    Refuse(503, "overloaded"),
    Refuse(429, "rate_limit_exceeded", "try again in 20ms"),
    Refuse(429, headers={"Retry-After": "0.02"}),
    Raw(b"<html>", 502),
    Raw(b"<html>"),
    Raw(b'{"choices":[]}'),
    Raw(b'{"choices":[{"message":null}]}'),
    Raw(b'{"error":{"code":"rate_limit_exceeded","message":"try again in 10ms"}}'),
    Raw(b'[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"retry in 10ms"}}]', 429),
    Raw(b"[" * 100_000),
    Raw(b'{"choices":[{"message":{"content":"\\ud800"}}]}'),
    Cut(),
]


@pytest.mark.parametrize("bad", PASSING, ids=lambda bad: str(bad)[:40])
def test_what_passes_is_tried_again(cache: Path, bad: Any) -> None:
    with StubJudge([bad, bad, "[4]"]) as stub:
        (verdict,), usage = ask(stub, cache, task())
    assert (verdict.value, verdict.calls, len(stub.requests)) == (4, 1, 3)
    assert usage == Usage(calls=1, prompt_tokens=8, completion_tokens=2)


def test_a_judge_that_hangs_is_given_up(cache: Path) -> None:
    with StubJudge([Hang(), "[4]"]) as stub:
        (verdict,), _ = ask(stub, cache, task(), timeout_s=0.2, attempts=1)
        assert verdict.reason == f"judge {stub.url[7:-3]}: no answer within 0.2 s"
        (verdict,), _ = ask(stub, cache, task(), timeout_s=30)
    assert verdict.value == 4


def test_a_flood_is_cut_off(cache: Path) -> None:
    with StubJudge([Huge(64 << 20)]) as stub:
        (verdict,), _ = ask(stub, cache, task())
        assert verdict.reason.endswith("an answer of more than 1 MiB")
        assert len(stub.requests) == 1


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ({"content": None, "refusal": "no"}, ""),
        ({"content": 7}, ""),
        ({"content": [{"type": "text", "text": "[3"}, {"type": "text", "text": "]"}]}, "[3]"),
        ({"content": "<think>[1]?</think>[3]", "reasoning_content": "[1]"}, "[3]"),
        ({"content": "a\x00b\u202e[３]"}, "a\x00b\u202e[３]"),
    ],
)
def test_odd_messages(cache: Path, message: dict[str, Any], reply: str) -> None:
    with StubJudge([Say(message)]) as stub:
        (verdict,), _ = ask(stub, cache, task(tries=1))
    assert verdict.reply == reply


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": -4, "completion_tokens": "9"}, {"prompt_tokens": True}])
def test_odd_counts_are_none(cache: Path, usage: dict[str, Any]) -> None:
    with StubJudge([Say({"content": "[3]"}, usage)]) as stub:
        (verdict,), _ = ask(stub, cache, task())
    assert (verdict.value, verdict.prompt_tokens, verdict.completion_tokens) == (3, 0, 0)


FATAL = [
    (Refuse(401, message="wrong key"), "it wants a key, see --judge-key-env (HTTP 401: wrong key)"),
    (Refuse(404, "model_not_found", "gone"), f"no model {MODEL} or no such path there (HTTP 404: gone)"),
    (Raw(b'{"detail":"Not Found"}', 404), f"no model {MODEL} or no such path there (HTTP 404: Not Found)"),
    (Refuse(400, "", "Model not exist."), f"no model {MODEL} or no such path there (HTTP 400: Model not exist.)"),
    (Refuse(429, "insufficient_quota", "pay"), "its account has no credit left (HTTP 429: pay)"),
    (Refuse(402, "", "Insufficient Balance"), "its account has no credit left (HTTP 402: Insufficient Balance)"),
    (Refuse(429, headers={"Retry-After": "86400"}), "it asks us to stay away for 86400 s (HTTP 429: no)"),
    (Raw(b"", 302, {"Location": "https://x/"}), "it redirects (HTTP 302), not followed: name the right URL"),
]


@pytest.mark.parametrize(("bad", "line"), FATAL, ids=lambda bad: str(bad)[:40])
def test_what_will_not_pass_stops_the_judge(cache: Path, bad: Any, line: str) -> None:
    with StubJudge(["[4]", bad]) as stub, StageCache(cache) as kept:
        with Judge(options(stub, concurrency=1), kept) as judge:
            futures = [judge.submit(task(str(number))) for number in range(30)]
            reasons = [future.result(30).reason for future in futures]
        said = f"judge {stub.url[7:-3]}: {line}"
        assert reasons == ["", *[said] * 29]
        assert judge.stopped == said
        assert len(stub.requests) == 2
        assert judge.usage.failed == 29
        # What is known is still given out.
        with Judge(options(stub, concurrency=1), kept) as judge:
            assert judge.submit(task("1")).result(30).reason == said
            assert judge.submit(task("0")).result(30).value == 4


def test_nobody_there_is_found_out_soon(cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    with StageCache(cache) as kept, Judge(options(url, attempts=2, concurrency=2), kept) as judge:
        verdicts = [judge.submit(task(str(number))) for number in range(100)]
        assert all(future.result(30).value is None for future in verdicts)
    assert judge.stopped.startswith(f"{STOP_AFTER} questions in a row failed: judge 127.0.0.1:")
    assert judge.usage.failed == 100


def test_items_that_the_service_will_not_read_do_not_stop_it(cache: Path) -> None:
    def script(prompt: str) -> Any:
        return Refuse(400, "data_inspection_failed", "unsafe") if "bomb" in prompt else "[4]"

    tasks = [task("fine"), *[task(f"bomb {number}") for number in range(STOP_AFTER + 5)], task("fine too")]
    with StubJudge(script) as stub:
        verdicts, usage = ask(stub, cache, *tasks, concurrency=1)
    assert (verdicts[-1].value, usage.failed, usage.calls) == (4, STOP_AFTER + 5, 2)


def test_a_wrong_setting_stops_it_though_each_item_is_refused_alone(cache: Path) -> None:
    with StubJudge([Refuse(400, "unsupported_value", "temperature must be 1")]) as stub:
        verdicts, _ = ask(stub, cache, *[task(str(number)) for number in range(50)], concurrency=1)
    assert len(stub.requests) == STOP_AFTER
    assert verdicts[-1].reason.endswith("HTTP 400: temperature must be 1")


def test_no_more_at_once_than_asked_for(cache: Path) -> None:
    with StubJudge(latency_s=0.05) as stub:
        ask(stub, cache, *[task(str(number)) for number in range(12)], concurrency=4)
    assert stub.busiest == 4


def test_the_request_limit_spaces_requests(cache: Path) -> None:
    with StubJudge() as stub:
        ask(stub, cache, *[task(str(number)) for number in range(5)], requests_per_minute=600)
    gaps = [later - earlier for earlier, later in zip(stub.arrivals, stub.arrivals[1:], strict=False)]
    assert stub.arrivals[-1] - stub.arrivals[0] > 0.35  # four gaps of 0.1 s; a loaded machine only adds
    assert len(gaps) == 4


def test_told_to_wait_everybody_waits(cache: Path) -> None:
    with StubJudge([Refuse(429, headers={"Retry-After": "0.3"}), "[4]"]) as stub:
        ask(stub, cache, *[task(str(number)) for number in range(6)], concurrency=1)
    assert stub.arrivals[1] - stub.arrivals[0] > 0.25


def test_the_key_is_nowhere(cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    echo = f"your key is {KEY} [4]"
    caplog.set_level(0)
    with StubJudge([echo, Refuse(400, KEY, f"bad {KEY}"), Raw(KEY.encode(), 400), Raw(b"", 400)]) as stub:
        verdicts, _ = ask(stub, cache, *[task(str(n)) for n in range(4)], key_env="JUDGE_KEY", concurrency=1)
    with StubJudge(key="another") as stub:  # which repeats the wrong key, as OpenAI does
        refused, _ = ask(stub, cache, task("x"), key_env="JUDGE_KEY")
    assert "the key in JUDGE_KEY is not accepted" in refused[0].reason
    everything = repr(verdicts) + repr(refused) + cache.read_text() + caplog.text
    assert verdicts[0].value == 4
    assert "0123456789abcdef" not in everything
    assert "[key]" in everything


def test_certificates_are_verified(cache: Path, tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    roots = {name: tmp_path / f"{name}.pem" for name in ("ours", "other")}
    authority.cert_pem.write_to_path(roots["ours"])
    stranger.cert_pem.write_to_path(roots["other"])
    with StubJudge(["[4]"], tls=context) as stub:
        assert stub.url.startswith("https://")
        for trust in (None, str(roots["other"])):
            (verdict,), _ = ask(stub, cache, task(), ca=trust)
            assert "its certificate is not trusted" in verdict.reason
        (verdict,), _ = ask(stub, cache, task(), ca=str(roots["ours"]))
    assert verdict.value == 4


def test_a_full_disk_is_the_askers_to_hear(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise PrerequisiteError("judge.jsonl: cannot be written (No space left on device)")

    with StubJudge(["[4]"]) as stub, StageCache(cache) as kept, Judge(options(stub), kept) as judge:
        assert judge.submit(task("a")).result(30).value == 4
        monkeypatch.setattr(kept, "put", full)
        with pytest.raises(PrerequisiteError, match="No space left"):
            judge.submit(task("b")).result(30)
        assert judge.submit(task("a")).result(30).value == 4


def test_an_error_drops_what_is_open(cache: Path) -> None:
    def interrupted() -> None:
        with StageCache(cache) as kept, Judge(options(stub, concurrency=1), kept) as judge:
            futures.extend(judge.submit(task(str(number))) for number in range(5))
            assert futures[0].result(30).value == 4
            raise KeyboardInterrupt

    futures: list[Any] = []
    with StubJudge(["[4]", Hang()]) as stub:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        for future in futures[1:]:
            with pytest.raises(CancelledError):
                future.result(0)
        (verdict,), usage = ask(stub, cache, task("0"))  # what was there stayed
    assert (verdict.value, usage.calls) == (4, 0)


def test_closing_waits_for_all_and_ends_the_thread(cache: Path) -> None:
    with StubJudge(latency_s=0.05) as stub, StageCache(cache) as kept:
        judge = Judge(options(stub, concurrency=2), kept)
        futures = [judge.submit(task(str(number))) for number in range(6)]
        judge.close()
        judge.close(drop=True)
        assert all(future.done() and future.result().value is not None for future in futures)
        with pytest.raises(RuntimeError, match="closed"):
            judge.submit(task())
    assert not any(thread.name == "judge" for thread in threading.enumerate())


def test_verdicts_may_be_waited_for_by_callback(cache: Path) -> None:
    seen: list[Verdict] = []
    with StubJudge() as stub, StageCache(cache) as kept, Judge(options(stub), kept) as judge:
        for number in range(4):
            judge.submit(task(str(number))).add_done_callback(lambda future: seen.append(future.result()))
    assert len(seen) == 4


def test_half_a_surrogate_pair_in_an_answer_is_no_end(cache: Path) -> None:
    with StubJudge(["[4]"]) as stub:
        (verdict,), _ = ask(stub, cache, task("said \ud83d"))
    assert verdict.value == 4
    assert stub.requests[0]["messages"][1]["content"] == "said ?"


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"url": "api.openai.com"}, "is no HTTP URL; it looks like https://api.openai.com/v1"),
    ({"url": "ftp://x/v1"}, "is no HTTP URL"),
    ({"url": "http://x:port/v1"}, "host or port cannot be read"),
    ({"url": "https://me:pw@x/v1"}, "put no key into the URL"),
    ({"url": "https://x/v1?api_key=1"}, "put no key into the URL"),
    ({"model": " "}, "name the judge's model"),
    ({"concurrency": 0}, "judge concurrency: must be more than 0"),
    ({"requests_per_minute": float("nan")}, "judge requests-per-minute"),
    ({"timeout_s": -1.0}, "judge timeout"),
]


@pytest.mark.parametrize(("wrong", "line"), BAD_OPTIONS)
def test_wrong_options_are_one_clear_line(wrong: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        JudgeOptions(**{"url": "https://x/v1", "model": "m", **wrong})
    assert line in str(caught.value)
    assert "pw" not in str(caught.value)


def test_keys_and_certificates_that_are_not_there(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    makers: list[tuple[Callable[[], JudgeOptions], type[Exception], str]] = [
        (lambda: options("https://x/v1", key_env="JUDGE_KEY"), PrerequisiteError, "JUDGE_KEY to the key for x"),
        (lambda: options("https://x/v1", key_env=KEY), ConfigError, "--judge-key-env takes the name"),
        (lambda: options("https://x/v1", ca="/none.pem"), ConfigError, "--judge-ca /none.pem: not a readable PEM"),
    ]
    with StageCache(cache) as kept:
        for make, kind, line in makers:
            with pytest.raises(kind) as caught:
                Judge(make(), kept)
            assert line in str(caught.value)
            assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("https://h/v1/", "https://h/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/compatible-mode/v1", "https://h/compatible-mode/v1/chat/completions"),
        ("https://h/a?api-version=1", "https://h/a/chat/completions?api-version=1"),
    ],
)
def test_endpoints(url: str, endpoint: str) -> None:
    assert JudgeOptions(url=url, model="m").endpoint == endpoint


def test_prices() -> None:
    assert parse_price(" 2.4, 9.6").cost(1_000_000, 500_000) == pytest.approx(7.2)
    for text in ("2.4", "a,b", "1,2,3", "-1,2", "nan,1", "inf,1", ""):
        with pytest.raises(ConfigError, match="write the price of a million tokens"):
            parse_price(text)


def test_fields_of_every_request() -> None:
    extra = parse_extra(["enable_thinking=false", "temperature=null", "reasoning_effort=low", "max_tokens=9"])
    assert extra == {"enable_thinking": False, "temperature": None, "reasoning_effort": "low", "max_tokens": 9}
    for pair in ("enable_thinking", "=1", "a b=1", "temperature=0.7", "messages=[]", "stream=true", "api_key=x"):
        with pytest.raises(ConfigError, match="--judge-extra"):
            parse_extra([pair])
