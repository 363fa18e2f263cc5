"""tau-voice's panel: its published vector, hand-made trajectories, each window at its edge, quantisation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.scorer import Unscored
from harness.core.tick_files import read_trajectories
from harness.core.ticks import Effect, Tick, Trajectory
from scoring.duplex.presets import tau
from scoring.duplex.presets.material import Material
from scoring.duplex.presets.tau_panel import Panel, events_of, panel_of
from scoring.duplex.presets.tau_ticks import quantised
from scoring.duplex.spans import Conversation, Span, UserSpan

pytestmark = pytest.mark.unit
VECTOR = Path(__file__).parents[5] / "shared" / "data" / "tau-voice"
MS = 1_000_000
TIC, ASIDE = Effect("vocal_tic", "[cough]"), Effect("non_directed", "hold on")


def made(user: str, agent: str, actions: dict[int, str] | None = None, **effects: Effect) -> Trajectory:
    """A trajectory drawn as two lines, a character a tick, `#` for speech; effects: `t<tick>=...`."""
    ticks = tuple(
        Tick(
            user=u == "#",
            agent=a == "#",
            action=(actions or {}).get(index, ""),
            effects=(effects[f"t{index}"],) if f"t{index}" in effects else (),
        )
        for index, (u, a) in enumerate(zip(user, agent, strict=True))
    )
    return Trajectory(name="hand", ticks=ticks)


def panel(user: str, agent: str, actions: dict[int, str] | None = None, **effects: Effect) -> Panel:
    return panel_of([made(user, agent, actions, **effects)])


@pytest.mark.skipif(not VECTOR.is_dir(), reason="shared data is not here: tau-voice")
def test_the_published_vector() -> None:
    ((trajectory, _, _),) = read_trajectories(VECTOR)
    expected = json.loads((VECTOR / "expected.json").read_text())[trajectory.name]
    found = msgspec.to_builtins(panel_of([trajectory]))
    assert found.pop("counts") == expected.pop("counts")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert abs(found[name] - value) <= 1e-9, name
    assert (trajectory.tick_ns, trajectory.model, trajectory.domain) == (200 * MS, "gpt-realtime-2", "retail")


def test_responses_by_hand() -> None:
    # The user ends at 3, the agent starts at 5: 0.4 s. The user ends at 12 and speaks again at 13: missed; ends at 15,
    # the agent starts at 16: 0.2 s. Nothing follows the last segment: left out.
    found = panel(".##.......##.##...##", ".....##.........##..")
    assert found.counts.response_total == 3
    assert found.response_latency_mean == pytest.approx(0.3)
    assert found.response_rate == pytest.approx(2 / 3)


def test_no_response_is_owed_to_backchannels_nor_where_the_agent_speaks_on() -> None:
    found = panel(".#..#....", "......##.", {1: "backchannel"})
    assert (found.counts.response_total, found.response_latency_mean) == (1, pytest.approx(0.2))
    assert panel(".##......", "#####.##.").counts.response_total == 0
    assert panel(".##......", "...##....").counts.response_total == 0  # it spoke when the user had just ended


def test_an_agent_that_starts_with_the_next_user_turn_has_answered() -> None:
    found = panel(".#...##.", ".....##.")
    assert (found.response_rate, found.response_latency_mean) == (1.0, pytest.approx(0.6))


@pytest.mark.parametrize(("agent_ticks", "rate", "latency_s"), [(9, 1.0, 1.8), (10, 0.0, None), (11, 0.0, None)])
def test_the_yield_window_is_two_seconds(agent_ticks: int, rate: float, latency_s: float | None) -> None:
    user = "#" * 14 + "....."
    found = panel(user, ("#" * agent_ticks).ljust(len(user), "."))
    assert (found.counts.yield_total, found.yield_rate) == (1, rate)
    assert found.yield_latency_mean == (None if latency_s is None else pytest.approx(latency_s))


@pytest.mark.parametrize(("agent_ticks", "kept"), [(4, 0.0), (5, 1.0)])
@pytest.mark.parametrize(
    ("figure", "actions", "effects"),
    [
        ("selectivity_backchannel", {0: "backchannel"}, {}),
        ("selectivity_vocal_tic", {}, {"t1": TIC}),
        ("selectivity_non_directed", {}, {"t1": ASIDE}),
        ("selectivity_backchannel", {0: "backchannel"}, {"t1": TIC}),
    ],
)
def test_what_is_no_interruption_is_kept_through_for_one_second(
    figure: str, actions: dict[int, str], effects: dict[str, Effect], agent_ticks: int, kept: float
) -> None:
    found = panel("##........", ("#" * agent_ticks).ljust(10, "."), actions, **effects)
    assert getattr(found, figure) == kept
    assert found.counts.yield_total == 0


def test_tic_before_non_directed_in_the_order_of_priority() -> None:
    both = made(".##.......", "##########", None, t1=TIC, t2=ASIDE)
    assert [event.kind for event in events_of(both)] == ["vocal_tic"]


def test_a_backchannel_is_what_the_first_tick_says() -> None:
    assert panel("###.......", "##########", {1: "backchannel"}).counts.backchannel_total == 0


@pytest.mark.parametrize(("start", "right"), [(12, 0.0), (13, 1.0)])
def test_two_seconds_of_silence_after_a_tic_in_silence(start: int, right: float) -> None:
    # The tic's tick is 1, its end 2; an agent that starts at 2 + 10 or before has answered it.
    agent = "." * start + "##"
    assert panel("." * len(agent), agent, None, t1=TIC).selectivity_vocal_tic == right
    assert panel("." * len(agent), agent, None, t1=ASIDE).selectivity_non_directed == right
    assert panel(".#".ljust(len(agent), "."), agent, None, t1=TIC).selectivity_vocal_tic == right


@pytest.mark.parametrize(("agent_end", "total"), [(6, 1), (7, 0)])
def test_a_stray_tic_under_an_agent_that_talks_on_is_no_event_at_all(agent_end: int, total: int) -> None:
    found = panel("." * 12, ("#" * agent_end).ljust(12, "."), None, t1=TIC)
    assert (found.counts.vocal_tic_total, found.selectivity_vocal_tic) == (total, 0.0 if total else None)


def test_one_effect_in_two_ticks_is_one_event_and_a_noise_is_none() -> None:
    found = panel("." * 6, "." * 6, None, t1=TIC, t2=TIC, t4=TIC, t5=Effect("burst_noise", "dog"))
    assert (found.counts.vocal_tic_total, found.counts.non_directed_total) == (2, 0)


def test_the_agent_interrupts_wherever_it_starts_while_the_user_speaks() -> None:
    found = panel(".#####...##..", ".#..#.....##.")
    assert (found.counts.agent_interrupts_count, found.counts.response_total) == (3, 1)
    assert found.agent_interruption_rate == 3.0


def test_the_stop_signal_is_dropped_and_a_longer_last_segment_is_not() -> None:
    assert panel(".#..#", "..#.#").counts.agent_interrupts_count == 0
    assert panel(".#.##", "..###").counts.yield_total == 1
    assert panel(".#..#", "..###").counts.yield_total == 0


def test_figures_over_fewer_than_ten_events_are_hidden() -> None:
    ten, nine = panel(".#.." * 10, "...#" * 10), panel(".#.." * 9, "...#" * 9)
    assert (ten.shown()["R_R"], ten.n()["R_R"]) == (1.0, 10)
    assert ten.shown()["L_R_s"] == pytest.approx(0.2)
    assert ten.shown()["S_BC"] == Unscored(reason="nothing of the kind happened")
    assert nine.shown()["R_R"] == Unscored(reason="hidden: n = 9, fewer than 10")
    assert nine.response_rate == 1.0


def test_a_pooled_panel_pools_events() -> None:
    pooled = panel_of([made(".#..", "...#"), made(".#...#....", "...#....#.")])
    assert (pooled.counts.n_simulations, pooled.counts.response_total) == (2, 3)
    assert pooled.response_latency_mean == pytest.approx((0.2 + 0.2 + 0.4) / 3)


def conversation(**changes: Any) -> Conversation:
    fields: dict[str, Any] = {"user": (), "agent": (), "begin_ns": 7, "end_ns": 7 + 2_000 * MS}
    return Conversation(**{**fields, **changes})


def test_a_conversation_in_ticks() -> None:
    def at(ms: float) -> int:
        return 7 + round(ms * MS)

    made_of = conversation(
        user=(
            UserSpan(at(0), at(400)),
            UserSpan(at(500), at(600), kind="tic", event="cough"),
            UserSpan(at(999), at(1001), kind="backchannel"),
            UserSpan(at(1300), at(1700), kind="other_speaker", event="tv"),
            UserSpan(at(1500), at(1600), kind="noise", event="dog"),
            UserSpan(at(1600), at(1610), kind="non_directed", event="aside"),
        ),
        agent=(Span(at(601), at(1200)), Span(at(1800), at(2400))),
        end_ns=at(1901),
    )
    ticks = quantised(made_of).ticks
    assert "".join("#" if tick.user else "." for tick in ticks) == "##..##...."
    assert "".join("#" if tick.agent else "." for tick in ticks) == "...###...#"
    assert (ticks[0].action, ticks[4].action) == ("generate_message", "backchannel")
    assert {i: tick.effects for i, tick in enumerate(ticks) if tick.effects} == {
        2: (Effect("vocal_tic", "cough"),),
        6: (Effect("non_directed", "tv"),),
        7: (Effect("burst_noise", "dog"),),
        8: (Effect("non_directed", "aside"),),
    }


def test_what_came_in_ticks_goes_back_into_the_same() -> None:
    def span(first: int, last: int) -> tuple[int, int]:
        return 7 + first * 100 * MS, 7 + last * 100 * MS

    came = conversation(
        user=(UserSpan(*span(1, 3)), UserSpan(*span(4, 6), kind="tic", event="cough")),
        agent=(Span(*span(5, 8)),),
        end_ns=span(0, 9)[1],
    )
    ticks = quantised(came, tick_ns=100 * MS).ticks
    assert "".join("#" if tick.user else "." for tick in ticks) == ".##......"
    assert "".join("#" if tick.agent else "." for tick in ticks) == ".....###."
    assert [index for index, tick in enumerate(ticks) if tick.effects] == [4, 5]


def test_the_preset_on_conversations() -> None:
    def at(ms: float) -> int:
        return 7 + round(ms * MS)

    def said(user: list[tuple[int, int]], agent: list[tuple[int, int]], end_ms: int) -> Conversation:
        return conversation(
            user=tuple(UserSpan(at(a), at(b)) for a, b in user),
            agent=tuple(Span(at(a), at(b)) for a, b in agent),
            end_ns=at(end_ms),
        )

    # Ten times: the user ends at 990 (tick 4 counts whole: 1000), the agent starts at 1590 (its tick begins at 1400).
    ten = said(
        [(2000 * i, 2000 * i + 990) for i in range(10)], [(2000 * i + 1590, 2000 * i + 1790) for i in range(10)], 20_000
    )
    found = tau.PRESET.measure(Material(conversation=ten, name="a"))
    assert found.figures["R_R"] == 1.0
    assert found.figures["L_R_s"] == pytest.approx(0.4)  # 600 ms in truth
    assert (found.n["L_R_s"], found.figures["I_A"]) == (10, 0.0)
    first = next(value for value in found.values if value.figure == "L_R_s")
    assert (first.session, first.at_ns, first.value) == ("a", at(1000), pytest.approx(0.4))
    # Answers inside the user's last tick: ten interruptions by the agent, and nothing that was answered.
    fast = said(
        [(2000 * i, 2000 * i + 850) for i in range(10)], [(2000 * i + 900, 2000 * i + 1790) for i in range(10)], 20_000
    )
    counted = tau.PRESET.measure(Material(conversation=fast, name="b"))
    assert counted.figures["L_R_s"] == Unscored(reason="nothing of the kind happened")
    assert [value.value for value in counted.values if value.figure == "I_A"] == [1.0] * 10
    both = tau.PRESET.measure(Material(conversation=ten, name="a"), Material(conversation=fast, name="b"))
    assert both.figures["I_A"] == 1.0
    absent = tau.PRESET.measure(Material(name="c"))
    assert absent.figures["R_R"] == Unscored(reason="the session has no conversation")
