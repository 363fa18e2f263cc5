"""What the judge is told, and where the wording comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import ConfigError
from scoring.benchmarks.registry import make_benchmark
from scoring.benchmarks.vocalbench_zh.benchmark import VocalBenchZh
from scoring.benchmarks.vocalbench_zh.subsets import CREATIVITY, INSTRUCTIONS
from scoring.benchmarks.vocalbench_zh.wording import CREATIVE, CRITERIA
from tests.scoring.benchmarks.vocalbench_zh.answers import item

pytestmark = pytest.mark.unit
CHECKOUT = Path(__file__).parents[5] / "shared" / "data" / "vocalbench-zh"


def _told(benchmark: VocalBenchZh, subset: str, index: int = 0, **fields: object) -> str:
    tasks = benchmark.text_tasks(item(subset, index, **fields), "我的回答")
    for task in tasks:
        assert [message.role for message in task.messages] == ["user"]
        assert "我的回答" in task.messages[0].content
    return tasks[0].messages[0].content


@pytest.mark.skipif(not CHECKOUT.is_dir(), reason="shared data is not here: vocalbench-zh")
def test_all_eight_creativity_prompts_are_read_from_the_checkout():
    benchmark = VocalBenchZh(CHECKOUT)
    sources = set()
    for group in CREATIVITY:
        (task,) = benchmark.text_tasks(item("creativity", group.start, Question="题目", Answer="参考"), "我的回答")
        told = task.messages[0].content
        assert told.startswith((CHECKOUT / task.prompt).read_text(encoding="utf-8"))
        assert ("参考答案：参考" in told) == group.name.endswith("appreciation")
        sources.add(task.prompt)
    assert sources == {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "prompt" / "creativity").iterdir()}


def test_our_own_wording_stands_in_and_says_so(tmp_path: Path):
    for benchmark in (VocalBenchZh(), VocalBenchZh(tmp_path)):
        for group in CREATIVITY:
            (task,) = benchmark.text_tasks(item("creativity", group.start), "我的回答")
            assert task.prompt == "own"
            assert task.messages[0].content.startswith(CREATIVE[group.name])


def test_every_category_has_its_criterion():
    assert set(CRITERIA) == {group.name for group in INSTRUCTIONS}
    assert set(CREATIVE) == {group.name for group in CREATIVITY}
    for group in INSTRUCTIONS:
        assert CRITERIA[group.name] in _told(VocalBenchZh(), "instruction_following", group.start, Question="题目")


def test_keys_history_and_references_are_told():
    benchmark = VocalBenchZh()
    history = [{"from": "user", "value": "我叫小亮"}, {"from": "assistant", "value": "你好小亮"}]
    told = _told(benchmark, "multi_round", Question="我叫什么", Answer="小亮", Context=history)
    assert "用户：我叫小亮\n模型：你好小亮" in told
    assert "标准答案：小亮" in told
    assert "中文标准答案：盐湖城\n英文标准答案：Salt Lake City" in _told(
        benchmark, "cs_knowledge", Question="q", Answer_zh="盐湖城", Answer_en="Salt Lake City"
    )
    assert "参考答案：雨" in _told(benchmark, "reasoning", 150, Question="q", Answer="雨")
    # The empathy prompt of the original is not given the query's emotion; the safety prompt no key.
    assert "angry" not in _told(benchmark, "emotion", Question="q", Question_emo="angry")


def test_a_prompt_that_cannot_be_read_is_an_error(tmp_path: Path):
    prompt = tmp_path / "prompt" / "creativity" / "narratives.txt"
    prompt.parent.mkdir(parents=True)
    prompt.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match=r"narratives\.txt: this judge prompt cannot be read"):
        make_benchmark("vocalbench-zh", tmp_path)
