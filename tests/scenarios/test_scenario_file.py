"""Scenarios from YAML: what is read, what is filled in, and where each mistake is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import ConfigError
from scenarios.scenario import HistoryTurn
from scenarios.scenario_file import check_clips, load_scenarios, read_scenarios
from scenarios.yaml_node import MAX_CHARACTERS

pytestmark = pytest.mark.unit

WHOLE = """\
# a comment
id: 007
title: "An interruption: and more"
language: no
category: user_interruption
tags: [barge-in, slow]
instructions: |
  Speak
  slowly.
history:
  - {role: user, text: Hello.}
  - {role: assistant, text: Good evening.}
impairments: ["noise:white:snr=5", "far_field:cutoff=400+loss:rate=0.3"]
linger_ms: 8000
events:
  - say: question
  - id: stop
    say: stop
    at: agent_start
    delay_ms: 1200
    jitter_ms: [100, 400]
    timeout_ms: 5000
    expect: stop
    tags: [first]
  - {say: mm, kind: backchannel, at: agent_start, jitter_ms: 50}
  - {noise: white, at: user_end, delay_ms: -300, duration_ms: 500, gain_db: -3.5, expect: keep_talking}
  - {other_speaker: radio, at: user_end, after: stop, expect: stay_silent}
  - {say: thanks, at: agent_end, delay_ms: -200}
