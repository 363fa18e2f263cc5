"""Where the cascade cuts text into clauses, worked out by eye."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.local.models.cascade.clauses import LONGEST, Clauses, is_chinese, spoken


def cut(*pieces: str) -> list[str]:
    clauses = Clauses()
    return [clause for piece in pieces for clause in clauses.push(piece)] + clauses.flush()


@pytest.mark.parametrize(
    ("pieces", "clauses"),
    [
        (["It is sunny. Take", " a hat."], ["It is sunny.", " Take a hat."]),
        # The first clause may end with a comma once it has twelve letters, a later one needs forty.
        (["In the afternoon, it will rain, they say."], ["In the afternoon,", " it will rain, they say."]),
        (["Well, I think so."], ["Well, I think so."]),
        # A number is one word, and a mark at the end of a piece waits for what follows.
        (["Pi is 3", ".", "14, about 17", ",", "000 digits are dull."], ["Pi is 3.14, about 17,000 digits are dull."]),
        (["明天北京晴。气温", "二十度，适合出门。"], ["明天北京晴。", "气温二十度，适合出门。"]),
        (["今天天气，很好，非常好"], ["今天天气，", "很好，非常好"]),
        (["One\nTwo"], ["One\n", "Two"]),
        (["no end"], ["no end"]),
        (["   "], []),
        ([], []),
    ],
)
def test_clauses(pieces: list[str], clauses: list[str]) -> None:
    assert cut(*pieces) == clauses


def test_a_clause_is_given_with_the_token_that_ends_it() -> None:
    clauses = Clauses()
    assert clauses.push("Yes, certainly") == []
    assert clauses.push(".") == []
    assert clauses.push(" I") == ["Yes, certainly."]
    assert clauses.push("'ll do it。") == [" I'll do it。"]


def test_text_without_an_end_is_cut_between_words() -> None:
    found = cut("word " * 100)
    assert [len(clause) for clause in found[:-1]] == [5 * (LONGEST // 4 - 1)]
    assert all(clause.endswith("word ") for clause in found)


@given(st.lists(st.text(alphabet="ab .,。，\n1", max_size=8), max_size=20))
def test_nothing_is_lost_and_pieces_do_not_matter(pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert "".join(cut(*pieces)).strip() == whole.strip()
    assert cut(*whole) == cut(*pieces)


def test_what_is_not_said() -> None:
    assert spoken("**Yes**, `now`!\n") == "Yes, now!"
    assert spoken("…!") == ""
    assert is_chinese("用 Python 写")
    assert not is_chinese("ok")
