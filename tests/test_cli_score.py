"""`score`, `leaderboard` and `overall` as a user meets them, with real weights where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.cache import CACHE_VARIABLE, cache_dir
from tests.command import Command, command
from tests.engines.packages import scoring_packages
from tests.run.live import clip
from tests.scenarios.benchmarks.made import row, write_rows, write_sound
from tests.scoring.judge.stub_judge import Refuse, StubJudge

SETS: dict[str, list[dict[str, Any]]] = {
    "chinese_knowledge": [row(f"chinese_knowledge-{k:04d}", f"knowledge/chinese/{k:04d}.wav") for k in range(2)],
    "single_round": [row("single_round-000", "single_round/000.wav")],
    "safety": [row("safety-000", "safety/000.wav")],
}
EVERY = ("--asr", "recorded", "--mos", "none")


@pytest.fixture
def firstpacket(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """The command, run in an empty folder and in this process, with the models that the machine has cached."""
    monkeypatch.setenv(CACHE_VARIABLE, str(cache_dir()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")

    return command(monkeypatch, capsys)


@pytest.fixture
def outputs(firstpacket: Command, tmp_path: Path) -> Path:
    """A run imported from model outputs without sound, whose transcripts came with them."""
    data = write_rows(tmp_path / "set", **SETS)
    for kind, key in (("json", "Response"), ("json_asr", "Response_hyp")):
        for name, rows in SETS.items():
            lines = [{"Qid": each["Qid"], "Response": f"这是{name}的回答。"} for each in rows]
            if key == "Response_hyp":
                lines = [line | {key: f"这是{name}的回答"} for line in lines]
            file = tmp_path / "model" / kind / f"{name}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    made = firstpacket("import", "vocalbench", "model", "--data", data, "--out", "run")
    assert made.code == 0, made.err
    return tmp_path / "run"


def judged(stub: StubJudge) -> tuple[str, ...]:
    return ("--judge", stub.url, "--judge-model", stub.model)


@pytest.mark.loopback
def test_real_answers_through_every_stage(firstpacket: Command, tmp_path: Path) -> None:
    """The agent answers, Whisper base hears it, DistillMOS rates it, a judge that speaks the real API grades it."""
    scoring_packages()
    query = clip("zh-03")
    data = write_rows(tmp_path / "set", **SETS)
    for rows in SETS.values():
        for each in rows:
            write_sound(data / each["Audio"], query.samples, query.rate_hz)
    suite = ("bench", "--suite", "vocalbench-zh", "--data", data, "--concurrency", 4, "--priority", "normal")
    held = firstpacket(*suite, "--out", "run", "--json")
    assert held.code == 0, held.err
    with StubJudge() as stub:
        scored = firstpacket(
            "score", "run", "--benchmark", "vocalbench-zh", "--asr-language", "zh", *judged(stub), "--json"
        )
        asked = len(stub.requests)
        again = firstpacket(
            "score", "run", "--benchmark", "vocalbench-zh", "--asr-language", "zh", *judged(stub), "--json"
        )
        assert len(stub.requests) == asked > 0
    assert scored.code == again.code == 0, scored.err
    rows = [json.loads(line) for line in (tmp_path / "run" / "scores.jsonl").read_text().splitlines()]
    assert len(rows) == 4
    spoken = [each for each in rows if each["subset"] in ("chinese_knowledge", "single_round")]
    assert all(each["response_hyp"] and each["per"] < 0.5 for each in spoken)
    (single,) = [each for each in rows if each["subset"] == "single_round"]
    assert 1.0 <= single["mos"] <= 5.0
    summary = scored.json
    assert summary["subsets"]["single_round"]["score"]["n"] == 1
    assert summary["latency"]["single_round"]["first_packet_ms"]["n"] == 1
    assert summary["latency"]["all"]["rtf"]["of_sums"] > 0
    assert "value" not in summary["overall"] or summary["overall"]["value"] is None
    assert "whisper-base" in summary["engines"]["asr"]
    assert "distillmos" in summary["engines"]["mos"].lower()
    assert {key: again.json[key] for key in ("subsets", "overall")} == {
        key: summary[key] for key in ("subsets", "overall")
    }
    board = firstpacket("leaderboard", "run", "--benchmark", "vocalbench-zh")
    assert board.code == 0
    assert "Qwen3-Omni" in board.out
    assert "Not comparable" in board.out


@pytest.mark.loopback
def test_a_judge_that_refuses_costs_nothing_that_was_scored(firstpacket: Command, outputs: Path) -> None:
    with StubJudge([Refuse(401, "no such key")]) as stub:
        refused = firstpacket("score", outputs, "--benchmark", "vocalbench-zh", *EVERY, *judged(stub), "--json")
    assert refused.code == 0, refused.err
    safety = refused.json["subsets"]["safety"]["refusal_rate"]
    assert safety["n"] == 0
    assert "401" in safety["unscored"]
    assert refused.json["subsets"]["chinese_knowledge"]["per"]["value"] == 0.0
    with StubJudge() as stub:
        scored = firstpacket("score", outputs, "--benchmark", "vocalbench-zh", *EVERY, *judged(stub), "--json")
    assert scored.json["subsets"]["safety"]["refusal_rate"]["n"] == 1


@pytest.mark.loopback
def test_how_the_judge_is_asked_and_what_about(firstpacket: Command, tmp_path: Path) -> None:
    """A model that sends no text: what was heard is judged when that is asked for, with the fields of the user."""
    (query,) = SETS["safety"]
    data = write_rows(tmp_path / "set", safety=[query])
    for kind, answer in (("json", {"Response": None}), ("json_asr", {"Response": None, "Response_hyp": "不行"})):
        file = tmp_path / "model" / kind / "safety.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"Qid": query["Qid"], **answer}), encoding="utf-8")
    write_sound(tmp_path / "model" / "wav" / "safety" / f"{query['Qid']}.wav")
    made = firstpacket("import", "vocalbench", "model", "--data", data, "--benchmark", "vocalbench-zh", "--out", "run")
    assert made.code == 0, made.err
    score = ("score", "run", "--benchmark", "vocalbench-zh", *EVERY, "--json")
    with StubJudge(["成功。"]) as stub:
        plain = firstpacket(*score, *judged(stub)).json
        fields = ("--judge-max-tokens", 50, "--judge-seed", 7, "--judge-extra", "enable_thinking=false")
        heard = firstpacket(*score, *judged(stub), "--judge-transcripts", *fields).json
        (request,) = stub.requests
    assert plain["subsets"]["safety"]["refusal_rate"]["unscored"] == "the peer sent no text of its own"
    assert heard["subsets"]["safety"]["refusal_rate"]["value"] == 100.0
    assert heard["judged"] == ["transcript"]
    assert (request["max_tokens"], request["seed"], request["enable_thinking"]) == (50, 7, False)
    assert "不行" in request["messages"][0]["content"]
    assert heard["subsets"]["safety"]["rtf"]["unscored"] != "no generation_s"


def test_without_judge_the_rest_is_scored_and_the_table_says_so(
    firstpacket: Command, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = firstpacket("score", outputs, "--benchmark", "vocalbench-zh", *EVERY)
    assert scored.code == 0, scored.err
    assert "no judge: name one with --judge URL --judge-model NAME" in scored.out
    assert "Overall unscored: missing" in scored.out
    assert "Latency unscored: no sends were recorded" in scored.out
    monkeypatch.setenv("COLUMNS", "70")
    narrow = firstpacket("score", outputs, "--benchmark", "vocalbench-zh", *EVERY)
    assert "No room for" in narrow.out
    assert "unscored: no judge: name one with --judge URL" in " ".join(narrow.out.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("score", "run", "--benchmark", "vocalbench-zn"), "did you mean vocalbench-zh?"),
        (("score", "run", "--benchmark", "vocalbench-en", *EVERY), "its items are of vocalbench-zh"),
        (("score", "run", "--benchmark", "vocalbench-zh", "--asr", "wisper"), "asr:wisper: no such engine"),
        (("score", "run", "--benchmark", "vocalbench-zh", "--judge-model", "m"), "--judge-model needs --judge URL"),
        (("score", "run", "--benchmark", "vocalbench-zh", "--judge-seed", "0"), "--judge-seed needs --judge URL"),
        (("score", "run", "--benchmark", "vocalbench-en", "--judge-transcripts"), "rules of its own for speech"),
        (("score", "run", "--benchmark", "vocalbench-zh", "--judge", "ftp://x", "--judge-model", "m"), "no HTTP URL"),
        (("score", "nowhere", "--benchmark", "vocalbench-zh"), "nowhere"),
        (("leaderboard", "run", "--benchmark", "vocalbench-zh"), "not scored yet"),
        (("leaderboard", "run", "--benchmark", "vocalbench-zn"), "did you mean vocalbench-zh?"),
    ],
)
def test_bad_input_is_one_line(firstpacket: Command, outputs: Path, arguments: tuple[str, ...], says: str) -> None:
    said = firstpacket(*arguments)
    assert said.code in (1, 2)
    assert says in said.err
    assert len(said.err.strip().splitlines()) == 1


def test_overall_of_a_table(firstpacket: Command, tmp_path: Path) -> None:
    """50/10 + 50/10 + 2*4 + 4 + 10 - 1 + 2*4 + 50/10 + 50/10 + 50/10 + 15 * 0.8 = 66."""
    columns = (
        "model,knowledge_acc_pct,reasoning_acc_pct,creativity_score,fluency_utmos,clarity_per_pct,single_round_score,"
        "if_fr_pct,ee_eer_pct,safety_rr_pct,robust_pr_pct"
    )
    (tmp_path / "rows.csv").write_text(f"{columns}\nmine,50,50,4,4,3,4,50,50,50,80\nhalf,50,,4,4,3,4,50,50,50,80\n")
    found = firstpacket("overall", "--benchmark", "vocalbench-zh", "--rows", "rows.csv", "--json")
    assert [each["overall"] for each in found.json] == [pytest.approx(66.0), None]
    assert found.json[1]["missing"] == ["reasoning"]
    (tmp_path / "bad.csv").write_text(f"{columns}\nmine,50,fifty,4,4,3,4,50,50,50,80\n")
    said = firstpacket("overall", "--benchmark", "vocalbench-zh", "--rows", "bad.csv")
    assert said.code == 2
    assert "reasoning_acc_pct is 'fifty'" in said.err
