"""One item of a published benchmark, carried by a session so that scoring needs no other file."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, and what its benchmark says of it.

    benchmark: `vocalbench-zh`, `vocalbench-en`. subset: stem of its query file, such as `chinese_knowledge`. qid: as
    published. index: position in the query file, from 0; the published rules go by it. fields: the published row
    verbatim, apart from its sound. question_samples, question_rate_hz: length of the query's own sound; 0 without one.
    sound: where that came from. history: what became of the earlier rounds in `fields["Context"]`.
    """

    benchmark: str
    subset: str
    qid: str
    index: int
    fields: dict[str, Any]
    question_samples: int = 0
    question_rate_hz: int = 0
    sound: Literal["data", "generated", "synthesized", ""] = ""
    history: Literal["injected", "missing", ""] = ""
