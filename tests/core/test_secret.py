"""A key that comes back is taken out of whatever it stands in."""

from __future__ import annotations

import pytest

from connectors.gemini import without_handle
from harness.core.errors import ConnectorError
from harness.core.events import PeerError, ResponseDone, TextReceived, WireFrame
from harness.core.secret import MASK, Secret

KEY = "sk-marker-1234567890"


def cleaned(event):
    seen = []
    Secret(KEY).guard(seen.append)(event)
    return seen[0]


def test_text_fields_and_nested_usage_keys_and_values() -> None:
    assert cleaned(PeerError(t_ns=1, code=f"bad {KEY}", message=f"{KEY} {KEY}")).message == f"{MASK} {MASK}"
    usage = {KEY: [KEY, {"x": f"a{KEY}b"}], "n": 3}
    done = cleaned(ResponseDone(t_ns=1, usage=usage))
    assert done.usage == {MASK: [MASK, {"x": f"a{MASK}b"}], "n": 3}


def test_wire_text_as_it_is_and_escaped() -> None:
    plain = cleaned(WireFrame(t_ns=1, direction="in", text=f'{{"a":"{KEY}"}}'))
    assert KEY not in plain.text
    escaped = WireFrame(t_ns=1, direction="in", text='{"a":"\\u0073k-marker-1234567890","b":"\\n"}')
    assert "marker-1234567890" not in cleaned(escaped).text
    harmless = WireFrame(t_ns=1, direction="in", text='{"b":"\\n"}')
    assert cleaned(harmless) is harmless


def test_errors_lose_the_key_before_they_are_cut() -> None:
    error = ConnectorError("x" * 390 + KEY, kind="peer", code=KEY)
    scrubbed = Secret(KEY).scrubbed(error)
    assert "sk-" not in str(scrubbed)
    assert scrubbed.code == MASK
    assert len(str(scrubbed)) <= 401


def test_without_a_key_nothing_is_touched() -> None:
    seen = []
    sink = seen.append
    assert Secret(None).guard(sink) is sink
    event = TextReceived(t_ns=1, text="hello")
    assert cleaned(event) is event


@pytest.mark.parametrize("depth", [10, 700, 20_000])
def test_wire_text_that_is_no_json_or_nested_beyond_measure(depth: int) -> None:
    text = '{"a":"\\u0073k-marker-1234567890","b":' + "[" * depth
    for broken in (text, text + "]" * depth + "}"):
        shown = cleaned(WireFrame(t_ns=1, direction="in", text=broken)).text
        assert "marker-1234567890" not in shown
        assert MASK in shown


def test_a_resumption_handle_is_masked_however_it_is_written() -> None:
    for name in ("newHandle", "newH\\u0061ndle", "new_h\\u0061ndle"):
        assert "sesame" not in without_handle(f'{{"update":{{"{name}":"ses\\u0061me"}}}}').replace("\\u0061", "a")
    harmless = '{"text":"\\u0022handle\\u0022: kept"}'
    assert without_handle(harmless) == harmless


@pytest.mark.parametrize("kept", [6, 10, len("sk-live-0123456789abcdef") - 1])
def test_a_key_that_a_bound_cut_short_is_masked_too(kept: int) -> None:
    key = "sk-live-0123456789abcdef"
    text = "the peer said " + "x" * 60 + key[:kept]
    assert Secret(key).scrub(text) == "the peer said " + "x" * 60 + MASK
    assert Secret(key).scrub("a whole, short sk-liv") == "a whole, short sk-liv"
