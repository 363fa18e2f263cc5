"""Which sessions a run holds: repeats, groups, warm-ups, and peers interleaved in a seeded random order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.run.plan import PlanOptions, plan_sessions
from tests.run.fakes import ToneQuery


def queries(n: int) -> list[ToneQuery]:
    return [ToneQuery(f"q{k}", ms=210) for k in range(n)]


@given(
    n=st.integers(1, 7),
    peers=st.integers(1, 3),
    repeat=st.integers(1, 3),
    turns=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_every_peer_hears_every_query_as_often_and_in_step(n, peers, repeat, turns, seed) -> None:
    clips = queries(n)
    plan = plan_sessions([clips] * peers, PlanOptions(repeat=repeat, turns_per_session=turns, seed=seed))
    for peer in range(peers):
        mine = [session for who, session in plan if who == peer]
        assert [q.id for session in mine for q in session.queries] == [q.id for q in clips] * repeat
        assert len({session.id for session in mine}) == len(mine)
    for begin in range(0, len(plan), peers):
        step = plan[begin : begin + peers]
        assert sorted(who for who, _ in step) == list(range(peers))
        assert len({session.id for _, session in step}) == 1


def test_the_order_of_peers_is_drawn_anew_and_repeats_with_the_seed() -> None:
    clips = queries(20)
    order = [who for who, _ in plan_sessions([clips, clips], PlanOptions(seed=3))]
    assert order == [who for who, _ in plan_sessions([clips, clips], PlanOptions(seed=3))]
    firsts = order[::2]
    assert 0 < sum(firsts) < 20


def test_warm_ups_come_first_and_are_marked() -> None:
    plan = plan_sessions([queries(2)], PlanOptions(warmup=3))
    assert [session.warmup for _, session in plan] == [True] * 3 + [False] * 2
