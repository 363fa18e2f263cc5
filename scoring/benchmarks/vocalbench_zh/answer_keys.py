"""Answers that are right without a judge: the key stands in the text.

Source: VocalBench-zh `utils/knowledge.py`, `utils/cs_knowledge.py`, `utils/cs_knowledge_en.py`.
"""

from __future__ import annotations

from harness.core.item import Item
from scoring.benchmarks.vocalbench_zh.subsets import KNOWLEDGE


def key_in(item: Item, response: str) -> bool:
    """Whether the item's key is found in `response`, so that no judge is asked. False for subsets without such a rule.

    Knowledge: verbatim. Mixed questions: the Mandarin key verbatim, the English one in any case, or any part of a
    Mandarin name split at the dot. Their English twins: in any case.
    """
    fields = item.fields
    if item.subset in KNOWLEDGE:
        return _within(fields.get("Answer"), response)
    if item.subset == "cs_knowledge":
        mandarin, english = str(fields.get("Answer_zh") or ""), str(fields.get("Answer_en") or "")
        parts = mandarin.split("·") if "·" in mandarin else []
        return (
            _within(mandarin, response)
            or _within(english.lower(), response.lower())
            or any(_within(part.strip(), response) for part in parts)
        )
    if item.subset == "cs_knowledge_en":
        return _within(str(fields.get("Answer") or "").lower(), response.lower())
    return False


def _within(key: object, response: str) -> bool:
    """An empty key is in nothing."""
    return bool(key) and str(key) in response