"""


def test_all_that_a_scenario_may_say():
    (scenario,) = read_scenarios(WHOLE, "s.yaml")
    assert (scenario.id, scenario.language, scenario.where) == ("007", "no", "s.yaml:2:1")
    assert scenario.title == "An interruption: and more"
    assert scenario.instructions == "Speak\nslowly."
    assert scenario.history == (
        HistoryTurn(role="user", text="Hello."),
        HistoryTurn(role="assistant", text="Good evening."),
    )
    assert scenario.impairments == ("noise:white:snr=5", "far_field:cutoff=400+loss:rate=0.3")
    assert (scenario.linger_ms, scenario.tags) == (8000, ("barge-in", "slow"))
    assert scenario.clips == ("question", "stop", "mm", "radio", "thanks")
    said, stop, mm, white, radio, thanks = scenario.events
    assert (said.id, said.at, said.delay_ms, said.kind, said.expect) == ("e1", "session_start", 500, "turn", "respond")
    assert (stop.after, stop.delay_ms, stop.jitter_ms, stop.timeout_ms) == ("e1", 1200, (100, 400), 5000)
    assert (stop.expect, stop.tags, stop.where) == ("stop", ("first",), "s.yaml:18:10")
    assert (mm.id, mm.after, mm.jitter_ms, mm.timeout_ms, mm.expect) == ("e3", "stop", (0, 50), 10_000, "keep_talking")
    # The user's last words are the mm-hm; the agent's end belongs to the last words that want an answer.
    assert (white.after, white.delay_ms, white.duration_ms, white.gain_db) == ("e3", -300, 500, -3.5)
    assert white.generated
    assert (radio.after, radio.kind) == ("stop", "other_speaker")
    assert (thanks.after, thanks.timeout_ms, thanks.delay_ms) == ("stop", 30_000, -200)


def one(event: str, head: str = "id: a\n") -> str:
    return f"{head}events:\n  - say: one\n  - {event}\n"


MISTAKES = {
    "id: a\nevent: []": "s.yaml:2:1: a scenario has no key 'event'; did you mean events?",
    "events: [{say: one}]": "s.yaml:1:1: the scenario has no id",
    "id: a": "s.yaml:1:1: the scenario has no events",
    "id: a\nevents: []": "s.yaml:2:9: a scenario has 1 to 200 events, not 0",
    "id: a\nevents: {say: one}": "s.yaml:2:9: events is a list, not a mapping",
    "id: a\nevents: [one]": "s.yaml:2:10: an event is a mapping of keys to values, not a single value",
    "id: a\nid: b\nevents: []": "s.yaml:2:1: id was already given at s.yaml:1:1",
    "id:\nevents: [{say: one}]": "s.yaml:1:4: id is empty",
    "id: [a]\nevents: [{say: one}]": "s.yaml:1:5: id is one text, not a list",
    "- id: a": "s.yaml:1:1: a scenario is a mapping of keys to values, not a list",
    "id: a\nevents: [{say: one, at: user_end}]": "s.yaml:2:25: user_end needs an earlier say, or `after`",
    "id: a\nevents: [{say: one, at: agent_start}]": "s.yaml:2:25: agent_start needs an earlier say that expects an",
    "id: a\nevents: [{noise: hum}]": "s.yaml:2:10: noise needs `expect`: respond, stop, keep_talking, stay_silent",
    "id: a\nevents: [{say: one, noise: hum}]": "s.yaml:2:10: an event has exactly one of say, noise, other_speaker, no",
    "id: a\nevents: [{expect: stop}]": "s.yaml:2:10: an event has exactly one of say, noise, other_speaker",
    "id: a\nhistory: [{role: user}]\nevents: [{say: one}]": "s.yaml:2:11: a turn of history has a role and a text",
    "id: a\nhistory: [{role: me, text: x}]\nevents: [{say: one}]": "s.yaml:2:18: role cannot be 'me'; known: assistant",
    "id: a\nimpairments: [x, 'noise:wite:snr=5']\nevents: [{say: one}]": "s.yaml:2:15: impairment 'x': no impairment",
    "id: a\nimpairments: ['noise:wite:snr=5']\nevents: [{say: one}]": "s.yaml:2:15: impairment 'noise:wite:snr=5': n",
    one("{say: two}"): "s.yaml:4:5: only the first event may leave out `at`; known: session_start, user_end",
    one("{say: two, at: agentstart}"): "s.yaml:4:20: at cannot be 'agentstart'; did you mean agent_start?",
    one("{say: two, at: user_end, after: e0}"): "s.yaml:4:37: after names no earlier event: 'e0'; known: e1",
    one("{say: two, at: user_end, after: e2}"): "s.yaml:4:37: after names no earlier event: 'e2'; known: e1",
    one("{say: two, at: session_start, after: e1}"): "s.yaml:4:42: after has no meaning at session_start",
    one("{say: two, at: user_end, delay: 5}"): "s.yaml:4:30: an event has no key 'delay'; did you mean delay_ms?",
    one("{say: two, at: user_end, delay_ms: 1.5}"): "s.yaml:4:40: delay_ms is a whole number from -10000 to 600000",
    one("{say: two, at: user_end, delay_ms: 1:30}"): "s.yaml:4:40: delay_ms is a whole number from -10000 to 600000",
    one("{say: two, at: user_end, delay_ms: -1}"): "s.yaml:4:40: the user cannot speak over himself",
    one("{say: two, at: agent_start, delay_ms: -1}"): "s.yaml:4:43: agent_start takes no negative delay_ms",
    one("{say: two, at: user_end, timeout_ms: 9}"): "s.yaml:4:42: timeout_ms is for agent_start and agent_end",
    one("{say: two, at: agent_end, timeout_ms: 0}"): "s.yaml:4:43: timeout_ms is a whole number from 1 to 600000",
    one("{say: two, at: agent_end, jitter_ms: [5, 4]}"): "s.yaml:4:42: jitter_ms: the lowest (5) is above the highest",
    one("{say: two, at: agent_end, jitter_ms: [5]}"): "s.yaml:4:42: jitter_ms is one number (from 0 to it) or two",
    one("{say: two, at: agent_end, jitter_ms: -5}"): "s.yaml:4:42: jitter_ms is a whole number from 0 to 600000",
    one("{say: two, at: agent_end, gain_db: .nan}"): "s.yaml:4:40: gain_db is a number from -80 to 20, not '.nan'",
    one("{say: two, at: agent_end, kind: noise}"): "s.yaml:4:37: kind of say cannot be 'noise'; known: backchannel",
    one(
        "{say: two, at: agent_end, expect: silent}"
    ): "s.yaml:4:39: expect cannot be 'silent'; did you mean stay_silent",
    one("{say: two, id: e1, at: user_end}"): "s.yaml:4:20: id 'e1' is used by an earlier event",
    one("{noise: white, at: user_end, expect: stop}"): "s.yaml:4:13: the noise 'white' is generated and needs duration",
    one("{noise: hum, at: user_end, expect: stop, duration_ms: 50}"): "s.yaml:4:59: duration_ms is for generated noise",
    "id: a\n\tb": "s.yaml:2:1: not YAML (",
    "id: a: b": "s.yaml:1:6: not YAML (mapping values are not allowed here)",
    "id: 'a": "s.yaml:1:7: not YAML (found unexpected end of stream)",
    "id: a\ntitle: x\x07": "s.yaml:2:9: not YAML (a character that YAML does not allow)",
    'id: "\\Uffffffff"': "s.yaml: not YAML (",
    'id: "a\\uD800"\nevents: [{say: one}]': "s.yaml:1:5: id holds a control character or half a character, by an esc",
    'id: a\ntitle: "\\e[31m"\nevents: [{say: one}]': "s.yaml:2:8: title holds a control character or half a character",
    "%YAML 9.9\n---\nid: a": "s.yaml:1:1: not YAML (",
    "id: !!python/object:os.system x": "s.yaml:1:5: tags (!) are not used here",
    "id: &a x\ntitle: *a": "s.yaml:1:5: anchors and aliases (& and *) are not used here",
    "id: *a": "s.yaml:1:5: anchors and aliases (& and *) are not used here",
    "id: " + "[" * 50_000: "s.yaml:1:14: nested more than 10 deep",
    "x" * (MAX_CHARACTERS + 1): f"s.yaml: {MAX_CHARACTERS + 1} characters, a scenario file has at most",
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_has_a_place_and_one_line(text: str):
    with pytest.raises(ConfigError) as caught:
        read_scenarios(text, "s.yaml")
    assert str(caught.value).startswith(MISTAKES[text])
    assert "\n" not in str(caught.value)


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"#%@,?\n \t0é中\x00\ufeff\ud800"), max_size=60))
def test_any_text_is_a_scenario_or_a_clear_error(text: str):
    try:
        read_scenarios(text, "s.yaml")
    except ConfigError as exc:
        assert "\n" not in str(exc)  # noqa: PT017 - any other error fails the test


def test_a_missing_clip_is_named_with_its_place_and_the_nearest_one():
    (scenario,) = read_scenarios(WHOLE, "s.yaml")
    known = {"question", "stop", "mm", "radio", "thanks"}
    check_clips(scenario, known)
    with pytest.raises(
        ConfigError, match=r"^s.yaml:16:10: say: the pack has no clip 'question'; did you mean questions\?"
    ):
        check_clips(scenario, known - {"question"} | {"questions"})


def test_a_misspelt_noise_meets_the_generated_ones():
    (scenario,) = read_scenarios("id: a\nevents: [{noise: wite, expect: stay_silent}]", "s.yaml")
    with pytest.raises(ConfigError, match="did you mean white"):
        check_clips(scenario, {"question"})


def test_several_documents_and_files_in_name_order(tmp_path: Path):
    (tmp_path / "b.yml").write_text("id: three\nevents: [{say: x}]\n")
    (tmp_path / "a.yaml").write_text("---\nid: one\nevents: [{say: x}]\n---\nid: two\nevents: [{say: x}]\n---\n")
    (tmp_path / "notes.txt").write_text("not: [a scenario")
    assert [scenario.id for scenario in load_scenarios(tmp_path)] == ["one", "two", "three"]
    assert load_scenarios(tmp_path / "a.yaml")[1].where == f"{tmp_path / 'a.yaml'}:5:1"


def test_an_id_is_used_once_in_a_folder(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("id: one\nevents: [{say: x}]\n")
    (tmp_path / "b.yaml").write_text("# b\nid: one\nevents: [{say: x}]\n")
    with pytest.raises(ConfigError, match=r"b.yaml:2:1: id 'one' was already used at .*a.yaml:1:1$"):
        load_scenarios(tmp_path)


def test_files_that_are_none(tmp_path: Path):
    with pytest.raises(ConfigError, match="no such file"):
        load_scenarios(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match=r"no scenarios \(no .yaml file\)"):
        load_scenarios(tmp_path)
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")
    with pytest.raises(ConfigError, match=r"no scenarios$"):
        load_scenarios(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"id: \xe9")
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(byte 4\)"):
        load_scenarios(tmp_path / "latin.yaml")


def test_the_example_in_the_docs_is_one():
    text = (Path(__file__).parents[2] / "scenarios" / "README.md").read_text(encoding="utf-8")
    example = text.split("```yaml\n")[1].split("```")[0]
    (scenario,) = read_scenarios(example, "cut_in.yaml")
    assert len(scenario.events) == 4
    with pytest.raises(ConfigError) as caught:
        read_scenarios(example.replace("agent_start", "agent_strat"), "cut_in.yaml")
    assert str(caught.value) in text
    with pytest.raises(ConfigError) as caught:
        check_clips(
            read_scenarios(example.replace("en-int-01", "en-int-1"), "cut_in.yaml")[0], ["en-q-03", "en-int-01"]
        )
    assert str(caught.value) in text
